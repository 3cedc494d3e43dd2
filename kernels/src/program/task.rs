//! The inputs and outputs of a program, apart from how its rows are dealt to waves.

use crate::column::OutputRow;
use crate::memory::{In, Out, TableRow};
use crate::target::{Lanes, Wave};

/// The words of a selection's output rows that describe its counts and their sums.
pub(super) const COUNTS: u64 = OutputRow::VALID;
pub(super) const GROUP_SUMS: u64 = OutputRow::ROW;

host_only! {
    /// Describes the outputs of a selection: a bit for each row that it keeps, the number it keeps in each
    /// tile, and the sums of those numbers. The host zeroes the sums before the launch.
    pub fn selection_outputs(words: Out<u32>, counts: Out<u32>, sums: Out<u64>) -> [OutputRow; 2] {
        let sums = OutputRow { values: sums.cast(), valid: Out::absent() };
        [OutputRow { values: words.cast(), valid: counts }, sums]
    }
}

/// The values of a lane's rows.
pub(super) type Values<V, const K: usize> = Lanes<[V; K]>;

/// A run of rows within a tile.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// The index of the first row.
    pub first: u64,
    /// The number of rows from the first on. A wave may hold fewer at once.
    pub left: u32,
}

impl Group {
    /// Each lane's rows, counted from the first, and a bit for each that exists. A row past the end repeats
    /// the last one.
    #[inline(always)]
    pub fn all<const K: usize>(self, wave: &Wave) -> (Values<u32, K>, Lanes<u32>) {
        let (left, width) = (self.left, wave.width());
        let rows = wave.each(move |l| {
            let mut rows = [0; K];
            for k in 0..K {
                let row = l.index() + k as u32 * width;
                rows[k] = if row < left { row } else { left - 1 };
            }
            rows
        });
        let there = wave.each(move |l| {
            let mut there = 0;
            for k in 0..K {
                there |= u32::from(l.index() + k as u32 * width < left) << k;
            }
            there
        });
        (rows, there)
    }
}

/// The arguments of a launch that instructions use.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub code: In<u64>,
    pub columns: In<u64>,
    pub outputs: In<u64>,
    pub len: u64,
    pub failed: Out<u64>,
}

/// Removes the first row, moves the others up, and puts `last` at the end.
#[allow(clippy::manual_memcpy, reason = "a copy of memory is a call on devices")]
#[inline(always)]
pub(super) fn moved_up<V: Copy, const K: usize>(rows: [V; K], last: V) -> [V; K] {
    let mut moved = rows;
    for k in 1..K {
        moved[k - 1] = rows[k];
    }
    moved[K - 1] = last;
    moved
}

/// Applies `f` to two values, row by row, and returns the results and which of a lane's rows are bad.
///
/// The rows move up, so that each is the first in its turn: where `f` is too large to be copied for each row,
/// a loop over the rows would index them in memory.
#[inline(always)]
pub(super) fn pairs<V: Copy + 'static, const K: usize>(
    a: Values<V, K>,
    b: Values<V, K>,
    f: impl Fn(V, V) -> (V, bool),
    wave: &Wave,
) -> (Values<V, K>, Lanes<u32>) {
    let both = wave.each(move |l| {
        let (mut a, mut b, mut bad) = (a.at(l), b.at(l), 0);
        for _ in 0..K {
            let (value, is_bad) = f(a[0], b[0]);
            a = moved_up(a, value);
            b = moved_up(b, b[0]);
            bad = bad >> 1 | u32::from(is_bad) << (K - 1);
        }
        (a, bad)
    });
    (wave.each(move |l| both.at(l).0), wave.each(move |l| both.at(l).1))
}
