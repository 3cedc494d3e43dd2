//! The one list of the functions that are mapped over rows: their names, their types, and the image that
//! holds each.
//!
//! The one idea: the macro below makes everything that must agree with the list from the list's rows. It
//! makes the enum [`Function`], the kernels' arguments and entries, [`FunctionCall::visit`] (which turns a
//! description back into types), the choice of an entry for a call, and the cases that the tests enumerate. A
//! new function takes a row here and an `impl` in [`function`](super::function).
//!
//! All 740 pairs of fixed-width Arrow types that can be cast come down to these functions; the host's rules
//! say which function a pair takes, with which parameters. If a function makes the same bits of two pairs of
//! types, only one of them is here: an unsigned result whose bits are those of a signed one is computed as
//! the signed one (see [`Number::signed`]). A function's rows may be in several families, so that a driver
//! need not compile the arithmetic of decimals for a cast between integers, and so that no archive is too
//! large.

use super::function::convert::{Direct, FromBool, ToBool};
use super::function::float::{Product, Quotient, Round};
use super::function::null::FillNull;
use super::function::scale::{Down, Up};
use super::function::temporal::{
    DayTimeToInterval, Days, DurationToInterval, IntervalToDuration, MonthsToInterval, TimeOfDay,
};
use super::function::words::{Parameter, WORDS, Words};
use super::function::{Bit, F16, I256, Native, Number, ValueFunction};
use super::task::{MapTask, Shape};

/// Reads the list: the functions, then families with the rows of each. `pairs` have functions that are
/// generic over the native types they read and write, with an entry `name_FROM_TO` for each; `single` has the
/// other functions, each with its entry's name.
macro_rules! functions {
    ($($function:ident)+; $(
        family $family:literal $(, $tuning:ident $value:literal $(for $($tuned:ident)+)?)*;
        $(#[$doc:meta])*
        $args:ident ($($word:ident)*)
        $(#[$table_doc:meta])*
        $table:ident {
            pairs {$(
                $name:ident $pair:ident { $($from:ident => $($to:ident)+;)+ }
            )*}
            single {$(
                $single:ident { $($single_name:ident <$($part:ident),+> $of:ty;)+ }
            )*}
        }
    )+) => {
        /// A function that a map applies to every value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Function {
            $(
                #[doc = concat!("[`", stringify!($function), "`]")]
                $function,
            )+
        }

        /// The rows of the list: each function with each pair of types for which it has an entry.
        pub const EVERY: &[(Function, Number, Number)] = &[$(
            $($($((Function::$pair, <$from as Native>::NUMBER, <$to as Native>::NUMBER),)+)+)*
            $($((Function::$single, from::<$of>(), to::<$of>()),)+)*
        )+];

        $(map_kernel! {
            family $family;
            $(#[$doc])*
            $args ($($word)*)
            $(#[$table_doc])*
            $table {
                $($($(
                    $name<$from, $to> [
                        Function::$pair as u32,
                        <$from as Native>::NUMBER as u32,
                        <$to as Native>::NUMBER as u32
                    ] = $pair<$from, $to>,
                )+)+)*
                $($(
                    $single_name<$($part),+> [
                        Function::$single as u32,
                        from::<$of>() as u32,
                        to::<$of>() as u32
                    ] = $of,
                )+)*
            }
        })+

        impl FunctionCall {
            /// Calls the visitor with the function; returns `None` for a combination that is not in the list.
            pub fn visit<V: Visitor>(&self, visitor: V) -> Option<V::Output> {
                match (self.function, self.from, self.to) {
                    $(
                        $($($(
                            (Function::$pair, <$from as Native>::NUMBER, <$to as Native>::NUMBER) => {
                                Some(visitor.visit(self.read::<$pair<$from, $to>>()))
                            }
                        )+)+)*
                        $($(
                            (
                                Function::$single,
                                <<$of as ValueFunction>::From as Native>::NUMBER,
                                <<$of as ValueFunction>::To as Native>::NUMBER,
                            ) => Some(visitor.visit(self.read::<$of>())),
                        )+)*
                    )+
                    _ => None,
                }
            }
        }

        host_only! {
            impl FunctionCall {
                /// Gives the launcher the call's entry with its arguments; returns `None` for a combination
                /// that is not in the list.
                pub fn launch<L: Launcher>(&self, task: &MapTask, launcher: L) -> Option<L::Output> {
                    let key = [self.function as u32, self.from as u32, self.to as u32];
                    $(
                        if matches!(self.function, $(Function::$pair)|* $(| Function::$single)*)
                            && let Some(entry) = find($table, &key)
                        {
                            return Some(launcher.launch(entry, &$args::of(task)));
                        }
                    )+
                    None
                }
            }

            /// The tables of entries of the list.
            pub(crate) static TABLES: &[&dyn Table] = &[$(&$table),+];
        }
    };
}

const fn from<F: ValueFunction<From: Native>>() -> Number {
    <F::From as Native>::NUMBER
}

const fn to<F: ValueFunction<To: Native>>() -> Number {
    <F::To as Native>::NUMBER
}

functions! {
    Direct FromBool ToBool Up Down Round Quotient Product
    Days TimeOfDay DurationToInterval IntervalToDuration MonthsToInterval DayTimeToInterval
    FillNull;

    family "cast";
    /// Casts between integers, and between booleans and numbers.
    CastIntegers ()
    /// The entries, by function and native types.
    CAST_INTEGERS {
        pairs {
            cast Direct {
                i8 => i16 i32 i64 u8 u16 u32 u64;
                i16 => i8 i32 i64 u8 u16 u32 u64;
                i32 => i8 i16 i64 u8 u16 u32 u64;
                i64 => i8 i16 i32 u8 u16 u32 u64;
                u8 => i8 i16 i32 i64;
                u16 => i8 i16 i32 i64 u8;
                u32 => i8 i16 i32 i64 u8 u16;
                u64 => i8 i16 i32 i64 u8 u16 u32;
            }
        }
        single {
            FromBool {
                cast_bits_to<i8, i8> FromBool<i8>;
                cast_bits_to<i16, i16> FromBool<i16>;
                cast_bits_to<i32, i32> FromBool<i32>;
                cast_bits_to<i64, i64> FromBool<i64>;
                cast_bits_to<F16, F16> FromBool<F16>;
                cast_bits_to<f32, f32> FromBool<f32>;
                cast_bits_to<f64, f64> FromBool<f64>;
            }
            ToBool {
                cast_bits_from<i8, i8> ToBool<i8>;
                cast_bits_from<i16, i16> ToBool<i16>;
                cast_bits_from<i32, i32> ToBool<i32>;
                cast_bits_from<i64, i64> ToBool<i64>;
                cast_bits_from<F16, F16> ToBool<F16>;
                cast_bits_from<f32, f32> ToBool<f32>;
                cast_bits_from<f64, f64> ToBool<f64>;
            }
        }
    }

    // With the default of four blocks, these two casts would be four bytes of registers short on older GPUs.
    family "cast_float", blocks 3 for cast_f64_i64 cast_f64_u64;
    /// Casts between floats, and between floats and integers.
    CastFloats ()
    /// The entries, by function and native types.
    CAST_FLOATS {
        pairs {
            cast Direct {
                i8 => F16 f32 f64;
                i16 => F16 f32 f64;
                i32 => F16 f32 f64;
                i64 => F16 f32 f64;
                u8 => F16 f32 f64;
                u16 => F16 f32 f64;
                u32 => F16 f32 f64;
                u64 => F16 f32 f64;
                F16 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
                f32 => i8 i16 i32 i64 u8 u16 u32 u64 F16 f64;
                f64 => i8 i16 i32 i64 u8 u16 u32 u64 F16 f32;
            }
        }
        single {}
    }

    family "cast_scale", blocks 2;
    /// Multiplies or divides by a constant, in eight bytes: units of time, and small decimals.
    CastScale (w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17 w18 w19 w20 w21)
    /// The entries, by function and native types.
    CAST_SCALE {
        pairs {
            cast_up Up {
                i8 => i32 i64;
                i16 => i32 i64;
                i32 => i8 i16 i32 i64;
                i64 => i8 i16 i32 i64;
                u8 => i32 i64;
                u16 => i32 i64;
                u32 => i32 i64;
                u64 => i32 i64;
            }
            cast_down Down {
                i8 => i32 i64;
                i16 => i32 i64;
                i32 => i8 i16 i32 i64;
                i64 => i8 i16 i32 i64;
                u8 => i32 i64;
                u16 => i32 i64;
                u32 => i32 i64;
                u64 => i32 i64;
            }
        }
        single {}
    }

    family "cast_up", blocks 2;
    /// Multiplies by a constant: large decimals.
    CastUp (w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17 w18 w19 w20 w21)
    /// The entries, by native types.
    CAST_UP {
        pairs {
            cast_up Up {
                i8 => i128 I256;
                i16 => i128 I256;
                i32 => i128 I256;
                i64 => i128 I256;
                u8 => i128 I256;
                u16 => i128 I256;
                u32 => i128 I256;
                u64 => i128 I256;
                i128 => i8 i16 i32 i64 i128 I256;
                I256 => i8 i16 i32 i64 i128 I256;
            }
        }
        single {}
    }

    // The largest functions, of 256 bits, would spill if AMD's compiler planned for blocks of 1024 threads.
    family "cast_down", blocks 2, threads 256 for
        cast_down_I256_i8 cast_down_I256_i16 cast_down_I256_i32 cast_down_I256_i64 cast_down_I256_i128
        cast_down_I256_I256;
    /// Divides by a constant: large decimals.
    CastDown (w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17 w18 w19 w20 w21)
    /// The entries, by native types.
    CAST_DOWN {
        pairs {
            cast_down Down {
                i8 => i128 I256;
                i16 => i128 I256;
                i32 => i128 I256;
                i64 => i128 I256;
                u8 => i128 I256;
                u16 => i128 I256;
                u32 => i128 I256;
                u64 => i128 I256;
                i128 => i8 i16 i32 i64 i128 I256;
                I256 => i8 i16 i32 i64 i128 I256;
            }
        }
        single {}
    }

    family "cast_to_decimal", blocks 2;
    /// Casts floats to decimals.
    CastToDecimal (w0 w1 w2 w3 w4 w5 w6)
    /// The entries, by native types.
    CAST_TO_DECIMAL {
        pairs {
            cast_round Round {
                F16 => i32 i64 i128 I256;
                f32 => i32 i64 i128 I256;
                f64 => i32 i64 i128 I256;
            }
        }
        single {}
    }

    family "cast_of_decimal", blocks 2,
        threads 256 for cast_product_I256_F16 cast_product_I256_f32 cast_product_I256_f64;
    /// Casts decimals to floats.
    CastOfDecimal (w0 w1 w2 w3 w4 w5 w6)
    /// The entries, by function and native types.
    CAST_OF_DECIMAL {
        pairs {
            cast_quotient Quotient {
                i32 => F16 f32 f64;
                i64 => F16 f32 f64;
                i128 => F16 f32 f64;
                I256 => F16 f32 f64;
            }
            cast_product Product {
                i32 => F16 f32 f64;
                i64 => F16 f32 f64;
                i128 => F16 f32 f64;
                I256 => F16 f32 f64;
            }
        }
        single {}
    }

    family "cast_time", blocks 2;
    /// Casts timestamps to days and times of day, and casts intervals.
    CastTime (w0 w1 w2 w3 w4 w5 w6 w7 w8 w9)
    /// The entries, by function and native types.
    CAST_TIME {
        pairs {}
        single {
            Days {
                cast_days<i64, i32> Days<i32>;
                cast_days<i64, i64> Days<i64>;
            }
            TimeOfDay {
                cast_time_of_day<i64, i32> TimeOfDay<i32>;
                cast_time_of_day<i64, i64> TimeOfDay<i64>;
            }
            DurationToInterval { cast_duration_to_interval<i64, i128> DurationToInterval; }
            IntervalToDuration { cast_interval_to_duration<i128, i64> IntervalToDuration; }
            MonthsToInterval { cast_months_to_interval<i32, i128> MonthsToInterval; }
            DayTimeToInterval { cast_day_time_to_interval<i64, i128> DayTimeToInterval; }
        }
    }

    family "nulls", blocks 3;
    /// Replaces nulls by values.
    OfNulls (w0 w1 w2 w3)
    /// The entries, by function and native type.
    OF_NULLS {
        pairs {}
        single {
            FillNull {
                fill_null<Bit, Bit> FillNull<Bit>;
                fill_null<i8, i8> FillNull<i8>;
                fill_null<i16, i16> FillNull<i16>;
                fill_null<i32, i32> FillNull<i32>;
                fill_null<i64, i64> FillNull<i64>;
                fill_null<i128, i128> FillNull<i128>;
                fill_null<I256, I256> FillNull<I256>;
            }
        }
    }
}

/// A function picked at run time, with its native types and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// The function to call.
    pub function: Function,
    /// The native type that it reads.
    pub from: Number,
    /// The native type that it writes.
    pub to: Number,
    /// Whether some values may not fit; if not, the nulls of the result are those of the input.
    pub fallible: bool,
    /// Whether nulls become values, so that the result has none.
    pub fills_nulls: bool,
    /// The parameters, as machine words.
    pub words: [u64; WORDS],
}

/// An operation that is generic over functions.
pub trait Visitor {
    /// The result of the operation.
    type Output;
    /// Runs the operation for the function, whose parameters have been read.
    fn visit<F: ValueFunction<From: Native, To: Native> + Parameter>(self, function: F) -> Self::Output;
}

impl FunctionCall {
    /// Makes the call of a function with its parameters.
    pub fn new<F: ValueFunction<From: Native, To: Native> + Parameter>(
        function: Function,
        values: F,
        fallible: bool,
    ) -> FunctionCall {
        let mut words = Words::new([0; WORDS]);
        values.write(&mut words);
        FunctionCall {
            function,
            from: from::<F>(),
            to: to::<F>(),
            fallible,
            fills_nulls: F::FILLS_NULLS,
            words: words.into_array(),
        }
    }

    /// Makes the call of a function without parameters, or `None` if it is not in the list.
    pub fn plain(function: Function, from: Number, to: Number) -> Option<FunctionCall> {
        struct Described(Function);
        impl Visitor for Described {
            type Output = FunctionCall;
            fn visit<F: ValueFunction<From: Native, To: Native> + Parameter>(
                self,
                values: F,
            ) -> FunctionCall {
                FunctionCall::new(self.0, values, !F::ALWAYS)
            }
        }
        let words = [0; WORDS];
        FunctionCall { function, from, to, fallible: false, fills_nulls: false, words }
            .visit(Described(function))
    }

    fn read<F: Parameter>(&self) -> F {
        F::read(&mut Words::new(self.words))
    }

    /// The number of tiles that each wave takes of `len` rows, or `None` for a combination that is not in the
    /// list. It is one until the waves fill the largest GPUs a few times over.
    pub fn tiles(&self, len: u64, width: u32) -> Option<u64> {
        struct Shaped;
        impl Visitor for Shaped {
            type Output = Shape;
            fn visit<F: ValueFunction<From: Native, To: Native> + Parameter>(self, _: F) -> Shape {
                Shape::of::<F>()
            }
        }
        const WAVES: u64 = 1 << 15;
        Some((len.div_ceil(self.visit(Shaped)?.tile(width).into()) / WAVES).max(1))
    }
}

host_only! {
    use crate::target::{Args, Entry, Table, find};

    /// Launches an entry, whatever the type of its arguments.
    pub trait Launcher {
        /// The result of a launch.
        type Output;
        /// Launches the entry with these arguments.
        fn launch<A: Args>(self, entry: &'static Entry<A>, args: &A) -> Self::Output;
    }
}
