//! Conversion of floats to integers.
//!
//! `as` saturates, and x86 has no vector instruction for that: a loop with `as` runs one value at a time,
//! eight times slower. A value that does not fit has no defined result here, so it becomes zero first, and
//! the machine's plain conversion does the rest.

/// A float that converts to the integers `To`.
pub trait Truncate<To>: Copy {
    /// The value without its fraction, and whether `To` can hold it. If it cannot, the integer is
    /// meaningless.
    fn truncate(self) -> (To, bool);
}

macro_rules! truncate {
    ($float:ty => $($int:ty)*) => {$(
        impl Truncate<$int> for $float {
            #[inline(always)]
            fn truncate(self) -> ($int, bool) {
                // A value fits above MIN - 1 and below MAX + 1. MAX + 1 is a power of two: `MAX as float`
                // gives it where the float cannot tell MAX from it, `MAX as float + 1.0` where it can. MIN -
                // 1 cannot be told from a MIN as wide as the float: there a float below MIN is at least 2
                // below, and `>= MIN` is the same test.
                const WIDER: bool = size_of::<$float>() > size_of::<$int>();
                const LEAST: $float = <$int>::MIN as $float;
                const PAST: $float = <$int>::MAX as $float + if WIDER { 1.0 } else { 0.0 };
                let above = if WIDER || <$int>::MIN == 0 { self > LEAST - 1.0 } else { self >= LEAST };
                let fits = above & (self < PAST);
                let within = if fits { self } else { 0.0 };
                // SAFETY: `within` is not NaN, not infinite, and without its fraction from MIN to MAX, by the
                // bounds above.
                (unsafe { within.to_int_unchecked() }, fits)
            }
        }
    )*};
}

truncate! { f32 => i8 i16 i32 i64 u8 u16 u32 u64 }
truncate! { f64 => i8 i16 i32 i64 u8 u16 u32 u64 }
