//! The conversions themselves: one value in, one value out, and whether it fits.
//!
//! The meaning of each is that of arrow-cast 60, bit for bit; where that is surprising a comment says so.
//! There are 740 pairs of fixed-width types but only a dozen ways to compute: [`plan`](plan()) turns a
//! pair into one of them with its parameters (factors, divisors, bounds), which travel as machine words.
//! GPU kernels, the emulator and the CPU path all run these functions.
//!
//! Everything on the path of a row is branch-free and inlined, has no panic and calls nothing: a device
//! image has nowhere to call to, and the CPU path wants its loops vectorised.

pub mod direct;
pub mod divide;
pub mod float;
pub mod half;
pub mod integer;
pub mod plan;
pub mod recipe;
pub mod scale;
pub mod temporal;
pub mod wide;
pub mod words;

pub use half::F16;
pub use plan::{Kind, Plan, plan};
pub use recipe::{Number, Operation, Recipe, Visitor};
pub use wide::{I256, U256};

/// A conversion with its parameters.
pub trait Conversion: Copy {
    /// The native type it reads.
    type From: Copy;
    /// The native type it writes.
    type To: Copy;
    /// Whether every value fits, whatever the parameters.
    const ALWAYS: bool = false;
    /// The converted value, and whether it fits. If not, the value means nothing.
    fn convert(&self, x: Self::From) -> (Self::To, bool);
}

/// A type of values in memory: little-endian, of 1, 2, 4, 8, 16 or 32 bytes.
pub trait Native: Copy + Default + PartialEq + Send + Sync + 'static {
    /// Its name at run time.
    const NUMBER: Number;
    /// The value of these bits; those beyond its width are ignored.
    fn from_bits(bits: U256) -> Self;
    /// Its bits; those beyond its width are anything.
    fn to_bits(self) -> U256;
}

macro_rules! natives {
    ($($t:ident = $number:ident, |$bits:ident| $from:expr, |$value:ident| $to:expr;)*) => {$(
        impl Native for $t {
            const NUMBER: Number = Number::$number;
            #[inline(always)]
            fn from_bits($bits: U256) -> $t {
                $from
            }
            #[inline(always)]
            fn to_bits(self) -> U256 {
                let $value = self;
                $to
            }
        }
    )*};
}

natives! {
    i8 = I8, |bits| bits.low as i8, |x| U256::from_low(x as u128);
    i16 = I16, |bits| bits.low as i16, |x| U256::from_low(x as u128);
    i32 = I32, |bits| bits.low as i32, |x| U256::from_low(x as u128);
    i64 = I64, |bits| bits.low as i64, |x| U256::from_low(x as u128);
    i128 = I128, |bits| bits.low as i128, |x| U256::from_low(x as u128);
    I256 = I256, |bits| I256::from_bits(bits), |x| I256::to_bits(x);
    u8 = U8, |bits| bits.low as u8, |x| U256::from_low(x as u128);
    u16 = U16, |bits| bits.low as u16, |x| U256::from_low(x as u128);
    u32 = U32, |bits| bits.low as u32, |x| U256::from_low(x as u128);
    u64 = U64, |bits| bits.low as u64, |x| U256::from_low(x as u128);
    F16 = F16, |bits| F16(bits.low as u16), |x| U256::from_low(x.0 as u128);
    f32 = F32, |bits| f32::from_bits(bits.low as u32), |x| U256::from_low(x.to_bits() as u128);
    f64 = F64, |bits| f64::from_bits(bits.low as u64), |x| U256::from_low(x.to_bits() as u128);
}
