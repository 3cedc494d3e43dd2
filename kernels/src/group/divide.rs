//! Means of decimals: sums of 256 bits divided by counts.

use crate::encoded::rows::{store, tile};
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::target::Wave;

kernel! {
    family "group";
    /// Divides sums by counts, rounding towards zero.
    Divide {
        /// The sums: signed numbers of 256 bits.
        sums: In<[u128; 2]>,
        /// A bit for each valid sum, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The counts, less than 2^63. A sum of none has no mean.
        counts: In<u64>,
        /// The number that sums are multiplied by before, less than 2^32.
        factor: u64,
        /// The number of sums.
        rows: u64,
        /// Receives the mean of each row; 0 where there is none.
        out: Out<u128>,
        /// Receives a bit, in whole words, for each mean that there is.
        out_valid: Out<u32>,
        /// Lowered to the first mean of more than 38 digits; `u64::MAX` before the launch.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    DIVIDE {
        group_divide = divide,
    }
}

/// One more than the greatest number of 38 digits.
const LIMIT: u128 = 10u128.pow(38);

/// Multiplies a number of 256 bits by one of 32; `None` if the product has more than 256.
#[inline(always)]
fn multiplied([low, high]: [u128; 2], factor: u64) -> Option<[u128; 2]> {
    let part = |x: u128, carry: u128| {
        let below = (x & u128::from(u64::MAX)) * u128::from(factor) + carry;
        let above = (x >> 64) * u128::from(factor) + (below >> 64);
        (above << 64 | below & u128::from(u64::MAX), above >> 64)
    };
    let (low, carry) = part(low, 0);
    let (high, over) = part(high, carry);
    if over == 0 { Some([low, high]) } else { None }
}

/// Divides a number of 256 bits, a bit at a time: a division of wide numbers is long code, and there is one
/// for each group only.
#[inline(always)]
fn divided([mut low, mut high]: [u128; 2], by: u64) -> [u128; 2] {
    let mut rest = 0u64;
    for _ in 0..256 {
        // The rest is less than 2^63, as the divisor is.
        rest = rest << 1 | (high >> 127) as u64;
        high = high << 1 | low >> 127;
        low <<= 1;
        if rest >= by {
            rest -= by;
            low |= 1;
        }
    }
    [low, high]
}

fn divide(args: &Divide, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    while at < end {
        let has = wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return false;
            }
            let count = args.counts.get(row);
            if count == 0 || !(valid.is_absent() || valid.get(row)) {
                args.out.set(l, row, 0);
                return false;
            }
            let [low, high] = args.sums.get(row);
            let negative = high >> 127 != 0;
            let magnitude = if negative {
                let (low, carry) = (!low).overflowing_add(1);
                [low, (!high).wrapping_add(u128::from(carry))]
            } else {
                [low, high]
            };
            let product = multiplied(magnitude, args.factor);
            let [mean, above] = divided(product.unwrap_or([0; 2]), count);
            let fits = mean < LIMIT && above == 0 && product.is_some();
            if !fits {
                args.fault.min(l, 0, row);
            }
            args.out.set(l, row, if negative { mean.wrapping_neg() } else { mean });
            fits
        });
        store(has, at, args.rows, args.out_valid, wave);
        at += u64::from(wave.width());
    }
}
