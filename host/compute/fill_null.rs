//! A value in place of nulls.

use bowstring_kernels::function::Number;
use bowstring_kernels::functions::{Function, FunctionCall};

use super::{Scalar, admit};
use crate::array::Slot;
use crate::gpu::map::Column;
use crate::{Array, Error, Pending, Result, Stream, cpu, gpu};

/// The values, and `scalar` where they are null: none of them is then. A null scalar leaves all as it is. Of Booleans and types
/// of fixed width whose values have 1, 2, 4, 8, 16 or 32 bytes; the scalar is of the values' type. arrow-rs spells it
/// `zip(&is_not_null(values)?, values, scalar)`.
///
/// Never synchronises. Copies the values, unless they are known to have no nulls.
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
pub fn fill_null(values: &Array, scalar: &Scalar, stream: &Stream) -> Pending<Array> {
    Pending::known(fill_null_now(values, scalar, stream))
}

fn fill_null_now(values: &Array, scalar: &Scalar, stream: &Stream) -> Result<Array> {
    let _current = stream.enter()?;
    let values = &*admit("fill_null", values, stream)?;
    let to = values.data_type();
    if scalar.data_type() != to {
        return Err(Error::invalid("fill_null", format!("{} for nulls among {to}", scalar.data_type())));
    }
    let device = stream.device().place().device_type;
    let call = call_of(values, scalar).ok_or_else(|| {
        let data_type = to.to_string();
        Error::Unsupported { operation: "fill_null", data_type, device }
    })?;
    if scalar.is_null() || values.possible_nulls().is_none() {
        return Ok(values.clone());
    }
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

/// The function for values of a width, with the scalar's bits.
fn call_of(values: &Array, scalar: &Scalar) -> Option<FunctionCall> {
    let number = match values.layout().slots {
        [Some(Slot::Bits), None] => Number::Bit,
        [Some(Slot::Fixed(1)), None] => Number::I8,
        [Some(Slot::Fixed(2)), None] => Number::I16,
        [Some(Slot::Fixed(4)), None] => Number::I32,
        [Some(Slot::Fixed(8)), None] => Number::I64,
        [Some(Slot::Fixed(16)), None] => Number::I128,
        [Some(Slot::Fixed(32)), None] => Number::I256,
        _ => return None,
    };
    // Keys, type ids and the like are no values.
    let is_value = values.children().is_empty() && values.dictionary().is_none();
    let mut call = FunctionCall::plain(Function::FillNull, number, number).filter(|_| is_value)?;
    call.words[..4].copy_from_slice(&scalar.words()?);
    Some(call)
}
