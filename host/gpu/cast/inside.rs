//! A cast on its way down through the parts of arrays.

use arrow_cast::CastOptions;
use arrow_schema::DataType;

use crate::array::Array;
use crate::pass::Pass;
use crate::{Result, Stream};

/// Casts a part of an array, whatever way there is.
pub(crate) type CastInside = dyn Fn(&Array, &DataType, &CastOptions<'_>) -> Result<Array>;

/// A cast on its way down.
#[derive(Clone, Copy)]
pub(super) struct Cast<'a> {
    pub options: &'a CastOptions<'a>,
    pub stream: &'a Stream,
    pub inside: &'a CastInside,
}

impl Cast<'_> {
    /// The values as another type, whatever way there is.
    pub fn cast(self, values: &Array, to: &DataType) -> Result<Array> {
        (self.inside)(values, to, self.options)
    }

    /// A pass that reads these.
    pub fn begin(self, inputs: &[&Array]) -> Result<Pass> {
        let mut pass = Pass::begin("cast", self.stream)?;
        inputs.iter().try_for_each(|input| pass.input(input))?;
        Ok(pass)
    }
}
