//! Numbers of many rows: set bits are counted, and lengths are summed.

pub mod bitmap;
pub mod scan;

host_only! {
    /// The tables of entries of these modules.
    pub(crate) static TABLES: &[&dyn crate::target::Table] =
        &[&bitmap::COMBINE, &bitmap::NULL_COUNT, &scan::SCAN, &scan::SUMS];
}
