//! The `fill_null` operation: replaces nulls with a value.

use arrow_schema::DataType;
use bowstring_kernels::function::Number;
use bowstring_kernels::functions::{Function, FunctionCall};

use super::nulls::{Valid, bits_of, valid_rows};
use super::{Scalar, TakeOptions, admit, concat, take};
use crate::array::{Bitmap, Parts, Slot};
use crate::gpu::map::Column;
use crate::{DeviceArray, Error, Pending, Result, Stream, cpu, gpu};

/// Replaces each logical null in `values` with `scalar`, which must have the same type. The result has no
/// nulls, unless the scalar is null. If the scalar is null by its own validity, the values are returned
/// unchanged. The equivalent in arrow-rs is `zip(&is_not_null(values)?, values, scalar)`.
///
/// Booleans and values of 1, 2, 4, 8, 16 or 32 bytes are filled in one pass, which never synchronises. For
/// other types, the scalar is appended to the values and `take` selects from both. This synchronises as
/// [`concat()`] and [`take()`] do, and copies the values twice. An array that is known to have no nulls is
/// not copied.
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
pub fn fill_null(values: &DeviceArray, scalar: &Scalar, stream: &Stream) -> Pending<DeviceArray> {
    Pending::begun(|| begin(values, scalar, stream))
}

fn begin(values: &DeviceArray, scalar: &Scalar, stream: &Stream) -> Result<Pending<DeviceArray>> {
    let _current = stream.enter()?;
    let values = &*admit("fill_null", values, stream)?;
    let to = values.data_type();
    if scalar.data_type() != to {
        return Err(Error::invalid("fill_null", format!("{} for nulls among {to}", scalar.data_type())));
    }
    if scalar.is_null() {
        return Ok(Pending::known(Ok(values.clone())));
    }
    match call_of(values, scalar) {
        Some(_) if values.possible_nulls().is_none() => Ok(Pending::known(Ok(values.clone()))),
        Some(call) => Ok(Pending::known(filled(values, call, stream))),
        None => taken_where_null(values, scalar, stream),
    }
}

/// Fills values of fixed width.
fn filled(values: &DeviceArray, call: FunctionCall, stream: &Stream) -> Result<DeviceArray> {
    let to = values.data_type();
    match stream.as_gpu() {
        None => match cpu::map::map(&call, values, to, true, stream.device().host_pool())? {
            Ok(filled) => Ok(filled),
            Err(row) => Err(Error::invalid("fill_null", format!("row {row} does not fit"))),
        },
        Some(_) => {
            let mut filled =
                gpu::map::map("fill_null", &[Column { values, to, call: Some(call) }], true, stream)?;
            filled.pop().ok_or_else(|| Error::invalid("fill_null", "no array"))
        }
    }
}

/// Takes each row from its own position, or from the end, where the scalar is appended.
fn taken_where_null(values: &DeviceArray, scalar: &Scalar, stream: &Stream) -> Result<Pending<DeviceArray>> {
    let own = values.possible_nulls().cloned().map(|bits| (values.clone(), bits));
    let valid = match valid_rows("fill_null", values, stream)? {
        Valid::All => None,
        Valid::Own => own,
        Valid::These(bits) => Some((values.clone(), bits)),
        Valid::There(valid) => Some((valid.clone(), bits_of(&valid))),
        Valid::None => {
            let none = gpu::filled("fill_null", false, values.len(), stream)?;
            Some((none.clone(), bits_of(&none)))
        }
    };
    let Some((of, valid)) = valid.filter(|_| !values.is_empty()) else {
        return Ok(Pending::known(Ok(values.clone())));
    };
    let numbers = match stream.as_gpu() {
        None => numbers(valid, values.len(), stream)?,
        Some(_) => gpu::numbers("fill_null", &of, valid, stream)?,
    };
    let behind = gpu::map::fill_null(8).map(|mut call| {
        call.words[0] = values.len() as u64;
        call
    });
    let behind = behind.ok_or_else(|| Error::invalid("fill_null", "numbers that are not filled"))?;
    let rows = filled(&numbers, behind, stream)?;
    let (both, on) = (concat(&[values, &scalar.on(stream)?], stream), stream.clone());
    Ok(Pending::begin(stream, async move {
        let taken = take(&both.await?, &rows, &TakeOptions::default(), &on).await?;
        let valid = taken.known_valid();
        // Every row of the result was valid, or is the scalar.
        DeviceArray::made(Parts { validity: None, null_count: Some(0), ..taken.into_parts() }, valid)
    }))
}

/// The indices of all rows on the CPU; null where the bit is unset.
fn numbers(valid: Bitmap, len: usize, stream: &Stream) -> Result<DeviceArray> {
    let bytes = len.saturating_mul(8);
    let mut memory = stream.device().host_pool().alloc(bytes)?;
    for (number, row) in cpu::memory::values_mut::<u64>(&mut memory)[..len].iter_mut().zip(0..) {
        *number = row;
    }
    let buffers = vec![memory.freeze(bytes)];
    let parts =
        Parts { validity: Some(valid), null_count: None, buffers, ..Parts::new(DataType::UInt64, len) };
    DeviceArray::made(parts, true)
}

/// The function call for values of a width, with the scalar's bits as parameters.
fn call_of(values: &DeviceArray, scalar: &Scalar) -> Option<FunctionCall> {
    let call = match values.layout().slots {
        [Some(Slot::Bits), None] => FunctionCall::plain(Function::FillNull, Number::Bit, Number::Bit),
        [Some(Slot::Fixed(width)), None] => gpu::map::fill_null(width),
        _ => None,
    };
    // Dictionary keys, type ids and the like are not values.
    let is_value = values.children().is_empty() && values.dictionary().is_none();
    let mut call = call.filter(|_| is_value)?;
    call.words[..4].copy_from_slice(&scalar.words()?);
    Some(call)
}
