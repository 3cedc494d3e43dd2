//! Ranks: from groups of equal rows, in order, to a number for each row.

use crate::encoded::rows::{Selected, tile};
use crate::memory::{In, Out};
use crate::reduce::scan::TILE;
use crate::target::Wave;

/// Equal rows have the greatest number of their places.
pub const HIGHEST: u64 = 0;
/// Equal rows have the least number of their places.
pub const LOWEST: u64 = 1;
/// Equal rows have the number of their group.
pub const DENSE: u64 = 2;

kernel! {
    family "sort";
    /// Computes the rank of each row from its group.
    Ranks {
        /// A bit for each place at which a group begins; the first is one.
        begins: In<u32>,
        /// The result of [`Offsets`](crate::select::selection::Offsets) for them.
        begins_offsets: In<u64>,
        /// The places at which groups begin.
        starts: In<u32>,
        /// The number of groups.
        groups: u64,
        /// The rows in order, all different.
        order: In<u32>,
        /// The number of rows.
        rows: u64,
        /// The rank of equal rows: [`HIGHEST`], [`LOWEST`] or [`DENSE`].
        ties: u64,
        /// Receives the rank of each row, from 1 on.
        out: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    RANKS {
        sort_ranks = ranks,
    }
}

fn ranks(args: &Ranks, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let begins = Selected::new(args.begins, 0, args.rows, args.begins_offsets);
    while at < end {
        wave.each(|l| {
            let i = at + u64::from(l.index());
            if i < end {
                // The number of groups up to this place, which is not 0.
                let group = begins.rank(i) + u64::from(begins.has(i));
                let rank = match args.ties {
                    DENSE => group as u32,
                    LOWEST => args.starts.get(group - 1) + 1,
                    _ if group < args.groups => args.starts.get(group),
                    _ => args.rows as u32,
                };
                args.out.set(l, args.order.get(i).into(), rank);
            }
        });
        at += u64::from(wave.width());
    }
}
