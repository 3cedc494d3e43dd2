use bowstring_kernels::column::MovedRow;
use bowstring_kernels::memory::{In, Out, TableRow};
use bowstring_kernels::select::bits::*;
use bowstring_kernels::select::filter::*;
use bowstring_kernels::select::filter_few::{FILTER_FEW, FilterFew};
use bowstring_kernels::select::filter_small::*;
use bowstring_kernels::select::selection::*;
use bowstring_kernels::target::{Value, find};

use crate::support::*;

/// The results of a selection's two launches.
struct Selection {
    words: Vec<u128>,
    /// Set if filters can read the mask itself instead of `words`.
    mask: Option<Bitmap>,
    offsets: Vec<u64>,
    total: u64,
    tiles: u64,
}

fn select(mask: &[bool], valid: Option<&[bool]>, offset: u64, width: u32) -> Selection {
    let len = mask.len() as u64;
    let sizes = sizes(len);
    let mask = Bitmap::new(mask, offset);
    let valid = valid.map(|valid| Bitmap::new(valid, 77 - offset % 50));
    let mut words = vec![!0u128; sizes.words as usize / 4];
    let mut counts = vec![!0u128; (sizes.counts / 4) as usize];
    let mut sums = vec![0u64; sizes.groups as usize];
    let wanted = match &valid {
        Some(_) => output(&mut words).cast(),
        None => Out::absent(),
    };
    let ((bits, mask_offset), (valid_bits, valid_offset)) =
        (mask.input(), valid.as_ref().map_or((In::absent(), 0), Bitmap::input));
    let args = Select {
        mask: bits,
        mask_offset,
        valid: valid_bits,
        valid_offset,
        len,
        counts: output(&mut counts).cast(),
        words: wanted,
        sums: output(&mut sums),
    };
    assert_eq!(run(&SELECT[0], args, width), None);
    let mut offsets = vec![!0u128; (sizes.offsets / 2 + 1) as usize];
    let mut total = [0];
    let args = Offsets {
        counts: input(&counts).cast(),
        sums: input(&sums),
        len: sizes.counts,
        offsets: output(&mut offsets).cast(),
        total: output(&mut total),
    };
    assert_eq!(run(&OFFSETS[0], args, width), None);
    let mut offsets: Vec<u64> = offsets.iter().flat_map(|two| [*two as u64, (*two >> 64) as u64]).collect();
    offsets.truncate(sizes.offsets as usize);
    let mask = valid.is_none().then_some(mask);
    Selection { words, mask, offsets, total: total[0], tiles: sizes.tiles }
}

impl Selection {
    /// The bitmap that filters read, and its offset.
    fn bits(&self) -> (In<u32>, u64) {
        self.mask.as_ref().map_or_else(|| (input(&self.words).cast(), 0), Bitmap::input)
    }
}

const LENGTHS: [usize; 12] = [1, 31, 32, 33, 64, 65, 2047, 2048, 2049, 8191, 8193, 3 * 2048 + 7];

/// Masks of every kind: none, few, half, most, all, and whole tiles of them in turn.
fn masks(random: &mut Random, len: usize) -> Vec<Vec<bool>> {
    let mut masks: Vec<Vec<bool>> =
        [0, 1, 10, 50, 99, 100].iter().map(|&p| random.bits(len as u64, p)).collect();
    masks.push((0..len).map(|i| i / 2048 % 2 == 0).collect());
    masks.push((0..len).map(|i| i / 100 % 3 == 1).collect());
    masks
}

#[test]
fn selections() {
    let mut random = Random(4);
    for width in WIDTHS {
        for len in LENGTHS.into_iter().chain([2048 * 1025, 2048 * 4100 + 1]) {
            for (at, mask) in masks(&mut random, len).into_iter().enumerate() {
                if len > 100_000 && at != 3 {
                    continue;
                }
                let valid = (at % 2 == 1).then(|| random.bits(len as u64, 70));
                let selection = select(&mask, valid.as_deref(), STARTS[at], width);
                let kept: Vec<bool> =
                    (0..len).map(|i| mask[i] && valid.as_ref().is_none_or(|v| v[i])).collect();
                if valid.is_some() {
                    for (w, word) in selection.words.iter().enumerate() {
                        let wanted = (0..128)
                            .fold(0, |m, b| m | u128::from(*kept.get(w * 128 + b).unwrap_or(&false)) << b);
                        assert_eq!(*word, wanted, "block {w} of {len} rows, width {width}");
                    }
                }
                let mut before = 0;
                for (tile, &offset) in selection.offsets.iter().enumerate() {
                    assert_eq!(offset, before, "tile {tile} of {len} rows, width {width}");
                    before += kept.iter().skip(tile * 2048).take(2048).filter(|kept| **kept).count() as u64;
                }
                assert_eq!(selection.total, before);
            }
        }
    }
}

fn filter_values<T: Value + PartialEq + std::fmt::Debug>(pieces: usize, make: impl Fn(u64) -> T) {
    let mut random = Random(5);
    let key = [size_of::<T>() as u32, u32::from(pieces > 1)];
    let mut places = STARTS.into_iter().cycle();
    let entry = find(FILTER, &key).unwrap();
    for width in WIDTHS {
        for len in LENGTHS {
            for mask in masks(&mut random, len) {
                let all = random.bits(len as u64, 100);
                let offset = places.next().unwrap();
                let selection = select(&mask, (offset == 7).then_some(&all[..]), offset, width);
                let (words, words_offset) = selection.bits();
                let columns: Vec<Vec<T>> =
                    (0..3).map(|_| (0..len * pieces).map(|_| make(random.next())).collect()).collect();
                let mut kept: Vec<Vec<T>> =
                    columns.iter().map(|_| vec![make(!0); selection.total as usize * pieces]).collect();
                let table: Vec<u64> = (columns.iter().zip(&mut kept))
                    .flat_map(|(source, target)| MovedRow::values(input(source), output(target)).words())
                    .collect();
                let args = Filter {
                    table: input(&table),
                    columns: 3,
                    tiles: selection.tiles,
                    len: len as u64,
                    words,
                    words_offset,
                    offsets: input(&selection.offsets),
                    pieces: pieces as u64,
                };
                assert_eq!(run(entry, args, width), None, "{}", entry.name);
                let check = |kept: &[Vec<T>], name| {
                    for (source, target) in columns.iter().zip(kept) {
                        let rows = (0..len).filter(|&i| mask[i]);
                        let wanted: Vec<T> =
                            rows.flat_map(|i| &source[i * pieces..(i + 1) * pieces]).copied().collect();
                        assert!(*target == wanted, "{name} of {len} rows, width {width}");
                    }
                };
                check(&kept, entry.name);
                // Each wave counts the rows before its own.
                if len as u64 <= MOST {
                    kept.iter_mut().flatten().for_each(|value| *value = make(!0));
                    let Filter { table, columns, tiles, len: rows, words, words_offset, pieces, .. } = args;
                    let mut total = [u64::MAX];
                    let total_out = output(&mut total);
                    let args = FilterSmall {
                        table,
                        columns,
                        tiles,
                        len: rows,
                        words,
                        words_offset,
                        total: total_out,
                        pieces,
                    };
                    let entry = find(FILTER_SMALL, &key[..1]).unwrap();
                    assert_eq!(run(entry, args, width), None, "{}", entry.name);
                    check(&kept, entry.name);
                    assert_eq!(total, [selection.total]);
                }
                if pieces > 1 {
                    continue;
                }
                // Such a launch is slower if many rows are kept, but right.
                kept.iter_mut().flatten().for_each(|value| *value = make(!0));
                let Filter { table, columns: _, tiles, len: rows, words, words_offset, offsets, .. } = args;
                let args = FilterFew { table, columns: 3, tiles, len: rows, words, words_offset, offsets };
                let entry = find(FILTER_FEW, &key[..1]).unwrap();
                assert_eq!(run(entry, args, width), None, "{}", entry.name);
                check(&kept, entry.name);
            }
        }
    }
}

#[test]
fn values_of_every_width() {
    filter_values(1, |x| x as u8);
    filter_values(1, |x| x as u16);
    filter_values(1, |x| x as u32);
    filter_values(1, |x| x);
    filter_values(1, |x| u128::from(x) << 61 | u128::from(x));
}

#[test]
fn values_of_several_pieces() {
    filter_values(3, |x| x as u8);
    filter_values(7, |x| x as u16);
    filter_values(5, |x| x as u32);
    filter_values(3, |x| x);
    filter_values(2, |x| u128::from(x) << 61 | u128::from(x));
}

#[test]
fn bitmaps() {
    let mut random = Random(6);
    let mut places = STARTS.into_iter().cycle();
    for width in WIDTHS {
        for len in LENGTHS.into_iter().chain([2 << 14]) {
            // A wave that keeps all of its rows comes after one that keeps five: its rows do not begin on a
            // word.
            let five_and_half: Vec<bool> = (0..len).map(|i| i < 5 || i >> 14 == 1).collect();
            for mask in masks(&mut random, len).into_iter().chain([five_and_half]) {
                let offset = places.next().unwrap();
                let selection = select(&mask, None, offset, width);
                let (words, words_offset) = selection.bits();
                let spans = filter_bits_spans(len as u64, width);
                let columns: Vec<Vec<bool>> = STARTS.map(|o| random.bits(len as u64, 100 - o % 60)).into();
                let sources: Vec<Bitmap> =
                    columns.iter().zip(STARTS).map(|(c, o)| Bitmap::new(c, o)).collect();
                let mut kept = vec![vec![0u32; (selection.total as usize).div_ceil(32)]; columns.len()];
                let table: Vec<u64> = (sources.iter().zip(&mut kept))
                    .flat_map(|(source, target)| {
                        let (source, offset) = source.input();
                        MovedRow::bits(source, offset, output(target)).words()
                    })
                    .collect();
                let (mut nulls, mut total) = (vec![0; columns.len()], [u64::MAX]);
                let args = FilterBits {
                    table: input(&table),
                    columns: columns.len() as u64,
                    spans,
                    len: len as u64,
                    words,
                    words_offset,
                    offsets: input(&selection.offsets),
                    nulls: output(&mut nulls),
                };
                assert_eq!(run(&FILTER_BITS[0], args, width), None);
                // Each wave counts the rows before its own.
                if len as u64 <= MOST {
                    let with_offsets = (kept.clone(), nulls.clone());
                    kept.iter_mut().flatten().for_each(|word| *word = 0);
                    nulls.fill(0);
                    let FilterBits { table, columns, len: rows, words, words_offset, .. } = args;
                    let (total, nulls_out) = (output(&mut total), output(&mut nulls));
                    let args = FilterSmallBits {
                        table,
                        columns,
                        len: rows,
                        words,
                        words_offset,
                        total,
                        nulls: nulls_out,
                    };
                    assert_eq!(run(&FILTER_SMALL_BITS[0], args, width), None);
                    assert!(with_offsets == (kept.clone(), nulls.clone()), "{len} rows, width {width}");
                }
                assert!(len as u64 > MOST || total == [selection.total]);
                for (column, (target, nulls)) in columns.iter().zip(kept.iter().zip(nulls)) {
                    let bits: Vec<bool> = (0..len).filter(|&i| mask[i]).map(|i| column[i]).collect();
                    assert_eq!(nulls, bits.iter().filter(|bit| !**bit).count() as u64);
                    for (w, word) in target.iter().enumerate() {
                        let wanted = (0..32)
                            .fold(0, |m, b| m | u32::from(*bits.get(w * 32 + b).unwrap_or(&false)) << b);
                        assert_eq!(*word, wanted, "word {w} of {len} rows, width {width}");
                    }
                }
            }
        }
    }
}
