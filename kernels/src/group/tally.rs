//! Sums of integers and counts of groups, without putting rows in order.
//!
//! The one idea: integers may be added in any order, so each row adds its value to its group's sum by atomics
//! that return nothing. A wide value is added in pieces of 32 bits, each to a word of 64, which 2^32 rows
//! cannot overflow; the pieces are joined at the end. If groups are few, there are copies of the sums, so
//! that not all waves meet in the same words.

use core::array::from_fn;

use super::fold::{COUNT, SUM, SUM_UNSIGNED, SUM_WRAPPING};
use crate::encoded::rows::{store, tile};
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::target::{Value, Wave};

kernel! {
    family "group";
    /// Adds the values of rows to sums of their groups.
    Tally {
        /// The group of each row.
        ids: In<u32>,
        /// The values. Absent if only rows are counted.
        values: In<u8>,
        /// A bit for each valid value, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows, less than 2^32.
        rows: u64,
        /// The number of groups, each of which is less.
        groups: u64,
        /// The number of copies of the sums, a power of two.
        copies: u64,
        /// Receives, for each copy and each group, the sums of the pieces of values and the number of valid
        /// ones; all zero before. See [`words`].
        sums: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By a number for the sum, as for [`FOLD`](super::fold::FOLD), and the bytes of a value.
    TALLY {
        group_tally_count [COUNT, 0] = tally::<Count, 4>,
        group_tally_i64 [SUM, 8] = tally::<I64, 4>,
        group_tally_u64 [SUM_UNSIGNED, 8] = tally::<U64, 4>,
        group_tally_wrapping [SUM_WRAPPING, 8] = tally::<Wrapping, 4>,
        group_tally_b16 [SUM, 16] = tally::<Wide, 2>,
    }
}

kernel! {
    family "group";
    /// Joins the copies and the pieces of sums.
    Tallied {
        /// The result of [`Tally`].
        sums: In<u64>,
        /// The number of groups.
        groups: u64,
        /// The number of copies.
        copies: u64,
        /// Receives the sum of each group.
        out: Out<u8>,
        /// Receives a bit, in whole words, for each group that has a valid value.
        out_valid: Out<u32>,
    }
    waves |args, width| args.groups.div_ceil(u64::from(width));
    /// By the same keys as [`TALLY`].
    TALLIED {
        group_tallied_count [COUNT, 0] = tallied::<Count>,
        group_tallied_i64 [SUM, 8] = tallied::<I64>,
        group_tallied_u64 [SUM_UNSIGNED, 8] = tallied::<U64>,
        group_tallied_wrapping [SUM_WRAPPING, 8] = tallied::<Wrapping>,
        group_tallied_b16 [SUM, 16] = tallied::<Wide>,
    }
}

/// The most pieces of a value.
const PIECES: usize = 4;

/// The words of a group in a copy, for values of so many bytes: their pieces, and the number of valid values.
pub const fn words(kind: u32, width: u32) -> u64 {
    match (kind, width) {
        (COUNT, _) => 1,
        (SUM_WRAPPING, _) => 2,
        (_, 16) => 5,
        _ => 3,
    }
}

/// A sum whose values are added in pieces.
trait Sum {
    /// A value in memory.
    type From: Value;
    /// A sum in memory.
    type To: Value;
    /// The number of pieces.
    const PIECES: usize;
    /// Returns a piece of a value.
    fn piece(value: Self::From, i: usize) -> u64;
    /// Joins the sums of pieces, and the number of values.
    fn join(pieces: [u64; PIECES], count: u64) -> Self::To;
}

/// The number of valid rows, which has no pieces.
struct Count;
struct I64;
struct U64;
/// Sums of 8 bytes in 8, which wrap.
struct Wrapping;
/// Sums of 16 bytes in 32.
struct Wide;

impl Sum for Count {
    type From = u8;
    type To = u64;
    const PIECES: usize = 0;

    #[inline(always)]
    fn piece(_: u8, _: usize) -> u64 {
        0
    }

    #[inline(always)]
    fn join(_: [u64; PIECES], count: u64) -> u64 {
        count
    }
}

impl Sum for I64 {
    type From = u64;
    type To = u128;
    const PIECES: usize = 2;

    #[inline(always)]
    fn piece(value: u64, i: usize) -> u64 {
        if i == 0 { u64::from(value as u32) } else { (value as i64 >> 32) as u64 }
    }

    #[inline(always)]
    fn join(pieces: [u64; PIECES], _: u64) -> u128 {
        u128::from(pieces[0]).wrapping_add((i128::from(pieces[1] as i64) << 32) as u128)
    }
}

impl Sum for U64 {
    type From = u64;
    type To = u128;
    const PIECES: usize = 2;

    #[inline(always)]
    fn piece(value: u64, i: usize) -> u64 {
        if i == 0 { u64::from(value as u32) } else { value >> 32 }
    }

    #[inline(always)]
    fn join(pieces: [u64; PIECES], _: u64) -> u128 {
        u128::from(pieces[0]) + (u128::from(pieces[1]) << 32)
    }
}

impl Sum for Wrapping {
    type From = u64;
    type To = u64;
    const PIECES: usize = 1;

    #[inline(always)]
    fn piece(value: u64, _: usize) -> u64 {
        value
    }

    #[inline(always)]
    fn join(pieces: [u64; PIECES], _: u64) -> u64 {
        pieces[0]
    }
}

impl Sum for Wide {
    type From = u128;
    type To = [u128; 2];
    const PIECES: usize = 4;

    #[inline(always)]
    fn piece(value: u128, i: usize) -> u64 {
        if i < 3 { u64::from((value >> (32 * i)) as u32) } else { (value as i128 >> 96) as u64 }
    }

    #[inline(always)]
    fn join(pieces: [u64; PIECES], _: u64) -> [u128; 2] {
        let [first, second, third, fourth] = pieces.map(u128::from);
        let highest = i128::from(fourth as i64);
        let (low, one) = (first + (second << 32)).overflowing_add(third << 64);
        let (low, two) = low.overflowing_add((highest << 96) as u128);
        [low, ((highest >> 32) as u128).wrapping_add(u128::from(one) + u128::from(two))]
    }
}

/// `LOADS` rows are loaded by a lane before it uses the first.
fn tally<S: Sum, const LOADS: usize>(args: &Tally, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let (values, valid) =
        (args.values.cast::<S::From>(), Bits::new(args.valid, args.valid_offset, args.rows));
    let (each, first) = (S::PIECES as u64 + 1, (wave.index() & (args.copies - 1)) * args.groups);
    while at < end {
        let begin = at;
        // Rows past the end repeat the last one.
        let row = |k: usize, lane: u32| begin + u64::from(k as u32 * wave.width() + lane);
        let groups =
            wave.each(|l| from_fn::<u32, LOADS, _>(|k| args.ids.get(row(k, l.index()).min(end - 1))));
        let loaded = wave.each(|l| {
            from_fn::<S::From, LOADS, _>(|k| match S::PIECES {
                0 => <S::From as Value>::ZERO,
                _ => values.get(row(k, l.index()).min(end - 1)),
            })
        });
        wave.each(|l| {
            for k in 0..LOADS {
                let (row, group) = (row(k, l.index()), u64::from(groups.at(l)[k]));
                if row < end && group < args.groups && (valid.is_absent() || valid.get(row)) {
                    let to = (first + group) * each;
                    for i in 0..S::PIECES {
                        args.sums.add(l, to + i as u64, S::piece(loaded.at(l)[k], i));
                    }
                    // Without nulls, each group of a sum has a value, and their number is not wanted.
                    if S::PIECES == 0 || !valid.is_absent() {
                        args.sums.add(l, to + S::PIECES as u64, 1);
                    }
                }
            }
        });
        at += LOADS as u64 * u64::from(wave.width());
    }
}

fn tallied<S: Sum>(args: &Tallied, wave: &mut Wave) {
    let at = wave.index() * u64::from(wave.width());
    if at >= args.groups {
        return;
    }
    let (each, out) = (S::PIECES as u64 + 1, args.out.cast::<S::To>());
    let has = wave.each(|l| {
        let group = at + u64::from(l.index());
        if group >= args.groups {
            return false;
        }
        let (mut pieces, mut count, mut copy) = ([0u64; PIECES], 0, 0);
        while copy < args.copies {
            let from = (copy * args.groups + group) * each;
            pieces = from_fn(|i| match i < S::PIECES {
                true => pieces[i].wrapping_add(args.sums.get(from + i as u64)),
                false => 0,
            });
            count += args.sums.get(from + S::PIECES as u64);
            copy += 1;
        }
        out.set(l, group, S::join(pieces, count));
        count > 0
    });
    store(has, at, args.groups, args.out_valid, wave);
}
