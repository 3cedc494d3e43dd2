use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::reduce::scan::{SCAN, SUMS, Scan, Sums, TILE};

use crate::device::{LENGTHS, Memory, Random, WIDTHS, run};

/// The scan of these values, beginning with 0.
fn expected(values: &[u64]) -> Vec<u64> {
    let mut sums = vec![0];
    sums.extend(values.iter().scan(0u64, |sum, value| {
        *sum = sum.wrapping_add(*value);
        Some(*sum)
    }));
    sums
}

/// The sums of tiles, and their scan: enough for a million values.
fn bases(
    values: &mut Memory,
    wide: u32,
    bound: usize,
    count: Option<&mut Memory>,
    width: u32,
) -> (Memory, u64) {
    let tiles = (bound as u64).div_ceil(TILE);
    let mut sums = Memory::room::<u64>(tiles as usize);
    let count = count.map_or(In::absent(), Memory::input);
    run(SUMS, &[wide], Sums { values: values.input(), count, len: bound as u64, sums: sums.output() }, width);
    let (mut bases, mut total) = (Memory::room::<u64>(tiles as usize + 1), Memory::of(&[7u64]));
    let args = Scan {
        values: sums.input(),
        count: In::absent(),
        len: tiles,
        bases: In::absent(),
        out: bases.output(),
        total: total.output(),
    };
    run(SCAN, &[8, 8], args, width);
    (bases, total.read(1)[0])
}

#[test]
fn offsets_and_totals_of_every_length() {
    for width in WIDTHS {
        for len in LENGTHS.into_iter().chain([0, 100_003]) {
            let mut random = Random::new(len as u64);
            let values: Vec<u64> = (0..len).map(|_| random.below(1000)).collect();
            let narrow: Vec<u32> = values.iter().map(|&v| v as u32).collect();
            for (from, to) in [(4, 4), (4, 8), (8, 8)] {
                let mut memory = if from == 4 { Memory::padded(&narrow) } else { Memory::padded(&values) };
                let (mut before, total) = bases(&mut memory, from, len, None, width);
                let mut out =
                    if to == 4 { Memory::room::<u32>(len + 1) } else { Memory::room::<u64>(len + 1) };
                let args = Scan {
                    values: memory.input(),
                    count: In::absent(),
                    len: len as u64,
                    bases: before.input(),
                    out: out.output(),
                    total: Out::absent(),
                };
                run(SCAN, &[from, to], args, width);
                let got: Vec<u64> = match to {
                    4 => out.read::<u32>(len + 1).into_iter().map(u64::from).collect(),
                    _ => out.read(len + 1),
                };
                let expected = expected(&values);
                assert_eq!(got, expected, "{len} values, {from} to {to} bytes, width {width}");
                assert_eq!(total, expected[len]);
            }
        }
    }
}

#[test]
fn fewer_values_than_might_be() {
    for width in WIDTHS {
        for (bound, live) in
            [(5000usize, 0u64), (5000, 1), (5000, 1024), (5000, 3333), (1000, 999), (40, 9000)]
        {
            let values: Vec<u64> = (0..bound as u64).map(|i| i * i).collect();
            let (mut memory, mut count) = (Memory::padded(&values), Memory::of(&[live]));
            let (mut before, total) = bases(&mut memory, 8, bound, Some(&mut count), width);
            let mut out = Memory::room::<u64>(bound + 1);
            let args = Scan {
                values: memory.input(),
                count: count.input(),
                len: bound as u64,
                bases: before.input(),
                out: out.output(),
                total: Out::absent(),
            };
            run(SCAN, &[8, 8], args, width);
            let live = bound.min(live as usize);
            let expected = expected(&values[..live]);
            assert_eq!(out.read::<u64>(live + 1), expected);
            assert_eq!(total, expected[live]);
        }
    }
}

/// Totals do not wrap, in whichever order lanes, tiles and scans add them up.
#[test]
fn totals_do_not_wrap_at_64_bits() {
    let mut random = Random::new(9);
    for width in WIDTHS {
        for len in [1, 2, 5, 64, 127, 128, 129, 1025, 5000] {
            for bits in [50, 52, 55, 57, 58, 60, 62, 64] {
                let mut values: Vec<u64> = (0..len).map(|_| random.below(u64::MAX) >> (64 - bits)).collect();
                let check = |values: &[u64]| {
                    let (_, total) = bases(&mut Memory::padded(values), 8, len, None, width);
                    let want = values.iter().fold(0u64, |sum, value| sum.saturating_add(*value));
                    assert_eq!(total, want, "{len} values of {bits} bits, width {width}");
                };
                check(&values);
                // The largest value that fits, and one more.
                let sum = values[1..].iter().try_fold(0u64, |sum, value| sum.checked_add(*value));
                if let Some(sum) = sum {
                    values[0] = u64::MAX - sum;
                    check(&values);
                    if let Some(last) = values.last_mut() {
                        *last = last.saturating_add(1);
                    }
                    check(&values);
                }
            }
        }
    }
}

#[test]
fn totals_do_not_wrap_at_32_bits() {
    for width in WIDTHS {
        let values = [u32::MAX; 1500];
        let (_, total) = bases(&mut Memory::padded(&values), 4, 1500, None, width);
        assert_eq!(total, 1500 * u64::from(u32::MAX));
    }
}
