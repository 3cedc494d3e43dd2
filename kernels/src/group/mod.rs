//! Groups of equal rows.
//!
//! The one idea: the keys of a row become a word ([`keys`]), and a table finds the first row with that word
//! ([`table`]), by its hash or, if words are in a narrow range, by itself ([`dense`]). Groups are numbered in
//! the order of their first rows, so that no number depends on the order in which lanes arrive. Integers are
//! then summed as they come ([`tally`]). For all other folds the rows of a group are put together, in
//! [`segments`], and their values are folded there ([`fold`]). Frames, which overlap, are folded by
//! [`frames`].

pub mod dense;
pub mod divide;
pub mod fold;
mod folders;
pub mod frames;
pub mod keys;
pub mod parts;
pub mod root;
pub mod segments;
pub mod table;
pub mod tally;

host_only! {
    /// The tables of entries of these modules.
    pub(crate) static TABLES: &[&dyn crate::target::Table] = &[
        &dense::CLEAR, &dense::RANGE, &divide::DIVIDE, &fold::FOLD, &frames::ENDS, &frames::FRAMES, &keys::CHECK, &keys::WORDS,
        &parts::PARTS, &root::ROOT, &segments::PIECES, &segments::SPANS, &table::IDS, &table::INSERT,
        &table::NUMBER, &table::OWN, &tally::TALLIED, &tally::TALLY,
    ];
}
