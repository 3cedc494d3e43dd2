//! Folds of the values of frames: ranges of places, which may overlap.
//!
//! The one idea: sixteen places make a node, sixteen nodes make one of the next level, and so on; then a
//! frame is a few nodes of each level. A lane folds a frame from its first place to its last: values up to
//! the first whole node, then nodes up to the first whole node of the next level, and after the highest level
//! down again. So a frame of any length takes up to thirty folds a level, and the order of additions depends
//! on nothing but places.

use super::fold::{COUNT, LEAST, ROW, SUM, SUM_FLOATS, SUM_UNSIGNED, SUM_WRAPPING};
use super::folders::{
    Count, F32, F64, Flips, Folder, I64, Joined, Least, LeastWide, Row, U64, Wide, Wider, Wrapping,
};
use crate::encoded::rows::{store, tile};
use crate::memory::{Bits, In, Out, TableRow};
use crate::reduce::scan::TILE;
use crate::target::{Value, Wave};

/// The places that make a node, as a power of two.
pub const NODE_BITS: u64 = 4;
/// The places that make a node.
pub const NODE: u64 = 1 << NODE_BITS;

/// A level of nodes, as the host describes it.
pub struct Nodes {
    /// The result of each node's fold.
    pub states: In<u8>,
    /// A bit for each node with a valid value, from `In::bitmap`. Absent if all values are valid.
    pub valid: In<u32>,
}

impl TableRow for Nodes {
    type Words = [u64; 4];
    fn words(&self) -> [u64; 4] {
        let ([a, b], [c, d]) = (self.states.described(), self.valid.described());
        [a, b, c, d]
    }
}

kernel! {
    family "group";
    /// Folds the values of each frame.
    Frames {
        /// The values. Absent if only places are counted.
        values: In<u8>,
        /// A bit for each valid value, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of values.
        rows: u64,
        /// A row of [`Nodes`] for each level above the values.
        levels: In<u64>,
        /// The number of these levels.
        count: u64,
        /// The first place of each frame. Absent if the frames are the nodes of the values.
        starts: In<u32>,
        /// The place after the last of each frame, at most `rows`.
        ends: In<u32>,
        /// The number of frames.
        frames: u64,
        /// The bits that flip, as in [`Fold`](super::fold::Fold).
        always: u64,
        /// The bits that flip besides, as in [`Fold`](super::fold::Fold).
        negative: u64,
        /// The bits that flip for the greatest value, as in [`Fold`](super::fold::Fold).
        descending: u64,
        /// Receives a value for each frame.
        out: Out<u8>,
        /// Receives a bit, in whole words, for each frame that has a valid value.
        out_valid: Out<u32>,
    }
    // A lane takes a frame, whose length only the device knows: as many waves as there are.
    waves |args, width| args.frames.div_ceil(u64::from(width));
    /// By the numbers of [`FOLD`](super::fold::FOLD).
    FRAMES {
        group_frame_sum_i64 [SUM, 8] = frames::<I64, Joined>,
        group_frame_sum_b16 [SUM, 16] = frames::<Wide, Wider>,
        group_frame_sum_b32 [SUM, 32] = frames::<Wider, Wider>,
        group_frame_sum_u64 [SUM_UNSIGNED, 8] = frames::<U64, Joined>,
        group_frame_sum_f32 [SUM_FLOATS, 4] = frames::<F32, F32>,
        group_frame_sum_f64 [SUM_FLOATS, 8] = frames::<F64, F64>,
        group_frame_sum_wrapping [SUM_WRAPPING, 8] = frames::<Wrapping, Wrapping>,
        group_frame_join_sums [SUM_WRAPPING, 16] = frames::<Joined, Joined>,
        group_frame_least_b1 [LEAST, 1] = frames::<Least<u8>, Least<u8>>,
        group_frame_least_b2 [LEAST, 2] = frames::<Least<u16>, Least<u16>>,
        group_frame_least_b4 [LEAST, 4] = frames::<Least<u32>, Least<u32>>,
        group_frame_least_b8 [LEAST, 8] = frames::<Least<u64>, Least<u64>>,
        group_frame_least_b16 [LEAST, 16] = frames::<LeastWide, LeastWide>,
        group_frame_count [COUNT, 0] = frames::<Count, Wrapping>,
        group_frame_row [ROW, 0] = frames::<Row, Least<u32>>,
    }
}

kernel! {
    family "group";
    /// Finds one end of the frame of each place, in a span of places that it does not leave.
    Ends {
        /// The first place of each place's span.
        firsts: In<u32>,
        /// The number of places in the span.
        counts: In<u64>,
        /// The number of places.
        rows: u64,
        /// Whether the end is at a distance from the place, or else that of the span.
        moves: u64,
        /// The distance, of at most as many places as there are and one more.
        by: u64,
        /// 1 for the place after the last of a frame, 0 for its first.
        after: u64,
        /// Receives the end of each place's frame.
        out: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    ENDS {
        group_frame_ends = ends,
    }
}

fn ends(args: &Ends, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        wave.each(|l| {
            let place = at + u64::from(l.index());
            if place >= end {
                return;
            }
            let first = u64::from(args.firsts.get(place)) as i64;
            let after = first + args.counts.get(place) as i64;
            let wanted = if args.moves != 0 {
                place as i64 + args.by as i64 + args.after as i64
            } else if args.after != 0 {
                after
            } else {
                first
            };
            let wanted = if wanted > after { after } else { wanted };
            args.out.set(l, place, if wanted < first { first } else { wanted } as u32);
        });
        at += u64::from(wave.width());
    }
}

/// A frame on its way through the levels.
#[derive(Clone, Copy)]
struct Walk<T> {
    state: T,
    any: bool,
    /// The first place, of a value or a node, that is not folded yet.
    next: u64,
    /// The place after the last.
    end: u64,
    /// The level at which the way up ends; more than there are levels if it is not known yet.
    top: u64,
}

impl<T: Value> Walk<T> {
    /// Returns the place up to which a level is folded on the way up. If there is a whole node from there on,
    /// the next level goes on.
    #[inline(always)]
    fn up(&mut self, level: u64, count: u64) -> u64 {
        let end = self.end >> (NODE_BITS * level);
        let whole = (self.next + NODE - 1) >> NODE_BITS;
        if level == count || whole >= end >> NODE_BITS {
            self.top = level;
            return end;
        }
        whole << NODE_BITS
    }

    /// Folds places of a level.
    #[inline(always)]
    fn fold<F: Folder<To = T>>(
        &mut self,
        flips: Flips,
        values: In<F::From>,
        valid: Bits,
        from: u64,
        to: u64,
    ) {
        let mut place = from;
        while place < to {
            if valid.is_absent() || valid.get(place) {
                self.state = match F::READS {
                    true => F::add(flips, self.state, values.get(place)),
                    false => F::add_row(flips, self.state, place),
                };
                self.any = true;
            }
            place += 1;
        }
    }
}

fn frames<F: Folder, G: Folder<From = F::To, To = F::To>>(args: &Frames, wave: &mut Wave) {
    let at = wave.index() * u64::from(wave.width());
    if at >= args.frames {
        return;
    }
    let flips = Flips { always: args.always, negative: args.negative, descending: args.descending };
    let values = args.values.cast::<F::From>();
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let mut walk = wave.each(|l| {
        let frame = at + u64::from(l.index());
        let (next, end) = if frame >= args.frames {
            (0, 0)
        } else if args.starts.is_absent() {
            (frame * NODE, (frame * NODE + NODE).min(args.rows))
        } else {
            (args.starts.get(frame).into(), u64::from(args.ends.get(frame)).min(args.rows))
        };
        let mut walk = Walk { state: F::empty(flips), any: false, next, end, top: args.count + 1 };
        if next >= end {
            walk.top = 0;
            return walk;
        }
        let to = walk.up(0, args.count);
        walk.fold::<F>(flips, values, valid, next, to);
        walk.next = to >> NODE_BITS;
        walk
    });
    let mut level = 1;
    while level <= args.count {
        let (nodes, valid) = nodes::<G>(args, level, wave);
        walk = wave.each(|l| {
            let mut walk = walk.at(l);
            if walk.top < level {
                return walk;
            }
            let (from, to) = (walk.next, walk.up(level, args.count));
            walk.fold::<G>(flips, nodes, valid, from, to);
            walk.next = to >> NODE_BITS;
            walk
        });
        level += 1;
    }
    level = args.count;
    while level > 1 {
        level -= 1;
        let (nodes, valid) = nodes::<G>(args, level, wave);
        walk = wave.each(|l| {
            let mut walk = walk.at(l);
            if walk.top > level {
                let end = walk.end >> (NODE_BITS * level);
                walk.fold::<G>(flips, nodes, valid, end & !(NODE - 1), end);
            }
            walk
        });
    }
    let out = args.out.cast::<F::To>();
    let any = wave.each(|l| {
        let (mut walk, frame) = (walk.at(l), at + u64::from(l.index()));
        if walk.top > 0 {
            walk.fold::<F>(flips, values, valid, walk.end & !(NODE - 1), walk.end);
        }
        if frame < args.frames {
            out.set(l, frame, walk.state);
        }
        walk.any
    });
    store(any, at, args.frames, args.out_valid, wave);
}

/// The nodes of a level.
#[inline(always)]
fn nodes<G: Folder>(args: &Frames, level: u64, wave: &mut Wave) -> (In<G::From>, Bits) {
    let row = (level - 1) * Nodes::ROW;
    let states = args.levels.input::<G::From>(wave, row);
    let valid = args.levels.input::<u32>(wave, row + 2);
    (states, Bits::new(valid, 0, u64::MAX >> 8))
}
