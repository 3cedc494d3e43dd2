use bowstring_kernels::memory::{In, TableRow};
use bowstring_kernels::ranges::views::{BUILD, BufferRow, Build, MEASURE, Measure};
use bowstring_kernels::reduce::scan::TILE;

use crate::device::{Extent, LENGTHS, Memory, Random, WIDTHS, run};

fn view(len: u32, prefix: [u8; 4], buffer: u32, place: u32) -> u128 {
    u128::from(place) << 96
        | u128::from(buffer) << 64
        | u128::from(u32::from_le_bytes(prefix)) << 32
        | u128::from(len)
}

#[test]
fn views_are_measured_and_checked() {
    for rows in LENGTHS {
        let mut random = Random::new(rows as u64);
        let limits = [500, 20, 0];
        let (mut views, mut expected, mut fault) = (vec![], vec![], u64::MAX);
        let bits = random.bytes(rows / 8 + 2);
        for row in 0..rows {
            let is_valid = bits[(row + 5) / 8] >> ((row + 5) % 8) & 1 != 0;
            let len =
                [random.below(13), random.below(60), random.below(1 << 32)][random.below(3) as usize] as u32;
            let (buffer, place) = (random.below(4) as u32, random.below(480) as u32);
            views.push(view(len, [1, 2, 3, 4], buffer, place));
            let good = len <= 12
                || len <= i32::MAX as u32
                    && buffer < 3
                    && u64::from(place) + u64::from(len) <= limits[buffer as usize];
            expected.push(if is_valid && good { len } else { 0 });
            if is_valid && !good {
                fault = fault.min(row as u64);
            }
        }
        for width in WIDTHS {
            let mut table: Vec<u64> = vec![];
            for limit in limits {
                table.extend(BufferRow { bytes: In::absent(), offset: 0, limit }.words());
            }
            let (mut views, mut bits, mut table) =
                (Memory::of(&views), Memory::shifted(&bits, 2), Memory::of(&table));
            let tiles = (rows as u64).div_ceil(TILE);
            let (mut lens, mut sums) = (Memory::room::<u32>(rows), Memory::room::<u64>(tiles as usize));
            let mut first = Memory::of(&[u64::MAX]);
            let (valid, valid_offset) = bits.bitmap(5);
            let args = Measure {
                views: views.input(),
                valid,
                valid_offset,
                rows: rows as u64,
                buffers: table.input(),
                count: 3,
                lens: lens.output(),
                sums: sums.output(),
                fault: first.output(),
            };
            run(MEASURE, &[], args, width);
            assert_eq!(lens.read::<u32>(rows), expected);
            assert_eq!(first.read::<u64>(1), [fault]);
            let total: u64 = sums.read::<u64>(tiles as usize).iter().sum();
            assert_eq!(total, expected.iter().map(|&len| u64::from(len)).sum::<u64>());
        }
    }
}

#[test]
fn views_are_built_from_offsets() {
    for rows in LENGTHS {
        let mut random = Random::new(rows as u64);
        let mut offsets = random.offsets(rows, 30);
        let end = offsets[rows];
        let bytes = random.bytes(end as usize);
        let bits = random.bytes(rows / 8 + 2);
        let corrupt = rows > 100;
        if corrupt {
            offsets[70] = end + 9;
        }
        for (shift, nulls) in [(31, false), (6, true)] {
            let (mut expected, mut fault) = (vec![], u64::MAX);
            for row in 0..rows {
                let (start, stop) = (offsets[row], offsets[row + 1]);
                let is_valid = !nulls || bits[(row + 5) / 8] >> ((row + 5) % 8) & 1 != 0;
                if !is_valid || start > stop || stop > end {
                    if is_valid {
                        fault = fault.min(row as u64);
                    }
                    expected.push(0);
                    continue;
                }
                let text = &bytes[start as usize..stop as usize];
                let mut shown = [0u8; 12];
                let len = if text.len() <= 12 { text.len() } else { 4 };
                shown[..len].copy_from_slice(&text[..len]);
                let mut whole = [0u8; 16];
                whole[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
                whole[4..].copy_from_slice(&shown);
                let mut whole = u128::from_le_bytes(whole);
                if text.len() > 12 {
                    let place = start & ((1 << shift) - 1);
                    whole |= u128::from(place) << 96 | u128::from(start >> shift) << 64;
                }
                expected.push(whole);
            }
            for (width, key) in WIDTHS.into_iter().flat_map(|width| [(width, 4), (width, 8)]) {
                let mut extent = if key == 4 { Extent::Known(end) } else { Extent::said(end, 32) };
                let (limit, end, end_offset) = extent.args();
                let narrow: Vec<u32> = offsets.iter().map(|&v| v as u32).collect();
                let mut offsets = if key == 4 { Memory::of(&narrow) } else { Memory::of(&offsets) };
                let (mut text, mut bits) = (Memory::shifted(&bytes, 7), Memory::shifted(&bits, 1));
                let (mut out, mut faults) = (Memory::room::<u128>(rows), Memory::of(&[u64::MAX; 2]));
                let (bytes, offset) = text.bitmap(0);
                let (valid, valid_offset) = if nulls { bits.bitmap(5) } else { (In::absent(), 0) };
                let args = Build {
                    offsets: offsets.input(),
                    valid,
                    valid_offset,
                    rows: rows as u64,
                    bytes,
                    offset,
                    limit,
                    end,
                    end_offset,
                    shift,
                    views: out.output(),
                    faults: faults.output(),
                };
                run(BUILD, &[key], args, width);
                assert_eq!(out.read::<u128>(rows), expected);
                assert_eq!(faults.read::<u64>(2), [fault, u64::MAX]);
            }
        }
    }
}
