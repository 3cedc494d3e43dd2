//! The rows of groups in an order in which they are together, cut into pieces.
//!
//! A group's rows are its segment of the order. A lane folds at most [`PIECE`] of them; what it leaves is a
//! row of the next level, where a group's pieces are its segment. So a group with most of the rows takes as
//! many lanes as many groups with as many rows.

use crate::encoded::rows::tile;
use crate::memory::{In, Out};
use crate::reduce::scan::TILE;
use crate::target::Wave;

/// The number of rows in a piece.
pub const PIECE: u64 = 1024;

kernel! {
    family "group";
    /// Finds the segments of groups.
    Spans {
        /// The rows in the order of their groups.
        order: In<u32>,
        /// The group of each row, in the rows' own order. Those in none have `groups`.
        ids: In<u32>,
        /// The number of rows.
        rows: u64,
        /// The number of groups.
        groups: u64,
        /// Receives two numbers for each group: its first place, and the place after its last.
        spans: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    SPANS {
        group_spans = spans,
    }
}

kernel! {
    family "group";
    /// Counts the pieces of each group.
    Pieces {
        /// The first place of each group, and the place after its last.
        spans: In<u32>,
        /// The numbers from one group's first place to the next one's: 2 for [`Spans`], 1 if segments follow
        /// each other.
        stride: u64,
        /// The number of groups.
        groups: u64,
        /// Receives the number of pieces of each group.
        counts: Out<u32>,
    }
    waves |args, _| args.groups.div_ceil(TILE);
    /// The only entry of this kernel.
    PIECES {
        group_pieces = pieces,
    }
}

fn spans(args: &Spans, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let group = |place: u64| u64::from(args.ids.get(args.order.get(place).into()));
    while at < end {
        wave.each(|l| {
            let place = at + u64::from(l.index());
            if place >= end {
                return;
            }
            let own = group(place);
            if own >= args.groups {
                return;
            }
            if place == 0 || group(place - 1) != own {
                args.spans.set(l, 2 * own, place as u32);
            }
            if place + 1 == args.rows || group(place + 1) != own {
                args.spans.set(l, 2 * own + 1, place as u32 + 1);
            }
        });
        at += u64::from(wave.width());
    }
}

fn pieces(args: &Pieces, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.groups, wave) else { return };
    while at < end {
        wave.each(|l| {
            let group = at + u64::from(l.index());
            if group < end {
                let [first, after] = segment(args.spans, args.stride, group);
                args.counts.set(l, group, (after - first).div_ceil(PIECE) as u32);
            }
        });
        at += u64::from(wave.width());
    }
}

/// The first place of a group, and the place after its last.
#[inline(always)]
pub(super) fn segment(spans: In<u32>, stride: u64, group: u64) -> [u64; 2] {
    [spans.get(group * stride).into(), spans.get(group * stride + 1).into()]
}
