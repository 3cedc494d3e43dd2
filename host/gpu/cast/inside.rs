//! The recursion of casts into the parts of arrays.

use arrow_schema::{DataType, Field};

use crate::array::{DeviceArray, children, forbids_nulls};
use crate::engine::Later;
use crate::gpu::parts::none;
use crate::pass::Pass;
use crate::{Result, Stream};

/// How values are cast.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// Whether values that do not fit become null.
    pub safe: bool,
    /// Whether the caller has formats of its own for text.
    pub formatted: bool,
}

/// Casts of the parts of arrays, by any route. The routes are in files that need it, so it is a trait.
pub(super) trait Parts: Sync {
    /// Casts values to another type.
    fn cast<'a>(
        &self,
        values: &'a DeviceArray,
        to: &'a DataType,
        options: Options,
        stream: &'a Stream,
    ) -> Later<'a, DeviceArray>;
}

/// A cast, with what it needs to recurse into parts.
#[derive(Clone, Copy)]
pub(super) struct Cast<'a> {
    pub options: Options,
    pub stream: &'a Stream,
    pub parts: &'static dyn Parts,
}

impl Cast<'_> {
    /// Casts values to another type, by any route.
    pub async fn cast(self, values: &DeviceArray, to: &DataType) -> Result<DeviceArray> {
        self.parts.cast(values, to, self.options, self.stream).await
    }

    /// Returns whether casting unreferenced items could change the result: by an error, or by nulls in a
    /// field that is not nullable.
    pub fn minds_unseen(self, items: &DeviceArray, item: &Field) -> bool {
        let (from, to) = (items.data_type(), item.data_type());
        let converted = from != to && (!self.options.safe || forbids_nulls(to) || fails_safely(from, to));
        !item.is_nullable() || converted
    }

    /// Casts an empty list array. Its items are cast too: the values of a dictionary may fail even if no row
    /// uses them.
    pub async fn of_no_rows(self, values: &DeviceArray, to: &DataType, item: &Field) -> Result<DeviceArray> {
        let items = self.cast(&values.children()[0].slice(0, 0)?, item.data_type()).await?;
        let pass = self.begin(&[values, &items])?;
        none(pass, to)
    }

    /// Begins a pass that reads these arrays.
    pub fn begin(self, inputs: &[&DeviceArray]) -> Result<Pass> {
        let mut pass = Pass::begin("cast", self.stream)?;
        inputs.iter().try_for_each(|input| pass.input(input))?;
        Ok(pass)
    }
}

/// Returns whether values may fail even a safe cast: too many for the keys or run ends, no textual form, or
/// too much text for the offsets.
fn fails_safely(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (_, Dictionary(..) | RunEndEncoded(..)) => true,
        (Utf8 | Binary, to) if !to.is_nested() => false,
        (_, Utf8 | Binary) => true,
        (from, LargeUtf8 | Utf8View) => !(from.is_string() || from.is_binary()),
        _ => {
            let inside = children(from);
            let from = if inside.is_empty() { vec![from] } else { inside };
            children(to).into_iter().any(|to| from.iter().any(|from| fails_safely(from, to)))
        }
    }
}
