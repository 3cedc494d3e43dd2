//! Compares the kernels for equal lists and equal rows with plain definitions.

use bowstring_kernels::encoded::distinct::{CLAIM, Claim, SETTLE, STRETCHES, Settle, Stretches};
use bowstring_kernels::encoded::rows::NONE;
use bowstring_kernels::memory::In;
use bowstring_kernels::ranges::lists::{
    COVERED, Covered, EXTENTS, Extents, ITEMS, Items, SIZED, SPACED, Sized, Spaced,
};

use crate::device::{LENGTHS, Memory, Random, WIDTHS, run};
use crate::selection::{bits, packed, unpacked};

#[test]
fn lists_say_where_their_items_are() {
    for (width, nulls) in WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]) {
        for rows in LENGTHS {
            let mut rng = Random::new(13 + rows as u64);
            let offsets: Vec<u32> = (0..rows).map(|_| 5 + rng.below(90) as u32).collect();
            let sizes: Vec<u32> = (0..rows).map(|_| rng.below(4) as u32).collect();
            let (mut starts, mut lens) = (Memory::room::<u64>(rows), Memory::room::<u64>(rows));
            let mut sums = Memory::room::<u64>(rows.div_ceil(1024));
            let (mut at, mut len_of) = (Memory::of(&offsets), Memory::of(&sizes));
            let mut found = Memory::of(&[u64::MAX; 3]);
            let live = bits(&mut rng, rows, 2);
            let mut live_bits = Memory::of(&packed(&live));
            let (valid, valid_offset) = if nulls { live_bits.bitmap(0) } else { (In::absent(), 0) };
            let args = Extents {
                offsets: at.input(),
                sizes: len_of.input(),
                valid,
                valid_offset,
                rows: rows as u64,
                limit: 96,
                end: In::absent(),
                end_offset: 0,
                base: 5,
                starts: starts.output(),
                lens: lens.output(),
                sums: sums.output(),
                fault: found.output(),
                limits: found.output().skip(1),
            };
            run(EXTENTS, &[4, 8], args, width);
            // Null rows have no items, whatever their offsets and sizes say.
            let is_null = |row: &usize| nulls && !live[*row];
            let good = |row: &usize| is_null(row) || offsets[*row] + sizes[*row] <= 96;
            let some = |row: &usize| good(row) && !is_null(row) && sizes[*row] > 0;
            let start = |row: usize| if some(&row) { u64::from(offsets[row]) - 5 } else { 0 };
            let len = |row: usize| if some(&row) { u64::from(sizes[row]) } else { 0 };
            let (all_starts, all_lens): (Vec<u64>, Vec<u64>) =
                (0..rows).map(|row| (start(row), len(row))).unzip();
            assert_eq!(starts.read::<u64>(rows), all_starts);
            assert_eq!(lens.read::<u64>(rows), all_lens);
            let tiles: Vec<u64> = all_lens.chunks(1024).map(|tile| tile.iter().sum()).collect();
            assert_eq!(sums.read::<u64>(tiles.len()), tiles);
            let bad = (0..rows).find(|row| !good(row)).map_or(u64::MAX, |row| row as u64);
            let least = (0..rows).filter(some).map(|row| offsets[row].into()).min().unwrap_or(u64::MAX);
            let most = (0..rows).filter(some).map(|row| u64::from(offsets[row] + sizes[row])).max();
            assert_eq!(found.read::<u64>(3), [bad, least, !most.unwrap_or(0)]);

            let valid = bits(&mut rng, rows, 2);
            let mut valid_bits = Memory::of(&packed(&valid));
            let (mut out, mut kept) = (Memory::room::<u32>(rows.div_ceil(32)), Memory::room::<u64>(rows));
            let mut fault = Memory::of(&[u64::MAX]);
            let args = Sized {
                starts: starts.input(),
                lens: lens.input(),
                want: 2,
                valid: valid_bits.bitmap(0).0,
                valid_offset: valid_bits.bitmap(0).1,
                rows: rows as u64,
                out: out.output(),
                kept: kept.output(),
                fault: fault.output(),
            };
            run(SIZED, &[], args, width);
            let is = |row: usize| valid[row] && all_lens[row] == 2;
            assert_eq!(unpacked(&out, rows), (0..rows).map(is).collect::<Vec<_>>());
            let expected: Vec<u64> = (0..rows).map(|row| if is(row) { all_starts[row] } else { 0 }).collect();
            assert_eq!(kept.read::<u64>(rows), expected);
            let wrong = (0..rows).find(|row| valid[*row] && all_lens[*row] != 2);
            assert_eq!(fault.read::<u64>(1)[0], wrong.map_or(u64::MAX, |row| row as u64));
            let mut items = Memory::room::<u64>(2 * rows);
            let (starts, lens) = (starts.input(), lens.input());
            let args = Items { starts, lens, want: 2, rows: rows as u64, out: items.output() };
            run(ITEMS, &[], args, width);
            let item = |i: usize| if all_lens[i / 2] == 2 { all_starts[i / 2] + i as u64 % 2 } else { NONE };
            assert_eq!(items.read::<u64>(2 * rows), (0..2 * rows).map(item).collect::<Vec<_>>());
        }
    }
}

#[test]
fn items_of_rows_at_indices_are_numbered() {
    for width in WIDTHS {
        for rows in LENGTHS {
            let mut rng = Random::new(23 + rows as u64);
            let indices: Vec<u8> = (0..rows).map(|_| rng.below(120) as u8).collect();
            let valid = bits(&mut rng, rows, 2);
            let (mut index, mut valid_bits) = (Memory::of(&indices), Memory::shifted(&packed(&valid), 1));
            let mut out = Memory::room::<u64>(3 * rows);
            let (valid_in, valid_offset) = valid_bits.bitmap(0);
            let args = Spaced {
                indices: index.input(),
                width: 1,
                valid: valid_in,
                valid_offset,
                rows: rows as u64,
                limit: 100,
                size: 3,
                out: out.output(),
            };
            run(SPACED, &[], args, width);
            let item = |i: usize| match (valid[i / 3], indices[i / 3]) {
                (true, row @ 0..100) => u64::from(row) * 3 + i as u64 % 3,
                _ => NONE,
            };
            assert_eq!(out.read::<u64>(3 * rows), (0..3 * rows).map(item).collect::<Vec<_>>());
        }
    }
}

#[test]
fn elements_that_ranges_cover_are_numbered() {
    for width in WIDTHS {
        for rows in LENGTHS {
            let mut rng = Random::new(17 + rows as u64);
            let places = rng.offsets(rows, 5);
            let places: Vec<u32> = places.iter().map(|place| (place - places[0]) as u32).collect();
            let starts: Vec<u32> = (0..rows).map(|_| rng.below(1000) as u32).collect();
            let expected: Vec<u64> = (0..rows)
                .flat_map(|row| {
                    let first = u64::from(starts[row]) * 3;
                    first..first + 3 * u64::from(places[row + 1] - places[row])
                })
                .collect();
            let (mut to, mut from) = (Memory::of(&places), Memory::of(&starts));
            let mut out = Memory::room::<u64>(expected.len());
            let args = Covered {
                to: to.input(),
                starts: from.input(),
                rows: rows as u64,
                scale: 3,
                out: out.output(),
                len: expected.len() as u64,
            };
            run(COVERED, &[4], args, width);
            assert_eq!(out.read::<u64>(expected.len()), expected);
        }
    }
}

#[test]
fn rows_that_are_alike_have_one_first() {
    for width in WIDTHS {
        for rows in LENGTHS {
            for (unit, of) in [(1, 3), (1, 40), (4, 5000), (8, 100), (8, 7)] {
                let mut rng = Random::new(19 + rows as u64);
                let values: Vec<u8> = (0..rows).map(|_| rng.below(of) as u8).collect();
                // Values of two pieces, which differ in the last byte of the second.
                let bytes: Vec<u8> = values
                    .iter()
                    .flat_map(|value| (0..2 * unit).map(move |i| if i + 1 == 2 * unit { *value } else { 1 }))
                    .collect();
                let valid = bits(&mut rng, rows, 2);
                let (mut data, mut valid_bits) = (Memory::of(&bytes), Memory::shifted(&packed(&valid), 5));
                let (valid_in, valid_offset) = valid_bits.bitmap(0);
                let mut out = Memory::room::<u32>(rows.div_ceil(32));
                let mut fault = Memory::of(&[u64::MAX]);
                let args = Stretches {
                    values: data.input(),
                    pieces: 2,
                    valid: valid_in,
                    valid_offset,
                    column: In::absent(),
                    rows: rows as u64,
                    out: out.output(),
                    fault: fault.output(),
                };
                run(STRETCHES, &[unit as u32], args, width);
                let seen = |row: usize| valid[row].then_some(values[row]);
                let differs = |row: usize| row + 1 == rows || seen(row) != seen(row + 1);
                assert_eq!(unpacked(&out, rows), (0..rows).map(differs).collect::<Vec<_>>());

                // All values share one slot, so it takes as many rounds as there are values.
                let mut both = [Memory::room::<u64>(rows), Memory::room::<u64>(rows)];
                let (mut left, mut round) = (1, 0);
                while left > 0 {
                    let [before, after] = &mut both;
                    let before = if round == 0 { In::absent() } else { before.input() };
                    let (mut slots, mut count) = (Memory::of(&[u64::MAX]), Memory::of(&[0u64]));
                    let claim = Claim {
                        values: data.input(),
                        pieces: 2,
                        valid: valid_in,
                        valid_offset,
                        column: In::absent(),
                        rows: rows as u64,
                        before,
                        seed: round,
                        most: 0,
                        slots: slots.output(),
                        fault: fault.output(),
                    };
                    run(CLAIM, &[unit as u32], claim, width);
                    let settle = Settle {
                        values: data.input(),
                        pieces: 2,
                        valid: valid_in,
                        valid_offset,
                        column: In::absent(),
                        rows: rows as u64,
                        before,
                        seed: round,
                        most: 0,
                        slots: slots.input(),
                        after: after.output(),
                        firsts: out.output(),
                        left: count.output(),
                    };
                    run(SETTLE, &[unit as u32], settle, width);
                    left = count.read::<u64>(1)[0];
                    both.swap(0, 1);
                    round += 1;
                }
                assert!(round <= of.min(256) + 1);
                let first = |row: usize| match seen(row) {
                    None => NONE,
                    value => (0..rows).find(|other| seen(*other) == value).map_or(NONE, |other| other as u64),
                };
                let expected: Vec<u64> = (0..rows).map(first).collect();
                assert_eq!(both[0].read::<u64>(rows), expected);
                let own = |row: usize| expected[row] == row as u64;
                assert_eq!(unpacked(&out, rows), (0..rows).map(own).collect::<Vec<_>>());
                assert_eq!(fault.read::<u64>(1), [u64::MAX]);
            }
        }
    }
}
