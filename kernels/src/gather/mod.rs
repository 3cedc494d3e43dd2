//! Rows and bytes from elsewhere: [`take`] moves the rows that indices choose, [`copy`] the contents of
//! ranges, and [`concat`](mod@concat) puts arrays end to end.

mod bytes;
pub mod concat;
pub mod copy;
mod indices;
pub(crate) mod places;
mod short;
pub mod take;

host_only! {
    /// The tables of entries of these modules.
    pub(crate) static TABLES: &[&dyn crate::target::Table] = &[
        &concat::CONCAT_BITS, &concat::REBASE, &concat::SPANS,
        &copy::COPY_BITS, &copy::COPY_BYTES, &copy::COPY_OFFSETS, &copy::COPY_VIEWS,
        &take::TAKE, &take::TAKE_BITS,
    ];
}
