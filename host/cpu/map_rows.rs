//! The loops of [`super::map`]: they write values, validity and null count in one pass over the rows.
//!
//! A function maps each value to a result and to whether it fits. Rows are handled in blocks of 64, so that
//! validity and fit are a word each. Values under nulls are converted like the rest, because a loop without
//! branches is faster; their results are ignored.

use bowstring_kernels::map::function::words::Parameter;
use bowstring_kernels::map::function::{Native, Number, U256, ValueFunction};
use bowstring_kernels::map::functions::Visitor;

use super::bitmap::Bits;
use super::memory::{numbers, numbers_mut};
use super::vectorise::{Loop, VectorLevel, vectorised};

/// The outcome of converting some rows.
#[derive(Clone, Copy, Default)]
pub(super) struct Outcome {
    /// The number of rows that are null now.
    pub(super) nulls: usize,
    /// The first valid row whose value does not fit.
    pub(super) misfit: Option<usize>,
}

impl Outcome {
    /// Combines the outcome with that of later rows.
    pub(super) fn and(self, later: Outcome) -> Outcome {
        Outcome { nulls: self.nulls + later.nulls, misfit: self.misfit.or(later.misfit) }
    }
}

/// The values to convert.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Booleans, one bit each.
    Bits(Bits<'a>),
    /// Numbers, with their width in bytes.
    Bytes(&'a [u8], usize),
}

impl<'a> Source<'a> {
    /// Returns rows `start .. start + rows`.
    pub(super) fn slice(self, start: usize, rows: usize) -> Source<'a> {
        match self {
            Source::Bits(bits) => Source::Bits(bits.slice(start, rows)),
            Source::Bytes(bytes, width) => Source::Bytes(&bytes[start * width..][..rows * width], width),
        }
    }
}

/// Rows to convert, and the memory for their results.
pub(super) struct Part<'a> {
    pub(super) from: Source<'a>,
    pub(super) rows: usize,
    /// The results. Booleans fill whole words, zero past the last row.
    pub(super) to: &'a mut [u8],
    /// The validity of the rows; `None` if all are valid.
    pub(super) valid: Option<Bits<'a>>,
    /// Receives the rows that are valid and fit. Without it, checking stops at the first block that has a
    /// valid row that does not fit.
    pub(super) good: Option<&'a mut [u64]>,
}

impl Visitor for Part<'_> {
    type Output = Outcome;

    fn visit<F: ValueFunction<From: Native, To: Native> + Parameter>(self, function: F) -> Outcome {
        const fn is_bit<T: Native>() -> bool {
            matches!(T::NUMBER, Number::Bit)
        }
        let Part { from, rows, to, valid, good } = self;
        // The branch is a constant, so each function is compiled for its own kind of rows only.
        if const { is_bit::<F::From>() } {
            let Source::Bits(from) = from else { unreachable!("bits are not numbers") };
            if const { is_bit::<F::To>() } {
                let to: &mut [u64] = numbers_mut(to).expect("parts start at whole words");
                words(function, from, valid, &mut to[..rows.div_ceil(64)], rows);
            } else {
                let to: &mut [F::To] = &mut numbers_mut(to).expect("parts start at whole words")[..rows];
                vectorised(Unpack { function, from, to });
            }
            return Outcome::default();
        }
        let Source::Bytes(bytes, _) = from else { unreachable!("numbers are not bits") };
        let from: &[F::From] = numbers(bytes).expect("aligned by the caller");
        if const { is_bit::<F::To>() } {
            vectorised(Pack { function, from, to: numbers_mut(to).expect("parts start at whole words") });
            return Outcome::default();
        }
        if const { rounds::<F>() } {
            let from = numbers(bytes).expect("aligned by the caller");
            vectorised(Nearest(from, &mut numbers_mut(to).expect("parts start at whole words")[..rows]));
            return Outcome::default();
        }
        let to: &mut [F::To] = &mut numbers_mut(to).expect("parts start at whole words")[..rows];
        let rows = Convert { function, from, to, valid, good };
        if const { pays::<F>() } { vectorised(rows) } else { VectorLevel::Plain.run(rows) }
    }
}

/// Maps bits to bits. Such a function is determined by its results for zero, one and null.
fn words<F>(function: F, from: Bits<'_>, valid: Option<Bits<'_>>, to: &mut [u64], rows: usize)
where
    F: ValueFunction<From: Native, To: Native>,
{
    let mask = |value: F::To| set(value).wrapping_neg();
    let [zero, one] = [0, 1].map(|word| mask(function.call(bit(word)).0));
    let null = mask(function.of_null());
    for (i, to) in to.iter_mut().enumerate() {
        let from = from.word(i);
        let made = zero & !from | one & from;
        let valid = if F::FILLS_NULLS { valid.map_or(!0, |bits| bits.word(i)) } else { !0 };
        let there = if rows - i * 64 < 64 { !(!0 << (rows - i * 64)) } else { !0 };
        *to = (made & valid | null & !valid) & there;
    }
}

/// Returns whether compiling a function for wide vectors pays off. It does between integers and floats of up
/// to 64 bits, and for scaling the integers that dates and times are stored in. The compiler does not
/// vectorise 128-bit values, and every function compiled this way takes code size.
const fn pays<F: ValueFunction<From: Native, To: Native>>() -> bool {
    use Number::*;
    let without_parameters = size_of::<F>() == 0;
    match (F::From::NUMBER, F::To::NUMBER) {
        (F16 | I128 | I256, _) | (_, F16 | I128 | I256) => false,
        (I32 | I64, I32 | I64) => true,
        _ => without_parameters,
    }
}

/// Returns whether this is the cast from [`f64`] to [`f32`]. Its definition specifies the bits of a NaN's
/// result, but these processors produce the same ones, so the plain conversion serves.
const fn rounds<F: ValueFunction<From: Native, To: Native>>() -> bool {
    let here = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    here && size_of::<F>() == 0 && matches!((F::From::NUMBER, F::To::NUMBER), (Number::F64, Number::F32))
}

/// Converts each value to the nearest [`f32`].
struct Nearest<'a>(&'a [f64], &'a mut [f32]);

impl Loop for Nearest<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.iter().zip(self.1).for_each(|(from, to)| *to = *from as f32);
    }
}

/// Converts the rows of a part.
struct Convert<'a, F: ValueFunction> {
    function: F,
    from: &'a [F::From],
    to: &'a mut [F::To],
    valid: Option<Bits<'a>>,
    good: Option<&'a mut [u64]>,
}

impl<F: ValueFunction<From: Native, To: Native>> Loop for Convert<'_, F> {
    type Output = Outcome;

    #[inline(always)]
    fn run(self) -> Outcome {
        let Convert { function, from, to, valid, good } = self;
        if const { F::ALWAYS } {
            debug_assert!(good.is_none(), "the call said that everything fits");
            match valid {
                Some(valid) if F::FILLS_NULLS => fill(function, from, to, valid),
                _ => from.iter().zip(to).for_each(|(from, to)| *to = function.call(*from).0),
            }
            return Outcome::default();
        }
        let mut notes = Notes::new(valid, good);
        let (from, from_rest) = from.as_chunks::<64>();
        let (to, to_rest) = to.as_chunks_mut::<64>();
        // The last block is padded, so that one loop handles all rows.
        let (mut last_from, mut last_to) = ([F::From::default(); 64], [F::To::default(); 64]);
        last_from[..from_rest.len()].copy_from_slice(from_rest);
        let mut blocks = from.iter().zip(to);
        for i in 0..from.len() + usize::from(!from_rest.is_empty()) {
            let (from, to, there) = match blocks.next() {
                Some((from, to)) => (from, to, !0),
                None => (&last_from, &mut last_to, !0 >> (64 - from_rest.len())),
            };
            if notes.take(i, block(&function, from, to), there) {
                return notes.outcome;
            }
        }
        to_rest.copy_from_slice(&last_to[..to_rest.len()]);
        notes.outcome
    }
}

/// Maps rows with a function that gives nulls a value.
#[inline(always)]
fn fill<F: ValueFunction<To: Default>>(function: F, from: &[F::From], to: &mut [F::To], valid: Bits<'_>) {
    let null = function.of_null();
    for (i, (from, to)) in from.chunks(64).zip(to.chunks_mut(64)).enumerate() {
        let valid = valid.word(i);
        for (row, (from, to)) in from.iter().zip(to).enumerate() {
            *to = if valid >> row & 1 == 1 { function.call(*from).0 } else { null };
        }
    }
}

/// Converts 64 rows. Returns the bits of those that fit.
#[inline(always)]
fn block<F: ValueFunction<From: Native, To: Native>>(
    function: &F,
    from: &[F::From; 64],
    to: &mut [F::To; 64],
) -> u64 {
    let mut which = 0;
    if const { pays::<F>() } {
        // Usually all rows fit, and a vector loop detects that faster than it finds which ones do not.
        let mut all = true;
        for (to, from) in to.iter_mut().zip(from) {
            let (value, fits) = function.call(*from);
            *to = value;
            all &= fits;
        }
        if all {
            return !0;
        }
        for (i, from) in from.iter().enumerate() {
            which |= u64::from(function.call(*from).1) << i;
        }
    } else {
        for (i, (to, from)) in to.iter_mut().zip(from).enumerate() {
            let (value, fits) = function.call(*from);
            *to = value;
            which |= u64::from(fits) << i;
        }
    }
    which
}

/// The outcome collected so far from the rows of a part.
pub(super) struct Notes<'a> {
    valid: Option<Bits<'a>>,
    good: Option<&'a mut [u64]>,
    pub(super) outcome: Outcome,
}

impl<'a> Notes<'a> {
    /// Starts with no rows. `valid` is their validity, and `good` receives the rows that are valid and fit.
    pub(super) fn new(valid: Option<Bits<'a>>, good: Option<&'a mut [u64]>) -> Notes<'a> {
        Notes { valid, good, outcome: Outcome::default() }
    }

    /// Records block `i`: the rows that fit, and the rows that exist. Returns whether to stop.
    #[inline(always)]
    pub(super) fn take(&mut self, i: usize, fits: u64, there: u64) -> bool {
        let valid = self.valid.map_or(there, |bits| bits.word(i));
        let (good, misfits) = (valid & fits, valid & !fits);
        self.outcome.nulls += (there & !good).count_ones() as usize;
        if misfits != 0 && self.outcome.misfit.is_none() {
            self.outcome.misfit = Some(i * 64 + misfits.trailing_zeros() as usize);
        }
        match &mut self.good {
            Some(words) => {
                words[i] = good;
                false
            }
            None => misfits != 0,
        }
    }
}

/// Converts booleans to numbers.
struct Unpack<'a, F: ValueFunction> {
    function: F,
    from: Bits<'a>,
    to: &'a mut [F::To],
}

impl<F: ValueFunction<From: Native>> Loop for Unpack<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (blocks, rest) = self.to.as_chunks_mut::<64>();
        let words = blocks.len();
        for (i, block) in blocks.iter_mut().enumerate() {
            let word = self.from.word(i);
            for (row, to) in block.iter_mut().enumerate() {
                *to = self.function.call(bit(word >> row)).0;
            }
        }
        let word = self.from.word(words);
        for (row, to) in rest.iter_mut().enumerate() {
            *to = self.function.call(bit(word >> row)).0;
        }
    }
}

/// Converts numbers to booleans.
struct Pack<'a, F: ValueFunction> {
    function: F,
    from: &'a [F::From],
    to: &'a mut [u64],
}

impl<F: ValueFunction<From: Native, To: Native>> Loop for Pack<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (blocks, rest) = self.from.as_chunks::<64>();
        let mut words = self.to.iter_mut();
        for (block, word) in blocks.iter().zip(&mut words) {
            // The compiler vectorises this loop because its trip count is a constant.
            let mut bits = 0;
            for (row, value) in block.iter().enumerate() {
                bits |= set(self.function.call(*value).0) << row;
            }
            *word = bits;
        }
        if let (false, Some(word)) = (rest.is_empty(), words.next()) {
            *word = rest
                .iter()
                .enumerate()
                .fold(0, |bits, (row, value)| bits | set(self.function.call(*value).0) << row);
        }
    }
}

/// Returns the lowest bit of a word as a value.
#[inline(always)]
fn bit<T: Native>(word: u64) -> T {
    T::from_bits(U256::from_low(u128::from(word & 1)))
}

/// Returns a bit value as the lowest bit of a word.
#[inline(always)]
fn set<T: Native>(value: T) -> u64 {
    value.to_bits().low as u64 & 1
}
