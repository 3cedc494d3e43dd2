//! Words of rows' keys, and the comparison of rows with the first ones of their groups.
//!
//! If the values and the nulls of all columns fit 64 bits, they are packed: equal words are equal keys.
//! Otherwise a word is a hash, and each column is compared afterwards.

use core::array::from_fn;

use super::table::{LOADS, first_of};
use crate::encoded::equal::{Booleans, Fixed, Hashed, Rows, Unit, mixed};
use crate::encoded::rows::tile;
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::target::Wave;
use crate::text::rows::Column;

kernel! {
    family "group";
    /// Adds the values of a column to the words of the rows.
    Words {
        /// The values, if they have a fixed width.
        values: In<u8>,
        /// How many accesses make one value; for bits, their bit offset.
        pieces: u64,
        /// A bit for each valid row, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// For text, a row of [`TextColumn`](crate::text::rows::TextColumn).
        column: In<u64>,
        /// The number of rows.
        rows: u64,
        /// The words so far. Absent for the first column.
        before: In<u64>,
        /// The number of bits by which words move up to make room for the value and its null. 0 if words are
        /// hashes.
        bits: u64,
        /// The word of a null if words are packed; otherwise the hash of no columns.
        seed: u64,
        /// Receives the word of each row.
        out: Out<u64>,
        /// Lowered to the first row whose bytes are not inside its buffer; `u64::MAX` before the launch.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entries, by the unit of comparison: the bytes of an access to values of fixed width, 3 for bits, 0
    /// for text.
    WORDS {
        group_words_text [0] = words_text,
        group_words_b1 [1] = words_fixed::<u8>,
        group_words_bits [3] = words_bits,
        group_words_b4 [4] = words_fixed::<u32>,
        group_words_b8 [8] = words_fixed::<u64>,
    }
}

kernel! {
    family "group";
    /// Compares each row's value with that of the first row of its group.
    Check {
        /// The values, as in [`Words`].
        values: In<u8>,
        /// How many accesses make one value, as in [`Words`].
        pieces: u64,
        /// A bit for each valid row, as in [`Words`].
        valid: In<u32>,
        /// The bit offset of `valid`, as in [`Words`].
        valid_offset: u64,
        /// The text column, as in [`Words`].
        column: In<u64>,
        /// The number of rows.
        rows: u64,
        /// The table, from [`Insert`](super::table::Insert).
        slots: In<u64>,
        /// The slot of each row, from [`Insert`](super::table::Insert).
        places: In<u32>,
        /// Gains the number of rows that differ from the first row of their group.
        differing: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entries, by the unit of comparison, as in [`WORDS`].
    CHECK {
        group_check_text [0] = check_text,
        group_check_b1 [1] = check_fixed::<u8>,
        group_check_bits [3] = check_bits,
        group_check_b4 [4] = check_fixed::<u32>,
        group_check_b8 [8] = check_fixed::<u64>,
    }
}

/// The word of a null among hashes.
const NULL: u64 = 0x6e75_6c6c_6e75_6c6c;

/// The hash of a row that is null in the next column. Its halves are exchanged, so that no value of that
/// column has the same whatever the hash before it.
#[inline(always)]
pub fn null_hash(before: u64) -> u64 {
    mixed(before, NULL).rotate_left(32)
}

/// Rows whose value fits a word.
trait Packed: Hashed {
    fn packed(self, row: u64) -> u64;
}

impl<T: Unit> Packed for Fixed<T> {
    #[inline(always)]
    fn packed(self, row: u64) -> u64 {
        let (mut word, mut piece) = (0, 0);
        while piece < self.pieces {
            word |= self.values.get(row * self.pieces + piece).wide() << (8 * size_of::<T>() as u64 * piece);
            piece += 1;
        }
        word
    }
}

impl Packed for Booleans {
    #[inline(always)]
    fn packed(self, row: u64) -> u64 {
        self.values.get(row).into()
    }
}

impl Packed for Column {
    /// Text is never packed.
    #[inline(always)]
    fn packed(self, _: u64) -> u64 {
        0
    }
}

fn words_fixed<T: Unit>(args: &Words, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let rows = Fixed::<T>::new(args.values, args.pieces, valid);
    if args.bits != 0 && args.pieces == 1 && args.before.is_absent() && valid.is_absent() {
        return widened(args, rows.values, wave);
    }
    words(args, rows, wave)
}

/// Makes words of a single column without nulls, whose values are words but for their width.
#[inline(always)]
fn widened<T: Unit>(args: &Words, values: In<T>, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        wave.each(|l| {
            // Rows past the end repeat the last one.
            let row = |k: usize| (at + u64::from(k as u32 * wave.width() + l.index())).min(end - 1);
            let loaded = from_fn::<T, LOADS, _>(|k| values.get(row(k)));
            for k in 0..LOADS {
                if at + u64::from(k as u32 * wave.width() + l.index()) < end {
                    args.out.set(l, row(k), loaded[k].wide());
                }
            }
        });
        at += LOADS as u64 * u64::from(wave.width());
    }
}

fn words_bits(args: &Words, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    words(args, Booleans::new(args.values, args.pieces, args.rows, valid), wave)
}

fn words_text(args: &Words, wave: &mut Wave) {
    let column = Column::new(args.column, 0, wave);
    words(args, column, wave)
}

#[inline(always)]
fn words(args: &Words, rows: impl Packed, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return;
            }
            let first = args.before.is_absent();
            let valid = rows.is_valid(row);
            let word = if args.bits == 0 {
                let before = if first { args.seed } else { args.before.get(row) };
                let hash = if valid { rows.hash(row, before, l) } else { Some(null_hash(before)) };
                if hash.is_none() {
                    args.fault.min(l, 0, row);
                }
                hash.unwrap_or(0)
            } else {
                let value = if valid { rows.packed(row) } else { args.seed };
                // A word that moves up has room: 64 bits only if there is nothing to move.
                value | if first { 0 } else { args.before.get(row) << args.bits }
            };
            args.out.set(l, row, word);
        });
        at += u64::from(wave.width());
    }
}

fn check_fixed<T: Unit>(args: &Check, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    check(args, Fixed::<T>::new(args.values, args.pieces, valid), wave)
}

fn check_bits(args: &Check, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    check(args, Booleans::new(args.values, args.pieces, args.rows, valid), wave)
}

fn check_text(args: &Check, wave: &mut Wave) {
    let column = Column::new(args.column, 0, wave);
    check(args, column, wave)
}

#[inline(always)]
fn check(args: &Check, rows: impl Rows, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let mut differing = wave.each(|_| 0u32);
    while at < end {
        differing = wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return differing.at(l);
            }
            let Some(first) = first_of(args.slots, args.places, row) else { return differing.at(l) };
            let alike = match (rows.is_valid(row), rows.is_valid(first)) {
                // A row whose bytes are not inside their buffer is reported elsewhere.
                (true, true) => first == row || rows.alike(row, first, l).unwrap_or(true),
                (one, other) => one == other,
            };
            differing.at(l) + u32::from(!alike)
        });
        at += u64::from(wave.width());
    }
    let differing = wave.sum(differing);
    wave.once(|l| {
        if differing != 0 {
            args.differing.add(l, 0, differing.into())
        }
    });
}
