use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::ranges::offsets::{
    CONVERT, Convert, KEYS, Keys, OFFENDER, Offender, REGULAR, Regular,
};

use crate::device::{Extent, LENGTHS, Memory, Random, WIDTHS, run};

/// Converts at both widths of a wave, and returns the converted offsets and the faults.
fn convert(offsets: &[u64], limit: u64, most: u64, key: [u32; 2]) -> (Vec<u64>, [u64; 2]) {
    convert_from(0, offsets, limit, most, key)
}

/// Like `convert`, with a base.
fn convert_from(base: u64, offsets: &[u64], limit: u64, most: u64, key: [u32; 2]) -> (Vec<u64>, [u64; 2]) {
    let results = WIDTHS.map(|width| {
        let narrow: Vec<u32> = offsets.iter().map(|&v| v as u32).collect();
        let mut source = if key[0] == 4 { Memory::of(&narrow) } else { Memory::of(offsets) };
        let mut out = Memory::room::<u8>(offsets.len() * key[1] as usize);
        let mut faults = Memory::of(&[u64::MAX; 2]);
        let mut extent =
            if width == 32 || limit == u64::MAX { Extent::Known(limit) } else { Extent::said(limit, 64) };
        let (limit, end, end_offset) = extent.args();
        let args = Convert {
            offsets: source.input(),
            rows: offsets.len() as u64 - 1,
            limit,
            end,
            end_offset,
            base,
            most,
            out: out.output(),
            faults: faults.output(),
        };
        run(CONVERT, &key, args, width);
        let written = match key[1] {
            4 => out.read::<u32>(offsets.len()).into_iter().map(u64::from).collect(),
            _ => out.read(offsets.len()),
        };
        let faults = faults.read(2);
        (written, [faults[0], faults[1]])
    });
    assert_eq!(results[0], results[1]);
    let [result, _] = results;
    result
}

#[test]
fn offsets_are_copied_and_checked() {
    for rows in LENGTHS.into_iter().chain([0]) {
        let mut random = Random::new(rows as u64);
        let offsets = random.offsets(rows, 9);
        let end = offsets[rows];
        for key in [[4, 4], [4, 8], [8, 4], [8, 8]] {
            for limit in [end, u64::MAX] {
                assert_eq!(convert(&offsets, limit, end, key), (offsets.clone(), [u64::MAX; 2]));
            }
            if end > offsets[0] {
                // The first row that reaches the end reaches too far.
                let first = offsets.iter().position(|&v| v == end).unwrap().saturating_sub(1) as u64;
                assert_eq!(convert(&offsets, end - 1, u64::MAX, key).1, [first, u64::MAX]);
                assert_eq!(convert(&offsets, end, end - 1, key).1, [u64::MAX, first]);
            }
        }
    }
}

#[test]
fn offsets_are_moved_to_zero() {
    let offsets: Vec<u64> = (0..3000u64).map(|i| (1 << 31) + 5 * i).collect();
    let (moved, faults) = convert_from(1 << 31, &offsets, u64::MAX, 5 * 2000, [8, 4]);
    assert_eq!(moved, (0..3000).map(|i| 5 * i).collect::<Vec<u64>>());
    assert_eq!(faults, [u64::MAX, 2000]);
}

#[test]
fn rows_of_equal_size_get_their_offsets() {
    for width in WIDTHS {
        for rows in LENGTHS.into_iter().chain([0]) {
            for (key, size) in [(4, 0), (4, 1), (4, 7), (8, 3), (8, 1 << 33)] {
                let mut out = Memory::room::<u8>((rows + 1) * key as usize);
                let args = Regular { rows: rows as u64, first: 0, size, out: out.output() };
                run(REGULAR, &[key], args, width);
                let written: Vec<u64> = match key {
                    4 => out.read::<u32>(rows + 1).into_iter().map(u64::from).collect(),
                    _ => out.read(rows + 1),
                };
                assert_eq!(written, (0..=rows as u64).map(|row| row * size).collect::<Vec<u64>>());
            }
        }
    }
}

#[test]
fn the_first_descending_row_is_found() {
    let mut offsets: Vec<u64> = (0..5000).collect();
    offsets[3000] = 7;
    assert_eq!(convert(&offsets, 5000, u64::MAX, [4, 8]).1, [2999, u64::MAX]);
    offsets[0] = u64::from(u32::MAX);
    assert_eq!(convert(&offsets, 5000, u64::MAX, [4, 8]).1, [0, u64::MAX]);
}

#[test]
fn keys_out_of_range_are_found_where_they_count() {
    for width in WIDTHS {
        for rows in LENGTHS {
            let mut random = Random::new(rows as u64);
            let keys: Vec<u16> = (0..rows).map(|_| random.below(101) as u16).collect();
            let bits = random.bytes(rows / 8 + 2);
            for nulls in [false, true] {
                let (mut keys_memory, mut bits_memory) = (Memory::of(&keys), Memory::shifted(&bits, 1));
                let (valid, valid_offset) = if nulls { bits_memory.bitmap(3) } else { (In::absent(), 0) };
                let mut fault = Memory::of(&[u64::MAX]);
                let args = Keys {
                    keys: keys_memory.input(),
                    valid,
                    valid_offset,
                    rows: rows as u64,
                    values_len: 100,
                    fault: fault.output(),
                };
                run(KEYS, &[2], args, width);
                let is_valid = |row: usize| !nulls || bits[(row + 3) / 8] >> ((row + 3) % 8) & 1 != 0;
                let first = (0..rows).find(|&row| is_valid(row) && keys[row] >= 100);
                assert_eq!(fault.read::<u64>(1), [first.map_or(u64::MAX, |row| row as u64)]);
            }
        }
    }
}

#[test]
fn checking_alone_writes_nothing() {
    let mut faults = Memory::of(&[u64::MAX; 2]);
    let mut offsets = Memory::of(&[0u32, 3, 2]);
    let args = Convert {
        offsets: offsets.input(),
        rows: 2,
        limit: 9,
        end: In::absent(),
        end_offset: 0,
        base: 0,
        most: 9,
        out: Out::absent(),
        faults: faults.output(),
    };
    run(CONVERT, &[4, 4], args, 32);
    assert_eq!(faults.read::<u64>(2), [1, u64::MAX]);
}

#[test]
fn the_offending_index_is_told() {
    for (row, expected) in [(2, 0xFFFE), (u64::MAX, 7)] {
        let mut indices = Memory::of(&[1u16, 2, 0xFFFE]);
        let (mut found, mut index) = (Memory::of(&[row]), Memory::of(&[7u64]));
        let args = Offender { indices: indices.input(), row: found.input(), index: index.output() };
        run(OFFENDER, &[2], args, 64);
        assert_eq!(index.read::<u64>(1), [expected]);
    }
}
