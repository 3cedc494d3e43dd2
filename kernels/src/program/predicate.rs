//! Predicates that consist of terms: each wave takes a tile, and computes with bits only.

use super::task::Group;
use super::terms::{Terms, TileWords};
use crate::memory::{In, Out};
use crate::select::selection::{GROUP, TILE, WORDS, sizes};
use crate::target::Wave;

kernel! {
    family "program";
    /// Terms over the rows of columns.
    Predicate {
        /// The [`Term`](super::terms::Term)s of the predicate, in order.
        terms: In<u64>,
        /// The number of terms.
        count: u64,
        /// A [`ColumnRow`](crate::column::ColumnRow) for each column.
        columns: In<u64>,
        /// The number of rows; not 0.
        len: u64,
        /// A bit for each row, set where the predicate is true; zeros past the last row, in whole words.
        words: Out<u32>,
        /// A bit for each row, set where the predicate is not null; laid out like `words`. May be absent.
        known: Out<u32>,
        /// The number of true rows in each tile, as a selection counts them. May be absent.
        counts: Out<u32>,
        /// The sums of `counts`, as a selection has them; the host zeroes them before the launch.
        sums: Out<u64>,
    }
    // A selection counts every tile of a run, also the tiles past the last row.
    waves |args, _| if args.counts.is_absent() { args.len.div_ceil(TILE) } else { sizes(args.len).counts };
    /// The entry of all predicates.
    PREDICATE {
        program_terms = predicate,
    }
}

fn predicate(args: &Predicate, wave: &mut Wave) {
    let tile = wave.index();
    let (first, mut kept) = (tile * TILE, 0);
    if first < args.len {
        let left = (args.len - first).min(TILE) as u32;
        let rows = Group { first, left };
        let terms = Terms { terms: args.terms, count: args.count, columns: args.columns, len: args.len };
        let found = terms.of_tile(rows, wave);
        let truth = found.truth.inside(rows, wave);
        let width = wave.width();
        let store = |out: Out<u32>, words: TileWords| {
            let out = out.skip(tile * WORDS);
            wave.each(move |l| {
                if l.index() * 32 < left {
                    out.set(l, u64::from(l.index()), words.first.at(l));
                }
                if width == 32 && (l.index() + width) * 32 < left {
                    out.set(l, u64::from(l.index() + width), words.second.at(l));
                }
            });
        };
        store(args.words, truth);
        if !args.known.is_absent() {
            store(args.known, found.known.inside(rows, wave));
        }
        let ones = wave.each(move |l| truth.first.at(l).count_ones() + truth.second.at(l).count_ones());
        kept = wave.sum(ones);
    }
    // A block may have more waves than the launch has tiles.
    if !args.counts.is_absent() && tile < sizes(args.len).counts {
        wave.once(|l| {
            args.counts.set(l, tile, kept);
            if kept != 0 {
                args.sums.add(l, tile / GROUP, u64::from(kept));
            }
        });
    }
}
