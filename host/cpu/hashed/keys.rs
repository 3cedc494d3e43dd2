//! The keys of rows: columns, the words that are made of them, and their comparison.

use std::ops::Range;

use super::super::bitmap::Bits;
use super::super::intrinsics::{AHEAD, prefetch};
use super::super::memory;
use super::super::rows::CHUNK;
use super::super::text::layout::{Column as Text, Layout};
use super::hash::{first_bytes, fold, lowest, mixed, of_bytes};
use super::short;
use super::spans::{Span, extent_of, of_span};
use crate::Result;
use crate::array::outside;
use crate::threads::each_part;

/// The keys that a null key equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) enum Nulls {
    /// It equals other nulls.
    Equal,
    /// It equals nothing: such a row is in no group.
    Apart,
}

/// The keys of rows.
pub(in crate::cpu) struct Keys<'a> {
    pub(super) columns: Vec<Key<'a>>,
    pub rows: usize,
    pub(super) nulls: Nulls,
    /// Whether equal words are equal keys.
    pub exact: bool,
    /// Whether a test wants few words to differ.
    pub(super) weak: bool,
    /// Whether no row is in a group.
    pub(super) nothing: bool,
}

pub(super) struct Key<'a> {
    pub values: Values<'a>,
    pub valid: Option<Bits<'a>>,
    /// The bits of a null in a word: one, or none.
    pub null: u32,
    /// The length of the longest text, if words have room for all of them.
    pub short: Option<usize>,
}

pub(super) enum Values<'a> {
    Bits(Bits<'a>),
    /// Values of so many bytes.
    Fixed(&'a [u8], usize),
    Text(Text<'a>),
}

/// A text of up to 15 bytes with its length in the highest byte, which has a mark for longer texts and nulls.
pub(super) type Prefix = [u64; 2];
const LONG: u64 = 0xff << 56;
const NO_TEXT: u64 = 0xfe << 56;

/// The word of a null among hashes.
const NULL: u64 = 0x6e75_6c6c_6e75_6c6c;

impl Values<'_> {
    pub fn bits(&self) -> Option<u32> {
        match self {
            Values::Bits(_) => Some(1),
            Values::Fixed(_, width) => u32::try_from(8 * width).ok(),
            Values::Text(_) => None,
        }
    }
}

impl Keys<'_> {
    /// Returns the span of the keys, if they are numbers of one column and there are at most so many of these
    /// for each row: then a group is found without a hash.
    pub fn span(&self, sparse: usize) -> Result<Option<Span>> {
        let [key] = &self.columns[..] else { return Ok(None) };
        let most = self.rows.saturating_mul(sparse).saturating_add(CHUNK);
        let fits = |(least, greatest): (u64, u64)| least > greatest || greatest - least < most as u64;
        if self.weak || self.nothing || !fits(key.extent(0..self.rows.min(CHUNK))) {
            return Ok(None);
        }
        let parts = (0..self.rows).step_by(CHUNK).map(|first| first..self.rows.min(first + CHUNK));
        let extents = each_part(parts, |rows| key.extent(rows))?;
        let wider = |(least, greatest): (u64, u64), (other_least, other_greatest): (u64, u64)| {
            (least.min(other_least), greatest.max(other_greatest))
        };
        let (least, greatest) = extents.into_iter().fold((u64::MAX, 0), wider);
        let some = least <= greatest && fits((least, greatest));
        Ok(some.then(|| Span { base: least, len: (greatest - least + 1) as usize }))
    }

    /// Makes numbers of a span of some rows.
    pub fn numbers(&self, span: Span, from: Range<usize>, words: &mut [u64]) {
        if let [key] = &self.columns[..] {
            key.values.numbers(span, from.clone(), words);
            if let Some(valid) = key.valid {
                for (row, word) in from.zip(words) {
                    *word = if valid.get(row) { *word } else { span.len as u64 };
                }
            }
        }
    }

    /// Makes the words of some rows.
    pub fn words(&self, from: Range<usize>, seed: u64, words: &mut [u64]) -> Result<()> {
        words.fill(if self.exact { 0 } else { seed });
        self.columns.iter().try_for_each(|key| key.add(from.clone(), self.exact, words))?;
        if self.weak {
            words.iter_mut().for_each(|word| *word &= 1);
        }
        Ok(())
    }

    /// Makes the words of short texts, or of short texts and numbers, exact. They cannot be compared with the
    /// words of other keys.
    pub fn packed(mut self) -> Self {
        if self.exact || self.weak {
            return self;
        }
        let bits = |key: &Key<'_>| {
            let text = match &key.values {
                Values::Text(text) => Some(short::longest(text, self.rows)?),
                _ => None,
            };
            Some((
                text,
                key.null + text.map_or_else(|| key.values.bits(), |longest| Some(short::bits_of(longest)))?,
            ))
        };
        let texts: Option<Vec<(Option<usize>, u32)>> = self.columns.iter().map(bits).collect();
        let texts = texts.filter(|all| all.iter().map(|(_, bits)| bits).sum::<u32>() <= 64);
        if let Some(texts) = texts {
            self.exact = true;
            self.columns.iter_mut().zip(texts).for_each(|(key, (short, _))| key.short = short);
        }
        self
    }

    /// Whether the keys are a column of text, and so have prefixes.
    pub fn have_prefixes(&self) -> bool {
        !self.weak && !self.exact && matches!(&self.columns[..], [Key { values: Values::Text(_), .. }])
    }

    /// Makes the prefixes of some rows of text, and their words.
    pub fn prefixes(
        &self,
        from: Range<usize>,
        seed: u64,
        prefixes: &mut [Prefix],
        words: &mut [u64],
    ) -> Result<()> {
        let [key] = &self.columns[..] else { return Ok(()) };
        match &key.values {
            Values::Text(Text::Short(text)) => key.add_prefixes(text, from, seed, prefixes, words),
            Values::Text(Text::Long(text)) => key.add_prefixes(text, from, seed, prefixes, words),
            Values::Text(Text::Views(text)) => key.add_prefixes(text, from, seed, prefixes, words),
            _ => Ok(()),
        }
    }

    /// Whether rows with equal prefixes have equal keys.
    #[inline(always)]
    pub fn is_whole(prefix: Prefix) -> bool {
        prefix[1] & LONG != LONG
    }

    /// Whether a row is in a group at all.
    #[inline(always)]
    pub fn counts(&self, row: usize) -> bool {
        let is_valid = |key: &Key<'_>| key.valid.is_none_or(|valid| valid.get(row));
        self.nulls == Nulls::Equal || !self.nothing && self.columns.iter().all(is_valid)
    }

    /// Whether every row is in a group.
    pub fn all_count(&self) -> bool {
        self.nulls == Nulls::Equal || !self.nothing && self.columns.iter().all(|key| key.valid.is_none())
    }

    /// Whether two rows, each of its own keys, are equal. Their text has been found inside of its buffers.
    pub fn same(&self, row: usize, others: &Keys<'_>, other: usize) -> bool {
        self.columns.iter().zip(&others.columns).all(|(one, two)| {
            let valid = |key: &Key<'_>, row| key.valid.is_none_or(|valid| valid.get(row));
            match (valid(one, row), valid(two, other)) {
                (true, true) => one.values.same(row, &two.values, other),
                (one, two) => one == two,
            }
        })
    }
}

impl Values<'_> {
    /// Makes numbers of a span of values.
    fn numbers(&self, span: Span, from: Range<usize>, words: &mut [u64]) {
        match self {
            Values::Fixed(bytes, 1) => of_span::<1>(bytes, span, from, words),
            Values::Fixed(bytes, 2) => of_span::<2>(bytes, span, from, words),
            Values::Fixed(bytes, 4) => of_span::<4>(bytes, span, from, words),
            Values::Fixed(bytes, 8) => of_span::<8>(bytes, span, from, words),
            // Only columns of these widths have a span.
            _ => words.fill(span.len as u64 + 1),
        }
    }

    fn same(&self, row: usize, others: &Values<'_>, other: usize) -> bool {
        match (self, others) {
            (Values::Bits(one), Values::Bits(two)) => one.get(row) == two.get(other),
            (Values::Fixed(one, width), Values::Fixed(two, _)) => {
                one[row * width..][..*width] == two[other * width..][..*width]
            }
            (Values::Text(Text::Short(one)), Values::Text(Text::Short(two))) => alike(one, row, two, other),
            (Values::Text(Text::Long(one)), Values::Text(Text::Long(two))) => alike(one, row, two, other),
            (Values::Text(Text::Views(one)), Values::Text(Text::Views(two))) => alike(one, row, two, other),
            _ => false,
        }
    }
}

/// Whether two texts are equal.
#[inline(always)]
fn alike<L: Layout>(one: &L, row: usize, two: &L, other: usize) -> bool {
    let (Some((a, len)), Some((b, other_len))) = (one.from(row), two.from(other)) else { return false };
    if len != other_len || len > a.len() || len > b.len() {
        return false;
    }
    // Most texts are short, and a call costs more than to compare them.
    match (a.first_chunk::<16>(), b.first_chunk::<16>()) {
        (Some(a), Some(b)) if len <= 16 => {
            (u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b)) & lowest(len) == 0
        }
        _ => a[..len] == b[..len],
    }
}

impl Key<'_> {
    /// The least and the greatest number of some rows; the least is greater if there is none.
    fn extent(&self, rows: Range<usize>) -> (u64, u64) {
        match &self.values {
            Values::Fixed(bytes, 1) => extent_of::<1>(bytes, self.valid, rows),
            Values::Fixed(bytes, 2) => extent_of::<2>(bytes, self.valid, rows),
            Values::Fixed(bytes, 4) => extent_of::<4>(bytes, self.valid, rows),
            Values::Fixed(bytes, 8) => extent_of::<8>(bytes, self.valid, rows),
            // No span holds these two.
            _ => (0, u64::MAX),
        }
    }

    /// Adds the column to the words of some rows.
    fn add(&self, from: Range<usize>, exact: bool, words: &mut [u64]) -> Result<()> {
        match &self.values {
            Values::Bits(bits) => {
                let value = |row| u64::from(bits.get(row));
                self.add_values(from, exact.then_some(1), words, value);
            }
            Values::Fixed(bytes, 1) => self.add_fixed::<1>(bytes, from, exact, words),
            Values::Fixed(bytes, 2) => self.add_fixed::<2>(bytes, from, exact, words),
            Values::Fixed(bytes, 4) => self.add_fixed::<4>(bytes, from, exact, words),
            Values::Fixed(bytes, 8) => self.add_fixed::<8>(bytes, from, exact, words),
            Values::Fixed(bytes, width) if *width < 8 => {
                let value = |row: usize| {
                    let mut wide = [0; 8];
                    wide[..*width].copy_from_slice(&bytes[row * width..][..*width]);
                    u64::from_le_bytes(wide)
                };
                self.add_values(from, exact.then_some(8 * *width as u32), words, value);
            }
            Values::Fixed(bytes, width) => {
                for (row, word) in from.zip(words) {
                    let value = &bytes[row * width..][..*width];
                    *word = self.hashed(row, *word, |seed| of_bytes(seed, value, value.len()));
                }
            }
            Values::Text(text) => match (text, self.short) {
                (Text::Short(text), None) => self.add_text(text, from, words)?,
                (Text::Long(text), None) => self.add_text(text, from, words)?,
                (Text::Views(text), None) => self.add_text(text, from, words)?,
                (Text::Short(text), Some(longest)) => self.add_short(text, longest, from, words),
                (Text::Long(text), Some(longest)) => self.add_short(text, longest, from, words),
                (Text::Views(text), Some(longest)) => self.add_short(text, longest, from, words),
            },
        }
        Ok(())
    }

    fn add_fixed<const W: usize>(&self, bytes: &[u8], from: Range<usize>, exact: bool, words: &mut [u64]) {
        let values = memory::plain::<[u8; W]>(bytes).expect("bytes are always aligned");
        let value = |row: usize| {
            let value = &values[row];
            u64::from_le_bytes(std::array::from_fn(|i| if i < W { value[i] } else { 0 }))
        };
        self.add_values(from, exact.then_some(8 * W as u32), words, value);
    }

    /// Adds values of at most 64 bits: packs them if words have room for so many bits, or else hashes them.
    #[inline(always)]
    fn add_values(
        &self,
        from: Range<usize>,
        packed: Option<u32>,
        words: &mut [u64],
        value: impl Fn(usize) -> u64,
    ) {
        let Some(bits) = packed else {
            for (row, word) in from.zip(words) {
                *word = self.hashed(row, *word, |seed| Some(fold(seed ^ value(row))));
            }
            return;
        };
        // A word of 64 bits had nothing in it before.
        let moved = |word: u64| word.checked_shl(bits + self.null).unwrap_or(0);
        match self.valid {
            Some(valid) if self.null > 0 => from.zip(words).for_each(|(row, word)| {
                *word = moved(*word) | if valid.get(row) { value(row) } else { 1 << bits };
            }),
            _ => from.zip(words).for_each(|(row, word)| *word = moved(*word) | value(row)),
        }
    }

    fn add_text(&self, text: &impl Layout, from: Range<usize>, words: &mut [u64]) -> Result<()> {
        for (row, word) in from.zip(words) {
            if !self.valid.is_none_or(|valid| valid.get(row)) {
                *word = fold(*word ^ NULL);
                continue;
            }
            let (bytes, len) = text.from(row).ok_or_else(|| outside(row))?;
            *word = of_bytes(*word, bytes, len).ok_or_else(|| outside(row))?;
        }
        Ok(())
    }

    fn add_short(&self, text: &impl Layout, longest: usize, from: Range<usize>, words: &mut [u64]) {
        self.add_values(from, Some(short::bits_of(longest)), words, |row| short::word_of(text, row, longest));
    }

    fn add_prefixes(
        &self,
        text: &impl Layout,
        from: Range<usize>,
        seed: u64,
        prefixes: &mut [Prefix],
        words: &mut [u64],
    ) -> Result<()> {
        for ((row, prefix), word) in from.zip(prefixes).zip(words) {
            if !self.valid.is_none_or(|valid| valid.get(row)) {
                (*prefix, *word) = ([0, NO_TEXT], fold(seed ^ NULL));
                continue;
            }
            let (bytes, len) =
                text.from(row).filter(|(bytes, len)| *len <= bytes.len()).ok_or_else(|| outside(row))?;
            if len > 15 {
                *word = of_bytes(seed, bytes, len).unwrap_or(0);
                *prefix = [*word, LONG];
                continue;
            }
            if let Some(byte) = bytes.first() {
                prefetch(byte, AHEAD);
            }
            let sixteen = first_bytes(bytes, len);
            *prefix = [sixteen as u64, (sixteen >> 64) as u64 | (len as u64) << 56];
            *word = mixed(seed ^ prefix[0], seed.rotate_left(25) ^ prefix[1]);
        }
        Ok(())
    }

    /// The word of a row that is hashed.
    #[inline(always)]
    fn hashed(&self, row: usize, word: u64, hash: impl Fn(u64) -> Option<u64>) -> u64 {
        match self.valid {
            Some(valid) if !valid.get(row) => fold(word ^ NULL),
            _ => hash(word).unwrap_or(0),
        }
    }
}
