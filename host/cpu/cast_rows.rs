//! The loops of [`super::cast`]: values, validity and null count in one pass over the rows.
//!
//! A conversion says of each value what it becomes and whether it fits. Rows go in blocks of 64, for which "which are
//! valid" and "which fit" are a word each. Whatever sits under a null is converted like the rest, because a loop
//! without branches is faster, and then nobody looks at it.

use bowstring_kernels::numeric::direct::Truth;
use bowstring_kernels::numeric::words::Parameter;
use bowstring_kernels::numeric::{Conversion, Native, Number, Visitor};

use super::bitmap::Bits;
use super::memory::{numbers, numbers_mut};
use super::vectorise::{Level, Loop, vectorised};

/// What became of some rows.
#[derive(Clone, Copy, Default)]
pub(super) struct Outcome {
    /// How many are null now.
    pub(super) nulls: usize,
    /// The first row that is valid and does not fit.
    pub(super) misfit: Option<usize>,
}

impl Outcome {
    /// Of these rows and of later ones.
    pub(super) fn and(self, later: Outcome) -> Outcome {
        Outcome { nulls: self.nulls + later.nulls, misfit: self.misfit.or(later.misfit) }
    }
}

/// The values to convert.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Booleans.
    Bits(Bits<'a>),
    /// Numbers of so many bytes each.
    Bytes(&'a [u8], usize),
}

impl<'a> Source<'a> {
    /// Rows `start .. start + rows`.
    pub(super) fn slice(self, start: usize, rows: usize) -> Source<'a> {
        match self {
            Source::Bits(bits) => Source::Bits(bits.slice(start, rows)),
            Source::Bytes(bytes, width) => Source::Bytes(&bytes[start * width..][..rows * width], width),
        }
    }
}

/// Rows to convert, and where to.
pub(super) struct Part<'a> {
    pub(super) from: Source<'a>,
    pub(super) rows: usize,
    /// The results; of booleans whole words, zero past the last row.
    pub(super) to: &'a mut [u8],
    /// Which rows are valid; `None` where all are.
    pub(super) valid: Option<Bits<'a>>,
    /// Where to write which rows are valid and fit. Without it, checking stops at the first block with a row that is
    /// valid and does not fit.
    pub(super) good: Option<&'a mut [u64]>,
}

impl Visitor for Part<'_> {
    type Output = Outcome;

    fn convert<C: Conversion<From: Native, To: Native> + Parameter>(self, conversion: C) -> Outcome {
        let Source::Bytes(from, _) = self.from else { unreachable!("numbers are not bits") };
        let from: &[C::From] = numbers(from).expect("aligned by the caller");
        let to: &mut [C::To] = &mut numbers_mut(self.to).expect("parts start at whole words")[..self.rows];
        let rows = Convert { conversion, from, to, valid: self.valid, good: self.good };
        if const { pays::<C>() } { vectorised(rows) } else { Level::Plain.run(rows) }
    }

    fn bits_to<B: Native + Truth>(self) -> Outcome {
        let Source::Bits(from) = self.from else { unreachable!("bits are not numbers") };
        let to: &mut [B] = &mut numbers_mut(self.to).expect("parts start at whole words")[..self.rows];
        vectorised(Unpack { from, to });
        Outcome::default()
    }

    fn bits_from<A: Native + Truth>(self) -> Outcome {
        let Source::Bytes(from, _) = self.from else { unreachable!("numbers are not bits") };
        let from: &[A] = numbers(from).expect("aligned by the caller");
        vectorised(Pack { from, to: numbers_mut(self.to).expect("parts start at whole words") });
        Outcome::default()
    }
}

/// Whether compiling a conversion for wide vectors pays: between integers and floats of up to 64 bits, and for scaling
/// those that dates and times are. There are no vectors of 128 bits, and every conversion more is code to compile.
const fn pays<C: Conversion<From: Native, To: Native>>() -> bool {
    use Number::*;
    let without_parameters = size_of::<C>() == 0;
    match (C::From::NUMBER, C::To::NUMBER) {
        (F16 | I128 | I256, _) | (_, F16 | I128 | I256) => false,
        (I32 | I64, I32 | I64) => true,
        _ => without_parameters,
    }
}

/// Converts rows.
struct Convert<'a, C: Conversion> {
    conversion: C,
    from: &'a [C::From],
    to: &'a mut [C::To],
    valid: Option<Bits<'a>>,
    good: Option<&'a mut [u64]>,
}

impl<C: Conversion<From: Native, To: Native>> Loop for Convert<'_, C> {
    type Output = Outcome;

    #[inline(always)]
    fn run(self) -> Outcome {
        let Convert { conversion, from, to, valid, good } = self;
        if const { C::ALWAYS } {
            debug_assert!(good.is_none(), "a plan said that everything fits");
            from.iter().zip(to).for_each(|(from, to)| *to = conversion.convert(*from).0);
            return Outcome::default();
        }
        let mut notes = Notes::new(valid, good);
        let (from, from_rest) = from.as_chunks::<64>();
        let (to, to_rest) = to.as_chunks_mut::<64>();
        // The rows of the last block, padded: so there is one loop, and not another for them.
        let (mut last_from, mut last_to) = ([C::From::default(); 64], [C::To::default(); 64]);
        last_from[..from_rest.len()].copy_from_slice(from_rest);
        let mut blocks = from.iter().zip(to);
        for i in 0..from.len() + usize::from(!from_rest.is_empty()) {
            let (from, to, there) = match blocks.next() {
                Some((from, to)) => (from, to, !0),
                None => (&last_from, &mut last_to, !0 >> (64 - from_rest.len())),
            };
            if notes.take(i, block(&conversion, from, to), there) {
                return notes.outcome;
            }
        }
        to_rest.copy_from_slice(&last_to[..to_rest.len()]);
        notes.outcome
    }
}

/// Converts 64 rows, and says which fit.
#[inline(always)]
fn block<C: Conversion<From: Native, To: Native>>(
    conversion: &C,
    from: &[C::From; 64],
    to: &mut [C::To; 64],
) -> u64 {
    let mut which = 0;
    if const { pays::<C>() } {
        // Mostly all fit, and a vector finds that out sooner than which do.
        let mut all = true;
        for (to, from) in to.iter_mut().zip(from) {
            let (value, fits) = conversion.convert(*from);
            *to = value;
            all &= fits;
        }
        if all {
            return !0;
        }
        for (i, from) in from.iter().enumerate() {
            which |= u64::from(conversion.convert(*from).1) << i;
        }
    } else {
        for (i, (to, from)) in to.iter_mut().zip(from).enumerate() {
            let (value, fits) = conversion.convert(*from);
            *to = value;
            which |= u64::from(fits) << i;
        }
    }
    which
}

/// What is known so far of the rows of a part.
pub(super) struct Notes<'a> {
    valid: Option<Bits<'a>>,
    good: Option<&'a mut [u64]>,
    pub(super) outcome: Outcome,
}

impl<'a> Notes<'a> {
    /// Nothing yet of rows that are `valid`, or all; which are and fit is to go to `good`, if anywhere.
    pub(super) fn new(valid: Option<Bits<'a>>, good: Option<&'a mut [u64]>) -> Notes<'a> {
        Notes { valid, good, outcome: Outcome::default() }
    }

    /// Takes down block `i`: which of its rows fit, and which there are. Says whether to stop.
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

/// Booleans to numbers.
struct Unpack<'a, B> {
    from: Bits<'a>,
    to: &'a mut [B],
}

impl<B: Truth> Loop for Unpack<'_, B> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (blocks, rest) = self.to.as_chunks_mut::<64>();
        let words = blocks.len();
        for (i, block) in blocks.iter_mut().enumerate() {
            let word = self.from.word(i);
            for (row, to) in block.iter_mut().enumerate() {
                *to = B::from_bool(word >> row & 1 == 1);
            }
        }
        let word = self.from.word(words);
        for (row, to) in rest.iter_mut().enumerate() {
            *to = B::from_bool(word >> row & 1 == 1);
        }
    }
}

/// Numbers to booleans.
struct Pack<'a, A> {
    from: &'a [A],
    to: &'a mut [u64],
}

impl<A: Truth> Loop for Pack<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (blocks, rest) = self.from.as_chunks::<64>();
        let mut words = self.to.iter_mut();
        for (block, word) in blocks.iter().zip(&mut words) {
            // A trip count known at compile time is what lets this be vectorised.
            let mut bits = 0;
            for (row, value) in block.iter().enumerate() {
                bits |= u64::from(value.to_bool()) << row;
            }
            *word = bits;
        }
        if let (false, Some(word)) = (rest.is_empty(), words.next()) {
            *word = rest
                .iter()
                .enumerate()
                .fold(0, |bits, (row, value)| bits | u64::from(value.to_bool()) << row);
        }
    }
}
