//! The reader of each type, in one list for devices and the host.

use core::marker::PhantomData;

use super::boolean::read_boolean;
use super::date::read_date;
use super::decimal::{Form, read_decimal};
use super::float::{read_f32, read_f64};
use super::float_exact::{read_f32_exactly, read_f64_exactly};
use super::integer::read_integer;
use super::interval::read_interval;
use super::said::Said;
use super::time::read_time;
use super::timestamp::read_timestamp;
use crate::map::function::{F16, U256};
use crate::text::bytes::Bytes;
use crate::text::unit::{IntervalKind, Unit};
use crate::text::words::{Table, Words};

/// Reads texts as values of a type.
pub trait Reader: Copy {
    /// The access to the words that describe the type.
    type Words: Words;
    /// Whether some texts are hard: whether [`read`](Reader::read) leaves them to
    /// [`read_hard`](Reader::read_hard).
    const HARD: bool = false;
    /// Creates the reader of the type that words describe.
    fn of(words: Self::Words) -> Self;
    /// Reads a text as the bits of a value.
    fn read<B: Bytes>(self, text: B) -> Said<U256>;
    /// Reads a text that is hard, however long it takes.
    #[inline(always)]
    fn read_hard<B: Bytes>(self, _: B) -> Option<U256> {
        None
    }
}

/// Widens the bits of a number of at most 64 bits.
#[inline(always)]
fn low(bits: u64) -> U256 {
    U256::from_low(bits as u128)
}

/// The reader of booleans. It has no words.
#[derive(Clone, Copy)]
pub struct Booleans<W>(PhantomData<W>);

impl<W: Words> Reader for Booleans<W> {
    type Words = W;

    #[inline(always)]
    fn of(_: W) -> Booleans<W> {
        Booleans(PhantomData)
    }

    #[inline(always)]
    fn read<B: Bytes>(self, text: B) -> Said<U256> {
        Said::from(read_boolean(text)).map(|value| low(value.into()))
    }
}

/// The reader of integers. The words are the greatest integer, and the magnitude of the least one.
#[derive(Clone, Copy)]
pub struct Integers<W> {
    most: u64,
    least: u64,
    words: PhantomData<W>,
}

impl<W: Words> Reader for Integers<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> Integers<W> {
        Integers { most: words.get(0), least: words.get(1), words: PhantomData }
    }

    #[inline(always)]
    fn read<B: Bytes>(self, text: B) -> Said<U256> {
        Said::from(read_integer(text, self.most, self.least)).map(low)
    }
}

/// The reader of decimals of up to 16 bytes. The words are [`decimal_words`].
#[derive(Clone, Copy)]
pub struct Decimals<W>(Form<u128>, PhantomData<W>);

impl<W: Words> Reader for Decimals<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> Decimals<W> {
        let Form { scale, tenth, greatest } = decimal_of(words);
        Decimals(Form { scale, tenth: tenth.low, greatest: greatest.low }, PhantomData)
    }

    #[inline(always)]
    fn read<B: Bytes>(self, text: B) -> Said<U256> {
        let signed =
            |(negative, x): (bool, u128)| U256::from_low(if negative { x.wrapping_neg() } else { x });
        Said::from(read_decimal(text, self.0)).map(signed)
    }
}

/// The reader of decimals of 32 bytes. The words are [`decimal_words`].
#[derive(Clone, Copy)]
pub struct WideDecimals<W>(Form<U256>, PhantomData<W>);

impl<W: Words> Reader for WideDecimals<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> WideDecimals<W> {
        WideDecimals(decimal_of(words), PhantomData)
    }

    #[inline(always)]
    fn read<B: Bytes>(self, text: B) -> Said<U256> {
        let signed = |(negative, x): (bool, U256)| if negative { U256::ZERO.wrapping_sub(x) } else { x };
        Said::from(read_decimal(text, self.0)).map(signed)
    }
}

/// Returns the words that describe decimals: the scale, `tenth` and `greatest`, the lowest word of each
/// number first.
pub fn decimal_words(form: Form<U256>) -> [u64; 9] {
    let words = |x: U256| [x.low as u64, (x.low >> 64) as u64, x.high as u64, (x.high >> 64) as u64];
    let ([a, b, c, d], [e, f, g, h]) = (words(form.tenth), words(form.greatest));
    [form.scale as u64, a, b, c, d, e, f, g, h]
}

#[inline(always)]
fn decimal_of<W: Words>(words: W) -> Form<U256> {
    let half = |i: u64| words.get(i) as u128 | (words.get(i + 1) as u128) << 64;
    Form {
        scale: words.get(0) as i32,
        tenth: U256 { low: half(1), high: half(3) },
        greatest: U256 { low: half(5), high: half(7) },
    }
}

/// The reader of doubles. The words are [`POWERS`](crate::text::powers::POWERS).
#[derive(Clone, Copy)]
pub struct Doubles<W: Words>(W::Powers);

impl<W: Words> Reader for Doubles<W> {
    type Words = W;
    const HARD: bool = true;

    #[inline(always)]
    fn of(words: W) -> Doubles<W> {
        Doubles(words.powers(0))
    }

    #[inline(always)]
    fn read<B: Bytes>(self, text: B) -> Said<U256> {
        read_f64(text, self.0).map(|value| low(value.to_bits()))
    }

    #[inline(always)]
    fn read_hard<B: Bytes>(self, text: B) -> Option<U256> {
        read_f64_exactly(text, self.0).map(|value| low(value.to_bits()))
    }
}

/// The reader of singles, and of halves, which arrow-cast makes from singles. The words are whether they are
/// halves, and [`POWERS`](crate::text::powers::POWERS).
#[derive(Clone, Copy)]
pub struct Singles<W: Words> {
    halves: bool,
    powers: W::Powers,
}

impl<W: Words> Singles<W> {
    #[inline(always)]
    fn bits(self, value: f32) -> U256 {
        low(if self.halves { F16::from_f32(value).0.into() } else { value.to_bits().into() })
    }
}

impl<W: Words> Reader for Singles<W> {
    type Words = W;
    const HARD: bool = true;

    #[inline(always)]
    fn of(words: W) -> Singles<W> {
        Singles { halves: words.get(0) != 0, powers: words.powers(1) }
    }

    #[inline(always)]
    fn read<B: Bytes>(self, text: B) -> Said<U256> {
        read_f32(text, self.powers).map(|value| self.bits(value))
    }

    #[inline(always)]
    fn read_hard<B: Bytes>(self, text: B) -> Option<U256> {
        read_f32_exactly(text, self.powers).map(|value| self.bits(value))
    }
}

/// The reader of days. The word is whether they are counted in milliseconds.
#[derive(Clone, Copy)]
pub struct Days<W> {
    milliseconds: bool,
    words: PhantomData<W>,
}

impl<W: Words> Reader for Days<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> Days<W> {
        Days { milliseconds: words.get(0) != 0, words: PhantomData }
    }

    #[inline(always)]
    fn read<B: Bytes>(self, text: B) -> Said<U256> {
        read_date(text, self.milliseconds).map(|value| low(value as u64))
    }
}

/// The reader of times of day. The word is the [unit](Unit::cuts).
#[derive(Clone, Copy)]
pub struct Times<W> {
    unit: Unit,
    words: PhantomData<W>,
}

impl<W: Words> Reader for Times<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> Times<W> {
        Times { unit: Unit::new(words.get(0) as u32), words: PhantomData }
    }

    #[inline(always)]
    fn read<B: Bytes>(self, text: B) -> Said<U256> {
        Said::from(read_time(text, self.unit)).map(|value| low(value as u64))
    }
}

/// The reader of timestamps. The words are the [unit](Unit::cuts), and the zone as a [`Table`], which is UTC
/// if the type has none.
#[derive(Clone, Copy)]
pub struct Timestamps<W> {
    unit: Unit,
    zone: Table<W>,
}

impl<W: Words> Reader for Timestamps<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> Timestamps<W> {
        Timestamps { unit: Unit::new(words.get(0) as u32), zone: Table::new(words, 1) }
    }

    #[inline(always)]
    fn read<B: Bytes>(self, text: B) -> Said<U256> {
        read_timestamp(text, self.unit, self.zone).map(|value| low(value as u64))
    }
}

/// The reader of intervals. The word is the [kind](IntervalKind::new).
#[derive(Clone, Copy)]
pub struct Intervals<W> {
    kind: IntervalKind,
    words: PhantomData<W>,
}

impl<W: Words> Reader for Intervals<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> Intervals<W> {
        Intervals { kind: IntervalKind::new(words.get(0)), words: PhantomData }
    }

    #[inline(always)]
    fn read<B: Bytes>(self, text: B) -> Said<U256> {
        Said::from(read_interval(text, self.kind)).map(|value| U256::from_low(value as u128))
    }
}

/// Passes the list to `$macro`: the reader, its number, the name of its entry, and for a reader with hard
/// texts the name of a second entry.
macro_rules! readers {
    ($macro:ident) => {
        $macro! {
            Booleans 0 read_boolean;
            Integers 1 read_integer;
            Decimals 2 read_decimal_b16;
            WideDecimals 3 read_decimal_b32;
            Singles 4 read_f32 hard read_f32_hard;
            Doubles 5 read_f64 hard read_f64_hard;
            Days 6 read_date;
            Times 7 read_time;
            Timestamps 8 read_timestamp;
            Intervals 9 read_interval;
        }
    };
}
pub(super) use readers;

/// An operation on a reader whose type is only known at run time.
pub trait WithReader {
    /// The result of the operation.
    type Output;
    /// Runs the operation on a reader.
    fn with<R: Reader>(self, reader: R) -> Self::Output;
}

macro_rules! reading {
    ($($reader:ident $key:literal $name:ident $(hard $hard:ident)?;)+) => {
        /// The reader of a type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reading {
            $(#[doc = concat!("[`", stringify!($reader), "`]")] $reader = $key,)+
        }

        impl Reading {
            /// Returns whether some texts are hard for this reader.
            pub const fn has_hard(self) -> bool {
                match self {
                    $(Reading::$reader => $reader::<&[u64]>::HARD,)+
                }
            }

            /// Runs an operation on this reader, for the type that words describe.
            pub fn visit<V: WithReader>(self, words: &[u64], visitor: V) -> V::Output {
                match self {
                    $(Reading::$reader => visitor.with($reader::of(words)),)+
                }
            }
        }
    };
}
host_only! {
    readers! { reading }
}
