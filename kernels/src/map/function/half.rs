//! Half precision as two bytes. Its conversions are arithmetic on bits and one exact float addition, the same
//! on every target, so that a CPU, NVIDIA and AMD agree on every bit, NaN payloads included.

/// An IEEE 754 binary16 number, by its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// 0.5, whose unit in the last place, 2^-24, is the spacing of subnormal halves.
const SUBNORMAL_MAGIC: u32 = (127 - 1) << 23;
/// The difference between the exponent biases of `f32` and of a half, in place in the bits.
const REBIAS: u32 = (127 - 15) << 23;

impl F16 {
    /// The nearest half, ties to even. NaN stays NaN: quiet, sign and upper payload kept.
    #[inline(always)]
    pub fn from_f32(value: f32) -> F16 {
        let bits = value.to_bits();
        let (sign, magnitude) = ((bits >> 16) & 0x8000, bits & 0x7fff_ffff);
        // Below 2^-14: the addition of 0.5 rounds to a multiple of 2^-24, ties to even.
        let small = (f32::from_bits(magnitude) + f32::from_bits(SUBNORMAL_MAGIC)).to_bits();
        let small = small.wrapping_sub(SUBNORMAL_MAGIC);
        // Otherwise: add just under half a unit, and one more where the last bit kept is odd. A carry into
        // the exponent gives the right result, up to infinity.
        let normal =
            magnitude.wrapping_sub(REBIAS).wrapping_add(0xfff).wrapping_add((magnitude >> 13) & 1) >> 13;
        let special = if magnitude > 0x7f80_0000 { 0x7e00 | ((magnitude >> 13) & 0x3ff) } else { 0x7c00 };
        let finite = if magnitude < (127 - 14) << 23 { small } else { normal };
        // 2^16 and above is infinite without rounding; from 65520 up to it, the carry makes infinity.
        let half = if magnitude >= (127 + 16) << 23 { special } else { finite };
        F16((sign | half) as u16)
    }

    /// Converts to the same number; a signalling NaN becomes a quiet one.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let (sign, magnitude) = (((self.0 & 0x8000) as u32) << 16, ((self.0 & 0x7fff) as u32) << 13);
        let normal = magnitude + REBIAS;
        // A subnormal is its mantissa times 2^-24: put it below the 2^-14 of an f32, then subtract 2^-14
        // again.
        let smallest_normal = (127 - 14) << 23;
        let small = (f32::from_bits(magnitude | smallest_normal) - f32::from_bits(smallest_normal)).to_bits();
        let quiet = if magnitude > 0x7c00 << 13 { 0x0040_0000 } else { 0 };
        let special = magnitude | 0x7f80_0000 | quiet;
        let finite = if magnitude < 1 << 23 { small } else { normal };
        f32::from_bits(sign | if magnitude >= 0x7c00 << 13 { special } else { finite })
    }
}

/// The nearest `f32`. NaN payloads are kept as x86 keeps them, since some GPUs have only one NaN.
#[inline(always)]
pub fn f64_to_f32(value: f64) -> f32 {
    let bits = value.to_bits();
    let nan = ((bits >> 32) as u32 & 0x8000_0000) | 0x7fc0_0000 | ((bits >> 29) as u32 & 0x003f_ffff);
    // Tests the new value for NaN: if only one side of the choice used it, GPUs would branch.
    let there = value as f32;
    if there.is_nan() { f32::from_bits(nan) } else { there }
}

/// The same number as an `f64`. NaN payloads are kept as x86 keeps them.
#[inline(always)]
pub fn f32_to_f64(value: f32) -> f64 {
    let bits = value.to_bits() as u64;
    let nan = ((bits & 0x8000_0000) << 32) | 0x7ff8_0000_0000_0000 | ((bits & 0x003f_ffff) << 29);
    let there = value as f64;
    if there.is_nan() { f64::from_bits(nan) } else { there }
}
