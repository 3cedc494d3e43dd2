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
    /// The converted value, and whether it fits. If not, the value means nothing.
    fn convert(&self, x: Self::From) -> (Self::To, bool);
}

/// A type of values in memory.
pub trait Native: Copy + Default + PartialEq + Send + Sync + 'static {
    /// Its name at run time.
    const NUMBER: Number;
}

macro_rules! natives {
    ($($t:ident = $number:ident;)*) => {$(
        impl Native for $t {
            const NUMBER: Number = Number::$number;
        }
    )*};
}

natives! {
    i8 = I8; i16 = I16; i32 = I32; i64 = I64; u8 = U8; u16 = U16; u32 = U32; u64 = U64;
    F16 = F16; f32 = F32; f64 = F64; i128 = I128; I256 = I256;
}
