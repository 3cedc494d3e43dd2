use bowstring_kernels::memory::In;
use bowstring_kernels::text::utf8::{VALIDATE, Validate};

use crate::device::{Extent, Memory, Random, WIDTHS, run};

/// Returns the rows that the kernel finds bad, at both widths and with one wave or several.
fn bad(bytes: &[u8], offsets: &[u32], valid: Option<&[bool]>, shift: usize) -> Vec<bool> {
    let rows = offsets.len() - 1;
    let mut result: Option<Vec<bool>> = None;
    for (width, waves) in WIDTHS.into_iter().flat_map(|width| [(width, 1), (width, 5)]) {
        let mut bits = vec![0u8; rows / 8 + 1];
        for (row, valid) in valid.unwrap_or(&[]).iter().enumerate() {
            bits[row / 8] |= u8::from(*valid) << (row % 8);
        }
        let (mut text, mut narrow) = (Memory::shifted(bytes, shift), Memory::of(offsets));
        let (mut bits, mut flags) = (Memory::of(&bits), Memory::of(&vec![0u32; rows.div_ceil(32)]));
        let mut fault = Memory::of(&[u64::MAX]);
        let (bytes_in, offset) = text.bitmap(0);
        let (valid_in, valid_offset) = if valid.is_some() { bits.bitmap(0) } else { (In::absent(), 0) };
        let len = bytes.len() as u64;
        let mut extent = if waves == 1 { Extent::Known(len) } else { Extent::said(len, 32) };
        let (limit, end, end_offset) = extent.args();
        let args = Validate {
            offsets: narrow.input(),
            valid: valid_in,
            valid_offset,
            rows: rows as u64,
            bytes: bytes_in,
            offset,
            limit,
            end,
            end_offset,
            waves,
            bad: flags.output(),
            fault: fault.output(),
        };
        run(VALIDATE, &[4], args, width);
        let words = flags.read::<u32>(rows.div_ceil(32));
        let got: Vec<bool> = (0..rows).map(|row| words[row / 32] >> (row % 32) & 1 != 0).collect();
        let first = got.iter().position(|bad| *bad).map_or(u64::MAX, |row| row as u64);
        assert_eq!(fault.read::<u64>(1), [first]);
        assert!(result.as_ref().is_none_or(|other| *other == got), "widths agree");
        result = Some(got);
    }
    result.unwrap()
}

fn check(rows: &[Vec<u8>], valid: Option<&[bool]>, shift: usize) {
    let (mut bytes, mut offsets) = (b"\xff\xff\xff"[..shift % 4].to_vec(), vec![(shift % 4).min(3) as u32]);
    for row in rows {
        bytes.extend_from_slice(row);
        offsets.push(bytes.len() as u32);
    }
    let expected: Vec<bool> = rows
        .iter()
        .enumerate()
        .map(|(i, row)| valid.is_none_or(|valid| valid[i]) && std::str::from_utf8(row).is_err())
        .collect();
    let got = bad(&bytes, &offsets, valid, shift);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(got[i], expected[i], "row {i}: {row:x?}");
    }
}

/// Every combination of one to four bytes at the edges of valid ranges.
fn sequences() -> Vec<Vec<u8>> {
    let edges =
        [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC];
    let more = [0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF];
    let all: Vec<u8> = edges.into_iter().chain(more).collect();
    let mut rows: Vec<Vec<u8>> = vec![vec![]];
    rows.extend((0..=255).map(|byte| vec![byte]));
    for &a in &all {
        for &b in &all {
            rows.push(vec![a, b]);
            for &c in &all {
                rows.push(vec![a, b, c]);
                if a >= 0xE0 {
                    rows.extend([0x00, 0x7F, 0x80, 0xBF, 0xC2].map(|d| vec![a, b, c, d]));
                }
            }
        }
    }
    rows
}

#[test]
fn every_sequence_that_decides_something() {
    check(&sequences(), None, 0);
}

#[test]
fn text_of_all_kinds_at_every_alignment() {
    let pieces =
        ["a", "plain ascii, a little longer than sixteen bytes", "é", "ß中", "🦀", "한국어", "", "x🦀y"];
    for shift in 0..16 {
        let mut random = Random::new(shift as u64);
        let rows: Vec<Vec<u8>> = (0..400)
            .map(|_| {
                let mut row: Vec<u8> = (0..random.below(6))
                    .flat_map(|_| pieces[random.below(pieces.len() as u64) as usize].bytes())
                    .collect();
                // Now and then a byte is lost or changed.
                if random.below(4) == 0 && !row.is_empty() {
                    let at = random.below(row.len() as u64) as usize;
                    if random.below(2) == 0 { row.truncate(at) } else { row[at] ^= 1 << random.below(8) }
                }
                row
            })
            .collect();
        check(&rows, None, shift);
        let valid: Vec<bool> = (0..400).map(|_| random.below(3) != 0).collect();
        check(&rows, Some(&valid), shift);
    }
}

#[test]
fn long_rows_are_shared_by_lanes() {
    let text = "中文🦀".repeat(3000).into_bytes();
    let mut broken = text.clone();
    broken[20_000] ^= 0x40;
    check(&[text.clone(), broken, vec![], text], None, 5);
}

#[test]
fn corrupt_offsets_stay_inside() {
    let mut random = Random::new(3);
    let text = "é🦀中".repeat(100).into_bytes();
    for _ in 0..200 {
        let offsets: Vec<u32> = (0..40).map(|_| random.below(text.len() as u64 + 1) as u32).collect();
        // The kernel may find anything here, but must end inside. The widths search differently, so each runs
        // alone.
        for width in WIDTHS {
            let (mut bytes, mut narrow) = (Memory::shifted(&text, 3), Memory::of(&offsets));
            let (mut flags, mut fault) = (Memory::of(&[0u32; 2]), Memory::of(&[u64::MAX]));
            let (bytes_in, offset) = bytes.bitmap(0);
            let args = Validate {
                offsets: narrow.input(),
                valid: In::absent(),
                valid_offset: 0,
                rows: 39,
                bytes: bytes_in,
                offset,
                limit: text.len() as u64,
                end: In::absent(),
                end_offset: 0,
                waves: 1,
                bad: flags.output(),
                fault: fault.output(),
            };
            run(VALIDATE, &[4], args, width);
        }
    }
}
