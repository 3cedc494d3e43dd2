use bowstring_kernels::map::function::divide::Divisor;

use crate::support::Random;

/// Divides by the reciprocal at the hardest numbers: multiples of the divisor and their neighbours.
#[test]
fn division_by_a_constant_is_exact() {
    let mut random = Random(7);
    let powers = (0..39).map(|exponent| 10u128.pow(exponent));
    for d in powers.chain([2, 3, 7, 86_400, 1 << 64, (1 << 127) + 1, u128::MAX, u128::MAX / 2]) {
        let divisor = Divisor::new(d);
        let (high, low) = (random.next() as u128, random.next() as u128);
        let some = high << 64 | low;
        for multiple in [0, 1, some % (u128::MAX / d), u128::MAX / d] {
            for x in [
                multiple * d,
                (multiple * d).wrapping_sub(1),
                (multiple * d).wrapping_add(1),
                u128::MAX,
                some,
            ] {
                assert_eq!(divisor.divide(x), (x / d, x % d), "{x} / {d}");
            }
        }
        if let Ok(d) = u64::try_from(d) {
            let divisor = Divisor::new(d);
            for x in
                [0, 1, d, d - 1, u64::MAX, u64::MAX / d * d, (u64::MAX / d * d).wrapping_sub(1), low as u64]
            {
                assert_eq!(divisor.divide(x), (x / d, x % d), "{x} / {d}");
            }
        }
    }
}
