//! A cast on its way down through the parts of arrays.

use arrow_cast::CastOptions;
use arrow_schema::{DataType, Field};

use crate::array::{Array, children, forbids_nulls};
use crate::gpu::parts::none;
use crate::pass::Pass;
use crate::{Result, Stream};

/// What casts a part of an array, whatever way there is.
pub(crate) struct Inside<'a> {
    /// Any part.
    pub cast: &'a dyn Fn(&Array, &DataType, &CastOptions<'_>) -> Result<Array>,
    /// Plain values, as LargeUtf8. Those that have no text have no bytes.
    pub write: &'a dyn Fn(&Array) -> Result<Array>,
    /// What is printed for values of a type that have no text.
    pub misfits: &'a dyn Fn(&DataType) -> Option<Misfits>,
}

/// What is printed for a value that has no text.
pub(crate) struct Misfits {
    /// Before and behind its number.
    pub said: [String; 2],
    /// From one number to the other nothing is.
    pub unsaid: [i64; 2],
}

/// A cast on its way down.
#[derive(Clone, Copy)]
pub(super) struct Cast<'a> {
    pub options: &'a CastOptions<'a>,
    pub stream: &'a Stream,
    pub inside: &'a Inside<'a>,
}

impl Cast<'_> {
    /// The values as another type, whatever way there is.
    pub fn cast(self, values: &Array, to: &DataType) -> Result<Array> {
        (self.inside.cast)(values, to, self.options)
    }

    /// Whether items that no row sees would show if they were cast along: as an error, or as nulls where none may be.
    pub fn minds_unseen(self, items: &Array, item: &Field) -> bool {
        let (from, to) = (items.data_type(), item.data_type());
        let converted = from != to && (!self.options.safe || forbids_nulls(to) || fails_safely(from, to));
        !item.is_nullable() || converted
    }

    /// Lists of no rows. Their items are cast all the same: the values of a dictionary may fail whether rows have them or not.
    pub fn of_no_rows(self, values: &Array, to: &DataType, item: &Field) -> Result<Array> {
        let items = self.cast(&values.children()[0].slice(0, 0)?, item.data_type())?;
        let pass = self.begin(&[values, &items])?;
        none(pass, to)
    }

    /// A pass that reads these.
    pub fn begin(self, inputs: &[&Array]) -> Result<Pass> {
        let mut pass = Pass::begin("cast", self.stream)?;
        inputs.iter().try_for_each(|input| pass.input(input))?;
        Ok(pass)
    }
}

/// Whether values may fail even a safe cast: where they are more than keys or ends tell apart, have no text or more than its offsets
/// reach.
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
