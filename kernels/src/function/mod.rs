//! Functions on values: one value in, one value out, and whether it fits. The one idea: a function knows no rows, nulls,
//! tiles or devices. [`map`](crate::map) feeds it rows on a GPU and in the emulator, the host library's CPU path does the
//! same; [`functions`](crate::functions) lists which function exists for which types.
//!
//! The meaning of each is that of arrow-rs 60, bit for bit; where that is surprising a comment says so. What is the same
//! for every row (factors, divisors, bounds) is worked out once on the host and travels as machine [`words`].
//!
//! Everything on the path of a row is branch-free and inlined, has no panic and calls nothing: a device
//! image has nowhere to call to, and the CPU path wants its loops vectorised.

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
    /// The native type it reads.
    type From: Copy;
    /// The native type it writes.
    type To: Copy;
    /// Whether every value fits, whatever the parameters.
    const ALWAYS: bool = false;
    /// Whether nulls become values too, by [`of_null`](ValueFunction::of_null): then no row of the result is null.
    const FILLS_NULLS: bool = false;
    /// The function's value, and whether it fits. If not, the value means nothing.
    fn call(&self, x: Self::From) -> (Self::To, bool);
    /// What a null becomes.
    #[inline(always)]
    fn of_null(&self) -> Self::To
    where
        Self::To: Default,
    {
        Self::To::default()
    }
}

/// A boolean. In arrays it is a bit; as a value, a byte that is zero or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bit(pub u8);

impl Bit {
    /// The bit of a boolean.
    #[inline(always)]
    pub const fn new(value: bool) -> Bit {
        Bit(value as u8)
    }

    /// Whether it is set.
    #[inline(always)]
    pub const fn is_set(self) -> bool {
        self.0 != 0
    }
}

/// A type of values in memory: bits, or little-endian numbers of 1, 2, 4, 8, 16 or 32 bytes.
pub trait Native: Copy + Default + PartialEq + Send + Sync + 'static {
    /// Its name at run time.
    const NUMBER: Number;
    /// The value of these bits; those beyond its width are ignored.
    fn from_bits(bits: U256) -> Self;
    /// Its bits; those beyond its width are anything.
    fn to_bits(self) -> U256;
}

macro_rules! natives {
    ($($number:ident = $t:ident, $bits:literal, |$from:ident| $read:expr, |$value:ident| $to:expr;)*) => {
        /// The native types, at run time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names say it all")]
        pub enum Number {
            $($number,)*
        }

        impl Number {
            /// Bits of a row.
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
    /// The signed integers of an unsigned one's width; itself, if it is none. Arithmetic that wraps has the same bits in both.
    pub const fn signed(self) -> Number {
        match self {
            Number::U8 => Number::I8,
            Number::U16 => Number::I16,
            Number::U32 => Number::I32,
            Number::U64 => Number::I64,
            other => other,
        }
    }

    /// Bytes of a value: one of a boolean, though arrays have bits.
    pub const fn width(self) -> usize {
        self.bits().div_ceil(8)
    }
}
