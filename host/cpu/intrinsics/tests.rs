//! Tests of every vector level against the plain definitions.

use super::*;

fn levels() -> impl Iterator<Item = VectorLevel> {
    VectorLevel::available().iter().copied()
}

fn noise(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

fn compress_agrees<const W: usize>() {
    for len in [0usize, 1, 63, 64, 65, 128, 1000, 4096] {
        for (seed, density) in [(1, 0), (2, 1), (3, 2), (4, 6), (5, 63), (6, 64)] {
            let mut bytes = noise(seed).map(|x| x as u8);
            let values: Vec<[u8; W]> =
                (0..len).map(|_| std::array::from_fn(|_| bytes.next().unwrap())).collect();
            let mut kept = noise(seed + 9).map(|x| x % 64 < density);
            let kept: Vec<bool> = (0..len).map(|_| kept.next().unwrap()).collect();
            let mut words = vec![0u64; len.div_ceil(64)];
            kept.iter().enumerate().for_each(|(i, k)| words[i / 64] |= u64::from(*k) << (i % 64));
            let expected: Vec<[u8; W]> =
                values.iter().zip(&kept).filter(|(_, k)| **k).map(|(v, _)| *v).collect();
            for level in levels() {
                let mut out = vec![[0xAB; W]; expected.len() + 3];
                let room = expected.len();
                let written = compress_at(level, &values, &words, &mut out[..room]);
                assert_eq!(written, room);
                assert!(out[..room] == expected[..], "{level:?} width {W} len {len} density {density}");
                assert_eq!(out[room..], [[0xAB; W]; 3], "{level:?} wrote past its part");
            }
        }
    }
}

#[test]
fn every_level_compresses_alike() {
    compress_agrees::<1>();
    compress_agrees::<2>();
    compress_agrees::<4>();
    compress_agrees::<8>();
    compress_agrees::<16>();
    compress_agrees::<32>();
}

#[test]
fn extracting_bits_is_pext() {
    for (value, mask) in noise(3).zip(noise(4)).take(200) {
        let expected = (0..64).filter(|i| mask >> i & 1 != 0).enumerate();
        let expected = expected.fold(0, |all, (k, i)| all | (value >> i & 1) << k);
        assert_eq!(plain::extract(value, mask), expected);
        let mut out = [0];
        let (_, ones) = compact(&[mask], Bits::new(&value.to_le_bytes(), 0, 64), 0, &mut out);
        assert_eq!((out[0], ones), (expected, expected.count_ones() as usize));
    }
}

#[test]
fn compacted_bits_follow_those_of_the_caller() {
    let mixed = noise(8).zip(noise(9)).enumerate().map(|(i, (a, b))| match i % 5 {
        0 => 0,
        1 => u64::MAX,
        2 => a & b & a.rotate_left(7) & b.rotate_left(11),
        _ => a,
    });
    let (masks, bytes): (Vec<u64>, Vec<[u8; 8]>) =
        mixed.zip(noise(10).map(u64::to_le_bytes)).take(90).unzip();
    let bytes = [bytes.as_flattened(), &[0xA5]].concat();
    for (fill, len) in [0, 1, 31, 63].into_iter().flat_map(|fill| (0..90).map(move |len| (fill, len))) {
        // The last word is not whole.
        let (rows, shift) = (len * 64 - 5 * usize::from(len > 0), len % 3 * 2);
        let bits = Bits::new(&bytes, shift, rows);
        let mut masks = masks[..len].to_vec();
        masks.last_mut().into_iter().for_each(|last| *last &= !0 >> 5);
        let kept = (0..rows).filter(|row| masks[row / 64] >> (row % 64) & 1 != 0);
        let kept: Vec<bool> = kept.map(|row| bits.get(row)).collect();
        let expected = bits_of(&[vec![false; fill], kept.clone()].concat());
        let behind = usize::from(fill > 0);
        let mut ours = vec![!0; expected.len().saturating_sub(behind)];
        let mut plain = ours.clone();
        let packed = compact(&masks, bits, fill, &mut ours);
        assert_eq!(packed, plain::compact(&masks, bits, fill, &mut plain, plain::extract));
        let head = if fill > 0 { expected[0] } else { 0 };
        assert_eq!(packed, (head, kept.iter().filter(|kept| **kept).count()), "{fill} {len}");
        assert_eq!((&ours[..], &plain[..]), (&expected[behind..], &expected[behind..]), "{fill} {len}");
    }
}

fn bits_of(kept: &[bool]) -> Vec<u64> {
    let mut words = vec![0u64; kept.len().div_ceil(64)];
    kept.iter().enumerate().for_each(|(i, k)| words[i / 64] |= u64::from(*k) << (i % 64));
    words
}

fn gather_agrees<const W: usize, const I: usize>(indices: &[u64]) {
    let mut bytes = noise(5).map(|x| x as u8);
    let values: Vec<[u8; W]> = (0..1000).map(|_| std::array::from_fn(|_| bytes.next().unwrap())).collect();
    let indices: Vec<[u8; I]> =
        indices.iter().map(|i| std::array::from_fn(|byte| i.to_le_bytes()[byte])).collect();
    let validity: Vec<u8> = noise(6).map(|x| x as u8).take(indices.len() / 8 + 2).collect();
    for (limit, masked) in [(1000, false), (1000, true), (900, true), (0, true)] {
        let valid = masked.then(|| Bits::new(&validity, 3, indices.len()));
        let inside = |i: usize| crate::cpu::indices::index(indices[i]) < limit;
        let alive = |i: usize| valid.is_none_or(|valid| valid.get(i));
        let good = (0..indices.len()).all(|i| inside(i) || !alive(i));
        for level in levels() {
            for gathers in [false, true] {
                let mut out = vec![[0xAB; W]; indices.len()];
                let found = gather_at(level, gathers, &values, &indices, limit, valid, &mut out);
                assert_eq!(found, good, "{level:?} {gathers}");
                for i in (0..indices.len()).filter(|i| inside(*i) && alive(*i)) {
                    let expected = values[crate::cpu::indices::index(indices[i]) as usize];
                    assert_eq!(out[i], expected, "{level:?} {gathers} {i}");
                }
            }

            let bytes = values.as_flattened();
            for (shift, len) in [(0, 1000), (5, 1001), (7, bytes.len().min(125) * 8 - 7)] {
                let bits = Bits::new(&bytes[..(shift + len).div_ceil(8)], shift, len);
                let limit = limit.min(len as u64);
                let mut out = vec![0; indices.len().div_ceil(64)];
                gather_bits_at(level, bits, &indices, limit, valid, &mut out);
                for i in 0..indices.len() {
                    let index = crate::cpu::indices::index(indices[i]);
                    let expected = alive(i) && index < limit && bits.get(index as usize);
                    assert_eq!(out[i / 64] >> (i % 64) & 1 == 1, expected, "{level:?} bit {i} of {index}");
                }
            }
        }
    }
}

#[test]
fn every_level_gathers_alike() {
    let inside: Vec<u64> = noise(7).map(|x| x % 1000).take(777).collect();
    let mut mixed = inside.clone();
    for (at, bad) in [(3, 1000), (200, u64::from(u32::MAX)), (700, 1 << 31), (776, 999)] {
        mixed[at] = bad;
    }
    for indices in [&inside[..], &mixed, &inside[..64], &inside[..63], &[]] {
        gather_agrees::<1, 4>(indices);
        gather_agrees::<4, 4>(indices);
        gather_agrees::<8, 4>(indices);
        gather_agrees::<4, 8>(indices);
        gather_agrees::<8, 8>(indices);
        gather_agrees::<16, 8>(indices);
    }
    gather_agrees::<8, 8>(&[u64::MAX, 1 << 63, 1 << 32]);
}

#[test]
fn words_are_read_alike_at_every_offset() {
    let bytes: Vec<u8> = noise(8).map(|x| x as u8).take(700).collect();
    for offset in [0usize, 1, 7, 8, 31, 63, 64] {
        for len in [0, 1, 63, 64, 65, 1000, 5000, 5600 - offset] {
            let bits = Bits::new(&bytes[..(offset + len).div_ceil(8)], offset, len);
            for first in [0, 1, 5].into_iter().filter(|first| *first <= bits.words()) {
                let mut words = vec![0; bits.words() - first];
                read_words(bits, first, &mut words, |_, word| word);
                let expected: Vec<u64> = (first..bits.words()).map(|i| bits.word(i)).collect();
                assert_eq!(words, expected, "{offset}+{len} from {first}");
            }
        }
    }
}

#[test]
fn positions_are_those_of_the_ones() {
    for density in [0, 1, 20, 40, 64] {
        let kept: Vec<bool> = noise(9).map(|x| x % 64 < density).take(64 * 64).collect();
        let expected: Vec<u16> = (0..4096).filter(|i| kept[usize::from(*i)]).collect();
        let words = bits_of(&kept);
        let mut ours = [0; POSITIONS];
        let count = positions(&words, &mut ours);
        assert_eq!(ours[..count], expected);
        let count = plain::positions(&words, &mut ours);
        assert_eq!(ours[..count], expected);
    }
}

/// Returns offsets of rows with these lengths, starting at 3.
fn offsets<const O: usize>(lens: impl Iterator<Item = usize>) -> Vec<[u8; O]> {
    let mut at = 3;
    let ends = lens.map(|len| {
        at += len;
        crate::cpu::rows::offset_bytes(at)
    });
    std::iter::once(crate::cpu::rows::offset_bytes(3)).chain(ends).collect()
}

fn kept_rows_agree<const O: usize>(rows: usize, density: u64) {
    let lens = noise(10).map(|x| if x % 50 == 0 { 600 } else { (x >> 32) as usize % 90 });
    let offsets = offsets::<O>(lens.take(rows));
    let data: Vec<u8> = noise(11).map(|x| x as u8).take(rows * 60 + 4000).collect();
    let kept: Vec<bool> = noise(12).map(|x| x % 64 < density).take(rows).collect();
    let words = bits_of(&kept);
    let row = |i: usize| crate::cpu::rows::range(&offsets, i, data.len()).unwrap();
    let expected: Vec<u8> = (0..rows).filter(|i| kept[*i]).flat_map(|i| data[row(i)].to_vec()).collect();
    let mut out = vec![0xAB; expected.len() + 70];
    assert_eq!(copy_kept(&offsets, &data, &words, &mut out[..expected.len()]), Some(expected.len()));
    assert!(out[..expected.len()] == expected[..] && out[expected.len()..] == [0xAB; 70]);
    if !expected.is_empty() {
        let short = expected.len() - 1;
        assert_eq!(copy_kept(&offsets, &data, &words, &mut out[..short]), None);
        assert_eq!(plain::copy_kept(&offsets, &data, &words, &mut out[..short]), None);
        assert_eq!(copy_kept(&offsets, &data[..2], &words, &mut out), None);
    }
    assert_eq!(plain::copy_kept(&offsets, &data, &words, &mut out), Some(expected.len()));

    let starts: Vec<usize> = (0..rows).filter(|i| kept[*i]).map(|i| row(i).start).collect();
    let lens: Vec<usize> = (0..rows).filter(|i| kept[*i]).map(|i| row(i).len()).collect();
    let mut other = vec![0; expected.len()];
    assert_eq!(copy_ranges(&data, &starts, &lens, &starts, &mut other), Some(expected.len()));
    assert!(other == expected);
    assert_eq!(copy_ranges(&data, &[data.len()], &[1], &[usize::MAX], &mut other), None);
    assert_eq!(copy_ranges(&data, &[usize::MAX], &[2], &[], &mut other), None);

    let mut found = vec![([0; O], [0; O]); lens.len()].into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
    assert_eq!(kept_rows(&offsets, data.len(), &words, &mut found.0, &mut found.1), Some(expected.len()));
    let mut end = 0;
    for (i, (start, len)) in starts.iter().zip(&lens).enumerate() {
        end += len;
        let ours = (crate::cpu::rows::offset(found.0[i]), crate::cpu::rows::offset(found.1[i]));
        assert_eq!(ours, (*start, end));
    }
    let mut plain = found.clone();
    let (plain_starts, plain_ends) = (&mut plain.0, &mut plain.1);
    let size = plain::kept_rows(&offsets, data.len(), &words, 0, plain_starts, plain_ends);
    assert!(size == Some(expected.len()) && plain == found);

    let mut out = vec![0xAB; expected.len() + 70];
    assert!(copy_rows(&data, &found.0, &found.1, &mut out[..expected.len()]));
    assert!(out[..expected.len()] == expected[..] && out[expected.len()..] == [0xAB; 70]);
    assert!(copy_rows(&data, &found.0, &found.1, &mut out) && out[..expected.len()] == expected[..]);
    assert!(plain::copy_rows(&data, &found.0, &found.1, &mut other) && other == expected);
    if !expected.is_empty() {
        assert!(!copy_rows(&data, &found.0, &found.1, &mut out[..expected.len() - 1]));
        assert!(!copy_rows(&data[..2], &found.0, &found.1, &mut out));
        assert!(!plain::copy_rows(&data[..2], &found.0, &found.1, &mut out));
    }
}

#[test]
fn kept_rows_of_bytes_agree_with_plain_code() {
    for rows in [0, 1, 63, 64, 65, 1000] {
        for density in [0, 1, 32, 63, 64] {
            kept_rows_agree::<4>(rows, density);
            kept_rows_agree::<8>(rows, density);
        }
    }
}

#[test]
fn offsets_that_go_back_are_noticed_wherever_they_do() {
    let (mut starts, mut ends) = ([[0; 4]; 200], [[0; 4]; 200]);
    for back in [1, 17, 63, 64, 65, 129, 200] {
        let mut offsets = offsets::<4>(std::iter::repeat_n(5, 200));
        for bad in [0, -1i32] {
            offsets[back] = bad.to_le_bytes();
            let mut words = [u64::MAX, u64::MAX, u64::MAX, 0xFF];
            assert_eq!(kept_rows(&offsets, 1003, &words, &mut starts, &mut ends), None, "{back}");
            assert_eq!(plain::kept_rows(&offsets, 1003, &words, 0, &mut starts, &mut ends), None, "{back}");
            for row in [back - 1, back].into_iter().filter(|row| *row < 200) {
                words[row / 64] &= !(1 << (row % 64));
            }
            assert!(kept_rows(&offsets, 1003, &words, &mut starts, &mut ends).is_some(), "{back}");
            assert_eq!(kept_rows(&offsets, 900, &words, &mut starts, &mut ends), None, "{back}");
        }
    }
}

fn located_alike<const O: usize, const I: usize>(rows: usize, indices: &[u64], dead: u64, extent: usize) {
    let offsets = offsets::<O>(noise(13).map(|x| x as usize % 30).take(rows));
    let indices: Vec<[u8; I]> = indices.iter().map(|i| crate::cpu::rows::offset_bytes(*i as usize)).collect();
    let alive: Vec<bool> = noise(14).map(|x| x % 8 >= dead).take(indices.len()).collect();
    let bytes: Vec<u8> = bits_of(&alive).iter().flat_map(|word| word.to_le_bytes()).collect();
    let valid = (dead > 0).then(|| Bits::new(&bytes, 0, alive.len()));
    let (mut starts, mut ends) = (vec![[0xAB; O]; alive.len()], vec![[0xAB; O]; alive.len()]);
    let (mut plain_starts, mut plain_ends) = (starts.clone(), ends.clone());
    let limit = rows as u64;
    let ours = locate(&offsets, extent, &indices, limit, valid, &mut starts, &mut ends);
    let plain =
        plain::locate(&offsets, extent, &indices, limit, valid, 0, &mut plain_starts, &mut plain_ends);
    assert_eq!(ours, plain, "{rows} {} {dead} {extent}", indices.len());
    if ours.is_some() {
        assert!(starts == plain_starts && ends == plain_ends);
    }
}

#[test]
fn rows_of_bytes_are_located_alike() {
    for count in [0, 1, 63, 64, 65, 1000] {
        for dead in [0, 1, 8] {
            for beyond in [0, 1] {
                let indices: Vec<u64> = noise(15).map(|x| x % (500 + beyond)).take(count).collect();
                for extent in [40_000, 7_000, 0] {
                    located_alike::<4, 4>(500, &indices, dead, extent);
                    located_alike::<4, 8>(500, &indices, dead, extent);
                    located_alike::<8, 4>(500, &indices, dead, extent);
                }
            }
        }
    }
    located_alike::<4, 8>(500, &[u64::MAX; 64], 0, 40_000);
    located_alike::<4, 4>(500, &[u64::from(u32::MAX); 64], 8, 40_000);
}
