//! Leads: the first 64 bits of each row's key, by which most rows are left out of the first ones.
//!
//! The one idea: a lead takes one load and no item. Once there are as many candidates as rows are wanted,
//! nearly every row has a greater lead than the worst of them.

use crate::Result;
use crate::array::outside;
use crate::cpu::bitmap::Bits;
use crate::cpu::text::layout::Layout;
use crate::cpu::vectorise::{Loop, vectorised};

use super::items::Item;
use super::keys::{Keys, Part, Source, Text};
use super::numbers::Numbers;

/// The leads of rows.
pub(super) struct Leads<'a> {
    /// The part that says whether rows are null, if they can be.
    nulls: Option<&'a Part<'a>>,
    values: &'a Part<'a>,
    /// Whether leads are the whole keys, of numbers.
    pub are_keys: bool,
}

impl<'a> Leads<'a> {
    /// Returns the leads of keys; `None` if nothing would be gained, or if another part than the first is
    /// text: text of every row is checked, and leads read the first part only.
    pub fn of(keys: &'a Keys<'a>) -> Option<Leads<'a>> {
        let (nulls, rest) = match keys.parts.split_first() {
            Some((first, rest)) if matches!(first.source, Source::Nulls) => (Some(first), rest),
            _ => (None, &keys.parts[..]),
        };
        let (values, others) = rest.split_first()?;
        let is_text = |part: &Part<'_>| matches!(part.source, Source::Bytes(_));
        let useful = is_text(values) || matches!(values.source, Source::Numbers(_));
        let are_keys = nulls.is_none() && values.valid.is_none() && others.is_empty() && !is_text(values);
        (useful && !others.iter().any(is_text)).then_some(Leads { nulls, values, are_keys })
    }

    /// Makes the items of rows from `first` on, of leads that are the keys.
    pub fn items<I: Item>(&self, first: usize, leads: &[u64], items: &mut [I]) {
        let bits = self.values.bits().unwrap_or(0);
        for (i, (item, lead)) in items.iter_mut().zip(leads).enumerate() {
            let key = lead.checked_shr(64 - bits).unwrap_or(0);
            // At the top, as in [`Keys::begin`].
            *item = I::of_row(first + i).with_word(key, I::BITS - bits);
        }
    }

    /// Writes the leads of rows from `first` on.
    pub fn write(&self, first: usize, out: &mut [u64]) -> Result<()> {
        let Part { source, valid, descending } = self.values;
        match source {
            Source::Numbers(numbers) => numbers_from(numbers, first, out),
            Source::Bytes(Text::Short(text)) => texts_from(text, *valid, *descending, first, out)?,
            Source::Bytes(Text::Long(text)) => texts_from(text, *valid, *descending, first, out)?,
            Source::Bytes(Text::Views(text)) => texts_from(text, *valid, *descending, first, out)?,
            Source::Bytes(text) => texts_from(text, *valid, *descending, first, out)?,
            Source::Nulls | Source::Booleans(_) => out.fill(0),
        }
        if let Some(valid) = valid {
            for (i, lead) in out.iter_mut().enumerate() {
                *lead &= u64::from(valid.get(first + i)).wrapping_neg();
            }
        }
        if let Some(nulls) = self.nulls {
            for (i, lead) in out.iter_mut().enumerate() {
                *lead = nulls.word(first + i) << 63 | *lead >> 1;
            }
        }
        Ok(())
    }
}

fn numbers_from(numbers: &Numbers<'_>, first: usize, out: &mut [u64]) {
    if numbers.bits == 0 {
        return out.fill(0);
    }
    let bytes = &numbers.bytes[first * numbers.stride..];
    match (numbers.width, numbers.stride) {
        (1, 1) => vectorised(Plain::<1> { numbers, bytes, out }),
        (2, 2) => vectorised(Plain::<2> { numbers, bytes, out }),
        (4, 4) => vectorised(Plain::<4> { numbers, bytes, out }),
        (8, 8) => vectorised(Plain::<8> { numbers, bytes, out }),
        _ => {
            let above = 64 - numbers.bits;
            out.iter_mut().enumerate().for_each(|(i, lead)| *lead = numbers.key(first + i) << above);
        }
    }
}

/// Numbers of `W` bytes that follow each other.
struct Plain<'a, const W: usize> {
    numbers: &'a Numbers<'a>,
    bytes: &'a [u8],
    out: &'a mut [u64],
}

impl<const W: usize> Loop for Plain<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Numbers { flips, invert, base, bits, .. } = *self.numbers;
        let (unused, above) = (64 - 8 * W as u32, 64 - bits);
        for (lead, bytes) in self.out.iter_mut().zip(self.bytes.as_chunks::<W>().0) {
            let value = u64::from_le_bytes(std::array::from_fn(|i| if i < W { bytes[i] } else { 0 }));
            let negative = ((value << unused) as i64 >> 63) as u64;
            let flipped = value ^ flips[0] ^ (flips[1] & negative);
            *lead = (flipped ^ invert).wrapping_sub(base) << above;
        }
    }
}

/// Writes the first eight bytes of texts. Bytes beyond the end of a text count as zeros, so no longer text
/// has a lower lead.
#[inline(always)]
fn texts_from(
    text: &impl Layout,
    valid: Option<Bits<'_>>,
    descending: bool,
    first: usize,
    out: &mut [u64],
) -> Result<()> {
    let invert = if descending { u64::MAX } else { 0 };
    for (i, lead) in out.iter_mut().enumerate() {
        let row = first + i;
        let (from, len) = match text.from(row).filter(|(from, len)| *len <= from.len()) {
            Some(found) => found,
            None if valid.is_some_and(|valid| !valid.get(row)) => continue,
            None => return Err(outside(row)),
        };
        let word = match from.first_chunk::<8>() {
            Some(bytes) if len >= 8 => u64::from_be_bytes(*bytes),
            Some(bytes) => u64::from_be_bytes(*bytes) & !(u64::MAX >> (8 * len)),
            None => {
                let mut bytes = [0; 8];
                bytes[..len].copy_from_slice(&from[..len]);
                u64::from_be_bytes(bytes)
            }
        };
        *lead = word ^ invert;
    }
    Ok(())
}
