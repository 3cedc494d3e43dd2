//! Placements of rows by the digits of their words.

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::sort::places::{COUNT, Count, DIGITS, PLACE, Place, runs};
use bowstring_kernels::sort::words::{REORDER, Reorder};
use bowstring_kernels::target::{Entry, find};

use super::keys::Key;
use crate::Result;
use crate::gpu::scan::sums_before;
use crate::pass::{Pass, Region};

/// Memory for placements of so many rows, one after the other: the words and the order before a placement,
/// and after it.
pub(crate) struct Placements {
    rows: usize,
    words: [Region; 2],
    orders: [Region; 2],
    counts: Region,
    places: Region,
    /// The index of the order so far; `None` if the rows are in their own.
    order: Option<usize>,
}

impl Placements {
    /// Allocates memory for at least one row, of words of up to `width` bytes.
    pub fn new(pass: &mut Pass, rows: usize, width: usize) -> Result<Placements> {
        let counts = (DIGITS * runs(rows as u64)) as usize;
        Ok(Placements {
            rows,
            words: [pass.rows(rows, width)?, pass.rows(rows, width)?],
            orders: [pass.rows(rows, 4)?, pass.rows(rows, 4)?],
            counts: pass.scratch::<u32>(counts)?,
            places: pass.scratch::<u32>(counts + 1)?,
            order: None,
        })
    }

    /// Returns the rows in order; `None` if they are in their own.
    pub fn order(&self) -> Option<&Region> {
        self.order.map(|which| &self.orders[which])
    }

    /// Puts the rows in the order of the bits of a key in which they differ. Rows that are equal keep the
    /// order so far.
    pub fn sort(&mut self, pass: &mut Pass, key: Key, differs: u64) -> Result<()> {
        let digits = digits(differs);
        let width = [key.width as u32];
        let (count, place) = (entry(pass, COUNT, &width)?, entry(pass, PLACE, &width)?);
        let mut words = key.words;
        if let Some(order) = self.order() {
            reorder(pass, key, order, self.rows, &self.words[1])?;
            words = self.words[1].input();
        }
        let rows = self.rows as u64;
        for (i, shift) in digits.iter().enumerate() {
            let (shift, counts) = (*shift, self.counts.out());
            pass.launch(count, &Count { words, shift, rows, counts })?;
            sums_before(pass, &self.counts, (DIGITS * runs(rows)) as usize, 4, &self.places)?;
            // The last digit of a key needs no words after it.
            let out = &self.words[i % 2];
            let to = self.order.map_or(0, |which| 1 - which);
            let args = Place {
                words,
                order: self.order().map_or(In::absent(), Region::input),
                shift,
                rows,
                places: self.places.input(),
                out: if i + 1 == digits.len() { Out::absent() } else { out.out() },
                out_order: self.orders[to].out(),
            };
            pass.launch(place, &args)?;
            (words, self.order) = (out.input(), Some(to));
        }
        Ok(())
    }
}

/// Returns the lowest bits of the digits that cover some bits.
fn digits(mut differs: u64) -> Vec<u64> {
    let mut lowest = vec![];
    while differs != 0 {
        let shift = differs.trailing_zeros();
        lowest.push(shift.into());
        differs &= !((DIGITS - 1) << shift);
    }
    lowest
}

/// Writes the words of a key in an order.
pub(super) fn reorder(pass: &mut Pass, key: Key, order: &Region, rows: usize, out: &Region) -> Result<()> {
    let args = Reorder { words: key.words, order: order.input(), rows: rows as u64, out: out.out() };
    let reorder = entry(pass, REORDER, &[key.width as u32])?;
    pass.launch(reorder, &args)
}

/// Returns the entry of a table with a key.
pub(super) fn entry<A>(pass: &Pass, table: &'static [Entry<A>], key: &[u32]) -> Result<&'static Entry<A>> {
    find(table, key).ok_or_else(|| pass.unsupported(format!("words of {key:?} bytes")))
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn digits_cover_the_bits_that_differ() {
        assert_eq!(digits(0), []);
        assert_eq!(digits(1 << 7 | 1), [0]);
        assert_eq!(digits(1 << 8 | 1), [0, 8]);
        assert_eq!(digits(0x1fe0), [5]);
        assert_eq!(digits(u64::MAX), [0, 8, 16, 24, 32, 40, 48, 56]);
        assert_eq!(digits(1 << 63), [63]);
    }
}
