//! The rows of groups, put together and cut into pieces that a lane folds.

use bowstring_kernels::group::segments::{PIECES, Pieces, SPANS, Spans};
use bowstring_kernels::memory::In;

use crate::Result;
use crate::gpu::scan::sums_before;
use crate::gpu::sort::digits::Placements;
use crate::gpu::sort::keys::Key;
use crate::gpu::structure::counted;
use crate::pass::{Pass, Region};
use crate::rules::PIECE;

/// Segments of rows, one for each group.
#[derive(Clone)]
pub(crate) struct Segments {
    /// The first place of each group, and the place after its last, `stride` numbers apart.
    pub spans: Region,
    pub stride: u64,
    pub groups: usize,
}

/// A level of a fold.
pub(super) struct Level {
    pub segments: Segments,
    /// The number of pieces before each group, and of all; `None` if each group is a piece.
    pub pieces: Option<Region>,
    /// The most pieces that there may be.
    pub bound: usize,
}

/// Returns the rows in the order of their groups, and in their own within a group. Rows in none have `groups`
/// for a group.
pub(crate) fn placed(pass: &mut Pass, ids: In<u32>, rows: usize, groups: usize) -> Result<Region> {
    let mut placements = Placements::new(pass, rows, 4)?;
    let bits = u64::MAX.checked_shr((groups as u64).leading_zeros()).unwrap_or(0);
    placements.sort(pass, Key { words: ids.cast(), width: 4 }, bits)?;
    placements.order().cloned().map_or_else(|| counted(pass, 0, rows, 4), Ok)
}

/// Finds the segments of groups in an order of rows.
pub(crate) fn segments(
    pass: &mut Pass,
    ids: In<u32>,
    order: &Region,
    rows: usize,
    groups: usize,
) -> Result<Segments> {
    let spans = pass.rows(groups, 8)?;
    let args =
        Spans { order: order.input(), ids, rows: rows as u64, groups: groups as u64, spans: spans.out() };
    pass.launch(&SPANS[0], &args)?;
    Ok(Segments { spans, stride: 2, groups })
}

impl Segments {
    /// Returns the levels of a fold of so many rows: the last leaves one piece for each group.
    pub(super) fn levels(self, pass: &mut Pass, rows: usize) -> Result<Vec<Level>> {
        let (mut levels, mut segments, mut most) = (vec![], self, rows);
        while most > PIECE {
            let groups = segments.groups;
            let (counts, pieces) = (pass.rows(groups, 4)?, pass.rows(groups + 1, 4)?);
            let args = Pieces {
                spans: segments.spans.input(),
                stride: segments.stride,
                groups: groups as u64,
                counts: counts.out(),
            };
            pass.launch(&PIECES[0], &args)?;
            sums_before(pass, &counts, groups, 4, &pieces)?;
            let next = Segments { spans: pieces.clone(), stride: 1, groups };
            // Each group has at most one piece that is not full.
            let bound = groups.saturating_add(most / PIECE);
            levels.push(Level { segments, pieces: Some(pieces), bound });
            (segments, most) = (next, most.div_ceil(PIECE));
        }
        let bound = segments.groups;
        levels.push(Level { segments, pieces: None, bound });
        Ok(levels)
    }
}
