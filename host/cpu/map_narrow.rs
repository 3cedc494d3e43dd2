//! Casts to 128-bit decimals of up to 18 digits, as most decimals have: their values fit 64 bits.
//!
//! Compilers vectorise 64-bit integers but not 128-bit ones. So if no value in bounds exceeds 64 bits, the
//! conversion runs in 64, and the upper half is filled with the sign afterwards.

use bowstring_kernels::map::function::divide::Divisor;
use bowstring_kernels::map::function::float::Round;
use bowstring_kernels::map::function::scale::{Bounds, Down, Up};
use bowstring_kernels::map::function::words::{Parameter, Words};
use bowstring_kernels::map::function::{Native, Number, ValueFunction};
use bowstring_kernels::map::functions::{Function, FunctionCall};

use super::map_rows::{Notes, Outcome, Part, Source};
use super::memory::{numbers, numbers_mut};
use super::vectorise::{Loop, vectorised};

/// A conversion to 128 bits that is computed in 64.
pub(super) enum Narrow {
    /// Multiplies integers that are stored in 64 bits.
    Up(Up<i64, i64>),
    /// Multiplies integers that are stored in 128 bits.
    WideUp(Up<i64, i64>),
    /// Divides integers that are stored in 128 bits.
    WideDown(Down<i64, i64>),
    /// Scales and rounds floats.
    Round(Round<f64, i64>),
}

impl Narrow {
    /// Returns the call in 64 bits; `None` if a result might exceed them.
    pub(super) fn of(call: &FunctionCall) -> Option<Narrow> {
        let words = &mut Words::new(call.words);
        if call.to != Number::I128 || !call.fallible {
            return None;
        }
        match (call.function, call.from) {
            (Function::Up, Number::I64) => {
                let Up::<i64, i128> { bounds, factor, addend } = Parameter::read(words);
                up(bounds, factor, addend).map(Narrow::Up)
            }
            (Function::Up, Number::I128) => {
                let Up::<i128, i128> { bounds, factor, addend } = Parameter::read(words);
                up(narrow(bounds)?, factor, addend).map(Narrow::WideUp)
            }
            (Function::Down, Number::I128) => {
                let Down::<i128, i128> { bounds, divisor, round_from, addend, to: _ } =
                    Parameter::read(words);
                let (bounds, divisor) = (narrow(bounds)?, Divisor::new(u64::try_from(divisor.value).ok()?));
                let round_from = u64::try_from(round_from).ok()?;
                (addend == 0).then_some(Narrow::WideDown(Down {
                    bounds,
                    divisor,
                    round_from,
                    addend,
                    to: Default::default(),
                }))
            }
            (Function::Round, Number::F64) => {
                let Round::<f64, i128> { factor, limit, from } = Parameter::read(words);
                let limit = u64::try_from(limit).ok().filter(|limit| *limit <= i64::MAX as u64)?;
                Some(Narrow::Round(Round { factor, limit, from }))
            }
            _ => None,
        }
    }

    /// Converts the rows of a part, and reports the first that does not fit.
    pub(super) fn convert(&self, part: Part) -> Outcome {
        match self {
            Narrow::Up(up) => vectorised(Rows::new(*up, part, |bytes| numbers::<i64>(bytes))),
            Narrow::WideUp(up) => vectorised(Rows::new(*up, part, pairs)),
            Narrow::WideDown(down) => vectorised(Rows::new(*down, part, pairs)),
            Narrow::Round(round) => vectorised(Rows::new(*round, part, |bytes| numbers::<f64>(bytes))),
        }
    }
}

fn narrow(bounds: Bounds<i128>) -> Option<Bounds<i64>> {
    Some(Bounds { least: i64::try_from(bounds.least).ok()?, greatest: i64::try_from(bounds.greatest).ok()? })
}

/// Returns the multiplication in 64 bits; `None` if a value in bounds could overflow them.
fn up(bounds: Bounds<i64>, factor: i128, addend: i64) -> Option<Up<i64, i64>> {
    let factor = i64::try_from(factor).ok()?;
    for end in [bounds.least, bounds.greatest] {
        end.checked_mul(factor)?.checked_add(addend)?;
    }
    Some(Up { bounds, factor, addend })
}

fn pairs(bytes: &[u8]) -> Option<&[[u64; 2]]> {
    numbers::<u64>(bytes).map(|words| words.as_chunks().0)
}

/// A value whose lower 64 bits are converted.
trait Low: Copy + Default {
    type Half: Native;
    /// Returns the lower 64 bits, and whether they alone determine the value.
    fn low(self) -> (Self::Half, bool);
}

impl Low for i64 {
    type Half = i64;
    #[inline(always)]
    fn low(self) -> (i64, bool) {
        (self, true)
    }
}

impl Low for f64 {
    type Half = f64;
    #[inline(always)]
    fn low(self) -> (f64, bool) {
        (self, true)
    }
}

impl Low for [u64; 2] {
    type Half = i64;
    #[inline(always)]
    fn low(self) -> (i64, bool) {
        let low = self[0] as i64;
        (low, (low >> 63) as u64 == self[1])
    }
}

/// The loop that converts a part's rows.
struct Rows<'a, C, A> {
    conversion: C,
    from: &'a [A],
    to: &'a mut [[u64; 2]],
    notes: Notes<'a>,
}

impl<'a, C, A> Rows<'a, C, A> {
    fn new(conversion: C, part: Part<'a>, read: impl Fn(&'a [u8]) -> Option<&'a [A]>) -> Rows<'a, C, A> {
        let Source::Bytes(from, _) = part.from else { unreachable!("numbers are not bits") };
        let to: &mut [u64] = numbers_mut(part.to).expect("parts start at whole words");
        Rows {
            conversion,
            from: read(from).expect("aligned by the caller"),
            to: &mut to.as_chunks_mut().0[..part.rows],
            notes: Notes::new(part.valid, part.good),
        }
    }
}

impl<A: Low, C: ValueFunction<From = A::Half, To = i64>> Loop for Rows<'_, C, A> {
    type Output = Outcome;

    #[inline(always)]
    fn run(self) -> Outcome {
        let Rows { conversion, from, to, mut notes } = self;
        let mut block = [A::default(); 64];
        for (i, (from, to)) in from.chunks(64).zip(to.chunks_mut(64)).enumerate() {
            let from = match from.as_array() {
                Some(whole) => whole,
                None => {
                    block[..from.len()].copy_from_slice(from);
                    &block
                }
            };
            let (mut low, mut all) = ([0i64; 64], true);
            for (low, from) in low.iter_mut().zip(from) {
                let (value, exact) = from.low();
                let (value, fits) = conversion.call(value);
                *low = value;
                all &= exact & fits;
            }
            let mut which = u64::MAX;
            if !all {
                for (row, from) in from.iter().enumerate() {
                    let (value, exact) = from.low();
                    which ^= u64::from(!(exact & conversion.call(value).1)) << row;
                }
            }
            for (to, low) in to.iter_mut().zip(low) {
                *to = [low as u64, (low >> 63) as u64];
            }
            if notes.take(i, which, u64::MAX >> (64 - to.len())) {
                break;
            }
        }
        notes.outcome
    }
}
