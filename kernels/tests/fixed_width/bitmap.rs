use bowstring_kernels::memory::TableRow;
use bowstring_kernels::reduce::bitmap::{
    COMBINE, Combine, NULL_COUNT, NullCount, NullCountRow, null_count_parts,
};

use crate::support::*;

#[test]
fn null_counts_of_many_bitmaps() {
    let mut random = Random(1);
    for width in WIDTHS {
        let lengths =
            [0, 1, 31, 32, 33, 64, 127, 128, 129, 255, 300, 4 * 128 * 32, 4 * 128 * 64 + 129, 99_999];
        let maps: Vec<(Vec<bool>, u64)> = (lengths.iter())
            .flat_map(|&len| STARTS.map(|offset| (len, offset)))
            .map(|(len, offset)| (random.bits(len, 50), offset))
            .collect();
        let bitmaps: Vec<Bitmap> = maps.iter().map(|(bits, offset)| Bitmap::new(bits, *offset)).collect();
        let rows: Vec<u64> = (bitmaps.iter().zip(&maps))
            .flat_map(|(bitmap, (bits, _))| {
                let (words, offset) = bitmap.input();
                NullCountRow { words, offset, len: bits.len() as u64 }.words()
            })
            .collect();
        for parts in [1, 3, null_count_parts(99_999, width)] {
            let mut nulls = vec![0; maps.len()];
            let count = maps.len() as u64;
            let args = NullCount { maps: input(&rows), count, parts, nulls: output(&mut nulls) };
            assert_eq!(run(&NULL_COUNT[0], args, width), None);
            for ((bits, offset), nulls) in maps.iter().zip(nulls) {
                let wanted = bits.iter().filter(|bit| !**bit).count() as u64;
                assert_eq!(nulls, wanted, "{} bits at {offset}, {parts} parts, width {width}", bits.len());
            }
        }
    }
}

#[test]
fn copy_not_and() {
    let mut random = Random(9);
    for width in WIDTHS {
        for len in [1, 31, 32, 33, 64, 127, 1024, 8191, 8192, 8193, 32_767, 32_768, 33_000, 70_001] {
            for (offset, other) in STARTS.into_iter().zip(STARTS.into_iter().rev()) {
                let (a, b) = (random.bits(len, 50), random.bits(len, 50));
                let (left, right) = (Bitmap::new(&a, offset), Bitmap::new(&b, other));
                for (entry, f) in
                    COMBINE.iter().zip([(|a, _| a) as fn(bool, bool) -> bool, |a, _| !a, |a, b| a && b])
                {
                    let ((left, left_offset), (right, right_offset)) = (left.input(), right.input());
                    let mut room = vec![!0u128; len.div_ceil(128) as usize];
                    let target = output(&mut room).cast();
                    let mut nulls = [0];
                    let nulls_wanted = output(&mut nulls);
                    let args =
                        Combine { left, left_offset, right, right_offset, len, target, nulls: nulls_wanted };
                    assert_eq!(run(entry, args, width), None);
                    let wanted: Vec<bool> = a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect();
                    let words = room.iter().flat_map(|block| [0, 32, 64, 96].map(|by| (block >> by) as u32));
                    for (w, word) in words.take(len.div_ceil(32) as usize).enumerate() {
                        let bits = (0..32)
                            .fold(0, |m, i| m | u32::from(*wanted.get(w * 32 + i).unwrap_or(&false)) << i);
                        assert_eq!(
                            word, bits,
                            "{} word {w} of {len} bits at {offset}, width {width}",
                            entry.name
                        );
                    }
                    assert_eq!(nulls[0], wanted.iter().filter(|bit| !**bit).count() as u64);
                }
            }
        }
    }
}
