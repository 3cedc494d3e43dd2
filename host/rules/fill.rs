//! The functions that replace nulls by a value.

use bowstring_kernels::map::function::Number;
use bowstring_kernels::map::functions::{Function, FunctionCall};

use crate::array::{DeviceArray, Slot};

/// The function that replaces nulls by these words, the lowest first; `None` for values without a fixed width
/// and for widths that no function has.
pub(crate) fn fill_nulls(values: &DeviceArray, words: [u64; 4]) -> Option<FunctionCall> {
    // Dictionary keys, type ids and the like are not values.
    let is_value = values.children().is_empty() && values.dictionary().is_none();
    let call = match values.layout().slots {
        _ if !is_value => None,
        [Some(Slot::Bits), None] => FunctionCall::plain(Function::FillNull, Number::Bit, Number::Bit),
        [Some(Slot::Fixed(width)), None] => fill_null(width),
        _ => None,
    };
    let mut call = call?;
    call.words[..4].copy_from_slice(&words);
    Some(call)
}

/// The function that replaces nulls by zero, for values of so many bytes; `None` for other widths. Its
/// kernels know widths and not signs.
pub(crate) fn fill_null(width: usize) -> Option<FunctionCall> {
    let number = match width {
        1 => Number::I8,
        2 => Number::I16,
        4 => Number::I32,
        8 => Number::I64,
        16 => Number::I128,
        32 => Number::I256,
        _ => return None,
    };
    FunctionCall::plain(Function::FillNull, number, number)
}
