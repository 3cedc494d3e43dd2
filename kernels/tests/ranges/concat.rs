use bowstring_kernels::gather::concat::{
    CONCAT_BITS, ConcatBits, REBASE, Rebase, SPANS, SourceRow, SpanRow, Spans,
};
use bowstring_kernels::memory::{In, Out, TableRow};

use crate::device::{Memory, Random, WIDTHS, run};

/// Lengths of sources in bits: less than a word, around blocks, and more than a wave writes.
const SHAPES: [&[usize]; 7] = [
    &[1],
    &[70_001],
    &[1, 2, 31, 32, 33, 127, 128, 129, 1, 1, 1, 500],
    &[40_000, 3, 40_000],
    &[32_768, 32_768, 5],
    &[64, 64, 8192],
    &[7; 900],
];

#[test]
fn bits_arrive_whatever_their_offset() {
    for width in WIDTHS {
        for (seed, lens) in SHAPES.into_iter().enumerate() {
            let mut random = Random::new(seed as u64 + 1);
            let (mut memories, mut table, mut expected) = (vec![], vec![], vec![]);
            for &len in lens {
                let (to, first) = (expected.len() as u64, random.below(140) as usize);
                // Some sources have no bitmap: all their bits are set.
                if random.below(4) == 0 {
                    expected.extend(vec![true; len]);
                    table.extend(SourceRow { words: In::absent(), offset: 0, to }.words());
                    continue;
                }
                let bytes = random.bytes((first + len).div_ceil(8));
                expected.extend((first..first + len).map(|at| bytes[at / 8] >> (at % 8) & 1 != 0));
                let mut memory = Memory::shifted(&bytes, random.below(16) as usize);
                let (words, offset) = memory.bitmap(first as u64);
                table.extend(SourceRow { words, offset, to }.words());
                memories.push(memory);
            }
            let (mut sources, len) = (Memory::of(&table), expected.len());
            let mut out = Memory::room::<u8>(len.div_ceil(8));
            let args = ConcatBits {
                sources: sources.input(),
                count: lens.len() as u64,
                out: out.output(),
                len: len as u64,
            };
            run(CONCAT_BITS, &[], args, width);
            let mut words = vec![0u128; len.div_ceil(128)];
            for (i, bit) in expected.iter().enumerate() {
                words[i / 128] |= u128::from(*bit) << (i % 128);
            }
            assert!(out.read::<u128>(words.len()) == words, "{lens:?}");
        }
    }
}

#[test]
fn spans_are_first_and_last_offsets() {
    for width in WIDTHS {
        let mut random = Random::new(3);
        let offsets: Vec<Vec<u64>> = (0..70).map(|i| random.offsets(1 + i, 9)).collect();
        for key in [4, 8] {
            let memory = |offsets: &Vec<u64>| match key {
                4 => Memory::of(&offsets.iter().map(|at| *at as u32).collect::<Vec<_>>()),
                _ => Memory::of(offsets),
            };
            let mut memories: Vec<Memory> = offsets.iter().map(memory).collect();
            let row = |(memory, offsets): (&mut Memory, &Vec<u64>)| {
                SpanRow { offsets: memory.input(), rows: offsets.len() as u64 - 1 }.words()
            };
            let table: Vec<u64> = memories.iter_mut().zip(&offsets).flat_map(row).collect();
            let (mut table, mut out) = (Memory::of(&table), Memory::room::<u64>(140));
            run(SPANS, &[key], Spans { arrays: table.input(), count: 70, out: out.output() }, width);
            let expected: Vec<u64> = offsets.iter().flat_map(|of| [of[0], of[of.len() - 1]]).collect();
            assert_eq!(out.read::<u64>(140), expected);
        }
    }
}

/// Moves 4-byte numbers that refer to rows of a type, with sizes; some are null.
#[test]
fn numbers_move_with_what_they_are_of() {
    const ROWS: usize = 2500;
    // The number of rows of each type, and of the rows before them.
    let parts = [10u64, 100, 0, 0, 1000, 7];
    for width in WIDTHS {
        let mut random = Random::new(9);
        let types: Vec<u8> = (0..ROWS).map(|_| random.below(2) as u8 * 2).collect();
        let sizes: Vec<u32> = (0..ROWS).map(|_| random.below(4) as u32).collect();
        let valid = random.bytes(ROWS.div_ceil(8) + 1);
        let is_valid = |row: usize| valid[(row + 5) / 8] >> ((row + 5) % 8) & 1 != 0;
        let numbers: Vec<u32> = (0..ROWS)
            .map(|row| match is_valid(row) {
                true if types[row] == 0 => random.below(11 - u64::from(sizes[row])) as u32,
                true => random.below(1001 - u64::from(sizes[row])) as u32,
                false => random.below(1 << 40) as u32,
            })
            .collect();
        for bad in
            [None, Some((700, 0u8, 11u32)), Some((1300, 1, 0)), Some((1301, 3, 0)), Some((2499, 2, u32::MAX))]
        {
            let (mut numbers, mut types, mut valid) = (numbers.clone(), types.clone(), valid.clone());
            if let Some((row, of, number)) = bad {
                (numbers[row], types[row]) = (number, of);
                valid[(row + 5) / 8] |= 1 << ((row + 5) % 8);
            }
            let is_valid = |row: usize| valid[(row + 5) / 8] >> ((row + 5) % 8) & 1 != 0;
            let is_bad = |row: usize| {
                bad.is_some_and(|(bad, of, number)| bad == row && (of != 1 || number > 0 || sizes[row] > 0))
            };
            let kept = |row: usize| is_valid(row) && !is_bad(row);
            let before = |row: usize| if types[row] == 0 { 100 } else { 7 };
            let moved: Vec<u32> = (0..ROWS)
                .map(|row| match kept(row) {
                    true if types[row] == 1 => numbers[row],
                    true => numbers[row] + before(row),
                    false => 0,
                })
                .collect();
            let (mut number, mut size, mut of) =
                (Memory::of(&numbers), Memory::of(&sizes), Memory::shifted(&types, 3));
            let (mut bits, mut table) = (Memory::shifted(&valid, 1), Memory::of(&parts));
            let (valid, valid_offset) = bits.bitmap(5);
            let (mut out, mut out_sizes) = (Memory::room::<u32>(ROWS), Memory::room::<u32>(ROWS));
            let mut fault = Memory::of(&[u64::MAX]);
            let args = Rebase {
                numbers: number.input(),
                sizes: size.input(),
                types: of.input(),
                valid,
                valid_offset,
                rows: ROWS as u64,
                parts: table.input(),
                count: 3,
                out: out.output(),
                out_sizes: out_sizes.output(),
                fault: fault.output(),
            };
            run(REBASE, &[4], args, width);
            assert_eq!(out.read::<u32>(ROWS), moved, "{bad:?}");
            let kept_sizes: Vec<u32> = (0..ROWS).map(|row| if kept(row) { sizes[row] } else { 0 }).collect();
            assert_eq!(out_sizes.read::<u32>(ROWS), kept_sizes, "{bad:?}");
            let first = (0..ROWS).find(|row| is_bad(*row)).map_or(u64::MAX, |row| row as u64);
            assert_eq!(fault.read::<u64>(1), [first], "{bad:?}");
        }
    }
}

/// Views of text in other buffers move to new buffer numbers, short ones stay as they are; keys move at each
/// width.
#[test]
fn views_and_keys_move() {
    fn of<T: bowstring_kernels::target::Value + PartialEq + std::fmt::Debug>(
        key: u32,
        numbers: &[T],
        expected: &[T],
        first: u64,
        width: u32,
    ) {
        let (mut number, mut table) = (Memory::of(numbers), Memory::of(&[3u64, 40]));
        let (mut out, mut fault) = (Memory::room::<T>(numbers.len()), Memory::of(&[u64::MAX]));
        let args = Rebase {
            numbers: number.input(),
            sizes: In::absent(),
            types: In::absent(),
            valid: In::absent(),
            valid_offset: 0,
            rows: numbers.len() as u64,
            parts: table.input(),
            count: 1,
            out: out.output(),
            out_sizes: Out::absent(),
            fault: fault.output(),
        };
        run(REBASE, &[key], args, width);
        assert_eq!(out.read::<T>(numbers.len()), expected);
        assert_eq!(fault.read::<u64>(1), [first]);
    }
    let view = |len: u128, buffer: u128| len | 0x6162_6364 << 32 | buffer << 64 | 77 << 96;
    for width in WIDTHS {
        of(1, &[0u8, 2, 1], &[40, 42, 41], u64::MAX, width);
        of(2, &[0u16, 3, 1], &[40, 0, 41], 1, width);
        of(4, &[0u32, 2, u32::MAX], &[40, 42, 0], 2, width);
        of(8, &[0u64, 2, 1], &[40, 42, 41], u64::MAX, width);
        of(16, &[view(13, 2), view(12, 9), view(13, 3)], &[view(13, 42), view(12, 9), 0], 2, width);
    }
}
