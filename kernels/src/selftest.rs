//! Kernels that exercise the vocabulary of [`target`] and nothing else: a GPU must write the same results as
//! the host. One of them detects a compiler that breaks convergence.

use crate::memory::{In, Out};
use crate::target::{self, Atomic, Mask, Number, Wave, funnel};

kernel! {
    family "selftest";
    /// Writes the result of each word of the vocabulary.
    Vocabulary {
        /// The input: `width` numbers for each wave.
        numbers: In<u32>,
        /// Receives `ROWS * width` numbers for each wave.
        results: Out<u32>,
        /// The number of waves that have numbers.
        waves: u64,
        /// Four words, zeroed (the minimum `u32::MAX`): a sum, bits, a minimum and a count of waves.
        shared: Out<u32>,
        /// A table of two rows: `numbers` again, and `numbers` without the first one.
        table: In<u64>,
    }
    waves |args, _| args.waves;
    /// The only entry of this kernel.
    VOCABULARY {
        selftest_vocabulary = vocabulary,
    }
}

kernel! {
    family "selftest";
    /// A branch, a ballot, and the same branch again. A compiler that threads the jump through the ballot
    /// makes two ballots of it, one in each arm, and both are wrong.
    Bait {
        /// The input: `width` numbers for each wave.
        numbers: In<u32>,
        /// Receives `width` numbers for each wave.
        results: Out<u32>,
        /// The number of waves that have numbers.
        waves: u64,
        /// The number that the ballot compares the input with.
        limit: u64,
    }
    waves |args, _| args.waves;
    /// The only entry of this kernel.
    BAIT {
        selftest_bait = bait,
    }
}

kernel! {
    family "selftest";
    /// Writes the answer of each atomic that has one. They depend on the order in which lanes arrive, but any
    /// order leaves a chain: each answer is what another lane left.
    Atomics {
        /// The input: `width` numbers for each wave, none of which is 0.
        numbers: In<u32>,
        /// Receives `ANSWERS * width` numbers for each wave, of the entry's type.
        answers: Out<u64>,
        /// The number of waves that have numbers.
        waves: u64,
        /// Numbers of the entry's type: a sum, a minimum, and `CLAIMS` that are 0 until a lane claims them.
        shared: Out<u64>,
    }
    waves |args, _| args.waves;
    /// By width in bytes.
    ATOMICS {
        selftest_atomics_b4 [4] = atomics::<u32>,
        selftest_atomics_b8 [8] = atomics::<u64>,
    }
}

kernel! {
    family "selftest";
    /// Finds the first row of each key by a hash table: a row claims a slot by compare-and-swap, and where an
    /// equal key has it already, the lower row takes it over.
    Insert {
        /// The key of each row.
        keys: In<u32>,
        /// The number of keys.
        len: u64,
        /// As many slots as `last` says, each `FREE`. Receives a key in the upper half, and its row.
        slots: Out<u64>,
        /// The index of the last slot: a power of two less one.
        last: u64,
        /// Receives the slot of each row's key; `FREE` where the table was full.
        places: Out<u64>,
    }
    waves |args, width| args.len.div_ceil(u64::from(width));
    /// The only entry of this kernel.
    INSERT {
        selftest_insert = insert,
    }
}

/// The answers that [`Atomics`] writes for each lane.
pub const ANSWERS: u64 = 4;
/// The numbers that lanes of [`Atomics`] claim.
pub const CLAIMS: u64 = 5;
/// A slot of [`Insert`] without a key.
pub const FREE: u64 = u64::MAX;

/// The numbers that [`Vocabulary`] writes for each lane.
pub const ROWS: u64 = 18;

fn vocabulary(args: &Vocabulary, wave: &mut Wave) {
    if wave.index() >= args.waves {
        return;
    }
    let width = u64::from(wave.width());
    let first = wave.index() * width;
    let x = wave.each(|l| args.numbers.get(first + u64::from(l.index())));
    let wide = wave.each(|l| u64::from(x.at(l)) << 20);
    let odd = wave.each(|l| x.at(l) & 1 != 0);
    let odd = wave.ballot(odd);
    let mirror = wave.each(|l| wave.width() - 1 - l.index());
    let mirrored = wave.shuffle(x, mirror);
    let up = wave.shift_up(wide, 3);
    let (before, total) = wave.scan(x);
    let (wide_before, wide_total) = wave.scan(wide);
    let (sum, or) = (wave.sum(wide), wave.or(x));
    let (least, greatest) = (wave.min(wide), wave.max(x));
    let third = wave.broadcast(wide, 3);
    let mask = wave.mask(x, 5);
    let words = wave.words::<4>(&[odd, mask, Mask::from_halves(7, 8), odd]);
    let again: In<u32> = args.table.input(wave, 0);
    let (odd_lanes, mask_lanes) = (wave.members(odd), wave.members(mask));
    let heavy = wave.each(|l| u64::from(x.at(l)) << 27);
    let heavy = wave.saturating_sum(heavy);
    let results = args.results.skip(first * ROWS);
    wave.each(|l| {
        let rows = [
            odd.count() << 16
                | l.rank(odd) << 8
                | u32::from(odd_lanes.at(l)) << 1
                | u32::from(odd.is_empty()),
            mirrored.at(l),
            up.at(l) as u32 ^ (up.at(l) >> 32) as u32,
            before.at(l).wrapping_add(total),
            wide_before.at(l) as u32 ^ (wide_before.at(l) >> 32) as u32,
            wide_total as u32 ^ (wide_total >> 32) as u32,
            sum as u32,
            or,
            least as u32,
            greatest,
            (third >> 20) as u32,
            u32::from(mask_lanes.at(l)),
            words.at(l),
            again.get(first + u64::from(l.index())),
            funnel(x.at(l), mirrored.at(l), l.index()),
            l.index(),
            heavy as u32 ^ (heavy >> 33) as u32,
            // Each lane takes its own buffer: neighbours have different ones.
            args.table.input_of::<u32>(l, l.index() as u64 % 2 * 2).get(first + u64::from(l.index() & !1)),
        ];
        for (k, row) in rows.into_iter().enumerate() {
            results.set(l, k as u64 * width + u64::from(l.index()), row);
        }
        args.shared.add(l, 0, x.at(l));
        args.shared.or(l, 1, x.at(l));
        args.shared.min(l, 2, x.at(l));
    });
    wave.once(|l| args.shared.add(l, 3, 1));
}

fn bait(args: &Bait, wave: &mut Wave) {
    if wave.index() >= args.waves {
        return;
    }
    let first = wave.index() * u64::from(wave.width());
    let x = wave.each(|l| args.numbers.get(first + u64::from(l.index())));
    let y = target::bait(wave, x, args.limit as u32);
    wave.each(|l| args.results.set(l, first + u64::from(l.index()), y.at(l)));
}

fn atomics<T: Atomic>(args: &Atomics, wave: &mut Wave) {
    if wave.index() >= args.waves {
        return;
    }
    let width = u64::from(wave.width());
    let first = wave.index() * width;
    let (answers, shared) = (args.answers.cast::<T>().skip(first * ANSWERS), args.shared.cast::<T>());
    wave.each(|l| {
        let lane = u64::from(l.index());
        let x = args.numbers.get(first + lane);
        let x = T::from_halves(x, x);
        let claim = 2 + (first + lane) % CLAIMS;
        answers.set(l, lane, shared.fetch_add(l, 0, x));
        answers.set(l, width + lane, shared.fetch_min(l, 1, x));
        answers.set(l, 2 * width + lane, shared.compare_exchange(l, claim, <T as Number>::ZERO, x));
        answers.set(l, 3 * width + lane, shared.load(l, claim));
    });
}

fn insert(args: &Insert, wave: &mut Wave) {
    let first = wave.index() * u64::from(wave.width());
    wave.each(|l| {
        let row = first + u64::from(l.index());
        if row >= args.len {
            return;
        }
        let key = args.keys.get(row);
        let mine = u64::from(key) << 32 | row;
        let mut slot = u64::from(key.wrapping_mul(0x9e37_79b1) >> 15) & args.last;
        let mut place = FREE;
        // As many steps as there are slots: a full table ends the search, and no step waits for another lane.
        for _ in 0..=args.last {
            let mut held = args.slots.load(l, slot);
            if held == FREE {
                held = args.slots.compare_exchange(l, slot, FREE, mine);
            }
            if held == FREE || held >> 32 == mine >> 32 {
                if mine < held && held != FREE {
                    args.slots.min(l, slot, mine);
                }
                place = slot;
                break;
            }
            slot = (slot + 1) & args.last;
        }
        args.places.set(l, row, place);
    });
}

host_only! {
    /// The tables of entries of this module.
    pub(crate) static TABLES: &[&dyn crate::target::Table] = &[&ATOMICS, &BAIT, &INSERT, &VOCABULARY];
}
