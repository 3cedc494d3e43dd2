//! Every instantiation of the cast kernels: one for each way to compute and pair of native types. All 740 pairs of
//! Arrow types come down to these; [`Recipe`](crate::numeric::Recipe) says which and with what parameters.
//!
//! Four families, so that a cast between numbers does not make a driver compile the arithmetic of decimals.

use super::{Task, bits_from, bits_to, convert};
use crate::memory::{In, Out};
use crate::numeric::float::{Product, Quotient, Round};
use crate::numeric::recipe::Direct;
use crate::numeric::scale::{Down, Up};
use crate::numeric::temporal::{
    DayTimeToInterval, Days, DurationToInterval, IntervalToDuration, MonthsToInterval, TimeOfDay,
};
use crate::numeric::words::WORDS;
use crate::numeric::{F16, I256, Native, Operation};

/// Declares the kernel of a family: what all of them take, then parameters. An entry's key is the operation and the two
/// native types of a recipe, which is also what its name says.
macro_rules! casts {
    (
        family $family:literal $(, $tuning:ident $value:literal $(for $($tuned:ident)+)?)*;
        $(#[$doc:meta])*
        $args:ident ($($word:ident)*)
        $(#[$table_doc:meta])*
        $table:ident {
            $($name:ident $operation:ident { $($from:ident => $($to:ident)+;)+ })*
        }
        $({ $($single:ident <$single_from:ident, $single_to:ident> $single_operation:ident = $body:expr;)+ })?
    ) => {
        kernel! {
            family $family;
            $(#[$doc])*
            $args {
                /// The values, numbers too, from `In::bitmap`.
                values: In<u32>,
                /// From `In::bitmap`.
                offset: u64,
                /// From `In::bitmap`: which rows are valid. May be absent.
                valid: In<u32>,
                /// From `In::bitmap`.
                valid_offset: u64,
                /// How many rows; not 0.
                len: u64,
                /// How many tiles a wave does, one after another.
                tiles: u64,
                /// The new values, on a 16-byte boundary and writable up to one. Whole words of booleans.
                out: Out<u8>,
                /// Which rows are valid and fit. Whole words; bits past the end are zero. May be absent.
                out_valid: Out<u32>,
                /// Two words: receives, added to what is there, how many rows are not valid or do not fit; and, if
                /// less than what is there, the first row that is valid and does not fit. May be absent, and then no
                /// validity is written. Not touched by conversions that always fit.
                status: Out<u64>,
                $(
                    /// A word of the parameters.
                    $word: u64,
                )*
            }
            $(#[$table_doc])*
            $table {
                $($($(
                    $name<$from, $to> [
                        Operation::$operation as u32,
                        <$from as Native>::NUMBER as u32,
                        <$to as Native>::NUMBER as u32
                    ] = |args, wave| convert::<$operation<$from, $to>>(&args.task(), wave),
                )+)+)*
                $($(
                    $single<$single_from, $single_to> [
                        Operation::$single_operation as u32,
                        <$single_from as Native>::NUMBER as u32,
                        <$single_to as Native>::NUMBER as u32
                    ] = $body,
                )+)?
            }
        }

        impl $args {
            /// The arguments for a task whose operation is in this family.
            pub fn of(task: &Task) -> $args {
                let [$($word,)* ..] = task.words;
                $args {
                    values: task.values,
                    offset: task.offset,
                    valid: task.valid,
                    valid_offset: task.valid_offset,
                    len: task.len,
                    tiles: task.tiles,
                    out: task.out,
                    out_valid: task.out_valid,
                    status: task.status,
                    $($word,)*
                }
            }

            #[inline(always)]
            fn task(&self) -> Task {
                // One by one: a loop over them would put the array in memory on AMD.
                let mut words = [0; WORDS];
                let [$($word,)* ..] = &mut words;
                $(*$word = self.$word;)*
                Task {
                    values: self.values,
                    offset: self.offset,
                    valid: self.valid,
                    valid_offset: self.valid_offset,
                    len: self.len,
                    tiles: self.tiles,
                    out: self.out,
                    out_valid: self.out_valid,
                    status: self.status,
                    words,
                }
            }
        }
    };
}

casts! {
    // Two of eight bytes to eight would miss four bytes of registers on older GPUs.
    family "cast", blocks 3 for cast_f64_i64 cast_f64_u64;
    /// Between integers, floats and booleans. Waves: one for each `tiles` [`tile`](super::tile)s.
    CastNumbers ()
    /// By operation and native types; two types that are the same for those from and to booleans.
    CAST_NUMBERS {
        cast Direct {
            i8 => i16 i32 i64 u8 u16 u32 u64 F16 f32 f64;
            i16 => i8 i32 i64 u8 u16 u32 u64 F16 f32 f64;
            i32 => i8 i16 i64 u8 u16 u32 u64 F16 f32 f64;
            i64 => i8 i16 i32 u8 u16 u32 u64 F16 f32 f64;
            u8 => i8 i16 i32 i64 u16 u32 u64 F16 f32 f64;
            u16 => i8 i16 i32 i64 u8 u32 u64 F16 f32 f64;
            u32 => i8 i16 i32 i64 u8 u16 u64 F16 f32 f64;
            u64 => i8 i16 i32 i64 u8 u16 u32 F16 f32 f64;
            F16 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
            f32 => i8 i16 i32 i64 u8 u16 u32 u64 F16 f64;
            f64 => i8 i16 i32 i64 u8 u16 u32 u64 F16 f32;
        }
    }
    {
        cast_bits_to<i8, i8> FromBits = |args, wave| bits_to::<i8>(&args.task(), wave);
        cast_bits_to<i16, i16> FromBits = |args, wave| bits_to::<i16>(&args.task(), wave);
        cast_bits_to<i32, i32> FromBits = |args, wave| bits_to::<i32>(&args.task(), wave);
        cast_bits_to<i64, i64> FromBits = |args, wave| bits_to::<i64>(&args.task(), wave);
        cast_bits_to<u8, u8> FromBits = |args, wave| bits_to::<u8>(&args.task(), wave);
        cast_bits_to<u16, u16> FromBits = |args, wave| bits_to::<u16>(&args.task(), wave);
        cast_bits_to<u32, u32> FromBits = |args, wave| bits_to::<u32>(&args.task(), wave);
        cast_bits_to<u64, u64> FromBits = |args, wave| bits_to::<u64>(&args.task(), wave);
        cast_bits_to<F16, F16> FromBits = |args, wave| bits_to::<F16>(&args.task(), wave);
        cast_bits_to<f32, f32> FromBits = |args, wave| bits_to::<f32>(&args.task(), wave);
        cast_bits_to<f64, f64> FromBits = |args, wave| bits_to::<f64>(&args.task(), wave);
        cast_bits_from<i8, i8> ToBits = |args, wave| bits_from::<i8>(&args.task(), wave);
        cast_bits_from<i16, i16> ToBits = |args, wave| bits_from::<i16>(&args.task(), wave);
        cast_bits_from<i32, i32> ToBits = |args, wave| bits_from::<i32>(&args.task(), wave);
        cast_bits_from<i64, i64> ToBits = |args, wave| bits_from::<i64>(&args.task(), wave);
        cast_bits_from<u8, u8> ToBits = |args, wave| bits_from::<u8>(&args.task(), wave);
        cast_bits_from<u16, u16> ToBits = |args, wave| bits_from::<u16>(&args.task(), wave);
        cast_bits_from<u32, u32> ToBits = |args, wave| bits_from::<u32>(&args.task(), wave);
        cast_bits_from<u64, u64> ToBits = |args, wave| bits_from::<u64>(&args.task(), wave);
        cast_bits_from<F16, F16> ToBits = |args, wave| bits_from::<F16>(&args.task(), wave);
        cast_bits_from<f32, f32> ToBits = |args, wave| bits_from::<f32>(&args.task(), wave);
        cast_bits_from<f64, f64> ToBits = |args, wave| bits_from::<f64>(&args.task(), wave);
    }
}

casts! {
    // The largest, of 256 bits, would spill if AMD's compiler planned for blocks of 1024 threads.
    family "cast_scale", blocks 2, threads 256 for
        cast_down_I256_i8 cast_down_I256_i16 cast_down_I256_i32 cast_down_I256_i64 cast_down_I256_u8 cast_down_I256_u16
        cast_down_I256_u32 cast_down_I256_u64 cast_down_I256_i128 cast_down_I256_I256;
    /// Multiply or divide by a constant: decimals, and units of time. Waves: as [`CastNumbers`].
    CastScale (w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17 w18 w19 w20 w21)
    /// By operation and native types.
    CAST_SCALE {
        cast_up Up {
            i8 => i32 i64 i128 I256;
            i16 => i32 i64 i128 I256;
            i32 => i8 i16 i32 i64 u8 u16 u32 u64 i128 I256;
            i64 => i8 i16 i32 i64 u8 u16 u32 u64 i128 I256;
            u8 => i32 i64 i128 I256;
            u16 => i32 i64 i128 I256;
            u32 => i32 i64 i128 I256;
            u64 => i32 i64 i128 I256;
            i128 => i8 i16 i32 i64 u8 u16 u32 u64 i128 I256;
            I256 => i8 i16 i32 i64 u8 u16 u32 u64 i128 I256;
        }
        cast_down Down {
            i8 => i32 i64 i128 I256;
            i16 => i32 i64 i128 I256;
            i32 => i8 i16 i32 i64 u8 u16 u32 u64 i128 I256;
            i64 => i8 i16 i32 i64 u8 u16 u32 u64 i128 I256;
            u8 => i32 i64 i128 I256;
            u16 => i32 i64 i128 I256;
            u32 => i32 i64 i128 I256;
            u64 => i32 i64 i128 I256;
            i128 => i8 i16 i32 i64 u8 u16 u32 u64 i128 I256;
            I256 => i8 i16 i32 i64 u8 u16 u32 u64 i128 I256;
        }
    }
}

casts! {
    family "cast_float", blocks 2, threads 256 for cast_product_I256_F16 cast_product_I256_f32 cast_product_I256_f64;
    /// Decimals to and from floats. Waves: as [`CastNumbers`].
    CastFloat (w0 w1 w2 w3 w4 w5 w6)
    /// By operation and native types.
    CAST_FLOAT {
        cast_round Round {
            F16 => i32 i64 i128 I256;
            f32 => i32 i64 i128 I256;
            f64 => i32 i64 i128 I256;
        }
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
}

casts! {
    family "cast_time", blocks 2;
    /// Timestamps to days and times of day, and intervals. Waves: as [`CastNumbers`].
    CastTime (w0 w1 w2 w3 w4 w5 w6 w7 w8 w9)
    /// By operation and native types.
    CAST_TIME {}
    {
        cast_days<i64, i32> Days = |args, wave| convert::<Days<i32>>(&args.task(), wave);
        cast_days<i64, i64> Days = |args, wave| convert::<Days<i64>>(&args.task(), wave);
        cast_time_of_day<i64, i32> TimeOfDay = |args, wave| convert::<TimeOfDay<i32>>(&args.task(), wave);
        cast_time_of_day<i64, i64> TimeOfDay = |args, wave| convert::<TimeOfDay<i64>>(&args.task(), wave);
        cast_duration_to_interval<i64, i128> DurationToInterval =
            |args, wave| convert::<DurationToInterval>(&args.task(), wave);
        cast_interval_to_duration<i128, i64> IntervalToDuration =
            |args, wave| convert::<IntervalToDuration>(&args.task(), wave);
        cast_months_to_interval<i32, i128> MonthsToInterval =
            |args, wave| convert::<MonthsToInterval>(&args.task(), wave);
        cast_day_time_to_interval<i64, i128> DayTimeToInterval =
            |args, wave| convert::<DayTimeToInterval>(&args.task(), wave);
    }
}
