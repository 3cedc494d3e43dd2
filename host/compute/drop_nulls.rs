//! The `drop_nulls` operation: the rows without nulls.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};

use super::nulls::valid;
use super::{Columns, engine, evaluate, filter, reach_all};
use crate::engine::Valid;
use crate::expr::{Expr, nth};
use crate::{DeviceArray, DeviceBatch, Error, Pending, Result, Stream};

/// The masks that one expression tests: it has two parts for each, and so many at most.
const TOGETHER: usize = 5000;

/// The rows that [`drop_nulls`] drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropIf {
    /// Rows in which any column is null.
    #[default]
    AnyNull,
    /// Rows in which all columns are null.
    AllNull,
}

/// The options of [`drop_nulls`]. By default, a null in any column drops the row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropOptions {
    /// How many nulls drop a row.
    pub drop_if: DropIf,
    /// The positions of the columns that decide; the default is all. Without any, all rows are kept.
    pub columns: Option<Vec<usize>>,
}

/// Removes the rows that are logical nulls, or those of a batch that have nulls in its columns. Synchronises
/// once, as [`filter`] does, if there may be nulls.
///
/// ```
/// use bowstring::{Stream, compute::{DropOptions, drop_nulls}, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let values = from_arrow(&arrow_array::Int32Array::from(vec![Some(1), None, Some(3)]))?;
/// let kept = to_arrow(&drop_nulls(&values, &DropOptions::default(), &Stream::cpu()).wait()?)?;
/// assert_eq!(kept.as_ref(), &arrow_array::Int32Array::from(vec![1, 3]));
/// # Ok(())
/// # }
/// ```
pub fn drop_nulls<C: Columns>(values: &C, options: &DropOptions, stream: &Stream) -> Pending<C> {
    Pending::begun(|| begin(values, options, stream))
}

fn begin<C: Columns>(values: &C, options: &DropOptions, stream: &Stream) -> Result<Pending<C>> {
    let _current = stream.enter()?;
    let (arrays, any) = (values.arrays(), options.drop_if == DropIf::AnyNull);
    reach_all("drop_nulls", arrays, stream)?;
    let columns = options.columns.clone().unwrap_or_else(|| (0..arrays.len()).collect());
    let none = |column| Error::invalid("drop_nulls", format!("column {column} of {}", arrays.len()));
    let (mut masks, mut all_null) = (vec![], false);
    for column in columns {
        let column = &*engine(stream).admit(arrays.get(column).ok_or_else(|| none(column))?, stream)?;
        match valid("drop_nulls", column, stream)? {
            Valid::These(valid) => masks.push(valid),
            Valid::None => all_null = true,
            // A column without nulls keeps every row, unless others may drop it.
            Valid::All if any => {}
            Valid::All => return Ok(Pending::known(Ok(values.clone()))),
        }
    }
    if all_null && (any || masks.is_empty()) {
        return Ok(Pending::known(values.each(values.frame(), 0, |column| column.slice(0, 0))));
    }
    Ok(match &masks[..] {
        [] => Pending::known(Ok(values.clone())),
        [mask] => filter(values, mask, stream),
        _ => {
            let (values, on) = (values.clone(), stream.clone());
            Pending::begin(stream, async move {
                while masks.len() > 1 {
                    masks = fewer(masks, any, &on).await?;
                }
                filter(&values, &masks[0], &on).await
            })
        }
    })
}

/// Masks that are true where all, or any, of so many of these are.
async fn fewer(masks: Vec<DeviceArray>, all: bool, stream: &Stream) -> Result<Vec<DeviceArray>> {
    let mut made = vec![];
    for some in masks.chunks(TOGETHER) {
        let fields: Vec<Field> = some.iter().map(|_| Field::new("", DataType::Boolean, false)).collect();
        let some = DeviceBatch::try_new(Arc::new(Schema::new(fields)), some.to_vec(), some[0].len())?;
        let tests = [test(0..some.columns().len(), all)];
        made.push(evaluate(&some, &tests, stream).await?.columns()[0].clone());
    }
    Ok(made)
}

/// Whether all, or any, of these masks are true. A chain of hundreds would be deeper than expressions may be.
fn test(masks: Range<usize>, all: bool) -> Expr {
    if masks.len() == 1 {
        return nth(masks.start);
    }
    let middle = masks.start + masks.len() / 2;
    let (one, other) = (test(masks.start..middle, all), test(middle..masks.end, all));
    if all { one & other } else { one | other }
}
