//! Dispatch from a type's number, known at run time, to the type.

use bowstring_kernels::map::function::{Native, U256};

macro_rules! by_number {
    ($number:expr, [$($name:ident $t:ty),+], $T:ident => $body:expr) => {
        match $number {
            $(Number::$name => { type $T = $t; $body })+
            other => unreachable!("{other:?} is not computed so"),
        }
    };
}
macro_rules! by_integer {
    ($number:expr, $T:ident => $body:expr) => {
        by_number!($number, [I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, I128 i128], $T => $body)
    };
}
macro_rules! by_any {
    ($number:expr, $T:ident => $body:expr) => {
        by_number!(
            $number,
            [I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, I128 i128, F16 F16, F32 f32, F64 f64],
            $T => $body
        )
    };
}

pub(super) use {by_any, by_integer, by_number};

/// Returns the value that has these bits.
pub(super) fn from_raw<T: Native>(raw: i128) -> T {
    T::from_bits(U256::from_low(raw as u128))
}
