//! Sums of the floats of groups, in the one order that all devices have.

use std::collections::HashMap;
use std::ops::Range;

use bowstring_kernels::program::word::{plain_nan_f32, plain_nan_f64};

use super::rows::{Folded, Rows};
use crate::Result;
use crate::cpu::memory::{self, Plain};
use crate::cpu::rows::CHUNK;
use crate::device::interrupt;
use crate::rules::PIECE;
use crate::threads::{each_part, here};

/// A float that is summed.
pub(super) trait Float<const W: usize>: Plain + Default + Sync {
    fn of(bytes: [u8; W]) -> Self;
    /// The sum, with the canonical NaN.
    fn plus(self, other: Self) -> Self;
}

impl Float<4> for f32 {
    fn of(bytes: [u8; 4]) -> f32 {
        f32::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        plain_nan_f32(self + other)
    }
}

impl Float<8> for f64 {
    fn of(bytes: [u8; 8]) -> f64 {
        f64::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        plain_nan_f64(self + other)
    }
}

/// The sums of one level above another: at most four levels hold 2^40 rows.
type Levels<F> = [F; 4];

/// Sums the floats of each group. Each thread sums a range of groups.
pub(super) fn sums<F: Float<W>, const W: usize>(rows: &Rows<'_>) -> Result<Folded> {
    let (groups, pool) = (rows.groups, rows.pool);
    let mut sums = pool.alloc(groups * W)?;
    let mut counts = memory::zeroed(groups.saturating_mul(4), pool)?;
    let mut seen = if rows.valid.is_some() { Some(memory::zeroed(groups, pool)?) } else { None };
    let own = &mut memory::values_mut::<F>(&mut sums)[..groups];
    own.fill(F::default());
    let part = groups.div_ceil(here()).max(1);
    let counts = memory::values_mut::<u32>(&mut counts)[..groups].chunks_mut(part);
    let mut marks = seen.as_mut().map(|seen| seen.bytes_mut()[..groups].chunks_mut(part));
    let parts = own.chunks_mut(part).zip(counts).enumerate().map(|(i, (sums, counts))| {
        let marks = marks.as_mut().and_then(Iterator::next);
        (i * part, sums, counts, marks)
    });
    let done = each_part(parts.collect::<Vec<_>>(), |(first, sums, counts, marks)| {
        sum::<F, W>(rows, first..first + sums.len(), sums, counts, marks)
    })?;
    done.into_iter().collect::<Result<()>>()?;
    Ok((sums.freeze(groups * W), seen))
}

/// Sums the rows of some groups. A group has the sum of its current piece in `sums`, and those of the levels
/// above, once it has any, elsewhere.
fn sum<F: Float<W>, const W: usize>(
    rows: &Rows<'_>,
    groups: Range<usize>,
    sums: &mut [F],
    counts: &mut [u32],
    mut seen: Option<&mut [u8]>,
) -> Result<()> {
    let values = rows.values::<W>();
    let mut upper: HashMap<usize, Levels<F>> = HashMap::new();
    for start in (0..rows.ids.len()).step_by(CHUNK) {
        interrupt::check()?;
        let end = rows.ids.len().min(start + CHUNK);
        for (row, (id, value)) in (start..).zip(rows.ids[start..end].iter().zip(&values[start..end])) {
            let group = (*id as usize).wrapping_sub(groups.start);
            if group >= sums.len() {
                continue;
            }
            if rows.valid.is_none_or(|valid| valid.get(row)) {
                sums[group] = sums[group].plus(F::of(*value));
                if let Some(seen) = &mut seen {
                    seen[group] = 1;
                }
            }
            counts[group] += 1;
            if (counts[group] as usize).is_multiple_of(PIECE) {
                let levels = upper.entry(group).or_default();
                let piece = std::mem::take(&mut sums[group]);
                go_up(levels, piece, counts[group] as usize / PIECE);
            }
        }
    }
    // Zero is the sum of an empty piece, and changes no sum.
    for (group, levels) in upper {
        sums[group] = levels.iter().fold(sums[group], |sum, level| level.plus(sum));
    }
    Ok(())
}

/// Adds the sum of the last of so many pieces to the level above, and so on if that makes a piece there.
fn go_up<F: Float<W>, const W: usize>(levels: &mut Levels<F>, mut piece: F, mut pieces: usize) {
    for level in levels {
        *level = level.plus(piece);
        if !pieces.is_multiple_of(PIECE) {
            return;
        }
        piece = std::mem::take(level);
        pieces /= PIECE;
    }
}
