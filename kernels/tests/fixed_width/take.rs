use bowstring_kernels::column::{ColumnRow, MovedRow, OutputRow};
use bowstring_kernels::gather::take::*;
use bowstring_kernels::memory::{In, Out, TableRow};
use bowstring_kernels::target::{Value, find};

use crate::support::*;

const LENGTHS: [usize; 13] = [1, 31, 32, 33, 64, 127, 128, 129, 256, 257, 512, 1000, 1337];
const ROWS: usize = 200;

fn bit(words: &[u32], i: usize) -> bool {
    words[i / 32] >> (i % 32) & 1 != 0
}

/// Indices of width `size`, some of them out of range, as bytes aligned like the widest.
fn indices(random: &mut Random, len: usize, size: usize, limit: u64) -> (Vec<u64>, Vec<u64>) {
    // Whole waves without a bad index take another path than those with one; the lengths cover both.
    let bad = |i: usize| len % 2 == 1 && (len < 512 || i >= 1024);
    let numbers: Vec<u64> = (0..len)
        .map(|i| if bad(i) && random.below(50) == 0 { limit + random.below(56) } else { random.below(limit) })
        .collect();
    let mut packed = vec![0u64; (len * size).div_ceil(8)];
    for (i, number) in numbers.iter().enumerate() {
        packed[i * size / 8] |= number << (i * size % 8 * 8);
    }
    (numbers, packed)
}

fn bytes(packed: &[u64], len: usize) -> In<u8> {
    In::new(packed.as_ptr().expose_provenance() as u64, len as u64)
}

/// For each row, the index if it is neither null nor out of range; and the first row that is out of range.
fn definition(numbers: &[u64], valid: Option<&[bool]>, limit: u64) -> (Vec<Option<usize>>, u64) {
    let live = |i: usize| valid.is_none_or(|valid| valid[i]);
    let rows = (0..numbers.len()).map(|i| (live(i) && numbers[i] < limit).then_some(numbers[i] as usize));
    let error = (0..numbers.len()).find(|&i| live(i) && numbers[i] >= limit);
    (rows.collect(), error.map_or(u64::MAX, |row| row as u64))
}

/// Describes a column to be taken, and the places of its results.
fn moved<T: Value>(
    values: In<T>,
    target: Out<T>,
    (valid, valid_offset): (In<u32>, u64),
    target_valid: Out<u32>,
) -> MovedRow {
    let source = ColumnRow { values: values.cast(), offset: 0, valid, valid_offset };
    MovedRow { source, target: OutputRow { values: target.cast(), valid: target_valid } }
}

fn take_values<T: Value + PartialEq>(size: usize, nulls: u32, pieces: usize, make: impl Fn(u64) -> T) {
    let mut random = Random(7);
    let entry = find(TAKE, &[size_of::<T>() as u32, size as u32, nulls]).unwrap();
    for (width, len) in WIDTHS.into_iter().flat_map(|width| LENGTHS.map(|len| (width, len))) {
        for (at, limit) in [ROWS as u64, 100].into_iter().enumerate() {
            let (numbers, packed) = indices(&mut random, len, size, limit);
            let valid = (at == 0).then(|| random.bits(len as u64, 80));
            let (rows, error) = definition(&numbers, valid.as_deref(), limit);
            let index_valid = valid.as_ref().map(|valid| Bitmap::new(valid, STARTS[len % 8]));
            let columns: Vec<Vec<T>> =
                (0..2).map(|_| (0..ROWS * pieces).map(|_| make(random.next())).collect()).collect();
            let valids = [random.bits(ROWS as u64, 70), random.bits(ROWS as u64, 20)];
            let bitmaps = [Bitmap::new(&valids[0], 3), Bitmap::new(&valids[1], 64)];
            let mut targets = vec![vec![make(!0); len * pieces]; 2];
            let mut target_valids = vec![vec![!0u32; len.div_ceil(32)]; 2];
            let table: Vec<u64> = (0..2)
                .flat_map(|c| {
                    let (valid, valid_offset) =
                        if nulls == 1 { bitmaps[c].input() } else { (In::absent(), 0) };
                    let (source, target) = (input(&columns[c]), output(&mut targets[c]));
                    let target_valid = output(&mut target_valids[c]);
                    moved(source, target, (valid, valid_offset), target_valid).words()
                })
                .collect();
            let (mut null_counts, mut failed) = ([0; 2], [u64::MAX]);
            let (valid, valid_offset) = index_valid.as_ref().map_or((In::absent(), 0), Bitmap::input);
            let args = Take {
                indices: bytes(&packed, len * size),
                valid,
                valid_offset,
                len: len as u64,
                limit,
                table: input(&table),
                columns: 2,
                nulls: output(&mut null_counts),
                error: output(&mut failed),
                pieces: pieces as u64,
            };
            let what = format!("{} of {len} rows, width {width}", entry.name);
            assert_eq!(run(entry, args, width), None, "{what}");
            assert_eq!(failed[0], error, "{what}");
            for c in 0..2 {
                let wanted: Vec<Option<usize>> =
                    rows.iter().map(|row| row.filter(|&row| nulls != 1 || valids[c][row])).collect();
                for (i, row) in wanted.iter().enumerate() {
                    assert_eq!(bit(&target_valids[c], i), row.is_some(), "{what}, row {i}");
                    if let Some(row) = row {
                        let (to, from) = (i * pieces, row * pieces);
                        assert!(
                            targets[c][to..to + pieces] == columns[c][from..from + pieces],
                            "{what}, row {i}"
                        );
                    }
                }
                for i in len..len.next_multiple_of(32) {
                    assert!(!bit(&target_valids[c], i), "{what}, past the end");
                }
                assert_eq!(
                    null_counts[c],
                    wanted.iter().filter(|row| row.is_none()).count() as u64,
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn every_width_and_index() {
    for size in [1, 2, 4, 8] {
        for nulls in [0, 1] {
            take_values(size, nulls, 1, |x| x as u8);
            take_values(size, nulls, 1, |x| x as u16);
            take_values(size, nulls, 1, |x| x as u32);
            take_values(size, nulls, 1, |x| x);
            take_values(size, nulls, 1, |x| u128::from(x) << 61 | u128::from(x));
        }
    }
}

#[test]
fn values_of_several_pieces() {
    for size in [1, 2, 4, 8] {
        take_values(size, 2, 7, |x| x as u8);
        take_values(size, 2, 3, |x| x as u32);
        take_values(size, 2, 2, |x| u128::from(x) << 61 | u128::from(x));
    }
}

#[test]
fn bitmaps() {
    let mut random = Random(8);
    for (width, len) in WIDTHS.into_iter().flat_map(|width| LENGTHS.map(|len| (width, len))) {
        for (entry, size) in TAKE_BITS.iter().zip([1, 2, 4, 8]) {
            let (numbers, packed) = indices(&mut random, len, size, ROWS as u64);
            let valid = random.bits(len as u64, 80);
            let (rows, error) = definition(&numbers, Some(&valid), ROWS as u64);
            let index_valid = Bitmap::new(&valid, STARTS[len % 8]);
            let columns = STARTS.map(|_| random.bits(ROWS as u64, 60));
            let sources: Vec<Bitmap> = columns.iter().zip(STARTS).map(|(c, o)| Bitmap::new(c, o)).collect();
            let mut targets = vec![vec![!0u32; len.div_ceil(32)]; 8];
            let table: Vec<u64> = (sources.iter().zip(&mut targets))
                .flat_map(|(source, target)| {
                    let (source, offset) = source.input();
                    MovedRow::bits(source, offset, output(target)).words()
                })
                .collect();
            let (mut nulls, mut failed) = ([0; 8], [u64::MAX]);
            let (valid, valid_offset) = index_valid.input();
            let args = TakeBits {
                indices: bytes(&packed, len * size),
                valid,
                valid_offset,
                len: len as u64,
                limit: ROWS as u64,
                table: input(&table),
                columns: 8,
                nulls: output(&mut nulls),
                error: output(&mut failed),
            };
            assert_eq!(run(entry, args, width), None);
            assert_eq!(failed[0], error);
            for (column, (target, nulls)) in columns.iter().zip(targets.iter().zip(nulls)) {
                let wanted: Vec<bool> = rows.iter().map(|row| row.is_some_and(|row| column[row])).collect();
                let got: Vec<bool> = (0..len).map(|i| bit(target, i)).collect();
                assert_eq!(got, wanted, "{} of {len} rows, width {width}", entry.name);
                assert_eq!(nulls, wanted.iter().filter(|bit| !**bit).count() as u64);
            }
        }
    }
}

/// No index, however wrong, makes a kernel touch memory outside: the extents are exact, and such an access
/// would be a fault.
#[test]
fn hostile_indices() {
    for width in WIDTHS {
        let numbers = [u64::MAX, 1 << 63, 1 << 60, 1 << 32, 5, 4, 0, u64::MAX];
        let (source, mut target, mut valid) = ([10u32, 11, 12, 13, 14], [0u32; 8], [0u32]);
        let (mut nulls, mut failed) = ([0], [u64::MAX]);
        let row = moved(input(&source), output(&mut target), (In::absent(), 0), output(&mut valid));
        let table = row.words();
        let args = Take {
            indices: bytes(&numbers, 64),
            valid: In::absent(),
            valid_offset: 0,
            len: 8,
            limit: 5,
            table: input(&table),
            columns: 1,
            nulls: output(&mut nulls),
            error: output(&mut failed),
            pieces: 1,
        };
        assert_eq!(run(find(TAKE, &[4, 8, 0]).unwrap(), args, width), None);
        assert_eq!((valid, nulls, failed, target[5], target[6]), ([0b0110_0000], [6], [0], 14, 10));
        let args = Take { nulls: Out::absent(), ..args };
        assert!(run(find(TAKE, &[4, 8, 0]).unwrap(), args, width).is_some(), "an absent output is a fault");
    }
}
