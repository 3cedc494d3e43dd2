//! Functions on values: each takes one value and returns one value, and whether it fits. The one idea: a
//! function knows no rows, nulls, tiles or devices. [`map`](super::kernel) feeds it rows on a GPU and in the
//! emulator, and the host library's CPU path does the same. [`functions`](super::functions) lists which
//! function exists for which types.
//!
//! Each function means what arrow-rs 60 does, bit for bit; a comment says so where that is surprising. The
//! host works out once what is the same for every row (factors, divisors, bounds) and passes it as machine
//! [`words`].
//!
//! All code on the path of a row is branch-free and inlined, has no panic and makes no call: a device image
//! contains no functions to call, and the CPU path needs loops that vectorise.

pub mod convert;
pub mod divide;
pub mod float;
pub mod half;
pub mod integer;
pub mod null;
pub mod scale;
pub mod temporal;
pub mod wide;
pub mod words;

pub use half::F16;
pub use wide::{I256, U256};

/// A function of a row's value, with its parameters.
pub trait ValueFunction: Copy {
    /// The native type that it reads.
    type From: Copy;
    /// The native type that it writes.
    type To: Copy;
    /// Whether every value fits, for all parameters.
    const ALWAYS: bool = false;
    /// Whether nulls become values too, by [`of_null`](ValueFunction::of_null), so that no row of the result
    /// is null.
    const FILLS_NULLS: bool = false;
    /// The function's value, and whether it fits. If it does not, the value is meaningless.
    fn call(&self, x: Self::From) -> (Self::To, bool);
    /// The value that a null becomes; functions with `FILLS_NULLS` override it.
    #[inline(always)]
    fn of_null(&self) -> Self::To
    where
        Self::To: Default,
    {
        Self::To::default()
    }
}

/// A boolean. Arrays hold it as a bit; as a value it is a byte, true where not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bit(pub u8);

impl Bit {
    /// Makes the bit of a boolean.
    #[inline(always)]
    pub const fn new(value: bool) -> Bit {
        Bit(value as u8)
    }

    /// Whether the boolean is true.
    #[inline(always)]
    pub const fn is_set(self) -> bool {
        self.0 != 0
    }
}

/// A type of values in memory: bits, or little-endian numbers of 1, 2, 4, 8, 16 or 32 bytes.
pub trait Native: Copy + Default + PartialEq + Send + Sync + 'static {
    /// The type's name at run time.
    const NUMBER: Number;
    /// Makes a value of these bits; bits beyond its width are ignored.
    fn from_bits(bits: U256) -> Self;
    /// Returns the value's bits; those beyond its width are arbitrary.
    fn to_bits(self) -> U256;
}

macro_rules! natives {
    ($($number:ident = $t:ident, $bits:literal, |$from:ident| $read:expr, |$value:ident| $to:expr;)*) => {
        /// The native types, as values at run time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names say it all")]
        pub enum Number {
            $($number,)*
        }

        impl Number {
            /// Bits of a row in an array.
            pub const fn bits(self) -> usize {
                match self {
                    $(Number::$number => $bits,)*
                }
            }
        }

        $(impl Native for $t {
            const NUMBER: Number = Number::$number;
            #[inline(always)]
            fn from_bits($from: U256) -> $t {
                $read
            }
            #[inline(always)]
            fn to_bits(self) -> U256 {
                let $value = self;
                $to
            }
        })*
    };
}

natives! {
    Bit = Bit, 1, |bits| Bit(bits.low as u8 & 1), |x| U256::from_low(x.is_set() as u128);
    I8 = i8, 8, |bits| bits.low as i8, |x| U256::from_low(x as u128);
    I16 = i16, 16, |bits| bits.low as i16, |x| U256::from_low(x as u128);
    I32 = i32, 32, |bits| bits.low as i32, |x| U256::from_low(x as u128);
    I64 = i64, 64, |bits| bits.low as i64, |x| U256::from_low(x as u128);
    U8 = u8, 8, |bits| bits.low as u8, |x| U256::from_low(x as u128);
    U16 = u16, 16, |bits| bits.low as u16, |x| U256::from_low(x as u128);
    U32 = u32, 32, |bits| bits.low as u32, |x| U256::from_low(x as u128);
    U64 = u64, 64, |bits| bits.low as u64, |x| U256::from_low(x as u128);
    F16 = F16, 16, |bits| F16(bits.low as u16), |x| U256::from_low(x.0 as u128);
    F32 = f32, 32, |bits| f32::from_bits(bits.low as u32), |x| U256::from_low(x.to_bits() as u128);
    F64 = f64, 64, |bits| f64::from_bits(bits.low as u64), |x| U256::from_low(x.to_bits() as u128);
    I128 = i128, 128, |bits| bits.low as i128, |x| U256::from_low(x as u128);
    I256 = I256, 256, |bits| I256::from_bits(bits), |x| I256::to_bits(x);
}

impl Number {
    /// The signed type of an unsigned type's width; any other type is itself. Wrapping arithmetic gives the
    /// same bits in both.
    pub const fn signed(self) -> Number {
        match self {
            Number::U8 => Number::I8,
            Number::U16 => Number::I16,
            Number::U32 => Number::I32,
            Number::U64 => Number::I64,
            other => other,
        }
    }

    /// Bytes of a value. A boolean has one, though arrays hold it as a bit.
    pub const fn width(self) -> usize {
        self.bits().div_ceil(8)
    }
}
