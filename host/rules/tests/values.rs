//! The values at which the results of conversions change.

use arrow_buffer::i256;
use arrow_schema::DataType;

/// A small deterministic generator: the tests are the same every time.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Rows of a type, as little-endian bytes of this width.
pub fn of(data_type: &DataType, width: usize) -> Vec<Vec<u8>> {
    match data_type {
        DataType::Boolean => (0..19).map(|i| vec![(i % 3 == 0) as u8]).collect(),
        DataType::Float16 => (0..=u16::MAX).map(|bits| bits.to_le_bytes().to_vec()).collect(),
        DataType::Float32 => {
            floats().iter().map(|x| (*x as f32).to_le_bytes().to_vec()).chain(bits(4)).collect()
        }
        DataType::Float64 => floats().iter().map(|x| x.to_le_bytes().to_vec()).chain(bits(8)).collect(),
        _ => integers(width),
    }
}

fn bits(width: usize) -> Vec<Vec<u8>> {
    let mut random = Random(width as u64);
    (0..600).map(|_| (0..4).flat_map(|_| random.word().to_le_bytes()).take(width).collect()).collect()
}

/// Integers of this many bytes. Wider ones are truncated, which gives a value as good as any.
fn integers(width: usize) -> Vec<Vec<u8>> {
    let (ten, two) = (i256::from_i128(10), i256::from_i128(2));
    let mut values = vec![i256::ZERO, i256::MIN, i256::MAX];
    for exponent in 0..77 {
        let power = ten.wrapping_pow(exponent);
        for value in
            [power, power.wrapping_div(two), power.wrapping_mul(i256::from_i128(3)).wrapping_div(two)]
        {
            values.extend([value, value.wrapping_add(power.wrapping_div(ten))]);
        }
    }
    for exponent in 0..256 {
        values.push(two.wrapping_pow(exponent));
    }
    // The ends of the calendar and of a day, in every unit and with every offset.
    for per_second in [1, 1_000, 1_000_000, 1_000_000_000i128] {
        for second in [-8_334_601_228_800, 8_210_266_876_799, 8_210_266_876_800, 0, 86_400, 1_700_000_000i128]
        {
            for offset in [0, 86_400, 19_800, -39_600, -86_340, 1] {
                values.push(i256::from_i128((second + offset) * per_second));
            }
        }
        for limit in [i64::MAX as i128, i64::MIN as i128, i32::MAX as i128, i32::MIN as i128] {
            for factor in [1, 86_400] {
                values
                    .extend([limit * per_second * factor, limit / per_second / factor].map(i256::from_i128));
                values.push(i256::from_i128((limit + 1) * per_second * factor));
            }
        }
    }
    // Decimals next to the middle between two floats: an odd number of 54 or 25 bits, times a power of ten,
    // times or divided by a power of two.
    let mut random = Random(3);
    for digits in 0..76 {
        for bits in [54, 25, 54, 25] {
            let odd = (random.word() >> (64 - bits)) | 1 << (bits - 1) | 1;
            let number = i256::from_i128(odd as i128).wrapping_mul(ten.wrapping_pow(digits));
            let room = number.leading_zeros().saturating_sub(1);
            values.extend([number, number << (random.word() % (room as u64 + 1)) as u8]);
            values.push(number >> (random.word() % 60) as u8);
        }
    }
    let one = i256::ONE;
    let around = |x: i256| [x, x.wrapping_add(one), x.wrapping_sub(one)];
    let values = values.into_iter().flat_map(|x| around(x).into_iter().chain(around(x.wrapping_neg())));
    let mut rows: Vec<Vec<u8>> = values.map(|x| x.to_le_bytes()[..width].to_vec()).collect();
    // Random numbers of every length, and random bits.
    let mut random = Random(1);
    for _ in 0..600 {
        let bytes: Vec<u8> = (0..4).flat_map(|_| random.word().to_le_bytes()).collect();
        let value = i256::from_le_bytes(bytes.try_into().unwrap());
        let value = value >> (256 - 1 - random.word() % (8 * width as u64 - 1)) as u8;
        rows.push(value.to_le_bytes()[..width].to_vec());
    }
    rows.extend(bits(width));
    // An interval of nanoseconds only.
    if width == 16 {
        rows.extend(bits(16).into_iter().take(50).map(|row| [&[0; 8], &row[8..]].concat()));
    }
    rows.sort();
    rows.dedup();
    rows
}

fn floats() -> Vec<f64> {
    let mut values =
        vec![0.0, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE, f64::MAX, 5e-324, 65504.0, 65519.99, 65520.0];
    for exponent in -140..=140 {
        let power = 10f64.powi(exponent);
        values.extend([power, power / 2.0, power * 1.5, power - 0.5, power - 1.0, power + 0.5]);
    }
    for exponent in -150..=300 {
        let power = 2f64.powi(exponent);
        values.extend([power, power - 1.0, power - 0.5, power + 0.5, power + 1.0, power * 1.5]);
    }
    for whole in 0..40 {
        values.extend([whole as f64 + 0.5, whole as f64 + 0.49999999999999994, whole as f64 / 100.0 + 0.005]);
    }
    let around =
        |x: f64| [x, x.next_up(), x.next_down(), f64::from(x as f32), f64::from((x as f32).next_up())];
    values.into_iter().flat_map(around).flat_map(|x| [x, -x]).collect()
}
