//! The rows that indices choose: the loads and checks of indices, and the output of the rows' bits.
//!
//! Each lane has eight rows, `width` rows apart, so that loads of indices and stores of values are coalesced,
//! and so are the gathers of ascending indices. (Four neighbouring indices in a lane would take one load
//! instead of four, but a gather would then touch four times the sectors.) Nearly always all eight rows exist
//! and every index is in range. One comparison of the greatest index confirms this, and each row then takes
//! only a load, an address, a load and a store. Null indices count as 0.
//!
//! All other rows take the slow path, four rows at a time. In a step of the slow path, every load is issued
//! before the first use and without a branch: a row that has nothing to load reads element 0. (With `if ok {
//! load }`, both compilers keep a region for each row and wait inside it: one load in flight instead of
//! four.) The lane flags of the four rows are bits of one register, because booleans would become predicates,
//! of which there are seven.
//!
//! Everything is inlined into the entries of an image (`family`); on the host, one copy for all entries is
//! enough.

use crate::memory::{Bits, In, Out, ones};
use crate::target::{Lane, Lanes, Value, Wave};

/// The number of rows of a lane.
pub(crate) const EACH: usize = 8;

/// Rows that a lane has in flight on the slow path.
pub(crate) const STEP: usize = 4;

/// The number of parts of a wave's rows on the slow path.
pub(crate) const PARTS: u64 = (EACH / STEP) as u64;

/// The rows of a wave that has [`EACH`] in every lane, with all indices in range.
pub(crate) struct Whole<I> {
    /// The number of the wave's first row.
    pub first: u64,
    /// The index of each row; 0 for a null one.
    pub index: Lanes<[I; EACH]>,
    /// In lane `w`, the bits of rows `32 * w ..` that have an index; in lanes beyond the rows, zero.
    pub live: Lanes<u32>,
}

/// Returns `None` if the rows of a wave must take the slow path.
#[cfg_attr(family, inline(always))]
pub(crate) fn whole<I: Value + Into<u64> + Ord>(
    wave: &mut Wave,
    indices: In<I>,
    valid: Bits,
    len: u64,
    limit: u64,
) -> Option<Whole<I>> {
    let width = wave.width();
    let (rows, words) = (EACH as u32 * width, EACH as u32 * width / 32);
    let first = wave.index() * u64::from(rows);
    if first + u64::from(rows) > len {
        return None;
    }
    let mut index = wave.each(|l| {
        let own = indices.skip(first + u64::from(l.index()));
        core::array::from_fn::<I, EACH, _>(|k| own.stream(u64::from(k as u32 * width)))
    });
    let mut live = wave.each(|l| if l.index() < words { !0 } else { 0 });
    if !valid.is_absent() {
        let window = valid.window(first);
        live = wave.each(|l| live.at(l) & window.word(l.index().min(words - 1)));
        let masks: [_; EACH] = core::array::from_fn(|k| wave.mask(live, k as u32 * (width / 32)));
        let live: [_; EACH] = masks.map(|mask| wave.members(mask));
        index = wave.each(|l| {
            core::array::from_fn(|k| if live[k].at(l) { index.at(l)[k] } else { <I as Value>::ZERO })
        });
    }
    let bad = wave.each(|l| {
        let [first, rest @ ..] = index.at(l);
        rest.into_iter().fold(first, Ord::max).into() >= limit
    });
    if wave.any(bad) { None } else { Some(Whole { first, index, live }) }
}

impl<I: Value + Into<u64> + Ord> Whole<I> {
    /// Returns, in lane `w`, one bit for each of the rows `32 * w ..`.
    #[cfg_attr(family, inline(always))]
    pub fn bits(&self, wave: &mut Wave, source: In<u32>, offset: u64) -> Lanes<u32> {
        let (source, offset) = (source.skip(offset / 32), offset as u32 % 32);
        let place = |l: Lane<'_>, k: usize| u64::from(offset) + self.index.at(l)[k].into();
        let words = wave.each(|l| core::array::from_fn::<u32, EACH, _>(|k| source.get(place(l, k) / 32)));
        let masks: [_; EACH] = core::array::from_fn(|k| {
            let one = wave.each(|l| words.at(l)[k] >> (place(l, k) as u32 % 32) & 1 != 0);
            wave.ballot(one)
        });
        let words = wave.words(&masks);
        wave.each(|l| words.at(l) & self.live.at(l))
    }

    /// Writes the rows' bits as a bitmap, unless it is absent, and adds the number of unset ones to
    /// `nulls[column]`.
    #[cfg_attr(family, inline(always))]
    pub fn store(&self, wave: &mut Wave, set: Lanes<u32>, target: Out<u32>, nulls: Out<u64>, column: u64) {
        let rows = EACH as u32 * wave.width();
        if !target.is_absent() {
            wave.each(|l| {
                if l.index() < rows / 32 {
                    target.set(l, self.first / 32 + u64::from(l.index()), set.at(l));
                }
            });
        }
        let ones = wave.each(|l| set.at(l).count_ones());
        let unset = rows - wave.sum(ones);
        wave.once(|l| {
            if unset != 0 {
                nulls.add(l, column, u64::from(unset))
            }
        });
    }
}

/// The rows of a part of a wave.
pub(crate) struct Rows {
    /// The number of the part's first row.
    pub first: u64,
    /// The number of rows in the part.
    pub count: u32,
    /// Bit `k`: whether row `k` of the lane has an index that is neither null nor out of range.
    pub ok: Lanes<u32>,
    /// The index of each row; 0 if its bit in `ok` is unset.
    pub index: Lanes<[u64; STEP]>,
}

/// Loads and checks the indices of one part of the rows: `STEP` in each lane. Returns `None` for a part
/// without rows.
#[cfg_attr(family, inline(always))]
pub(crate) fn rows<I: Value + Into<u64>>(
    wave: &mut Wave,
    part: u64,
    indices: In<I>,
    valid: Bits,
    len: u64,
    limit: u64,
    error: Out<u64>,
) -> Option<Rows> {
    let first = part * STEP as u64 * u64::from(wave.width());
    if first >= len {
        return None;
    }
    let count = (len - first).min(STEP as u64 * u64::from(wave.width())) as u32;
    let indices = indices.skip(first);
    let loaded = wave.each(|l| {
        core::array::from_fn::<u64, STEP, _>(|k| {
            indices.stream(u64::from((k as u32 * wave.width() + l.index()).min(count - 1))).into()
        })
    });
    let live = if valid.is_absent() {
        wave.each(|l| ones(u64::from(count.saturating_sub(l.index() * 32))))
    } else {
        let valid = valid.window(first);
        wave.each(|l| valid.word(l.index()))
    };
    let halves = wave.width() / 32;
    let live: [_; STEP] = core::array::from_fn(|k| {
        let mask = wave.mask(live, k as u32 * halves);
        wave.members(mask)
    });
    let ok = wave.each(|l| {
        let mut ok = 0;
        for k in 0..STEP {
            ok |= u32::from(live[k].at(l) & (loaded.at(l)[k] < limit)) << k;
        }
        ok
    });
    wave.each(|l| {
        let mut bad = 0;
        for (k, live) in live.iter().enumerate() {
            bad |= u32::from(live.at(l)) << k;
        }
        bad &= !ok.at(l);
        if bad != 0 {
            error.min(l, 0, first + u64::from(bad.trailing_zeros() * wave.width() + l.index()));
        }
    });
    let index =
        wave.each(|l| core::array::from_fn(|k| if ok.at(l) >> k & 1 != 0 { loaded.at(l)[k] } else { 0 }));
    Some(Rows { first, count, ok, index })
}

/// Loads one bit for each row: first the words, then the rows' bits in them, as bits of one register.
#[cfg_attr(family, inline(always))]
pub(crate) fn bits(wave: &Wave, rows: &Rows, source: In<u32>, offset: u64) -> Lanes<u32> {
    let words = wave.each(|l| rows.index.at(l).map(|index| source.get((offset + index) / 32)));
    wave.each(|l| {
        let mut bits = 0;
        for k in 0..STEP {
            let shift = (offset as u32).wrapping_add(rows.index.at(l)[k] as u32) % 32;
            bits |= (words.at(l)[k] >> shift & 1) << k;
        }
        bits & rows.ok.at(l)
    })
}

/// Writes the rows' bits as a bitmap (unless it is absent) and adds the number of unset ones to
/// `nulls[column]`.
#[cfg_attr(family, inline(always))]
pub(crate) fn store(
    wave: &mut Wave,
    rows: &Rows,
    set: Lanes<u32>,
    target: Out<u32>,
    nulls: Out<u64>,
    column: u64,
) {
    let masks: [_; STEP] = core::array::from_fn(|k| {
        let one = wave.each(|l| set.at(l) >> k & 1 != 0);
        wave.ballot(one)
    });
    let words = wave.words(&masks);
    wave.each(|l| {
        if !target.is_absent() && l.index() < rows.count.div_ceil(32) {
            target.set(l, rows.first / 32 + u64::from(l.index()), words.at(l));
        }
    });
    let unset = rows.count - masks.iter().map(|mask| mask.count()).sum::<u32>();
    wave.once(|l| {
        if unset != 0 {
            nulls.add(l, column, u64::from(unset))
        }
    });
}
