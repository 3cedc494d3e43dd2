//! Rows that a mask keeps: a [`selection`] numbers them, and the others move them.

pub mod bits;
pub mod filter;
pub mod filter_few;
pub mod filter_small;
pub mod ranges;
pub mod selection;

host_only! {
    /// The tables of entries of these modules.
    pub(crate) static TABLES: &[&dyn crate::target::Table] = &[
        &bits::FILTER_BITS,
        &filter::FILTER,
        &filter_few::FILTER_FEW,
        &filter_small::FILTER_SMALL,
        &filter_small::FILTER_SMALL_BITS,
        &ranges::KEEP,
        &selection::OFFSETS,
        &selection::SELECT,
    ];
}
