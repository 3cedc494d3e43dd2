//! The places of keys that are numbers of a span.
//!
//! The one idea: if the numbers are not many more than the rows, each number has a place. If they are, each
//! number has a bit, and only those that some row has get a place: it is the number of bits before its own.
//! One word holds the bits of 32 numbers and how many there are before them, so that a key is found, or found
//! missing, by one load, without a hash and without a branch.

use std::ops::Range;
use std::sync::Arc;

use super::super::memory;
use super::super::rows::CHUNK;
use super::super::vectorise::{Loop, vectorised};
use super::BLOCK;
use super::keys::Keys;
use super::spans::Span;
use crate::Result;
use crate::device::{HostMemory, HostPool, interrupt};

/// The numbers whose bits are in one word.
const NUMBERS: usize = 32;

/// The places of the numbers of a span.
#[derive(Clone)]
pub(super) struct Places {
    span: Span,
    ranks: Option<Arc<Ranks>>,
}

/// The numbers that have a place.
struct Ranks {
    /// For each 32 numbers their bits, and above them the number of bits before.
    words: HostMemory,
    count: usize,
}

impl Places {
    /// Gives each number of a span a place.
    pub fn of_numbers(span: Span) -> Places {
        Places { span, ranks: None }
    }

    /// Gives each number of a span a place that is a key of some row.
    pub fn of_keys(span: Span, keys: &Keys<'_>, pool: &HostPool) -> Result<Places> {
        Ok(Places { span, ranks: Some(Arc::new(Ranks::new(span, keys, pool)?)) })
    }

    /// How many there are: also one for null, and a last one for all keys outside, which has no group.
    pub fn len(&self) -> usize {
        match &self.ranks {
            None => self.span.len + 2,
            Some(ranks) => ranks.count + 1,
        }
    }

    /// Writes the places of some rows.
    #[inline(always)]
    pub fn write(&self, keys: &Keys<'_>, rows: Range<usize>, places: &mut [u64]) {
        keys.numbers(self.span, rows, places);
        if let Some(ranks) = &self.ranks {
            let words = memory::plain(ranks.words.bytes()).expect("our own memory");
            vectorised(Ranked { words, count: ranks.count as u64, places });
        }
    }
}

impl Ranks {
    fn new(span: Span, keys: &Keys<'_>, pool: &HostPool) -> Result<Ranks> {
        let len = (span.len + 2).div_ceil(NUMBERS);
        let mut words = memory::zeroed(len * 8, pool)?;
        let of = &mut memory::values_mut::<u64>(&mut words)[..len];
        let mut block = [0; BLOCK];
        for first in (0..keys.rows).step_by(BLOCK) {
            if first.is_multiple_of(CHUNK) {
                interrupt::check()?;
            }
            let numbers = &mut block[..BLOCK.min(keys.rows - first)];
            keys.numbers(span, first..first + numbers.len(), numbers);
            for number in numbers.iter().map(|number| *number as usize) {
                of[number / NUMBERS] |= 1 << (number % NUMBERS);
            }
        }
        let mut count = 0;
        for word in of {
            let bits = word.count_ones();
            *word |= count << 32;
            count += u64::from(bits);
        }
        Ok(Ranks { words, count: count as usize })
    }
}

/// Makes places of numbers.
struct Ranked<'a> {
    words: &'a [u64],
    /// The place of a number without a bit.
    count: u64,
    places: &'a mut [u64],
}

impl Loop for Ranked<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for place in self.places {
            let (word, bit) = (self.words[*place as usize / NUMBERS], *place as u32 % NUMBERS as u32);
            let (bits, before) = (word as u32, word >> 32);
            let rank = before + u64::from((bits & !(u32::MAX << bit)).count_ones());
            *place = if bits >> bit & 1 == 1 { rank } else { self.count };
        }
    }
}
