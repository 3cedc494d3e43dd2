//! Errors of bowstring's as DataFusion has them.

use bowstring::Error;
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// An error of ours, of the class that DataFusion's own operators would have said: what the data did is arrow's, memory is a
/// resource, and what a device did stays what it is, to be found by downcasting.
pub(crate) fn external(error: Error) -> DataFusionError {
    match error {
        Error::Evaluation { .. } => refused(ArrowError::ArithmeticOverflow(error.to_string())),
        Error::Cast { .. } => refused(ArrowError::CastError(error.to_string())),
        Error::OutOfMemory { .. } => DataFusionError::ResourcesExhausted(error.to_string()),
        Error::Arrow { .. } => refused(ArrowError::ComputeError(error.to_string())),
        other => DataFusionError::External(Box::new(other)),
    }
}

/// An error of arrow-rs'.
pub(crate) fn refused(error: ArrowError) -> DataFusionError {
    DataFusionError::ArrowError(Box::new(error), None)
}
