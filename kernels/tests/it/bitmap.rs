use bowstring_kernels::bitmap::*;

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
            assert_eq!(run(&NULL_COUNT[0], args, width, count * parts), None);
            for ((bits, offset), nulls) in maps.iter().zip(nulls) {
                let wanted = bits.iter().filter(|bit| !**bit).count() as u64;
                assert_eq!(nulls, wanted, "{} bits at {offset}, {parts} parts, width {width}", bits.len());
            }
        }
    }
}
