//! Take: gathers values by nullable indices; values, validity and null counts in one pass.
//!
//! `indices.rs` loads and checks the indices.
//!
//! Indices are unsigned here. For a signed type, the host lowers `limit` to the size of the type's positive
//! half, so a negative index is out of range like any other.

use super::indices::{EACH, PARTS, STEP, bits, rows, store, whole};
use crate::column::{ColumnRow, MovedRow, OutputRow};
use crate::memory::{Bits, In, Out, TableRow};
use crate::target::{Value, Wave};

kernel! {
    // With four blocks, a take of 16-byte values has fewer loads in flight.
    family "take", blocks 3;
    /// Gathers many columns of equal width by the same indices.
    Take {
        /// The indices, as wide as the entry says.
        indices: In<u8>,
        /// The indices' validity, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of indices.
        len: u64,
        /// The first index that is out of range: the number of rows of the columns, or less.
        limit: u64,
        /// A [`MovedRow`] for each column, with the columns' validity if the entry is for nulls; one MUST be
        /// readable even if there are no columns, and so must one value of each column. A null row gets any
        /// value.
        table: In<u64>,
        /// The number of columns.
        columns: u64,
        /// One number for each column, zeroed before: receives its null count, if its validity is wanted.
        nulls: Out<u64>,
        /// One number, all ones before: receives the first row whose index is out of range. That row becomes
        /// null.
        error: Out<u64>,
        /// The number of accesses that make up one value, for widths that are no power of two or more than 16
        /// bytes.
        pieces: u64,
    }
    waves |args, width| {
        let each = if args.pieces > 1 { STEP } else { EACH };
        args.len.div_ceil(each as u64 * u64::from(width))
    };
    /// By width in bytes, the indices' width, and the kind of columns: 0, without nulls; 1, each with
    /// validity; 2, each value of several accesses, without nulls (take the validity with [`TakeBits`]).
    TAKE {
        take_b1_i1 [1, 1, 0] = take::<u8, u8, false>,
        take_b1_i2 [1, 2, 0] = take::<u8, u16, false>,
        take_b1_i4 [1, 4, 0] = take::<u8, u32, false>,
        take_b1_i8 [1, 8, 0] = take::<u8, u64, false>,
        take_b2_i1 [2, 1, 0] = take::<u16, u8, false>,
        take_b2_i2 [2, 2, 0] = take::<u16, u16, false>,
        take_b2_i4 [2, 4, 0] = take::<u16, u32, false>,
        take_b2_i8 [2, 8, 0] = take::<u16, u64, false>,
        take_b4_i1 [4, 1, 0] = take::<u32, u8, false>,
        take_b4_i2 [4, 2, 0] = take::<u32, u16, false>,
        take_b4_i4 [4, 4, 0] = take::<u32, u32, false>,
        take_b4_i8 [4, 8, 0] = take::<u32, u64, false>,
        take_b8_i1 [8, 1, 0] = take::<u64, u8, false>,
        take_b8_i2 [8, 2, 0] = take::<u64, u16, false>,
        take_b8_i4 [8, 4, 0] = take::<u64, u32, false>,
        take_b8_i8 [8, 8, 0] = take::<u64, u64, false>,
        take_b16_i1 [16, 1, 0] = take::<u128, u8, false>,
        take_b16_i2 [16, 2, 0] = take::<u128, u16, false>,
        take_b16_i4 [16, 4, 0] = take::<u128, u32, false>,
        take_b16_i8 [16, 8, 0] = take::<u128, u64, false>,
        take_nulls_b1_i1 [1, 1, 1] = take::<u8, u8, true>,
        take_nulls_b1_i2 [1, 2, 1] = take::<u8, u16, true>,
        take_nulls_b1_i4 [1, 4, 1] = take::<u8, u32, true>,
        take_nulls_b1_i8 [1, 8, 1] = take::<u8, u64, true>,
        take_nulls_b2_i1 [2, 1, 1] = take::<u16, u8, true>,
        take_nulls_b2_i2 [2, 2, 1] = take::<u16, u16, true>,
        take_nulls_b2_i4 [2, 4, 1] = take::<u16, u32, true>,
        take_nulls_b2_i8 [2, 8, 1] = take::<u16, u64, true>,
        take_nulls_b4_i1 [4, 1, 1] = take::<u32, u8, true>,
        take_nulls_b4_i2 [4, 2, 1] = take::<u32, u16, true>,
        take_nulls_b4_i4 [4, 4, 1] = take::<u32, u32, true>,
        take_nulls_b4_i8 [4, 8, 1] = take::<u32, u64, true>,
        take_nulls_b8_i1 [8, 1, 1] = take::<u64, u8, true>,
        take_nulls_b8_i2 [8, 2, 1] = take::<u64, u16, true>,
        take_nulls_b8_i4 [8, 4, 1] = take::<u64, u32, true>,
        take_nulls_b8_i8 [8, 8, 1] = take::<u64, u64, true>,
        take_nulls_b16_i1 [16, 1, 1] = take::<u128, u8, true>,
        take_nulls_b16_i2 [16, 2, 1] = take::<u128, u16, true>,
        take_nulls_b16_i4 [16, 4, 1] = take::<u128, u32, true>,
        take_nulls_b16_i8 [16, 8, 1] = take::<u128, u64, true>,
        take_pieces_b1_i1 [1, 1, 2] = take_pieces::<u8, u8>,
        take_pieces_b1_i2 [1, 2, 2] = take_pieces::<u8, u16>,
        take_pieces_b1_i4 [1, 4, 2] = take_pieces::<u8, u32>,
        take_pieces_b1_i8 [1, 8, 2] = take_pieces::<u8, u64>,
        take_pieces_b4_i1 [4, 1, 2] = take_pieces::<u32, u8>,
        take_pieces_b4_i2 [4, 2, 2] = take_pieces::<u32, u16>,
        take_pieces_b4_i4 [4, 4, 2] = take_pieces::<u32, u32>,
        take_pieces_b4_i8 [4, 8, 2] = take_pieces::<u32, u64>,
        take_pieces_b16_i1 [16, 1, 2] = take_pieces::<u128, u8>,
        take_pieces_b16_i2 [16, 2, 2] = take_pieces::<u128, u16>,
        take_pieces_b16_i4 [16, 4, 2] = take_pieces::<u128, u32>,
        take_pieces_b16_i8 [16, 8, 2] = take_pieces::<u128, u64>,
    }
}

kernel! {
    family "take";
    /// Gathers many bitmaps by the same indices: booleans, or validity by itself. An index that is null or
    /// out of range gives an unset bit.
    TakeBits {
        /// The indices, as wide as the entry says.
        indices: In<u8>,
        /// The indices' validity, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of indices.
        len: u64,
        /// The first index that is out of range: the number of bits of the bitmaps, or less.
        limit: u64,
        /// A [`MovedRow`] for each bitmap, of which at least one bit MUST be readable.
        table: In<u64>,
        /// The number of bitmaps.
        columns: u64,
        /// One number for each bitmap, zeroed before: receives how many of the result's bits are unset.
        nulls: Out<u64>,
        /// Receives the first row whose index is out of range, as in [`Take`].
        error: Out<u64>,
    }
    waves |args, width| args.len.div_ceil(EACH as u64 * u64::from(width));
    /// By the indices' width in bytes.
    TAKE_BITS {
        take_bits_i1 [1] = take_bits::<u8>,
        take_bits_i2 [2] = take_bits::<u16>,
        take_bits_i4 [4] = take_bits::<u32>,
        take_bits_i8 [8] = take_bits::<u64>,
    }
}

/// The words of a [`MovedRow`] at which the result's validity is.
const TARGET_VALID: u64 = MovedRow::TARGET + OutputRow::VALID;

fn take<T: Value, I: Value + Into<u64> + Ord, const NULLS: bool>(args: &Take, wave: &mut Wave) {
    let (indices, valid) = (args.indices.cast::<I>(), Bits::new(args.valid, args.valid_offset, args.len));
    // The first column's row is loaded while the indices are in flight.
    let mut next = described(args, 0, wave);
    let Some(rows) = whole(wave, indices, valid, args.len, args.limit) else {
        let mut part = 0;
        while part < PARTS {
            take_part::<T, I, NULLS>(args, wave.index() * PARTS + part, wave);
            part += 1;
        }
        return;
    };
    for column in 0..args.columns {
        let (source, target, target_valid): (In<T>, Out<T>, _) = next;
        let target = target.skip(rows.first);
        let values = wave.each(|l| rows.index.at(l).map(|index| source.get(index.into())));
        let set = if NULLS {
            let row = column * MovedRow::ROW;
            let source = args.table.input(wave, row + ColumnRow::VALID);
            rows.bits(wave, source, args.table.get(row + ColumnRow::VALID_OFFSET))
        } else {
            rows.live
        };
        let width = wave.width();
        wave.each(|l| {
            let own = target.skip(u64::from(l.index()));
            for k in 0..EACH {
                own.set(l, u64::from(k as u32 * width), values.at(l)[k]);
            }
        });
        // If no bitmap is wanted, no count is either.
        if !target_valid.is_absent() {
            rows.store(wave, set, target_valid, args.nulls, column);
        }
        if column + 1 < args.columns {
            next = described(args, column + 1, wave);
        }
    }
}

/// Loads a column's source, its destination, and the destination of its validity.
#[inline(always)]
fn described<T: Value>(args: &Take, column: u64, wave: &mut Wave) -> (In<T>, Out<T>, Out<u32>) {
    let row = column * MovedRow::ROW;
    (
        args.table.input(wave, row),
        args.table.output(wave, row + MovedRow::TARGET),
        args.table.output(wave, row + TARGET_VALID),
    )
}

/// Moves a part of a wave's rows; any of them may be null, out of range or absent.
#[inline(always)]
fn take_part<T: Value, I: Value + Into<u64>, const NULLS: bool>(args: &Take, part: u64, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.len);
    let Some(rows) = rows::<I>(wave, part, args.indices.cast(), valid, args.len, args.limit, args.error)
    else {
        return;
    };
    for column in 0..args.columns {
        let row = column * MovedRow::ROW;
        let source: In<T> = args.table.input(wave, row);
        let target = args.table.output::<T>(wave, row + MovedRow::TARGET).skip(rows.first);
        let values = wave.each(|l| rows.index.at(l).map(|index| source.get(index)));
        let set = if NULLS {
            let source = args.table.input(wave, row + ColumnRow::VALID);
            bits(wave, &rows, source, args.table.get(row + ColumnRow::VALID_OFFSET))
        } else {
            rows.ok
        };
        wave.each(|l| {
            for k in 0..STEP {
                let place = k as u32 * wave.width() + l.index();
                if place < rows.count {
                    target.set(l, u64::from(place), values.at(l)[k]);
                }
            }
        });
        let target = args.table.output(wave, row + TARGET_VALID);
        store(wave, &rows, set, target, args.nulls, column);
    }
}

/// Like `take`, for values of several accesses: it moves one access of all rows after the other.
fn take_pieces<T: Value, I: Value + Into<u64>>(args: &Take, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.len);
    let Some(rows) =
        rows::<I>(wave, wave.index(), args.indices.cast(), valid, args.len, args.limit, args.error)
    else {
        return;
    };
    for column in 0..args.columns {
        let row = column * MovedRow::ROW;
        let source: In<T> = args.table.input(wave, row);
        let target = args.table.output::<T>(wave, row + MovedRow::TARGET).skip(rows.first * args.pieces);
        // This is always true, but LLVM does not know. A vote is convergent, so it keeps LLVM from unrolling
        // the loop, which would spill.
        let some = wave.each(|l| l.index() < rows.count);
        let mut piece = 0;
        while piece < args.pieces && wave.any(some) {
            let values = wave.each(|l| rows.index.at(l).map(|index| source.get(index * args.pieces + piece)));
            wave.each(|l| {
                for k in 0..STEP {
                    let place = k as u32 * wave.width() + l.index();
                    if place < rows.count {
                        target.set(l, u64::from(place) * args.pieces + piece, values.at(l)[k]);
                    }
                }
            });
            piece += 1;
        }
        let target = args.table.output(wave, row + TARGET_VALID);
        store(wave, &rows, rows.ok, target, args.nulls, column);
    }
}

fn take_bits<I: Value + Into<u64> + Ord>(args: &TakeBits, wave: &mut Wave) {
    let (indices, valid) = (args.indices.cast::<I>(), Bits::new(args.valid, args.valid_offset, args.len));
    let Some(rows) = whole(wave, indices, valid, args.len, args.limit) else {
        let mut part = 0;
        while part < PARTS {
            take_bits_part::<I>(args, wave.index() * PARTS + part, wave);
            part += 1;
        }
        return;
    };
    for column in 0..args.columns {
        let row = column * MovedRow::ROW;
        let (source, target) = (args.table.input(wave, row), args.table.output(wave, row + MovedRow::TARGET));
        let set = rows.bits(wave, source, args.table.get(row + ColumnRow::OFFSET));
        rows.store(wave, set, target, args.nulls, column);
    }
}

/// Moves a part of a wave's rows; any of them may be null, out of range or absent.
#[inline(always)]
fn take_bits_part<I: Value + Into<u64>>(args: &TakeBits, part: u64, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.len);
    let Some(rows) = rows::<I>(wave, part, args.indices.cast(), valid, args.len, args.limit, args.error)
    else {
        return;
    };
    for column in 0..args.columns {
        let row = column * MovedRow::ROW;
        let (source, target) = (args.table.input(wave, row), args.table.output(wave, row + MovedRow::TARGET));
        let set = bits(wave, &rows, source, args.table.get(row + ColumnRow::OFFSET));
        store(wave, &rows, set, target, args.nulls, column);
    }
}
