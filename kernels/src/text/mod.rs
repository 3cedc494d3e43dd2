//! Text: [`search`] tests it, [`substring`] takes parts of it, [`parse`] makes values of it, and [`format`]
//! makes it of values, the same on every machine.
//!
//! The one idea: parsing and formatting are plain functions of bytes, with [`Bytes`](bytes::Bytes) to read
//! from and a [`Sink`](format::sink::Sink) to write to. They know no rows, nulls, layouts or devices; a
//! GPU's lane has a row, and so has an iteration on the CPU. arrow-cast is the reference: the functions
//! accept the texts that it accepts, with the same values, and no others.
//!
//! Device images have no data, so tables are in memory, and a function receives their address.

pub mod bytes;
pub mod calendar;
pub mod digits;
pub mod format;
pub mod parse;
pub mod powers;
pub mod print;
pub mod rows;
pub mod search;
pub mod substring;
pub mod unit;
pub mod utf8;
pub mod words;
pub mod zone;

host_only! {
    /// The tables of entries of these modules.
    pub(crate) static TABLES: &[&dyn crate::target::Table] = &[
        &format::kernels::MEASURE, &format::kernels::WRITE,
        &parse::kernels::QUOTE, &parse::kernels::READ, &parse::kernels::READ_HARD,
        &print::ITEM_LENS, &print::PRINT, &print::ROW_LENS,
        &search::kernels::TEXT, &substring::SUBSTRING, &utf8::VALIDATE, &zone::kernels::CAST_ZONED,
    ];
}
