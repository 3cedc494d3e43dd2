use bowstring_kernels::memory::In;
use bowstring_kernels::reduce::scan::TILE;
use bowstring_kernels::select::ranges::{KEEP, Keep, TOO_MUCH};
use bowstring_kernels::select::selection::sizes;

use crate::device::{Extent, LENGTHS, Memory, Random, WIDTHS, run};

/// A selection as the kernels keep it: words, and the place of each tile's rows.
fn selection(kept: &[bool]) -> (Vec<u32>, Vec<u64>) {
    let sizes = sizes(kept.len() as u64);
    let mut words = vec![0u32; sizes.words as usize];
    for (row, kept) in kept.iter().enumerate() {
        words[row / 32] |= u32::from(*kept) << (row % 32);
    }
    let per_tile = words.len() / sizes.counts as usize;
    let mut offsets = vec![0u64];
    for tile in words.chunks(per_tile) {
        let count: u32 = tile.iter().map(|word| word.count_ones()).sum();
        offsets.push(offsets.last().unwrap() + u64::from(count));
    }
    (words, offsets)
}

#[test]
fn keep_finds_every_kept_row() {
    for rows in LENGTHS.into_iter().chain([20_000]) {
        for percent in [0, 1, 50, 99, 100] {
            let mut random = Random::new(rows as u64 + percent);
            let kept: Vec<bool> = (0..rows).map(|_| random.below(100) < percent).collect();
            let mut offsets = random.offsets(rows, 9);
            let bits = random.bytes(rows / 8 + 2);
            let end = offsets[rows];
            if rows > 2000 {
                offsets[1777] = end + 1;
            }
            let is_valid = |row: usize| bits[(row + 5) / 8] >> ((row + 5) % 8) & 1 != 0;
            for (key, nulls, mut extent) in [
                (4, false, Extent::Known(end)),
                (8, true, Extent::Known(end)),
                (8, false, Extent::said(end, 32)),
                (0, false, Extent::Known(rows as u64)),
            ] {
                let (limit, said, end_offset) = extent.args();
                let (mut want_starts, mut want_lens, mut fault) = (vec![], vec![], u64::MAX);
                for row in (0..rows).filter(|&row| kept[row]) {
                    let (start, stop) = if key == 0 {
                        (row as u64, row as u64 + 1)
                    } else {
                        (offsets[row], offsets[row + 1])
                    };
                    let wanted = !nulls || is_valid(row);
                    let good = start <= stop && stop <= end.max(if key == 0 { rows as u64 } else { 0 });
                    want_starts.push(if wanted && good { start } else { 0 });
                    want_lens.push(if wanted && good { stop - start } else { 0 });
                    if wanted && !good {
                        fault = fault.min(row as u64);
                    }
                }
                let (words, tile_offsets) = selection(&kept);
                for width in WIDTHS {
                    let narrow: Vec<u32> = offsets.iter().map(|&v| v as u32).collect();
                    let mut edges = if key == 4 { Memory::of(&narrow) } else { Memory::of(&offsets) };
                    let (mut words, mut tile_offsets) = (Memory::of(&words), Memory::of(&tile_offsets));
                    let mut bits = Memory::shifted(&bits, 3);
                    let word = if key == 4 { 4 } else { 8 };
                    let (mut starts, mut lens) =
                        (Memory::room::<u8>(rows * word), Memory::room::<u8>(rows * word));
                    let tiles = (rows as u64).div_ceil(TILE) as usize;
                    let (mut sums, mut faults) = (Memory::of(&vec![0u64; tiles]), Memory::of(&[u64::MAX]));
                    let (valid, valid_offset) = if nulls { bits.bitmap(5) } else { (In::absent(), 0) };
                    let args = Keep {
                        words: words.input(),
                        words_offset: 0,
                        tile_offsets: tile_offsets.input(),
                        rows: rows as u64,
                        valid,
                        valid_offset,
                        offsets: if key == 0 { In::absent() } else { edges.input() },
                        limit,
                        end: said,
                        end_offset,
                        starts: starts.output(),
                        lens: lens.output(),
                        sums: sums.output(),
                        fault: faults.output(),
                    };
                    run(KEEP, &[key], args, width);
                    let wide = |memory: &Memory| -> Vec<u64> {
                        match word {
                            4 => memory.read::<u32>(want_lens.len()).into_iter().map(u64::from).collect(),
                            _ => memory.read(want_lens.len()),
                        }
                    };
                    assert!(wide(&starts) == want_starts, "{rows} rows, {percent}%, {key}");
                    assert!(wide(&lens) == want_lens, "{rows} rows, {percent}%, {key}");
                    assert_eq!(faults.read::<u64>(1), [fault]);
                    let mut want_sums: Vec<u64> =
                        want_lens.chunks(TILE as usize).map(|t| t.iter().sum()).collect();
                    want_sums.resize(tiles, 0);
                    assert_eq!(sums.read::<u64>(tiles), want_sums);
                }
            }
        }
    }
}

/// Every other row has `each` elements, which overlap; the others are not kept. A sum that exceeds any array
/// is reported as such, however many waves have added it up, and other sums are exact.
#[test]
fn sums_of_long_ranges_do_not_wrap() {
    for rows in [2usize, 8, 1000, 2 * TILE as usize, 20_000] {
        for each in [1u64 << 30, 1 << 41, 1 << 53, 1 << 54, 1 << 62, (1 << 63) - 1] {
            let kept: Vec<bool> = (0..rows).map(|row| row % 2 == 0).collect();
            let offsets: Vec<u64> = (0..=rows as u64).map(|i| i % 2 * each).collect();
            let (words, tile_offsets) = selection(&kept);
            for width in WIDTHS {
                let (mut words, mut tile_offsets) = (Memory::of(&words), Memory::of(&tile_offsets));
                let (mut edges, mut fault) = (Memory::of(&offsets), Memory::of(&[u64::MAX]));
                let (mut starts, mut lens) = (Memory::room::<u64>(rows), Memory::room::<u64>(rows));
                let groups = (rows as u64 / 2).div_ceil(TILE) as usize;
                let mut sums = Memory::of(&vec![0u64; groups]);
                let args = Keep {
                    words: words.input(),
                    words_offset: 0,
                    tile_offsets: tile_offsets.input(),
                    rows: rows as u64,
                    valid: In::absent(),
                    valid_offset: 0,
                    offsets: edges.input(),
                    limit: u64::MAX - 1,
                    end: In::absent(),
                    end_offset: 0,
                    starts: starts.output(),
                    lens: lens.output(),
                    sums: sums.output(),
                    fault: fault.output(),
                };
                run(KEEP, &[8], args, width);
                assert_eq!(fault.read::<u64>(1), [u64::MAX]);
                for (group, sum) in sums.read::<u64>(groups).into_iter().enumerate() {
                    let places = (rows as u64 / 2 - group as u64 * TILE).min(TILE);
                    match places.saturating_mul(each) {
                        want if want < TOO_MUCH / TILE => assert_eq!(sum, want, "{rows} rows of {each}"),
                        _ => assert!(sum >= TOO_MUCH, "{rows} rows of {each}: {sum}"),
                    }
                }
            }
        }
    }
}
