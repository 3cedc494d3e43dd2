//! The recursion of casts into the parts of arrays.

use std::future::Future;
use std::pin::Pin;

use arrow_cast::CastOptions;
use arrow_schema::{DataType, Field};

use crate::array::{DeviceArray, children, forbids_nulls};
use crate::gpu::parts::none;
use crate::pass::Pass;
use crate::{Result, Stream};

/// A part that is being made.
pub(crate) type Part<'a> = Pin<Box<dyn Future<Output = Result<DeviceArray>> + Send + 'a>>;

/// The public operations that casts of parts call.
#[derive(Clone, Copy)]
pub(crate) struct Inside {
    /// Casts any part, by any route.
    pub cast: for<'a> fn(&'a DeviceArray, &'a DataType, &'a CastOptions<'a>, &'a Stream) -> Part<'a>,
    /// Writes plain values as LargeUtf8. Values without a textual form have no bytes.
    pub write: for<'a> fn(&'a DeviceArray, &'a Stream) -> Part<'a>,
    /// Returns the text printed for values of a type that have no textual form.
    pub misfits: fn(&DataType) -> Option<Misfits>,
}

/// The text printed for a value that has no textual form.
pub(crate) struct Misfits {
    /// The text before and after the number.
    pub said: [String; 2],
    /// Values in this range have a textual form.
    pub unsaid: [i64; 2],
}

/// A cast, with what it needs to recurse into parts.
#[derive(Clone, Copy)]
pub(super) struct Cast<'a> {
    pub options: &'a CastOptions<'a>,
    pub stream: &'a Stream,
    pub inside: Inside,
}

impl Cast<'_> {
    /// Casts values to another type, by any route.
    pub async fn cast(self, values: &DeviceArray, to: &DataType) -> Result<DeviceArray> {
        (self.inside.cast)(values, to, self.options, self.stream).await
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
