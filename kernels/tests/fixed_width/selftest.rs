use bowstring_kernels::memory::In;
use bowstring_kernels::selftest::*;
use bowstring_kernels::target::{Access, Cause, Fault};

use crate::support::*;

fn fold(x: u64) -> u32 {
    x as u32 ^ (x >> 32) as u32
}

/// Compares with the definition, written out once more, lane by lane.
#[test]
fn vocabulary() {
    let mut random = Random(2);
    for width in WIDTHS {
        let (w, waves) = (width as usize, 5);
        let numbers: Vec<u32> = (0..w * waves).map(|_| random.next() as u32).collect();
        let mut results = vec![0u32; numbers.len() * ROWS as usize];
        let mut shared = [0, 0, u32::MAX, 0];
        let table = [input(&numbers).described(), input(&numbers[1..]).described()].concat();
        let args = Vocabulary {
            numbers: input(&numbers),
            results: output(&mut results),
            waves: waves as u64,
            shared: output(&mut shared),
            table: input(&table),
        };
        assert_eq!(run(&VOCABULARY[0], args, width), None);

        for (x, rows) in numbers.chunks(w).zip(results.chunks(w * ROWS as usize)) {
            let wide = |i: usize| u64::from(x[i]) << 20;
            let odd = |i: usize| x[i] & 1 != 0;
            let sum: u64 = (0..w).map(wide).sum();
            let ballot = (0..w).fold(0u64, |m, i| m | u64::from(odd(i)) << i);
            let fives = u64::from(x[5]) | u64::from(x[6]) << 32;
            for i in 0..w {
                let row = |k: usize| rows[k * w + i];
                let odds = (0..w).filter(|&i| odd(i)).count() as u32;
                let below = (0..i).filter(|&i| odd(i)).count() as u32;
                let nobody = u32::from(odds == 0);
                assert_eq!(row(0), odds << 16 | below << 8 | u32::from(odd(i)) << 1 | nobody);
                assert_eq!(row(1), x[w - 1 - i]);
                assert_eq!(row(2), if i >= 3 { fold(wide(i - 3)) } else { 0 });
                assert_eq!(row(3), (0..i).chain(0..w).fold(0u32, |s, i| s.wrapping_add(x[i])));
                assert_eq!(row(4), fold((0..i).map(wide).sum()));
                assert_eq!(row(5), fold(sum));
                assert_eq!(row(6), sum as u32);
                assert_eq!(row(7), x.iter().fold(0, |a, b| a | b));
                assert_eq!(row(8), (0..w).map(wide).min().unwrap() as u32);
                assert_eq!(row(9), *x.iter().max().unwrap());
                assert_eq!(row(10), x[3]);
                assert_eq!(row(11), (fives >> i & 1) as u32);
                let words: Vec<u32> = if width == 32 {
                    vec![ballot as u32, x[5], 7, ballot as u32]
                } else {
                    [ballot, fives, 7 | 8 << 32, ballot]
                        .iter()
                        .flat_map(|&m| [m as u32, (m >> 32) as u32])
                        .collect()
                };
                assert_eq!(row(12), words.get(i).copied().unwrap_or(0));
                assert_eq!(row(13), x[i]);
                let pair = u64::from(x[i]) << 32 | u64::from(x[w - 1 - i]);
                assert_eq!(row(14), (pair >> (i % 32)) as u32);
                assert_eq!(row(15), i as u32);
                let heavy = (0..w).map(|i| u64::from(x[i]) << 27).fold(0u64, u64::saturating_add);
                assert_eq!(row(16), heavy as u32 ^ (heavy >> 33) as u32);
                assert_eq!(row(17), x[i], "lane {i} has a buffer of its own");
            }
        }
        let sum = numbers.iter().fold(0u32, |s, x| s.wrapping_add(*x));
        let or = numbers.iter().fold(0, |s, x| s | x);
        assert_eq!(shared, [sum, or, *numbers.iter().min().unwrap(), waves as u32]);
    }
}

#[test]
fn a_ballot_between_two_equal_branches() {
    let mut random = Random(3);
    for width in WIDTHS {
        let w = width as usize;
        let numbers: Vec<u32> = (0..w).map(|_| random.below(1000) as u32).collect();
        let mut results = vec![7u32; w];
        let args = Bait { numbers: input(&numbers), results: output(&mut results), waves: 1, limit: 500 };
        assert_eq!(run(&BAIT[0], args, width), None);
        let over = (0..32).fold(0, |m, i| m | u32::from(numbers[i] > 500) << i);
        for (i, &x) in numbers.iter().enumerate() {
            assert_eq!(results[i], if x & 1 == 0 { (x * 3).wrapping_add(over) } else { x ^ 0x55 ^ over });
        }
    }
}

#[test]
fn what_is_outside_an_extent_is_not_touched() {
    let numbers = vec![9u32; 64];
    let mut results = vec![7u32; 64];
    let results = output(&mut results);
    let args = |len: u64, first: usize| Bait {
        numbers: In::new(numbers.as_ptr().expose_provenance() as u64 + first as u64, len),
        results,
        waves: 1,
        limit: 500,
    };
    let read = Fault { argument: 0, index: 31, access: Access::Read, cause: Cause::Outside };
    assert_eq!(run(&BAIT[0], args(31 * 4, 0), 32), Some(read), "one short");
    assert_eq!(run(&BAIT[0], args(31 * 4 + 3, 0), 32), Some(read), "one byte short");
    assert_eq!(run(&BAIT[0], args(0, 0), 32), Some(Fault { index: 0, ..read }), "nothing");
    let misaligned = Fault { index: 0, cause: Cause::Misaligned, ..read };
    assert_eq!(run(&BAIT[0], args(32 * 4, 2), 32), Some(misaligned));

    let mut short = [7u32; 32];
    let args = Bait { results: output(&mut short[..31]), ..args(256, 0) };
    let write = Fault { argument: 1, index: 31, access: Access::Write, cause: Cause::Outside };
    assert_eq!(run(&BAIT[0], args, 32), Some(write));
    assert_eq!((short[30], short[31]), (9 ^ 0x55, 7));
}
