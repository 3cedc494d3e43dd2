//! Places: where each row goes if rows are put in the order of a digit of their words.
//!
//! The one idea: a digit has 256 values, and a wave keeps a counter for each in registers, the lanes between
//! them: lane `i` owns the counters of digits `i`, `i + width`, and so on. Ballots of a digit's eight bits
//! tell each lane which lanes have its own digit, and how many have the digits that it owns. So waves share
//! no memory, and none waits for another.
//!
//! [`Count`] counts the digits of each run of rows. The sums of the counts, by digit and then by run, are the
//! places of the first rows of a run with a digit, and [`Place`] puts the rows there. Rows of one digit keep
//! their order.
//!
//! Bytes moved for a row: its word twice, and once again for the copy in order, its number likewise, and four
//! times 4 bytes for each 256 counters of a run.

use super::words::Word;
use crate::memory::{In, Out};
use crate::target::{Lane, Lanes, Mask, Value, Wave};

/// The number of values of a digit.
pub const DIGITS: u64 = 256;

/// The counters that a lane owns. Waves of 64 lanes use half of them.
const OWN: usize = 8;

/// The words that a lane loads before it uses the first.
const LOADS: usize = 4;

/// Returns how many rows a wave takes, as a power of two: few if there are few rows, so that there are many
/// waves. A division by any other number would take a hundred instructions.
const fn run_bits(rows: u64) -> u32 {
    8 + (rows > 1 << 20) as u32 + (rows > 1 << 21) as u32 + (rows > 1 << 22) as u32 + (rows > 1 << 23) as u32
}

/// Returns the number of runs of so many rows.
pub const fn runs(rows: u64) -> u64 {
    let bits = run_bits(rows);
    (rows + ((1 << bits) - 1)) >> bits
}

kernel! {
    family "sort";
    /// Counts the digits of each run of rows.
    Count {
        /// The words whose digits count.
        words: In<u8>,
        /// The position of the digit's lowest bit.
        shift: u64,
        /// The number of rows.
        rows: u64,
        /// Receives a count for each digit and run, those of a digit one after the other.
        counts: Out<u32>,
    }
    waves |args, _| runs(args.rows);
    /// By the bytes of a word.
    COUNT {
        sort_count_b4 [4] = count::<u32>,
        sort_count_b8 [8] = count::<u64>,
    }
}

kernel! {
    family "sort";
    /// Puts rows in the order of a digit.
    Place {
        /// The words whose digits count.
        words: In<u8>,
        /// The rows that have these words. Absent if they are in order.
        order: In<u32>,
        /// The position of the digit's lowest bit.
        shift: u64,
        /// The number of rows.
        rows: u64,
        /// The sum of the counts before each count of [`Count`].
        places: In<u32>,
        /// Receives the words in order. Absent if no other digit follows.
        out: Out<u8>,
        /// Receives the rows in order.
        out_order: Out<u32>,
    }
    waves |args, _| runs(args.rows);
    /// By the bytes of a word.
    PLACE {
        sort_place_b4 [4] = place::<u32>,
        sort_place_b8 [8] = place::<u64>,
    }
}

/// The lanes that a lane looks for, in two halves.
type Peers = [u32; 2];

/// The digits of as many rows as a wave has lanes.
#[derive(Clone, Copy)]
struct Digits {
    /// Bit `i` of each lane's digit.
    bits: [Mask; 8],
    /// The lanes that have a row.
    rows: Peers,
}

impl Digits {
    #[inline(always)]
    fn new(digit: Lanes<u32>, rows: Mask, wave: &mut Wave) -> Digits {
        // Written out, because a loop around a collective is not unrolled.
        let bits = [
            bit(digit, 0, wave),
            bit(digit, 1, wave),
            bit(digit, 2, wave),
            bit(digit, 3, wave),
            bit(digit, 4, wave),
            bit(digit, 5, wave),
            bit(digit, 6, wave),
            bit(digit, 7, wave),
        ];
        let high = if wave.width() == 64 { rows.half(1) } else { 0 };
        Digits { bits, rows: [rows.half(0), high] }
    }

    /// Returns the lanes of `among` whose digits agree with a digit in bits `from..to`.
    #[inline(always)]
    fn alike(self, digit: u32, from: usize, to: usize, among: Peers) -> Peers {
        let [mut low, mut high] = among;
        for i in from..to {
            let flip = (digit >> i & 1).wrapping_sub(1);
            low &= self.bits[i].half(0) ^ flip;
            high &= self.bits[i].half(1) ^ flip;
        }
        [low, high]
    }

    /// Adds the number of lanes with each digit that a lane owns to its counters.
    #[inline(always)]
    fn add(self, counters: [u32; OWN], l: Lane<'_>, width: u32) -> [u32; OWN] {
        let mut counters = counters;
        let shared = if width == 64 { 6 } else { 5 };
        // The owned digits agree in their low bits, which are the lane's index.
        let peers = self.alike(l.index(), 0, shared, self.rows);
        for i in 0..OWN {
            if (i as u32) < own(width) {
                let [low, high] = self.alike(i as u32 * width, shared, 8, peers);
                counters[i] += low.count_ones() + high.count_ones();
            }
        }
        counters
    }
}

/// Returns the lanes whose digit has bit `i` set.
#[inline(always)]
fn bit(digit: Lanes<u32>, i: u32, wave: &mut Wave) -> Mask {
    let set = wave.each(|l| digit.at(l) >> i & 1 != 0);
    wave.ballot(set)
}

/// Returns the number of counters that a lane owns.
#[inline(always)]
const fn own(width: u32) -> u32 {
    DIGITS as u32 / width
}

/// Loads words of some rows from `at` on, the lanes' neighbouring; those past `end` repeat the last.
#[inline(always)]
fn load<T: Value>(memory: In<T>, at: u64, end: u64, wave: &Wave) -> [Lanes<T>; LOADS] {
    core::array::from_fn(|k| {
        wave.each(|l| memory.get((at + u64::from(k as u32 * wave.width() + l.index())).min(end - 1)))
    })
}

/// Returns the digits of words, and the lanes whose row, from `at` on, is before `end`.
#[inline(always)]
fn digits<W: Word>(words: Lanes<W>, shift: u32, at: u64, end: u64, wave: &mut Wave) -> (Lanes<u32>, Digits) {
    let digit = wave.each(|l| (words.at(l).wide() >> shift) as u32 & (DIGITS as u32 - 1));
    let rows = wave.each(|l| at + u64::from(l.index()) < end);
    let rows = wave.ballot(rows);
    (digit, Digits::new(digit, rows, wave))
}

fn count<W: Word>(args: &Count, wave: &mut Wave) {
    let (run, runs) = (1 << run_bits(args.rows), runs(args.rows));
    if wave.index() >= runs {
        return;
    }
    let (words, shift) = (args.words.cast::<W>(), args.shift as u32);
    let mut at = wave.index() * run;
    let end = args.rows.min(at + run);
    let width = u64::from(wave.width());
    let mut counters = wave.each(|_| [0; OWN]);
    while at < end {
        let [first, second, third, fourth] = load(words, at, end, wave);
        counters = counted(counters, first, shift, at, end, wave);
        counters = counted(counters, second, shift, at + width, end, wave);
        counters = counted(counters, third, shift, at + 2 * width, end, wave);
        counters = counted(counters, fourth, shift, at + 3 * width, end, wave);
        at += LOADS as u64 * width;
    }
    wave.each(|l| {
        for i in 0..OWN {
            if (i as u32) < own(wave.width()) {
                let digit = u64::from(i as u32 * wave.width() + l.index());
                args.counts.set(l, digit * runs + wave.index(), counters.at(l)[i]);
            }
        }
    });
}

/// Adds the digits of one load to the counters.
#[inline(always)]
fn counted<W: Word>(
    counters: Lanes<[u32; OWN]>,
    words: Lanes<W>,
    shift: u32,
    at: u64,
    end: u64,
    wave: &mut Wave,
) -> Lanes<[u32; OWN]> {
    let (_, digits) = digits(words, shift, at, end, wave);
    wave.each(|l| digits.add(counters.at(l), l, wave.width()))
}

fn place<W: Word>(args: &Place, wave: &mut Wave) {
    let (run, runs) = (1 << run_bits(args.rows), runs(args.rows));
    if wave.index() >= runs {
        return;
    }
    let words = args.words.cast::<W>();
    let mut at = wave.index() * run;
    let end = args.rows.min(at + run);
    let width = u64::from(wave.width());
    let mut places = wave.each(|l| {
        core::array::from_fn(|i| {
            let digit = u64::from(i as u32 % own(wave.width()) * wave.width() + l.index());
            args.places.get(digit * runs + wave.index())
        })
    });
    while at < end {
        let rows = if args.order.is_absent() {
            core::array::from_fn(|k| wave.each(|l| (at as u32) + k as u32 * wave.width() + l.index()))
        } else {
            load(args.order, at, end, wave)
        };
        let [first, second, third, fourth] = load(words, at, end, wave);
        places = placed(args, places, (first, rows[0]), at, end, wave);
        places = placed(args, places, (second, rows[1]), at + width, end, wave);
        places = placed(args, places, (third, rows[2]), at + 2 * width, end, wave);
        places = placed(args, places, (fourth, rows[3]), at + 3 * width, end, wave);
        at += LOADS as u64 * width;
    }
}

/// Puts the rows of one load in their places, and returns the places that follow.
#[inline(always)]
fn placed<W: Word>(
    args: &Place,
    places: Lanes<[u32; OWN]>,
    (words, rows): (Lanes<W>, Lanes<u32>),
    at: u64,
    end: u64,
    wave: &mut Wave,
) -> Lanes<[u32; OWN]> {
    let (digit, digits) = digits(words, args.shift as u32, at, end, wave);
    // Eight exchanges at a width of 32, four at 64: the owner of a digit holds its place in one of as many
    // registers.
    let mut place = owned(places, digit, 0, wave);
    place = chosen(place, places, digit, 1, wave);
    place = chosen(place, places, digit, 2, wave);
    place = chosen(place, places, digit, 3, wave);
    if wave.width() == 32 {
        place = chosen(place, places, digit, 4, wave);
        place = chosen(place, places, digit, 5, wave);
        place = chosen(place, places, digit, 6, wave);
        place = chosen(place, places, digit, 7, wave);
    }
    let out = args.out.cast::<W>();
    wave.each(|l| {
        let [low, high] = digits.alike(digit.at(l), 0, 8, digits.rows);
        let below = !(u32::MAX << (l.index() % 32));
        let [low, high] = if l.index() < 32 { [low & below, 0] } else { [low, high & below] };
        let place = u64::from(place.at(l) + low.count_ones() + high.count_ones());
        if at + u64::from(l.index()) < end {
            args.out_order.set(l, place, rows.at(l));
            if !args.out.is_absent() {
                out.set(l, place, words.at(l));
            }
        }
    });
    wave.each(|l| digits.add(places.at(l), l, wave.width()))
}

/// Returns register `i` of the lane that owns each lane's digit.
#[inline(always)]
fn owned(places: Lanes<[u32; OWN]>, digit: Lanes<u32>, i: usize, wave: &mut Wave) -> Lanes<u32> {
    let register = wave.each(|l| places.at(l)[i]);
    wave.shuffle(register, digit)
}

/// Replaces the place of lanes whose digit is held in register `i`.
#[inline(always)]
fn chosen(
    place: Lanes<u32>,
    places: Lanes<[u32; OWN]>,
    digit: Lanes<u32>,
    i: usize,
    wave: &mut Wave,
) -> Lanes<u32> {
    let found = owned(places, digit, i, wave);
    wave.each(|l| if digit.at(l) / wave.width() == i as u32 { found.at(l) } else { place.at(l) })
}
