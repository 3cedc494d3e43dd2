use bowstring_kernels::gather::copy::{
    COPY_BITS, COPY_BYTES, COPY_OFFSETS, COPY_VIEWS, CopyBits, CopyBytes, CopyOffsets, CopyViews,
};
use bowstring_kernels::memory::TableRow;

use bowstring_kernels::ranges::views::BufferRow;

use crate::device::{Memory, Random, WIDTHS, run};

/// `rows` ranges of `source` elements: each of at most `most`, and now and then one of `huge`.
struct Ranges {
    starts: Vec<u64>,
    to: Vec<u64>,
}

impl Ranges {
    fn random(random: &mut Random, source: u64, rows: usize, most: u64, huge: u64) -> Ranges {
        let mut ranges = Ranges { starts: vec![], to: vec![0] };
        for row in 0..rows {
            let len = match random.below(50) {
                0 => random.below(huge + 1),
                1..12 => 0,
                _ => random.below(most + 1),
            }
            .min(source);
            ranges.starts.push(random.below(source - len + 1));
            ranges.to.push(ranges.to[row] + len);
        }
        ranges
    }

    fn len(&self) -> u64 {
        *self.to.last().unwrap()
    }

    fn rows(&self) -> u64 {
        self.starts.len() as u64
    }

    /// The source element of each element that is written, and its range.
    fn elements(&self) -> impl Iterator<Item = (usize, u64)> {
        (0..self.starts.len())
            .flat_map(move |r| (0..self.to[r + 1] - self.to[r]).map(move |i| (r, self.starts[r] + i)))
    }

    fn memory(&self, width: u32) -> (Memory, Memory) {
        if width == 8 {
            return (Memory::of(&self.to), Memory::of(&self.starts));
        }
        let narrow = |values: &[u64]| values.iter().map(|&v| v as u32).collect::<Vec<_>>();
        (Memory::of(&narrow(&self.to)), Memory::of(&narrow(&self.starts)))
    }
}

/// Shapes of ranges: how many, their usual length, and a length that some have.
const SHAPES: [(usize, u64, u64); 7] =
    [(1, 1, 1), (1, 9000, 9000), (40, 12, 12), (900, 12, 12), (900, 1, 3), (300, 30, 5000), (5000, 0, 2)];

#[test]
fn bytes_arrive_whatever_their_alignment() {
    for width in WIDTHS {
        for (seed, (rows, most, huge)) in SHAPES.into_iter().enumerate() {
            let mut random = Random::new(seed as u64);
            for (scale, shift) in [(1, 0), (1, 1), (1, 13), (3, 7), (4, 4), (16, 0), (16, 8)] {
                let source = random.bytes(scale as usize * 10_000);
                let mut ranges = Ranges::random(&mut random, 10_000, rows, most, huge);
                while ranges.len() == 0 {
                    ranges = Ranges::random(&mut random, 10_000, rows, most, huge);
                }
                let expected: Vec<u8> = ranges
                    .elements()
                    .flat_map(|(_, i)| source[(i * scale) as usize..][..scale as usize].to_vec())
                    .collect();
                for key in [4, 8] {
                    let (mut to, mut starts) = ranges.memory(key);
                    let mut source = Memory::shifted(&source, shift);
                    let (bytes, offset) = source.bitmap(0);
                    let mut out = Memory::room::<u8>(expected.len());
                    let args = CopyBytes {
                        to: to.input(),
                        starts: starts.input(),
                        rows: ranges.rows(),
                        scale,
                        bytes,
                        offset,
                        out: out.output(),
                        len: expected.len() as u64,
                    };
                    run(COPY_BYTES, &[key], args, width);
                    let mut padded = expected.clone();
                    padded.resize(expected.len().next_multiple_of(16), 0);
                    assert!(
                        out.read::<u8>(padded.len()) == padded,
                        "{rows} rows of {most}, scale {scale}, {shift}"
                    );
                }
            }
        }
    }
}

#[test]
fn bits_arrive_whatever_their_offset() {
    for width in WIDTHS {
        for (seed, (rows, most, huge)) in SHAPES.into_iter().enumerate() {
            let mut random = Random::new(seed as u64 + 100);
            for (scale, bit) in [(1u64, 0u64), (1, 1), (1, 77), (3, 31), (64, 5)] {
                let source = random.bytes((scale as usize * 10_000 + bit as usize).div_ceil(8));
                let mut ranges = Ranges::random(&mut random, 10_000, rows, most, huge);
                while ranges.len() == 0 {
                    ranges = Ranges::random(&mut random, 10_000, rows, most, huge);
                }
                let bits: Vec<bool> = ranges
                    .elements()
                    .flat_map(|(_, i)| i * scale + bit..(i + 1) * scale + bit)
                    .map(|at| source[at as usize / 8] >> (at % 8) & 1 != 0)
                    .collect();
                let mut words = vec![0u32; bits.len().div_ceil(32)];
                for (i, bit) in bits.iter().enumerate() {
                    words[i / 32] |= u32::from(*bit) << (i % 32);
                }
                for key in [4, 8] {
                    let (mut to, mut starts) = ranges.memory(key);
                    let mut source = Memory::shifted(&source, 5);
                    let (source_words, offset) = source.bitmap(bit);
                    let (mut out, mut unset) = (Memory::room::<u32>(words.len()), Memory::of(&[100u64]));
                    let args = CopyBits {
                        to: to.input(),
                        starts: starts.input(),
                        rows: ranges.rows(),
                        scale,
                        words: source_words,
                        offset,
                        out: out.output(),
                        len: bits.len() as u64,
                        unset: unset.output(),
                    };
                    run(COPY_BITS, &[key], args, width);
                    assert!(
                        out.read::<u32>(words.len()) == words,
                        "{rows} rows of {most}, scale {scale}, bit {bit}"
                    );
                    let zeros = bits.iter().filter(|bit| !**bit).count() as u64;
                    assert_eq!(unset.read::<u64>(1), [100 + zeros]);
                }
            }
        }
    }
}

#[test]
fn offsets_are_moved_to_where_their_elements_go() {
    for width in WIDTHS {
        for (seed, (rows, most, huge)) in SHAPES.into_iter().enumerate() {
            let mut random = Random::new(seed as u64 + 200);
            for (scale, inside) in [(1u64, true), (2, true), (1, false)] {
                let mut offsets = random.offsets(10_000 * scale as usize, 4);
                let mut ranges = Ranges::random(&mut random, 10_000, rows, most, huge);
                while ranges.len() == 0 {
                    ranges = Ranges::random(&mut random, 10_000, rows, most, huge);
                }
                let (mut next_starts, mut next_to) = (vec![], vec![0]);
                for r in 0..rows {
                    let from = offsets[(ranges.starts[r] * scale) as usize];
                    let len = ranges.to[r + 1] - ranges.to[r];
                    let to = offsets[((ranges.starts[r] + len) * scale) as usize];
                    next_starts.push(from);
                    next_to.push(next_to[r] + to - from);
                }
                if !inside {
                    // Offsets that changed after their ends were checked.
                    offsets.iter_mut().step_by(3).for_each(|offset| *offset = random.below(1 << 31));
                }
                let mut expected: Vec<u64> = ranges
                    .elements()
                    .flat_map(|(r, i)| (i * scale..(i + 1) * scale).map(move |i| (r, i)))
                    .map(|(r, i)| {
                        let below = offsets[i as usize].saturating_sub(next_starts[r]);
                        next_to[r] + below.min(next_to[r + 1] - next_to[r])
                    })
                    .collect();
                expected.push(next_to[rows]);
                for key in [[4, 4], [4, 8], [8, 4], [8, 8]] {
                    let (mut to, mut starts) = ranges.memory(key[0]);
                    let narrow: Vec<u32> = offsets.iter().map(|&v| v as u32).collect();
                    let mut source = if key[1] == 4 { Memory::of(&narrow) } else { Memory::of(&offsets) };
                    let (mut next_starts, mut next_to) = (Memory::of(&next_starts), Memory::of(&next_to));
                    let mut out = Memory::room::<u8>(expected.len() * key[1] as usize);
                    let args = CopyOffsets {
                        to: to.input(),
                        starts: starts.input(),
                        rows: ranges.rows(),
                        scale,
                        offsets: source.input(),
                        next_starts: next_starts.input(),
                        next_to: next_to.input(),
                        out: out.output(),
                        len: ranges.len() * scale,
                    };
                    run(COPY_OFFSETS, &key, args, width);
                    let got: Vec<u64> = match key[1] {
                        4 => out.read::<u32>(expected.len()).into_iter().map(u64::from).collect(),
                        _ => out.read(expected.len()),
                    };
                    assert!(got == expected, "{rows} rows of {most}, scale {scale}, {key:?}");
                }
            }
        }
    }
}

#[test]
fn views_are_followed_into_their_buffers() {
    for width in WIDTHS {
        let mut random = Random::new(5);
        let data = [random.bytes(700), random.bytes(5000)];
        let mut memories = [Memory::shifted(&data[0], 3), Memory::shifted(&data[1], 0)];
        let table: Vec<u64> = memories
            .iter_mut()
            .flat_map(|memory| {
                let (words, offset) = memory.bitmap(0);
                BufferRow { bytes: words, offset, limit: u64::MAX }.words()
            })
            .collect();
        let (mut views, mut to, mut expected) = (vec![], vec![0u64], vec![]);
        for _ in 0..2000 {
            let buffer = random.below(2) as usize;
            let most = if random.below(9) == 0 { 600 } else { 20 };
            let len = random.below(most) as usize;
            let at = random.below((data[buffer].len() - len) as u64) as usize;
            let bytes = &data[buffer][at..at + len];
            let mut view = [0u8; 16];
            view[..4].copy_from_slice(&(len as u32).to_le_bytes());
            if len <= 12 {
                view[4..4 + len].copy_from_slice(bytes);
            } else {
                view[4..8].copy_from_slice(&bytes[..4]);
                view[8..12].copy_from_slice(&(buffer as u32).to_le_bytes());
                view[12..].copy_from_slice(&(at as u32).to_le_bytes());
            }
            views.push(u128::from_le_bytes(view));
            expected.extend_from_slice(bytes);
            to.push(expected.len() as u64);
        }
        let narrow: Vec<u32> = to.iter().map(|&v| v as u32).collect();
        for key in [4, 8] {
            let mut to = if key == 4 { Memory::of(&narrow) } else { Memory::of(&to) };
            let (mut views, mut table) = (Memory::of(&views), Memory::of(&table));
            let mut out = Memory::room::<u8>(expected.len());
            let args = CopyViews {
                to: to.input(),
                views: views.input(),
                rows: 2000,
                buffers: table.input(),
                out: out.output(),
                len: expected.len() as u64,
            };
            run(COPY_VIEWS, &[key], args, width);
            assert!(out.read::<u8>(expected.len()) == expected);
        }
    }
}
