//! The crate's error type. Variants are sorted by who must act.

use std::collections::BTreeMap;
use std::fmt;

use arrow_schema::DataType;

use crate::ffi::DeviceType;

/// A `Result` whose error defaults to this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of any operation in this crate. The variants tell who must act: the caller, the producer of the
/// data, or the operator of the machine.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's arguments do not fit together.
    #[error("{operation}: {problem}")]
    Invalid {
        /// The operation that was called.
        operation: &'static str,
        /// Describes how the arguments conflict.
        problem: String,
    },
    /// The operation does not support this combination of type and device (yet); the arguments themselves are
    /// valid.
    #[error("{operation} does not support {what} on {device}")]
    Unsupported {
        /// The operation that was called.
        operation: &'static str,
        /// The types or the feature that it does not support.
        what: Unsupported,
        /// The device that holds the data.
        device: DeviceType,
    },
    /// A producer on the other side of a C interface violated the format.
    #[error("malformed array at {at}: {problem}")]
    OutOfSpec {
        /// The malformed part, as a path from the root: `array.children[2].buffers[1]`.
        at: String,
        /// Describes how it violates the format.
        problem: String,
    },
    /// A producer's stream failed. The message is the producer's own.
    #[error("the producer failed with code {code}: {message}")]
    Producer {
        /// The `errno` value that the producer returned.
        code: i32,
        /// The producer's error message.
        message: String,
        /// Additional metadata from the producer; only asynchronous streams provide it.
        metadata: BTreeMap<String, String>,
    },
    /// The device has no memory left, or the pool's limit was reached.
    #[error("out of memory: {bytes} bytes on {device}")]
    OutOfMemory {
        /// The size of the failed request.
        bytes: usize,
        /// The device on which the allocation failed.
        device: DeviceType,
    },
    /// A join makes more pairs of rows than there is memory for.
    #[error("out of memory: {pairs} pairs of rows on {device}")]
    TooManyPairs {
        /// The number of pairs.
        pairs: u64,
        /// The device on which they were to be written.
        device: DeviceType,
    },
    /// An index points outside of the array that it indexes.
    #[error("index {index} at row {row} is out of bounds for length {len}")]
    IndexOutOfBounds {
        /// The first row whose index is out of bounds.
        row: usize,
        /// The index at that row.
        index: i128,
        /// The exclusive upper bound for indices.
        len: usize,
    },
    /// A value does not fit the target type of a strict cast.
    #[error("cannot cast row {row} from {from} to {to}: {problem}")]
    Cast {
        /// The first row that failed, if known. For values inside lists, dictionaries and run-end encoded
        /// arrays, this counts the inner values.
        row: usize,
        /// The type of the values.
        from: DataType,
        /// The target type of the cast.
        to: DataType,
        /// Describes why the value does not fit.
        problem: String,
    },
    /// Arithmetic overflowed or divided by zero.
    #[error("row {row}: {expression} {failure}")]
    Evaluation {
        /// The first row that failed.
        row: usize,
        /// The expression that failed, as text.
        expression: String,
        /// The reason why the row has no result.
        failure: Failure,
    },
    /// An expression names a column that the schema does not have.
    #[error("no column {column}; there are {}", names(columns))]
    NoColumn {
        /// The name or number of the column, as the expression writes it.
        column: String,
        /// The column's number, if the expression selects it by number.
        number: Option<usize>,
        /// The names of the columns in the schema.
        columns: Vec<String>,
    },
    /// The caller no longer wants the result; see [`interruptible`](crate::interruptible).
    #[error("interrupted by the caller")]
    Interrupted,
    /// A call into a device runtime failed.
    #[error("{call} failed with code {code} on {device}")]
    Driver {
        /// The name of the runtime's function.
        call: &'static str,
        /// The error code that the runtime returned.
        code: i64,
        /// The device type whose runtime failed.
        device: DeviceType,
    },
    /// A device's runtime rejects the compiled kernels of a family.
    #[error("{call} of the kernels of {family} failed with code {code} on {device}: {log}")]
    Image {
        /// The kernel family that failed to load.
        family: &'static str,
        /// The name of the runtime's function.
        call: &'static str,
        /// The error code that the runtime returned.
        code: i64,
        /// The device type whose runtime failed.
        device: DeviceType,
        /// The log of the runtime's compiler.
        log: String,
    },
    /// The machine has no usable device of this type.
    #[error("no {device} device: {reason}")]
    NoDevice {
        /// The type of the requested device.
        device: DeviceType,
        /// Describes why it cannot be used.
        reason: String,
    },
    /// arrow-rs returned an error. The message is arrow-rs' own.
    #[error("{operation}: {problem}")]
    Arrow {
        /// The operation that was called.
        operation: &'static str,
        /// The error message from arrow-rs.
        problem: String,
    },
}

/// The types or the feature that an operation does not support.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Unsupported {
    /// Arrays of a type.
    Type(DataType),
    /// A cast between two types.
    Cast {
        /// The type of the values.
        from: DataType,
        /// The type that they would get.
        to: DataType,
    },
    /// Anything else, such as single values or the layout of an array, in words.
    Other(String),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsupported::Type(data_type) => write!(f, "{data_type}"),
            Unsupported::Cast { from, to } => write!(f, "{from} to {to}"),
            Unsupported::Other(what) => f.write_str(what),
        }
    }
}

impl From<&DataType> for Unsupported {
    fn from(data_type: &DataType) -> Unsupported {
        Unsupported::Type(data_type.clone())
    }
}

impl From<String> for Unsupported {
    fn from(what: String) -> Unsupported {
        Unsupported::Other(what)
    }
}

impl From<&str> for Unsupported {
    fn from(what: &str) -> Unsupported {
        Unsupported::Other(what.to_owned())
    }
}

/// The reason why arithmetic has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The result does not fit the type.
    Overflow,
    /// The divisor is zero.
    DivisionByZero,
    /// Either an overflow or a division by zero. A device only reports which row failed; the two cases can be
    /// told apart only if the divisor is a column or the same for all rows.
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

/// The words by which the errors of results that are too long for their offsets are known.
const DO_NOT_FIT: &str = "do not fit the offsets of";

/// Joins as many names as fit on one line.
fn names(columns: &[String]) -> String {
    let most = 10;
    let more = if columns.len() > most { ", ..." } else { "" };
    format!("{}{more}", columns[..columns.len().min(most)].join(", "))
}

impl Error {
    pub(crate) fn invalid(operation: &'static str, problem: impl Into<String>) -> Error {
        Error::Invalid { operation, problem: problem.into() }
    }

    pub(crate) fn out_of_host_memory(bytes: usize) -> Error {
        Error::OutOfMemory { bytes, device: DeviceType::Cpu }
    }

    /// The error for a result with more elements than the offsets of its type can count.
    pub(crate) fn too_long(
        operation: &'static str,
        elements: impl fmt::Display,
        data_type: &DataType,
    ) -> Error {
        Error::Invalid { operation, problem: format!("{elements} {DO_NOT_FIT} {data_type}") }
    }

    /// Whether a result is too long for its offsets, so that the results of fewer rows may fit.
    pub(crate) fn is_too_long(&self) -> bool {
        matches!(self, Error::Invalid { problem, .. } if problem.contains(DO_NOT_FIT))
    }

    /// The error of an allocation for so many pairs of rows.
    pub(crate) fn of_pairs(self, pairs: u64) -> Error {
        match self {
            Error::OutOfMemory { device, .. } => Error::TooManyPairs { pairs, device },
            other => other,
        }
    }

    pub(crate) fn out_of_spec(at: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::OutOfSpec { at: at.into(), problem: problem.into() }
    }

    /// Prefixes the path of an error in `part` of an array, so that it starts from the parent's root.
    pub(crate) fn inside(self, part: &str) -> Error {
        match self {
            Error::OutOfSpec { at, problem } => {
                Error::OutOfSpec { at: at.replacen("array", &format!("array.{part}"), 1), problem }
            }
            other => other,
        }
    }
}
