//! Converts bowstring's errors to DataFusion's.

use bowstring::{Error, Failure};
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// Converts a bowstring error to the class that DataFusion's own operators would return: errors in the data
/// become arrow errors, lack of memory becomes a resource error, and device errors stay as they are, to be
/// found by downcasting.
pub(crate) fn external(error: Error) -> DataFusionError {
    match error {
        Error::Evaluation { failure: Failure::DivisionByZero, .. } => refused(ArrowError::DivideByZero),
        // On a device, the two can be told apart only if the divisor is a column or a literal.
        Error::Evaluation { failure: Failure::Either, .. } => {
            refused(ArrowError::ComputeError(error.to_string()))
        }
        Error::Evaluation { .. } => refused(ArrowError::ArithmeticOverflow(error.to_string())),
        Error::Cast { .. } => refused(ArrowError::CastError(error.to_string())),
        Error::OutOfMemory { .. } | Error::TooManyPairs { .. } => {
            DataFusionError::ResourcesExhausted(error.to_string())
        }
        Error::Arrow { .. } => refused(ArrowError::ComputeError(error.to_string())),
        other => DataFusionError::External(Box::new(other)),
    }
}

/// Wraps an arrow-rs error.
pub(crate) fn refused(error: ArrowError) -> DataFusionError {
    DataFusionError::ArrowError(Box::new(error), None)
}
