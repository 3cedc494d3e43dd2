//! Everything that can go wrong, sorted by who must act.

use std::collections::BTreeMap;
use std::fmt;

use arrow_schema::DataType;

use crate::ffi::DeviceType;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong, sorted by who must act.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's arguments do not fit together.
    #[error("{operation}: {problem}")]
    Invalid {
        /// The operation that was asked for.
        operation: &'static str,
        /// What does not fit.
        problem: String,
    },
    /// We do not do this (yet); the arguments are fine.
    #[error("{operation} does not support {data_type} on {device}")]
    Unsupported {
        /// The operation that was asked for.
        operation: &'static str,
        /// The type, or the pair of types, that it does not know.
        data_type: String,
        /// Where the data is.
        device: DeviceType,
    },
    /// A producer on the other side of a C interface broke the format.
    #[error("malformed array at {at}: {problem}")]
    OutOfSpec {
        /// Which part, as a path from the top: `array.children[2].buffers[1]`.
        at: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A producer's stream failed; its own words.
    #[error("the producer failed with code {code}: {message}")]
    Producer {
        /// Its `errno`.
        code: i32,
        /// What it said.
        message: String,
        /// What else it gave along; only asynchronous streams can.
        metadata: BTreeMap<String, String>,
    },
    /// Memory ran out, or the pool's limit was reached.
    #[error("out of memory: {bytes} bytes on {device}")]
    OutOfMemory {
        /// What was asked for.
        bytes: usize,
        /// Where.
        device: DeviceType,
    },
    /// An index points outside of what it indexes.
    #[error("index {index} at row {row} is out of bounds for length {len}")]
    IndexOutOfBounds {
        /// The first row whose index is out of bounds.
        row: usize,
        /// The index found there.
        index: i128,
        /// The length that it had to be below.
        len: usize,
    },
    /// A value does not fit the type it was cast to, and the cast was strict.
    #[error("cannot cast row {row} from {from} to {to}: {problem}")]
    Cast {
        /// The first row that failed, where it is known. Of what lists, dictionaries and runs are made of, the first value there.
        row: usize,
        /// The type of the values.
        from: DataType,
        /// The type asked for.
        to: DataType,
        /// Why.
        problem: String,
    },
    /// Arithmetic that overflows or divides by zero.
    #[error("row {row}: {expression} {failure}")]
    Evaluation {
        /// The first row that failed.
        row: usize,
        /// What was computed there.
        expression: String,
        /// Why there is no result.
        failure: Failure,
    },
    /// There is no such column.
    #[error("no column {column}; there are {}", names(columns))]
    NoColumn {
        /// Its name, or its number, as an expression writes it.
        column: String,
        /// The number, where it was asked for by one.
        number: Option<usize>,
        /// The columns that there are.
        columns: Vec<String>,
    },
    /// The caller no longer wants the result; see [`interruptible`](crate::interruptible).
    #[error("interrupted by the caller")]
    Interrupted,
    /// A call into a device runtime failed.
    #[error("{call} failed with code {code} on {device}")]
    Driver {
        /// The runtime's function.
        call: &'static str,
        /// What it returned.
        code: i64,
        /// Whose runtime.
        device: DeviceType,
    },
    /// A device's runtime does not take the compiled kernels of a family.
    #[error("{call} of the kernels of {family} failed with code {code} on {device}: {log}")]
    Image {
        /// The kernel family.
        family: &'static str,
        /// The runtime's function.
        call: &'static str,
        /// What it returned.
        code: i64,
        /// Whose runtime.
        device: DeviceType,
        /// What its compiler said.
        log: String,
    },
    /// There is no such device here.
    #[error("no {device} device: {reason}")]
    NoDevice {
        /// What was looked for.
        device: DeviceType,
        /// Why it cannot be used.
        reason: String,
    },
    /// arrow-rs refused; its own words.
    #[error("{operation}: {problem}")]
    Arrow {
        /// The operation that was asked for.
        operation: &'static str,
        /// What arrow-rs said.
        problem: String,
    },
}

/// Why arithmetic has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The type does not have the value.
    Overflow,
    /// The divisor is zero.
    DivisionByZero,
    /// One of both. A device says which row failed; to know why, the divisor has to be a column or the same for all rows.
    Either,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Overflow => "overflows",
            Failure::DivisionByZero => "divides by zero",
            Failure::Either => "overflows or divides by zero",
        })
    }
}

/// So many names that a line has room for.
fn names(columns: &[String]) -> String {
    let most = 10;
    let more = if columns.len() > most { ", ..." } else { "" };
    format!("{}{more}", columns[..columns.len().min(most)].join(", "))
}

impl Error {
    /// The caller's arguments do not fit together.
    pub(crate) fn invalid(operation: &'static str, problem: impl Into<String>) -> Error {
        Error::Invalid { operation, problem: problem.into() }
    }

    /// The producer broke the format.
    pub(crate) fn out_of_spec(at: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::OutOfSpec { at: at.into(), problem: problem.into() }
    }

    /// The error of a part of an array, which called that part `array`, as its parent's.
    pub(crate) fn inside(self, part: &str) -> Error {
        match self {
            Error::OutOfSpec { at, problem } => {
                Error::OutOfSpec { at: at.replacen("array", &format!("array.{part}"), 1), problem }
            }
            other => other,
        }
    }
}
