//! Rows of variable length: offsets, views and lists, and the ranges of elements that they stand for.

pub mod lists;
pub mod offsets;
pub mod rows;
pub mod views;

host_only! {
    /// The tables of entries of these modules.
    pub(crate) static TABLES: &[&dyn crate::target::Table] = &[
        &lists::COVERED, &lists::EXTENTS, &lists::ITEMS, &lists::SIZED, &lists::SPACED,
        &offsets::CONVERT, &offsets::KEYS, &offsets::OFFENDER, &offsets::REGULAR,
        &rows::COMPOSE, &rows::TAKE, &views::BUILD, &views::MEASURE,
    ];
}
