//! The `fill_null` operation: replaces nulls with a value.

use super::long_runs::{concat_long, shortened};
use super::nulls::{bits_of, valid};
use super::{Columns, Scalar, TakeOptions, engine, reach_all, take, together};
use crate::array::Parts;
use crate::engine::Valid;
use crate::rules::fill_nulls;
use crate::{DeviceArray, Error, Pending, Result, Stream};

/// Replaces each logical null in an array with a scalar, which must have the same type. For a batch,
/// `scalars` is a slice with an optional scalar for each column; a column without one stays as it is.
///
/// The result has no nulls, unless the scalar is null. If the scalar is null by its own validity, the values
/// are returned unchanged. The equivalent in arrow-rs is `zip(&is_not_null(values)?, values, scalar)`.
///
/// Booleans and values of 1, 2, 4, 8, 16 or 32 bytes are filled in one pass, which never synchronises. For
/// other types, the scalar is appended to the values and `take` selects from both. This synchronises as
/// [`concat()`](super::concat()) and [`take()`] do, for all columns together, and copies the values twice. An
/// array that is known to have no nulls is not copied.
///
/// ```
/// use arrow_array::Int32Array;
/// use bowstring::{Stream, compute::{Scalar, fill_null}, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let values = from_arrow(&Int32Array::from(vec![Some(1), None, Some(3)]))?;
/// let zero = Scalar::from_arrow(&Int32Array::new_scalar(0))?;
/// let filled = to_arrow(&fill_null(&values, &zero, &Stream::cpu()).wait()?)?;
/// assert_eq!(filled.as_ref(), &Int32Array::from(vec![1, 0, 3]));
/// # Ok(())
/// # }
/// ```
pub fn fill_null<C: Columns>(values: &C, scalars: &C::Given<Scalar>, stream: &Stream) -> Pending<C> {
    Pending::begun(|| begin(values, scalars, stream))
}

fn begin<C: Columns>(values: &C, scalars: &C::Given<Scalar>, stream: &Stream) -> Result<Pending<C>> {
    let _current = stream.enter()?;
    let (arrays, scalars) = (values.arrays(), values.given("fill_null", scalars)?);
    reach_all("fill_null", arrays, stream)?;
    let filled = arrays.iter().zip(scalars).map(|(values, scalar)| match scalar {
        Some(scalar) => filled(values, scalar, stream),
        None => Ok(Pending::known(Ok(values.clone()))),
    });
    Ok(together(values.frame(), filled.collect::<Result<_>>()?, values.rows(), stream))
}

fn filled(values: &DeviceArray, scalar: &Scalar, stream: &Stream) -> Result<Pending<DeviceArray>> {
    let values = &*engine(stream).admit(values, stream)?;
    let (of, to) = (scalar.data_type(), values.data_type());
    if of != to {
        return Err(Error::invalid("fill_null", format!("{of} for nulls among {to}")));
    }
    if scalar.is_null() {
        return Ok(Pending::known(Ok(values.clone())));
    }
    match scalar.words().and_then(|words| fill_nulls(values, words)) {
        Some(_) if values.possible_nulls().is_none() => Ok(Pending::known(Ok(values.clone()))),
        Some(call) => Ok(Pending::known(engine(stream).map("fill_null", values, call, stream))),
        None => taken_where_null(values, scalar, stream),
    }
}

/// Takes each row from its own position, or from the end, where the scalar is appended.
fn taken_where_null(values: &DeviceArray, scalar: &Scalar, stream: &Stream) -> Result<Pending<DeviceArray>> {
    let engine = engine(stream);
    let valid = match valid("fill_null", values, stream)? {
        Valid::These(valid) if !values.is_empty() => valid,
        Valid::None if !values.is_empty() => engine.filled("fill_null", false, values.len(), stream)?,
        _ => return Ok(Pending::known(Ok(values.clone()))),
    };
    let numbers = engine.row_numbers("fill_null", &valid, bits_of(&valid), stream)?;
    let last = fill_nulls(&numbers, [values.len() as u64, 0, 0, 0]);
    let last = last.ok_or_else(|| Error::invalid("fill_null", "numbers that are not filled"))?;
    let rows = engine.map("fill_null", &numbers, last, stream)?;
    let both = concat_long(&[values, &scalar.on(stream)?], stream);
    let (like, on) = (values.clone(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let taken = take(&both.await?, &rows, &TakeOptions::default(), &on).await?;
        let taken = shortened(taken, &like, &on).await?;
        let valid = taken.known_valid();
        // Every row of the result was valid, or is the scalar.
        DeviceArray::made(Parts { validity: None, null_count: Some(0), ..taken.into_parts() }, valid)
    }))
}
