use bowstring_kernels::memory::In;
use bowstring_kernels::sort::places::{COUNT, Count, DIGITS, PLACE, Place, runs};
use bowstring_kernels::sort::ties::{MORE, NARROW, Narrow, SCATTER, Scatter, TIES, Ties};
use bowstring_kernels::sort::words::{REORDER, Reorder, WORDS, Words};

use crate::device::{LENGTHS, Memory, Random, WIDTHS, run};

/// A number of 64 bits.
fn wide(random: &mut Random) -> u64 {
    random.below(1 << 32) << 32 | random.below(1 << 32)
}

/// Sorts by one digit: the rows in order, and their words.
fn by_digit(
    words: &[u64],
    order: Option<&[u32]>,
    shift: u32,
    bytes: u32,
    width: u32,
) -> (Vec<u32>, Vec<u64>) {
    let rows = words.len();
    let narrow: Vec<u32> = words.iter().map(|&word| word as u32).collect();
    let mut memory = if bytes == 4 { Memory::of(&narrow) } else { Memory::of(words) };
    let counts = (DIGITS * runs(rows as u64)) as usize;
    let mut counted = Memory::room::<u32>(counts);
    let (rows, shift) = (rows as u64, u64::from(shift));
    let args = Count { words: memory.input(), shift, rows, counts: counted.output() };
    run(COUNT, &[bytes], args, width);
    let places: Vec<u32> = counted
        .read::<u32>(counts)
        .into_iter()
        .scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count)))
        .collect();
    let mut order = order.map(Memory::of);
    let (mut places, mut out_order) = (Memory::of(&places), Memory::room::<u32>(words.len()));
    let mut out = Memory::room::<u64>(words.len());
    let args = Place {
        words: memory.input(),
        order: order.as_mut().map_or(In::absent(), Memory::input),
        shift,
        rows,
        places: places.input(),
        out: out.output(),
        out_order: out_order.output(),
    };
    run(PLACE, &[bytes], args, width);
    let out = match bytes {
        4 => out.read::<u32>(words.len()).into_iter().map(u64::from).collect(),
        _ => out.read::<u64>(words.len()),
    };
    (out_order.read(words.len()), out)
}

#[test]
fn rows_of_a_digit_keep_their_order() {
    for width in WIDTHS {
        for len in LENGTHS.into_iter().filter(|len| *len > 0).chain([256, 257, 9000]) {
            let mut random = Random::new(len as u64);
            for (bytes, shift, most) in
                [(4, 0, 1 << 20), (4, 11, 1 << 32), (8, 40, u64::MAX), (8, 56, u64::MAX)]
            {
                let words: Vec<u64> = (0..len).map(|_| wide(&mut random) % most).collect();
                let order: Vec<u32> = (0..len as u32).rev().collect();
                for order in [None, Some(&order[..])] {
                    let row = |i: usize| order.map_or(i as u32, |order| order[i]);
                    let mut expected: Vec<usize> = (0..len).collect();
                    expected.sort_by_key(|&i| words[i] >> shift & 255);
                    let rows: Vec<u32> = expected.iter().map(|&i| row(i)).collect();
                    let sorted: Vec<u64> = expected.iter().map(|&i| words[i]).collect();
                    assert_eq!(by_digit(&words, order, shift, bytes, width), (rows, sorted), "{len} rows");
                }
            }
        }
    }
}

/// The words of values, and the bits in which they differ from the first.
fn words_of(
    values: &mut Memory,
    (entry, stride, at): (u32, u64, u64),
    [always, negative]: [u64; 2],
    valid: Option<&[bool]>,
    rows: usize,
    width: u32,
) -> (Vec<u64>, u64) {
    let bits = valid.map(|valid| {
        let mut bytes = vec![0u8; rows.div_ceil(8) + 1];
        for (row, _) in valid.iter().enumerate().filter(|(_, valid)| **valid) {
            bytes[(row + 3) / 8] |= 1 << ((row + 3) % 8);
        }
        bytes
    });
    let mut bits = bits.as_deref().map(Memory::of);
    let (valid, valid_offset) = bits.as_mut().map_or((In::absent(), 0), |bits| bits.bitmap(3));
    let (values, at) = if entry == 0 {
        let (bits, offset) = values.bitmap(at);
        (bits.cast(), offset)
    } else {
        (values.input(), at)
    };
    let (mut words, mut differs) = (Memory::room::<u64>(rows), Memory::of(&[0u64]));
    let args = Words {
        values,
        stride,
        at,
        always,
        negative,
        valid,
        valid_offset,
        rows: rows as u64,
        words: words.output(),
        differs: differs.output(),
    };
    run(WORDS, &[entry], args, width);
    let words = match entry {
        8 => words.read::<u64>(rows),
        _ => words.read::<u32>(rows).into_iter().map(u64::from).collect(),
    };
    (words, differs.read(1)[0])
}

fn differing(words: &[u64]) -> u64 {
    words.iter().fold(0, |all, word| all | word ^ words[0])
}

#[test]
fn words_order_as_values() {
    for width in WIDTHS {
        for len in LENGTHS.into_iter().filter(|len| *len > 0) {
            let mut random = Random::new(len as u64);
            let valid: Vec<bool> = (0..len).map(|_| random.below(4) != 0).collect();
            let floats: Vec<f32> = (0..len).map(|_| f32::from_bits(random.below(1 << 32) as u32)).collect();
            let mut memory = Memory::of(&floats);
            let flips = [1 << 31, (1 << 31) - 1];
            let (words, differs) = words_of(&mut memory, (4, 1, 0), flips, None, len, width);
            let mut order: Vec<usize> = (0..len).collect();
            order.sort_by_key(|&i| words[i]);
            assert!(order.windows(2).all(|at| floats[at[0]].total_cmp(&floats[at[1]]).is_le()));
            assert_eq!(differs, differing(&words));
            // The upper words of decimals, in descending order, with nulls.
            let decimals: Vec<i128> = (0..len).map(|_| i128::from(wide(&mut random) as i64) << 60).collect();
            let mut memory = Memory::of(&decimals);
            let flips = [!(1 << 63), 0];
            let (words, differs) = words_of(&mut memory, (8, 2, 1), flips, Some(&valid), len, width);
            for row in 0..len {
                let word = !((decimals[row] >> 64) as u64 ^ 1 << 63);
                assert_eq!(words[row], if valid[row] { word } else { 0 });
            }
            assert_eq!(differs, differing(&words));
            // Bytes, and bits.
            let bytes: Vec<u8> = (0..len + 1).map(|_| random.below(256) as u8).collect();
            let mut memory = Memory::of(&bytes);
            let (words, _) = words_of(&mut memory, (1, 1, 0), [0x80, 0], Some(&valid), len, width);
            assert!((0..len).all(|i| words[i] == if valid[i] { u64::from(bytes[i] ^ 0x80) } else { 0 }));
            let (words, differs) = words_of(&mut memory, (0, 0, 5), [1, 0], None, len, width);
            assert!((0..len).all(|i| words[i] == u64::from(bytes[(i + 5) / 8] >> ((i + 5) % 8) & 1 == 0)));
            assert_eq!(differs, differing(&words));
        }
    }
}

#[test]
fn words_follow_an_order() {
    for width in WIDTHS {
        for len in LENGTHS.into_iter().filter(|len| *len > 0) {
            let words: Vec<u64> = (0..len as u64).map(|i| i << 40 | 7).collect();
            let order: Vec<u32> = (0..len as u32).map(|i| (len as u32 - 1 - i) / 2).collect();
            let (mut from, mut rows, mut out) =
                (Memory::of(&words), Memory::of(&order), Memory::room::<u64>(len));
            let args =
                Reorder { words: from.input(), order: rows.input(), rows: len as u64, out: out.output() };
            run(REORDER, &[8], args, width);
            let expected: Vec<u64> = order.iter().map(|&row| words[row as usize]).collect();
            assert_eq!(out.read::<u64>(len), expected);
        }
    }
}

/// Bits of rows, in whole words.
fn bits_of(rows: &[bool]) -> Vec<u32> {
    rows.chunks(32).map(|rows| rows.iter().rev().fold(0, |word, bit| word << 1 | u32::from(*bit))).collect()
}

/// The result of `Offsets` for some bits.
fn offsets_of(bits: &[bool]) -> Vec<u64> {
    let tiles = bits.chunks(2048).map(|tile| tile.iter().filter(|bit| **bit).count() as u64);
    let mut offsets = vec![0];
    offsets.extend(tiles.scan(0, |sum, count| {
        *sum += count;
        Some(*sum)
    }));
    offsets
}

#[test]
fn rows_that_are_equal_so_far_go_on_in_their_groups() {
    for width in WIDTHS {
        for len in LENGTHS.into_iter().filter(|len| *len > 0) {
            let mut random = Random::new(len as u64);
            let flip = if len % 2 == 0 { 0 } else { u64::MAX };
            // Ascending groups, and in each ascending words, of text that ends or goes on.
            let mut keys: Vec<(u32, u64)> = (0..len)
                .map(|_| (random.below(5) as u32, (random.below(4) * 256 + 7 + random.below(2)) ^ flip))
                .collect();
            keys.sort();
            let (groups, words): (Vec<u32>, Vec<u64>) = keys.iter().copied().unzip();
            let begin: Vec<bool> = (0..len).map(|i| i == 0 || keys[i] != keys[i - 1]).collect();
            let tied = |i: usize| !begin[i] || i + 1 < len && !begin[i + 1];
            let more = |i: usize| (words[i] ^ flip) & 255 == MORE;
            for only_more in [false, true] {
                let goes_on: Vec<bool> = (0..len).map(|i| tied(i) && (!only_more || more(i))).collect();
                let (mut words, mut before) = (Memory::of(&words), Memory::of(&groups));
                let bits = len.div_ceil(32);
                let (mut first, mut on) = (Memory::room::<u32>(bits), Memory::room::<u32>(bits));
                let mut count = Memory::of(&[0u64]);
                let args = Ties {
                    words: words.input(),
                    groups: before.input(),
                    flip,
                    only_more: only_more.into(),
                    rows: len as u64,
                    begins: first.output(),
                    goes_on: on.output(),
                    more: count.output(),
                };
                run(TIES, &[8], args, width);
                assert_eq!(first.read::<u32>(bits), bits_of(&begin));
                assert_eq!(on.read::<u32>(bits), bits_of(&goes_on));
                let both = (0..len).filter(|&i| tied(i) && more(i)).count();
                assert_eq!(count.read::<u64>(1), [both as u64]);

                let kept: Vec<usize> = (0..len).filter(|&i| goes_on[i]).collect();
                let rows: Vec<u32> = (0..len as u32).map(|i| i * 7 % 1000).collect();
                let places: Vec<u32> = (0..len as u32).map(|i| 3 * i + 1).collect();
                let [mut out_places, mut out_order, mut out_groups] =
                    [(); 3].map(|()| Memory::room::<u32>(kept.len()));
                let (mut begin_offsets, mut on_offsets) =
                    (Memory::of(&offsets_of(&begin)), Memory::of(&offsets_of(&goes_on)));
                let (mut rows_there, mut places_there) = (Memory::of(&rows), Memory::of(&places));
                let args = Narrow {
                    begins: first.bitmap(0).0,
                    begins_offsets: begin_offsets.input(),
                    goes_on: on.bitmap(0).0,
                    goes_on_offsets: on_offsets.input(),
                    places: places_there.input(),
                    order: rows_there.input(),
                    rows: len as u64,
                    out_places: out_places.output(),
                    out_order: out_order.output(),
                    out_groups: out_groups.output(),
                };
                run(NARROW, &[], args, width);
                let of = |values: &[u32]| kept.iter().map(|&i| values[i]).collect::<Vec<_>>();
                assert_eq!(out_places.read::<u32>(kept.len()), of(&places));
                assert_eq!(out_order.read::<u32>(kept.len()), of(&rows));
                let group = |i: usize| begin[..=i].iter().filter(|begin| **begin).count() as u32 - 1;
                let expected: Vec<u32> = kept.iter().map(|&i| group(i)).collect();
                assert_eq!(out_groups.read::<u32>(kept.len()), expected);
            }
        }
    }
}

#[test]
fn rows_go_to_their_places() {
    for width in WIDTHS {
        let places: Vec<u32> = (0..1500u32).map(|i| i * 7 % 1500).collect();
        let rows: Vec<u32> = (0..1500).collect();
        let (mut at, mut from, mut out) = (Memory::of(&places), Memory::of(&rows), Memory::room::<u32>(1500));
        let args = Scatter { places: at.input(), order: from.input(), rows: 1500, out: out.output() };
        run(SCATTER, &[], args, width);
        let out = out.read::<u32>(1500);
        assert!(places.iter().zip(&rows).all(|(&place, &row)| out[place as usize] == row));
    }
}
