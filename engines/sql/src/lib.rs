//! Parts of the program `bowstring-sql` that other programs use: files as tables, and the progress of a
//! query.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod files;
pub mod progress;

use datafusion::error::Result;
use datafusion::prelude::SessionContext;

/// Sets an option of DataFusion's or ours.
pub fn set(context: &SessionContext, key: &str, value: &str) -> Result<()> {
    context.state_ref().write().config_mut().options_mut().set(key, value)
}
