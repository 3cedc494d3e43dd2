//! The order of rows: [`words`] makes numbers of values, and [`places`] puts rows where their numbers
//! belong.
//!
//! The one idea: a stable placement by eight bits at a time, the lowest first, sorts by words of any length,
//! and so by any number of columns, because the last placement decides and the others settle its ties. Text,
//! of any length, is sorted from its first bytes on, and only rows that are equal so far go on: see [`ties`].
//! Nested values become numbers and text: see [`lists`].

pub mod lists;
pub mod places;
pub mod ranks;
pub mod ties;
pub mod words;

host_only! {
    /// The tables of entries of these modules.
    pub(crate) static TABLES: &[&dyn crate::target::Table] = &[
        &lists::LIST_BYTES, &places::COUNT, &places::PLACE, &ranks::RANKS, &ties::NARROW, &ties::SCATTER,
        &ties::TEXT_WORDS, &ties::TIES, &words::REORDER, &words::WORDS,
    ];
}
