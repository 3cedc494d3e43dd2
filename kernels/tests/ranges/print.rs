//! Prints lists with all three kernels, and compares with formatting them.

use bowstring_kernels::memory::In;
use bowstring_kernels::reduce::scan::TILE;
use bowstring_kernels::text::print::{ITEM_LENS, ItemLens, PRINT, Print, ROW_LENS, RowLens};

use crate::device::{Extent, LENGTHS, Memory, Random, WIDTHS, run};

/// The text that replaces an item without bytes.
const SAID: [&str; 2] = ["no text for ", " here"];

/// Sums of numbers, the first of which is 0.
fn sums(numbers: &[u64]) -> Vec<u64> {
    let mut sums = vec![0];
    numbers.iter().for_each(|number| sums.push(sums[sums.len() - 1] + number));
    sums
}

fn tiles(of: usize) -> usize {
    (of as u64).div_ceil(TILE) as usize
}

#[test]
fn lists_are_printed() {
    for (i, rows) in LENGTHS.into_iter().enumerate() {
        let mut random = Random::new(rows as u64);
        let items = 1 + random.below(2 * rows as u64) as usize;
        let offsets = random.offsets(items, 9);
        let bytes = random.bytes(offsets[items] as usize);
        let values: Vec<u64> =
            (0..items).map(|_| (random.below(1 << 40) as i64 - (1 << 39)) as u64).collect();
        let bits = random.bytes(items.max(rows) / 8 + 2);
        let is_valid = |i: usize| bits[(i + 3) / 8] >> ((i + 3) % 8) & 1 != 0;
        // One row has many items, the others few.
        let base = random.below(9);
        let lists: Vec<(u64, u64)> = (0..rows)
            .map(|row| {
                let start = random.below(items as u64);
                let most = if row == rows / 2 { items as u64 } else { 4 };
                let count = random.below(most + 1).min(items as u64 - start);
                (if count > 0 { base + start } else { 0 }, count)
            })
            .collect();
        for (told, scale) in [(false, 1), (false, 2), (true, 1)] {
            let item = |i: usize| -> Vec<u8> {
                let own = &bytes[offsets[i] as usize..offsets[i + 1] as usize];
                match (is_valid(i), own.is_empty() && told) {
                    (false, _) => vec![],
                    (_, true) => format!("{}{}{}", SAID[0], values[i] as i64, SAID[1]).into_bytes(),
                    _ if scale == 1 => own.to_vec(),
                    _ => own.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
                }
            };
            let list = |row: usize| -> Vec<u8> {
                let (start, count) = lists[row];
                let of = |i: u64| item((start - base + i) as usize);
                match is_valid(row) {
                    true => {
                        [b"[", &(0..count).map(of).collect::<Vec<_>>().join(&b", "[..])[..], b"]"].concat()
                    }
                    false => vec![],
                }
            };
            let item_lens: Vec<u64> = (0..items).map(|i| item(i).len() as u64).collect();
            let printed: Vec<Vec<u8>> = (0..rows).map(list).collect();
            let lens: Vec<u64> = printed.iter().map(|row| row.len() as u64).collect();
            let printed = printed.concat();
            for (width, narrow) in WIDTHS.into_iter().flat_map(|width| [(width, true), (width, false)]) {
                let edges: Vec<u32> = offsets.iter().map(|offset| *offset as u32).collect();
                let mut edges = if narrow { Memory::of(&edges) } else { Memory::of(&offsets) };
                let edge = if narrow { 4 } else { 8 };
                let mut valid = Memory::of(&bits);
                let (valid, valid_offset) = valid.bitmap(3);
                let mut extent = Extent::all(bytes.len() as u64).into_iter().nth(i % 3).unwrap();
                let (limit, end, end_offset) = extent.args();
                let (mut values, mut said) = (Memory::of(&values), Memory::of(SAID.concat().as_bytes()));
                let (mut out, mut tile_sums) =
                    (Memory::room::<u64>(items), Memory::room::<u64>(tiles(items)));
                let mut faults = Memory::of(&[u64::MAX; 2]);
                let args = ItemLens {
                    offsets: edges.input(),
                    width: edge,
                    valid,
                    valid_offset,
                    items: items as u64,
                    limit,
                    end,
                    end_offset,
                    scale,
                    told: if told { (SAID[0].len() + SAID[1].len()) as u64 } else { 0 },
                    values: values.input(),
                    value_width: 8,
                    least: 1,
                    most: 0,
                    lens: out.output(),
                    sums: tile_sums.output(),
                    outside: faults.output(),
                    unsaid: faults.output().skip(1),
                };
                run(ITEM_LENS, &[], args, width);
                assert_eq!(out.read::<u64>(items), item_lens);
                assert_eq!(tile_sums.read::<u64>(tiles(items)).iter().sum::<u64>(), item_lens.iter().sum());
                assert_eq!(faults.read::<u64>(2), [u64::MAX; 2]);

                let (starts, counts): (Vec<u64>, Vec<u64>) = lists.iter().copied().unzip();
                let (mut starts, mut counts) = (Memory::of(&starts), Memory::of(&counts));
                let mut ends = Memory::of(&sums(&item_lens));
                let (mut out, mut tile_sums) = (Memory::room::<u64>(rows), Memory::room::<u64>(tiles(rows)));
                let args = RowLens {
                    starts: starts.input(),
                    counts: counts.input(),
                    base,
                    ends: ends.input(),
                    valid,
                    valid_offset,
                    rows: rows as u64,
                    lens: out.output(),
                    width: edge,
                    sums: tile_sums.output(),
                };
                run(ROW_LENS, &[], args, width);
                match narrow {
                    true => assert!(out.read::<u32>(rows).iter().map(|len| u64::from(*len)).eq(lens.clone())),
                    false => assert_eq!(out.read::<u64>(rows), lens),
                }
                assert_eq!(tile_sums.read::<u64>(tiles(rows)).iter().sum::<u64>(), lens.iter().sum());

                let to = sums(&lens);
                let to_narrow: Vec<u32> = to.iter().map(|to| *to as u32).collect();
                let mut to = if narrow { Memory::of(&to_narrow) } else { Memory::of(&to) };
                let (mut bytes, mut out) = (Memory::shifted(&bytes, 5), Memory::room::<u8>(printed.len()));
                let (bytes, bytes_offset) = bytes.bitmap(0);
                let args = Print {
                    to: to.input(),
                    rows: rows as u64,
                    starts: starts.input(),
                    counts: counts.input(),
                    base,
                    ends: ends.input(),
                    offsets: edges.input(),
                    width: edge,
                    bytes,
                    bytes_offset,
                    scale,
                    before: SAID[0].len() as u64,
                    told: if told { said.input() } else { In::absent() },
                    values: values.input(),
                    value_width: 8,
                    out: out.output(),
                    len: printed.len() as u64,
                };
                if !printed.is_empty() {
                    run(PRINT, &[edge as u32], args, width);
                    assert_eq!(out.read::<u8>(printed.len()), printed);
                }
            }
        }
    }
}

/// Valid and other items whose bytes do not exist, and values that must not be printed.
#[test]
fn items_that_cannot_be_printed_are_found() {
    for width in WIDTHS {
        for (offsets, valid, found) in [
            ([0u32, 3, 2, 4], 0b111u8, [1, u64::MAX]),
            ([0, 3, 2, 4], 0b101, [u64::MAX; 2]),
            ([0, 1, 2, 5], 0b111, [2, u64::MAX]),
            ([0, 1, 1, 1], 0b101, [u64::MAX, 2]),
            ([0, 1, 1, 1], 0b011, [u64::MAX; 2]),
        ] {
            let (mut offsets, mut valid) = (Memory::of(&offsets), Memory::of(&[valid]));
            let (mut values, mut faults) = (Memory::of(&[-7i32, 5, -7]), Memory::of(&[u64::MAX; 2]));
            let (mut lens, mut sums) = (Memory::room::<u64>(3), Memory::room::<u64>(1));
            let args = ItemLens {
                offsets: offsets.input(),
                width: 4,
                valid: valid.bitmap(0).0,
                valid_offset: valid.bitmap(0).1,
                items: 3,
                limit: 4,
                end: In::absent(),
                end_offset: 0,
                scale: 1,
                told: 9,
                values: values.input(),
                value_width: 4,
                least: -7i64 as u64,
                most: -1i64 as u64,
                lens: lens.output(),
                sums: sums.output(),
                outside: faults.output(),
                unsaid: faults.output().skip(1),
            };
            run(ITEM_LENS, &[], args, width);
            assert_eq!(faults.read::<u64>(2), found);
        }
    }
}

/// A sum that needs more than 64 bits is reported as such, not as a smaller number.
#[test]
fn sums_of_lengths_do_not_wrap() {
    for width in WIDTHS {
        let (mut starts, mut counts) = (Memory::of(&[0u64; 3]), Memory::of(&[1u64; 3]));
        let mut ends = Memory::of(&[0, u64::MAX / 2]);
        let (mut lens, mut sums) = (Memory::room::<u64>(3), Memory::room::<u64>(1));
        let args = RowLens {
            starts: starts.input(),
            counts: counts.input(),
            base: 0,
            ends: ends.input(),
            valid: In::absent(),
            valid_offset: 0,
            rows: 3,
            lens: lens.output(),
            width: 8,
            sums: sums.output::<u64>(),
        };
        run(ROW_LENS, &[], args, width);
        assert_eq!(sums.read::<u64>(1), [u64::MAX]);
    }
}
