use bowstring_kernels::text::powers::{POWERS, Powers, Ready, log2, log10};

use crate::support::{Natural, decimal};

#[test]
fn every_power_is_rounded_down_to_128_bits() {
    assert_eq!(size_of_val(POWERS), 824);
    for exponent in -364..336i32 {
        let power = POWERS.power(exponent);
        assert_eq!(power, Ready.power(exponent), "10^{exponent}");
        assert_eq!(power.high >> 63, 1, "10^{exponent}");
        let bits = u128::from(power.high) << 64 | u128::from(power.low);
        // Multiplies power * 2^shift, or the ten, on the side that keeps both whole.
        let shift = log2(exponent) - 127;
        let side =
            |bits: Natural| bits.times(2, shift.max(0) as u32).times(10, exponent.min(0).unsigned_abs());
        let ten = Natural::new(1).times(10, exponent.max(0) as u32).times(2, shift.min(0).unsigned_abs());
        assert!(side(Natural::new(bits)).at_most(&ten), "10^{exponent}");
        if bits != u128::MAX {
            assert!(!side(Natural::new(bits + 1)).at_most(&ten), "10^{exponent}");
        }
    }
    for exponent in 0..20 {
        assert_eq!(POWERS.small(exponent), 10u64.pow(exponent));
        assert_eq!(Ready.small(exponent), 10u64.pow(exponent));
    }
}

#[test]
fn logarithms_are_rounded_down() {
    for exponent in -1100..1000 {
        assert_eq!(log10(exponent, false), decimal(1, exponent).1 - 1, "2^{exponent}");
        assert_eq!(log10(exponent, true), decimal(3, exponent - 2).1 - 1, "3/4 2^{exponent}");
    }
}
