//! Joins: rows that have the keys of others.
//!
//! The one idea: the keys of one side are in a table of groups (see [`group`](crate::group)), and each row of
//! the other side finds its group there ([`find`]). A group's rows are together in an order, so a row's pairs
//! are as many as its group has rows; they are counted before they are written ([`pairs`]).

pub mod find;
pub mod pairs;

host_only! {
    /// The tables of entries of these modules.
    pub(crate) static TABLES: &[&dyn crate::target::Table] = &[
        &find::COMPARE, &find::FIND, &pairs::COUNT, &pairs::MARK, &pairs::WRITE,
    ];
}
