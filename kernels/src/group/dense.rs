//! Words in a narrow range: the slot of a word is its distance from the least one.
//!
//! The one idea: before words go into a table, the device looks how far they are apart. If that is less than
//! the table is long, each word has a slot of its own: nothing is hashed or compared, and no search goes on
//! to another slot. All waves of a launch find the same, and the host need not know.

use core::array::from_fn;

use crate::encoded::rows::tile;
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::target::Wave;

/// The words that a lane loads before it uses the first.
const LOADS: usize = 4;

kernel! {
    family "group";
    /// Finds the least and the greatest of the words of rows.
    Range {
        /// The word of each row.
        words: In<u64>,
        /// The number of rows.
        rows: u64,
        /// A bit for each row that counts, from `In::bitmap`. Absent if all do.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The bit that flips in words, so that they order as signed values do. 0 for unsigned ones.
        flip: u64,
        /// The word of a null, which does not count, or of no row.
        null: u64,
        /// Lowered to the least word, and to the complement of the greatest one; `u64::MAX` before the
        /// launch.
        range: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    RANGE {
        group_range = range,
    }
}

kernel! {
    family "group";
    /// Frees the slots of a table: all, or those that words of a narrow range have.
    Clear {
        /// The result of [`Range`]. Absent if words are hashed.
        range: In<u64>,
        /// The number of slots, a power of two, less 1.
        most: u64,
        /// The slots that are freed.
        slots: Out<u64>,
    }
    waves |args, _| (args.most + 1).div_ceil(2 * TILE);
    /// The only entry of this kernel.
    CLEAR {
        group_clear = clear,
    }
}

/// A range that is narrower than a table is long.
#[derive(Clone, Copy)]
pub(crate) struct Dense {
    least: u64,
    /// The distance of the greatest word from the least.
    width: u64,
    flip: u64,
    null: u64,
    most: u64,
}

impl Dense {
    /// Reads the result of [`Range`]. `None` if there is none, or if words are too far apart for the slots,
    /// of which `most` is the last.
    #[inline(always)]
    pub(crate) fn new(range: In<u64>, flip: u64, null: u64, most: u64) -> Option<Dense> {
        if range.is_absent() {
            return None;
        }
        let (least, greatest) = (range.get(0), !range.get(1));
        let width = greatest.wrapping_sub(least);
        if width < most { Some(Dense { least, width, flip, null, most }) } else { None }
    }

    /// Returns the number of slots of words, the last of which is that of nulls.
    #[inline(always)]
    pub(crate) fn slots(self) -> u64 {
        self.width + 2
    }

    /// Returns the slot of one of the words of the range.
    #[inline(always)]
    pub(crate) fn slot(self, word: u64) -> u64 {
        // A caller may have changed the words since: they stay in the table.
        self.slot_if_any(word).unwrap_or(self.most)
    }

    /// Returns the slot of any word.
    #[inline(always)]
    pub(crate) fn slot_if_any(self, word: u64) -> Option<u64> {
        let distance = (word ^ self.flip).wrapping_sub(self.least);
        if word == self.null {
            Some(self.width + 1)
        } else if distance <= self.width {
            Some(distance)
        } else {
            None
        }
    }
}

fn range(args: &Range, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let mut ends = wave.each(|_| [u64::MAX; 2]);
    while at < end {
        ends = wave.each(|l| {
            // Rows past the end repeat the last one.
            let rows = from_fn::<u64, LOADS, _>(|k| {
                (at + u64::from(k as u32 * wave.width() + l.index())).min(end - 1)
            });
            let words = rows.map(|row| args.words.get(row));
            let mut ends = ends.at(l);
            for k in 0..LOADS {
                if words[k] != args.null && (valid.is_absent() || valid.get(rows[k])) {
                    let word = words[k] ^ args.flip;
                    ends = [ends[0].min(word), ends[1].min(!word)];
                }
            }
            ends
        });
        at += LOADS as u64 * u64::from(wave.width());
    }
    let [least, greatest] = [wave.each(|l| ends.at(l)[0]), wave.each(|l| ends.at(l)[1])];
    let [least, greatest] = [wave.min(least), wave.min(greatest)];
    // Most waves lower nothing. On AMD, where `min` is a loop that begins with a plain load, other waves' updates
    // may be under way: so a look comes first.
    wave.once(|l| {
        if least < args.range.load(l, 0) {
            args.range.min(l, 0, least);
        }
        if greatest < args.range.load(l, 1) {
            args.range.min(l, 1, greatest);
        }
    });
}

fn clear(args: &Clear, wave: &mut Wave) {
    let len = match Dense::new(args.range, 0, 0, args.most) {
        Some(dense) => dense.slots(),
        None => args.most + 1,
    };
    // Two slots at a time: there is an even number of them.
    let (mut at, slots) = (wave.index() * TILE, args.slots.cast::<u128>());
    let end = len.div_ceil(2).min(at + TILE);
    while at < end {
        wave.each(|l| {
            let pair = at + u64::from(l.index());
            if pair < end {
                slots.set(l, pair, u128::MAX);
            }
        });
        at += u64::from(wave.width());
    }
}
