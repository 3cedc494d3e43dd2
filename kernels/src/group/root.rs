//! Square roots, for standard deviations.

use crate::encoded::rows::tile;
use crate::memory::{In, Out};
use crate::reduce::scan::TILE;
use crate::target::Wave;

kernel! {
    family "group";
    /// Computes the square roots of floats.
    Root {
        /// The bits of the numbers.
        values: In<u64>,
        /// The number of them.
        rows: u64,
        /// Receives the bits of the roots.
        out: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    ROOT {
        group_root = roots,
    }
}

const NAN: u64 = 0x7ff8 << 48;
const INFINITY: u64 = 0x7ff << 52;

/// Returns the root of a float, rounded as IEEE 754 says. AMD's and NVIDIA's compilers round roots in ways of
/// their own, and there is one for each group only.
#[inline(always)]
fn root(bits: u64) -> u64 {
    let magnitude = bits & (u64::MAX >> 1);
    if magnitude == 0 || bits == INFINITY {
        return bits;
    }
    if bits > INFINITY {
        return NAN;
    }
    let mut exponent = (bits >> 52) as i64;
    let mut digits = bits & ((1 << 52) - 1);
    if exponent == 0 {
        let shift = digits.leading_zeros() - 11;
        digits <<= shift;
        exponent = 1 - i64::from(shift);
    } else {
        digits |= 1 << 52;
    }
    // The number is `digits << scale`, and the scale is even.
    let mut scale = exponent - 1075;
    if scale & 1 != 0 {
        digits <<= 1;
        scale -= 1;
    }
    // A binary digit of the root for every two digits, of which half follow the point: one more than a float
    // has. The rest is never zero if that one is set, so it rounds up.
    let (mut root, mut rest) = (0u64, 0u64);
    for i in 0..54 {
        let next = if i < 27 { digits >> (52 - 2 * i) & 3 } else { 0 };
        rest = rest << 2 | next;
        let trial = root << 2 | 1;
        root <<= 1;
        if rest >= trial {
            rest -= trial;
            root |= 1;
        }
    }
    let exponent = (scale / 2 - 26 + 1075) as u64;
    ((exponent - 1) << 52) + ((root + 1) >> 1)
}

fn roots(args: &Root, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row < end {
                args.out.set(l, row, root(args.values.get(row)));
            }
        });
        at += u64::from(wave.width());
    }
}

#[cfg(test)]
mod tests {
    use super::root;

    #[test]
    fn roots_are_those_of_ieee_754() {
        let mut state = 1u64;
        let check = |bits: u64| {
            let expected = f64::from_bits(bits).sqrt();
            let ours = f64::from_bits(root(bits));
            assert!(ours.to_bits() == expected.to_bits() || ours.is_nan() && expected.is_nan(), "{bits:x}");
        };
        for bits in [0, 1, 2, 3, 1 << 52, (1 << 52) - 1, 0x7fe << 52, 0x7ff << 52, 1 << 63, u64::MAX] {
            check(bits);
        }
        for _ in 0..300_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            check(state);
            check(((state >> 12) as f64).to_bits());
            check(((state >> 40) as f64 * (state >> 40) as f64).to_bits());
        }
    }
}
