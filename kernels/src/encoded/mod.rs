//! Indices for encoded arrays: the run or member of each row, and the first equal row.
//!
//! The one idea: whatever the encoding, these kernels find the place of a row's value, and the result is
//! an index. With indices, the kernels that move rows ([`take`](crate::gather::take),
//! [`filter`](crate::select::filter)) do the rest, whatever the values are. So an array of runs becomes
//! the run of each row ([`runs`]), a union becomes the row of its member ([`unions`]), lists become the
//! places of their items ([`lists`](crate::ranges::lists)), and an array to be encoded becomes the first
//! equal row of each row ([`distinct`]).
//!
//! A lane takes a row, a wave takes [`TILE`](crate::reduce::scan::TILE) rows one after the other. These
//! kernels check the indices that they find: an index they write is within the array it refers to, or is
//! [`NONE`](rows::NONE).

pub mod distinct;
pub(crate) mod equal;
pub mod rows;
pub mod runs;
pub mod unions;

host_only! {
    /// The tables of entries of these modules.
    pub(crate) static TABLES: &[&dyn crate::target::Table] = &[
        &distinct::CLAIM, &distinct::SETTLE, &distinct::STRETCHES,
        &runs::ENDS, &runs::FIND, &runs::KEPT, &runs::RANKS,
        &unions::MEMBERS, &unions::OF_TYPE, &unions::SPREAD,
    ];
}
