use bowstring_kernels::memory::{In, TableRow};
use bowstring_kernels::ranges::views::BufferRow;
use bowstring_kernels::text::rows::{TextColumn, VIEWS};
use bowstring_kernels::text::substring::{ALL, SUBSTRING, Substring, bounds};

use crate::device::{LENGTHS, Memory, Random, WIDTHS, run};

/// Lengths of substrings, and the numbers of their first characters.
const COUNTS: [Option<u64>; 6] = [None, Some(0), Some(1), Some(3), Some(17), Some(u64::MAX - 1)];
const STARTS: [i64; 9] = [0, 1, 2, 7, 40, -1, -3, -30, i64::MIN];

/// A text of characters that have one to four bytes each.
fn text(random: &mut Random, most: u64) -> String {
    let alphabet = ['a', 'b', 'é', '日', '🌏'];
    let ascii = random.below(2) == 0;
    let letters = if ascii { 2 } else { 5 };
    (0..random.below(most)).map(|_| alphabet[random.below(letters) as usize]).collect()
}

/// The bytes of a substring, by its definition.
fn part(text: &str, start: i64, count: Option<u64>) -> (usize, usize) {
    let edges: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let characters = edges.len() as i128 - 1;
    let from =
        if start < 0 { (characters + i128::from(start)).max(0) } else { i128::from(start).min(characters) };
    let count = count.map_or(characters, i128::from).min(characters - from);
    (edges[from as usize], edges[(from + count) as usize])
}

/// The view of some bytes at a place of a buffer.
fn view(bytes: &[u8], buffer: u64, place: u64) -> u128 {
    let mut view = [0; 16];
    view[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    if bytes.len() <= 12 {
        view[4..4 + bytes.len()].copy_from_slice(bytes);
    } else {
        view[4..8].copy_from_slice(&bytes[..4]);
        view[8..12].copy_from_slice(&(buffer as u32).to_le_bytes());
        view[12..].copy_from_slice(&(place as u32).to_le_bytes());
    }
    u128::from_le_bytes(view)
}

#[test]
fn bounds_are_those_of_characters() {
    let mut random = Random::new(1);
    for _ in 0..2000 {
        let text = text(&mut random, 40);
        for start in STARTS {
            for count in COUNTS {
                let (from, to) = bounds(text.as_bytes(), start, count.unwrap_or(ALL));
                let found = (from as usize, to as usize);
                assert_eq!(found, part(&text, start, count), "{text}, {start}, {count:?}");
            }
        }
    }
}

#[test]
fn substrings_are_views_of_their_texts() {
    for rows in LENGTHS {
        for layout in [4, 8, VIEWS] {
            let mut random = Random::new(rows as u64 + layout);
            let texts: Vec<String> = (0..rows).map(|_| text(&mut random, 30)).collect();
            let (start, count) = (STARTS[random.below(9) as usize], COUNTS[random.below(6) as usize]);
            for width in WIDTHS {
                substrings(&texts, layout, (start, count), width);
            }
        }
    }
}

fn substrings(texts: &[String], layout: u64, (start, count): (i64, Option<u64>), width: u32) {
    const SHIFT: u64 = 6;
    let rows = texts.len();
    let mut random = Random::new(rows as u64);
    let bits = random.bytes(rows / 8 + 2);
    let is_valid = |row: usize| bits[(row + 5) / 8] >> ((row + 5) % 8) & 1 != 0;
    let bytes: Vec<u8> = texts.concat().into_bytes();
    let (mut offsets, mut views) = (vec![0u64], vec![]);
    for text in texts {
        views.push(view(text.as_bytes(), 0, *offsets.last().unwrap()));
        offsets.push(offsets.last().unwrap() + text.len() as u64);
    }
    // One row of some points outside of the bytes.
    let bad = (rows > 100).then_some(70);
    if let Some(bad) = bad {
        offsets[bad + 1] = bytes.len() as u64 + 9;
        views[bad] = view(&[b'x'; 13], 0, bytes.len() as u64);
    }
    let narrow: Vec<u32> = offsets.iter().map(|offset| *offset as u32).collect();
    let mut described = match layout {
        4 => Memory::of(&narrow),
        8 => Memory::of(&offsets),
        _ => Memory::of(&views),
    };
    let (mut data, mut bits) = (Memory::shifted(&bytes, 7), Memory::shifted(&bits, 1));
    let ((data, offset), (valid, valid_offset)) = (data.bitmap(0), bits.bitmap(5));
    let mut table = Memory::of(&BufferRow { bytes: data, offset, limit: bytes.len() as u64 }.words());
    let column = TextColumn {
        rows: described.input::<u8>().described(),
        width: layout,
        which: u64::MAX,
        len: rows as u64,
        buffers: table.input::<u64>().described(),
        count: 1,
        end: In::<u32>::absent().described(),
        end_offset: 0,
        valid: valid.described(),
        valid_offset,
    };
    let mut column = Memory::of(&column.words());
    let (mut out, mut faults) = (Memory::room::<u128>(rows), Memory::of(&[u64::MAX; 2]));
    let args = Substring {
        column: column.input(),
        len: rows as u64,
        start: start as u64,
        count: count.unwrap_or(ALL),
        shift: SHIFT,
        views: out.output(),
        faults: faults.output(),
    };
    run(SUBSTRING, &[], args, width);
    let (mut first, mut begin) = (u64::MAX, 0);
    for (row, (text, made)) in texts.iter().zip(out.read::<u128>(rows)).enumerate() {
        // With offsets, the row after a bad one begins where that one ends.
        let outside = bad.is_some_and(|bad| row == bad || layout != VIEWS && row == bad + 1);
        let (from, to) = part(text, start, count);
        let place = begin + from as u64;
        let (buffer, place) =
            if layout == VIEWS { (0, place) } else { (place >> SHIFT, place % (1 << SHIFT)) };
        let expected = view(&text.as_bytes()[from..to], buffer, place);
        assert_eq!(made, if outside || !is_valid(row) { 0 } else { expected }, "row {row} of {layout}");
        if outside && is_valid(row) {
            first = first.min(row as u64);
        }
        begin += text.len() as u64;
    }
    assert_eq!(faults.read::<u64>(2), [first, u64::MAX]);
}
