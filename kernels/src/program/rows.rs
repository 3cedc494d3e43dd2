//! Loads and stores of a group's rows.

use super::task::{Group, Task, Values};
use super::word::Word;
use crate::column::ColumnRow;
use crate::memory::{Bits, Out, TableRow};
use crate::target::{Lanes, Value, Wave};

/// Loads a lane's rows of a column, each passed through `widen`.
#[inline(always)]
pub(super) fn load<T: Value, V: Word, const K: usize>(
    args: &Task,
    (group, rows): (Group, Values<u32, K>),
    slot: u64,
    widen: impl Fn(T) -> V,
    wave: &mut Wave,
) -> Values<V, K> {
    let values = args.columns.input::<T>(wave, slot * ColumnRow::ROW).skip(group.first);
    wave.each(move |l| {
        let mut out = [V::default(); K];
        for k in 0..K {
            out[k] = widen(values.stream(u64::from(rows.at(l)[k])));
        }
        out
    })
}

/// Loads a bit of a bitmap for each row of a lane.
#[inline(always)]
pub(super) fn gather<const K: usize>(
    bits: Bits,
    group: Group,
    rows: Values<u32, K>,
    wave: &Wave,
) -> Lanes<u32> {
    let window = bits.window(group.first);
    wave.each(move |l| {
        let mut out = 0;
        for k in 0..K {
            out |= u32::from(window.get(rows.at(l)[k])) << k;
        }
        out
    })
}

/// Stores the rows of a group, each passed through `narrow`.
#[inline(always)]
pub(super) fn store<T: Value, V: Word, const K: usize>(
    out: Out<T>,
    rows: Group,
    values: Values<V, K>,
    narrow: impl Fn(V) -> T,
    wave: &Wave,
) {
    let (out, width) = (out.skip(rows.first), wave.width());
    wave.each(move |l| {
        for k in 0..K {
            let row = l.index() + k as u32 * width;
            if row < rows.left {
                out.set(l, u64::from(row), narrow(values.at(l)[k]));
            }
        }
    });
}

/// Stores a bit for each row, zeros past the last, in whole words. Returns how many bits are set.
#[inline(always)]
pub(super) fn store_bits<const K: usize>(
    out: Out<u32>,
    rows: Group,
    bits: Lanes<u32>,
    wave: &mut Wave,
) -> u32 {
    let (width, halves) = (wave.width(), wave.width() / 32);
    let mut word = wave.each(|_| 0u32);
    let mut set = 0;
    for k in 0..K {
        let there = wave.each(move |l| bits.at(l) >> k & 1 != 0 && l.index() + k as u32 * width < rows.left);
        let mask = wave.ballot(there);
        set += mask.count();
        word = wave.each(move |l| match l.index().wrapping_sub(k as u32 * halves) {
            0 => mask.half(0),
            1 if halves == 2 => mask.half(1),
            _ => word.at(l),
        });
    }
    let out = out.skip(rows.first / 32);
    wave.each(move |l| {
        if l.index() < K as u32 * halves && l.index() * 32 < rows.left {
            out.set(l, u64::from(l.index()), word.at(l));
        }
    });
    set
}
