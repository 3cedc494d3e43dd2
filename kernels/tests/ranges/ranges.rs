use bowstring_kernels::memory::In;
use bowstring_kernels::ranges::rows::{COMPOSE, Compose, TAKE, Take};
use bowstring_kernels::reduce::scan::TILE;

use crate::device::{Extent, LENGTHS, Memory, Random, WIDTHS, run};

/// Ranges as the tests see them.
#[derive(PartialEq, Debug)]
struct Ranges {
    starts: Vec<u64>,
    lens: Vec<u64>,
    faults: [u64; 2],
}

/// Looks up rows of `offsets` one by one; an index is `None` if its row is null.
fn expected(offsets: &[u64], limit: u64, indices: &[Option<u64>]) -> Ranges {
    let mut ranges = Ranges { starts: vec![], lens: vec![], faults: [u64::MAX; 2] };
    for (row, index) in indices.iter().enumerate() {
        let (mut start, mut len) = (0, 0);
        if let Some(index) = *index {
            if index + 1 >= offsets.len() as u64 {
                ranges.faults[0] = ranges.faults[0].min(row as u64);
            } else {
                let (from, to) = (offsets[index as usize], offsets[index as usize + 1]);
                if from <= to && to <= limit {
                    (start, len) = (from, to - from);
                } else {
                    ranges.faults[1] = ranges.faults[1].min(row as u64);
                }
            }
        }
        ranges.starts.push(start);
        ranges.lens.push(len);
    }
    ranges
}

fn narrow(values: &[u64], width: u32) -> Memory {
    match width {
        1 => Memory::of(&values.iter().map(|&v| v as u8).collect::<Vec<_>>()),
        2 => Memory::of(&values.iter().map(|&v| v as u16).collect::<Vec<_>>()),
        4 => Memory::of(&values.iter().map(|&v| v as u32).collect::<Vec<_>>()),
        _ => Memory::of(values),
    }
}

fn wide(memory: &Memory, len: usize, width: u32) -> Vec<u64> {
    match width {
        4 => memory.read::<u32>(len).into_iter().map(u64::from).collect(),
        _ => memory.read(len),
    }
}

/// A sum that stops at the largest number instead of wrapping.
fn sum(lens: &[u64]) -> u64 {
    lens.iter().fold(0, |sum, len| sum.saturating_add(*len))
}

fn check_sums(sums: &Memory, lens: &[u64]) {
    let expected: Vec<u64> = lens.chunks(TILE as usize).map(sum).collect();
    assert_eq!(sums.read::<u64>(expected.len()), expected);
}

/// Takes `indices` at both widths of a wave; validity begins at bit `bit`.
fn take(offsets: &[u64], mut extent: Extent, indices: &[Option<u64>], key: [u32; 2], bit: u64) -> Ranges {
    let (limit, end, end_offset) = extent.args();
    let mut result = None;
    for width in WIDTHS {
        let rows = indices.len();
        let raw: Vec<u64> = indices.iter().map(|index| index.unwrap_or(250)).collect();
        let mut bits = vec![0u8; (bit as usize + rows).div_ceil(8)];
        for (row, index) in indices.iter().enumerate() {
            let at = bit as usize + row;
            bits[at / 8] |= u8::from(index.is_some()) << (at % 8);
        }
        let (mut raw, mut bits) = (narrow(&raw, key[1]), Memory::shifted(&bits, 3));
        let mut offset_memory = narrow(offsets, key[0]);
        let word = if key[0] == 4 { 4 } else { 8 };
        let (mut starts, mut lens) = (Memory::room::<u8>(rows * word), Memory::room::<u8>(rows * word));
        let tiles = (rows as u64).div_ceil(TILE);
        let mut sums = Memory::room::<u64>(tiles as usize);
        let (mut index_fault, mut fault) = (Memory::of(&[u64::MAX]), Memory::of(&[u64::MAX]));
        let (valid, valid_offset) =
            if indices.contains(&None) { bits.bitmap(bit) } else { (In::absent(), 0) };
        let args = Take {
            indices: raw.input(),
            valid,
            valid_offset,
            rows: rows as u64,
            offsets: if key[0] == 0 { In::absent() } else { offset_memory.input() },
            values_len: offsets.len() as u64 - 1,
            limit,
            end,
            end_offset,
            starts: starts.output(),
            lens: lens.output(),
            sums: sums.output(),
            index_fault: index_fault.output(),
            fault: fault.output(),
        };
        run(TAKE, &key, args, width);
        let lens = wide(&lens, rows, word as u32);
        check_sums(&sums, &lens);
        let faults = [index_fault.read(1)[0], fault.read(1)[0]];
        let ranges = Ranges { starts: wide(&starts, rows, word as u32), lens, faults };
        assert!(result.as_ref().is_none_or(|other| *other == ranges), "widths agree");
        result = Some(ranges);
    }
    result.expect("two widths")
}

#[test]
fn take_finds_every_row() {
    for rows in LENGTHS {
        let mut random = Random::new(rows as u64);
        let offsets = random.offsets(200, 9);
        let end = *offsets.last().unwrap();
        for nulls in [false, true] {
            let indices: Vec<Option<u64>> =
                (0..rows).map(|_| (!nulls || random.below(3) != 0).then(|| random.below(200))).collect();
            for key in [[4, 1], [4, 2], [4, 4], [4, 8], [8, 1], [8, 2], [8, 4], [8, 8]] {
                for extent in Extent::all(end) {
                    let got = take(&offsets, extent, &indices, key, rows as u64 % 37);
                    assert_eq!(got, expected(&offsets, end, &indices), "{rows} rows, {key:?}");
                }
            }
        }
    }
}

#[test]
fn take_without_offsets_gives_every_row_an_element() {
    let offsets: Vec<u64> = (0..=200).collect();
    let indices: Vec<Option<u64>> = (0..1500).map(|i| (i % 7 != 0).then_some(i % 200)).collect();
    for index in [1, 2, 4, 8] {
        let got = take(&offsets, Extent::Known(200), &indices, [0, index], 5);
        assert_eq!(got.lens, vec![1; 1500]);
        assert_eq!(got.starts, indices.iter().map(|index| index.unwrap_or(0)).collect::<Vec<_>>());
        assert_eq!(got.faults, [u64::MAX; 2]);
    }
}

#[test]
fn take_flags_the_first_bad_index_and_the_first_bad_offset() {
    let mut random = Random::new(1);
    let mut offsets = random.offsets(100, 9);
    let end = offsets[100];
    let mut indices: Vec<Option<u64>> = (0..1200).map(|i| Some(i % 50)).collect();
    (indices[1100], indices[1150], indices[900]) = (Some(100), Some(u64::MAX - 1), Some(60));
    // Row 60 ends before it begins, or far outside.
    for bad in [0, u64::from(u32::MAX), end + 1] {
        offsets[61] = bad;
        offsets[60] = 5;
        for extent in Extent::all(end) {
            let got = take(&offsets, extent, &indices, [8, 8], 0);
            assert_eq!(got, expected(&offsets, end, &indices));
            assert_eq!(got.faults, [1100, 900]);
        }
    }
    // The number in memory that limits the offsets is arbitrary too; a negative one counts as zero.
    for (extent, limit) in [
        (Extent::said(7, 32), 7),
        (Extent::said(1 << 31, 32), 0),
        (Extent::said(1 << 31, 64), 1 << 31),
        (Extent::said(u64::MAX, 64), 0),
    ] {
        let offsets = [0, 3, 7, 9, 1 << 31, 1 << 32];
        let indices = [0, 1, 2, 3, 4].map(Some);
        assert_eq!(take(&offsets, extent, &indices, [8, 8], 0), expected(&offsets, limit, &indices));
    }
    // Without values, the kernel has two offsets to read, and no index is in bounds.
    let got = take(&[0, 0], Extent::Known(0), &[None, Some(1)], [4, 4], 0);
    assert_eq!(got, Ranges { starts: vec![0, 0], lens: vec![0, 0], faults: [1, u64::MAX] });
}

/// Ranges of 2^62 elements, four of which are 2^64 together: `check_sums` examines the sums.
#[test]
fn sums_of_long_ranges_do_not_wrap() {
    for rows in [1, 2, 3, 4, 5, 8, 64, 1100] {
        let offsets = [0, 1 << 61, 1 << 62, (1 << 62) + (1 << 58)];
        let end = offsets[3];
        for one in [0, 1, 2] {
            let got = take(&offsets, Extent::Known(end), &vec![Some(one); rows], [8, 4], 0);
            assert_eq!(got, expected(&offsets, end, &vec![Some(one); rows]));
        }
        for width in WIDTHS {
            let (mut starts, mut lens) = (Memory::of(&vec![0u32; rows]), Memory::of(&vec![2u32; rows]));
            let mut inner = Memory::of(&offsets);
            let tiles = (rows as u64).div_ceil(TILE);
            let (mut next_starts, mut next_lens) = (Memory::room::<u64>(rows), Memory::room::<u64>(rows));
            let (mut sums, mut fault) = (Memory::room::<u64>(tiles as usize), Memory::of(&[u64::MAX]));
            let args = Compose {
                starts: starts.input(),
                lens: lens.input(),
                scale: 1,
                count: In::absent(),
                rows: rows as u64,
                offsets: inner.input(),
                limit: end,
                end: In::absent(),
                end_offset: 0,
                next_starts: next_starts.output(),
                next_lens: next_lens.output(),
                sums: sums.output(),
                fault: fault.output(),
            };
            run(COMPOSE, &[4, 8], args, width);
            check_sums(&sums, &vec![1 << 62; rows]);
        }
    }
}

#[test]
fn compose_goes_one_level_down() {
    for rows in LENGTHS {
        let mut random = Random::new(rows as u64);
        for (scale, key) in [(1, [4, 4]), (1, [4, 8]), (3, [8, 4]), (3, [8, 8])] {
            let inner = random.offsets(600, 4);
            let mut end = *inner.last().unwrap();
            let above: Vec<[u64; 2]> = (0..rows)
                .map(|_| {
                    let start = random.below(199);
                    [start, random.below(200 - start)]
                })
                .collect();
            let corrupt = rows % 2 == 0;
            if corrupt {
                end /= 2;
            }
            let mut want = Ranges { starts: vec![], lens: vec![], faults: [u64::MAX; 2] };
            for (row, &[start, len]) in above.iter().enumerate() {
                let (from, to) = (inner[(start * scale) as usize], inner[((start + len) * scale) as usize]);
                let good = len == 0 || to <= end;
                want.starts.push(if len > 0 && good { from } else { 0 });
                want.lens.push(if len > 0 && good { to - from } else { 0 });
                if !good {
                    want.faults[1] = want.faults[1].min(row as u64);
                }
            }
            for (width, mut extent) in WIDTHS.into_iter().zip([Extent::Known(end), Extent::said(end, 32)]) {
                let (limit, end, end_offset) = extent.args();
                let column = |k: usize| narrow(&above.iter().map(|pair| pair[k]).collect::<Vec<_>>(), key[0]);
                let (mut starts, mut lens, mut offsets) = (column(0), column(1), narrow(&inner, key[1]));
                let bound = rows + 700;
                let tiles = (bound as u64).div_ceil(TILE);
                let (mut next_starts, mut next_lens) =
                    (Memory::room::<u64>(bound), Memory::room::<u64>(bound));
                let (mut sums, mut faults) = (Memory::room::<u64>(tiles as usize), Memory::of(&[u64::MAX]));
                let mut count = Memory::of(&[rows as u64]);
                let args = Compose {
                    starts: starts.input(),
                    lens: lens.input(),
                    scale,
                    count: count.input(),
                    rows: bound as u64,
                    offsets: offsets.input(),
                    limit,
                    end,
                    end_offset,
                    next_starts: next_starts.output(),
                    next_lens: next_lens.output(),
                    sums: sums.output(),
                    fault: faults.output(),
                };
                run(COMPOSE, &key, args, width);
                let got = Ranges {
                    starts: next_starts.read(rows),
                    lens: next_lens.read(rows),
                    faults: [u64::MAX, faults.read(1)[0]],
                };
                assert_eq!(got, want, "{rows} rows, {key:?}");
                check_sums(&sums, &got.lens);
            }
        }
    }
}
