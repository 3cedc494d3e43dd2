//! Powers of ten, to 128 bits, from a table of less than a kilobyte.
//!
//! The one idea: every power is one of 10^(28 j) times one of 10^0 to 10^27. The latter are exact in 64 bits.
//! The former keep 192 bits, so many more than 128 that the bits cut off never change a product: none
//! needs a correction. A test checks this for each of them. Reading and writing use the same table.

/// A table of powers in memory: the words of [`POWERS`].
pub trait Powers: Copy {
    /// Whether the machine divides floats as fast as it makes other operations; if so, exact results are
    /// computed by divisions.
    const DIVIDES: bool = false;
    /// Returns word `i` of the table.
    fn word(self, i: u64) -> u64;
    /// Returns the first 128 bits of 10^`exponent`, rounded down; the exponent is -364 to 335. The power is
    /// these bits times 2^([`log2`] - 127).
    #[inline(always)]
    fn power(self, exponent: i32) -> Power {
        let i = exponent.wrapping_sub(FIRST) as u32;
        let major = u64::from(i / STRIDE) * 3;
        let minor = self.word(MINOR as u64 + u64::from(i % STRIDE));
        joined([self.word(major), self.word(major + 1), self.word(major + 2)], minor)
    }
    /// Returns 10^`exponent`; the exponent is 0 to 19.
    #[inline(always)]
    fn small(self, exponent: u32) -> u64 {
        self.word(MINOR as u64 + u64::from(exponent)) >> (63 - log2(exponent as i32))
    }
}

impl Powers for &[u64] {
    #[inline(always)]
    fn word(self, i: u64) -> u64 {
        self[i as usize]
    }
}

/// The difference of exponents between neighbouring powers that have 192 bits.
const STRIDE: u32 = 28;

/// The exponent of the first power that has 192 bits.
const FIRST: i32 = -364;

/// The first 192 bits of 10^-364, 10^-336, and so on, rounded down; the highest word first.
#[rustfmt::skip]
const MAJOR: [[u64; 3]; 25] = [
    [0xe1afa13afbd14d6d, 0x82189c09a3a1ec21, 0x7a43516213c7e04c],
    [0xe3e27a444d8d98b7, 0xfd1b1b2308169b25, 0x363b1f2c568dc3e2],
    [0xe61acf033d1a45df, 0x6fb92487298e33bd, 0xadd7728c20b99bd1],
    [0xe858ad248f5c22c9, 0xd1b3400f8f9cff68, 0xf910f9f648232f14],
    [0xea9c227723ee8bcb, 0x465e15a979c1cadc, 0x0a0ce827eac11f2d],
    [0xece53cec4a314ebd, 0xa4f8bf5635246428, 0x4609ac5c7899ca36],
    [0xef340a98172aace4, 0x86fb897116c87c34, 0x9c39c1da4c49278d],
    [0xf18899b1bc3f8ca1, 0xdc44e6c3cb279ac1, 0xf80f36174730ca34],
    [0xf3e2f893dec3f126, 0x5a89dba3c3efccfa, 0xd8ecb58659be9c90],
    [0xf64335bcf065d37d, 0x4d4617b5ff4a16d5, 0xaa09501d5954a559],
    [0xf8a95fcf88747d94, 0x75a44c6397ce912a, 0x33cca6c06b07b74d],
    [0xfb158592be068d2e, 0xeed6e2f0f0d56712, 0xac2e4f162cfad40a],
    [0xfd87b5f28300ca0d, 0x8bca9d6e188853fc, 0x76dcb60081ce0fa5],
    [0x8000000000000000, 0x0000000000000000, 0x0000000000000000],
    [0x813f3978f8940984, 0x4000000000000000, 0x0000000000000000],
    [0x82818f1281ed449f, 0xbff8f10e7a8921a4, 0x2000000000000000],
    [0x83c7088e1aab65db, 0x792667c6da79e0fa, 0x0861d3ee22d1cc53],
    [0x850fadc09923329e, 0x03e2cf6bc604ddb0, 0x74a7ef0198791097],
    [0x865b86925b9bc5c2, 0x0b8a2392ba45a9b2, 0x5c6658d409fb8bf7],
    [0x87aa9aff79042286, 0x90fb44d2f05d0842, 0xfb118fc9c217a1d2],
    [0x88fcf317f22241e2, 0x441fece3bdf81f03, 0x12f274928400100d],
    [0x8a5296ffe33cc92f, 0x82bd6b70d99aaa6f, 0xbc10c5c5cda97c8d],
    [0x8bab8eefb6409c1a, 0x1ad089b6c2f7548e, 0x25c7b885ba466e37],
    [0x8d07e33455637eb2, 0xdb0b487b6423e1e8, 0x7ec63730f500b406],
    [0x8e679c2f5e44ff8f, 0x570f09eaa7ea7648, 0x5961db50c6d2b886],
];

/// The index of the first word of 10^0 to 10^27.
const MINOR: usize = 3 * MAJOR.len();

const fn words() -> [u64; MINOR + STRIDE as usize] {
    let mut words = [0; MINOR + STRIDE as usize];
    let (mut i, mut five) = (0, 1u64);
    while i < MINOR {
        words[i] = MAJOR[i / 3][i % 3];
        i += 1;
    }
    while i < words.len() {
        words[i] = five << five.leading_zeros();
        five = five.wrapping_mul(5);
        i += 1;
    }
    words
}

/// The table of 824 bytes: 25 powers of 192 bits each, and 28 powers of 64 bits.
pub const POWERS: &[u64] = &words();

/// A number of 128 bits in two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Power {
    /// The upper half, bits 64 to 127.
    pub high: u64,
    /// The lower half, bits 0 to 63.
    pub low: u64,
}

impl Power {
    /// Adds `one`, which is 0 or 1, modulo 2^128.
    #[inline(always)]
    pub(super) fn plus(self, one: u64) -> Power {
        let (low, carry) = self.low.overflowing_add(one);
        Power { high: self.high.wrapping_add(carry as u64), low }
    }
}

/// Returns the upper and the lower half of a product.
#[inline(always)]
pub(super) const fn multiply(a: u64, b: u64) -> (u64, u64) {
    let product = a as u128 * b as u128;
    ((product >> 64) as u64, product as u64)
}

/// Returns the first 128 bits of a product.
#[inline(always)]
const fn joined(major: [u64; 3], minor: u64) -> Power {
    let (a, b) = multiply(major[0], minor);
    let (c, d) = multiply(major[1], minor);
    let (e, _) = multiply(major[2], minor);
    let (rest, carry) = d.overflowing_add(e);
    let (low, carry) = carrying(b, c, carry);
    let high = a.wrapping_add(carry as u64);
    // Both factors are at least a half, so at most one leading bit is missing.
    let up = (high >> 63) ^ 1;
    Power { high: high << up | low >> 63 & up, low: low << up | rest >> 63 & up }
}

/// Adds two numbers and a carry; returns the sum and its carry.
#[inline(always)]
pub(super) const fn carrying(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (sum, over) = a.overflowing_add(b);
    let (sum, over_again) = sum.overflowing_add(carry as u64);
    (sum, over | over_again)
}

/// Returns floor(log2(10^`exponent`)), for -1233 to 1233.
#[inline(always)]
pub const fn log2(exponent: i32) -> i32 {
    exponent.wrapping_mul(1_741_647) >> 19
}

/// Returns floor(log10(2^`exponent`)), or with `less` floor(log10(3/4 2^`exponent`)), at least for -1100 to
/// 1000.
#[inline(always)]
pub const fn log10(exponent: i32, less: bool) -> i32 {
    exponent.wrapping_mul(1_262_611).wrapping_sub(if less { 524_031 } else { 0 }) >> 22
}

host_only! {
    /// All powers, computed in advance: a CPU has a cache for them, but a kernel has no place.
    #[derive(Clone, Copy, Debug)]
    pub struct Ready;

    /// The number of powers.
    const COUNT: usize = MAJOR.len() * STRIDE as usize;

    const fn ready() -> [Power; COUNT] {
        let (words, mut all, mut i) = (words(), [Power { high: 0, low: 0 }; COUNT], 0);
        while i < COUNT {
            let (major, minor) = (i / STRIDE as usize, i % STRIDE as usize);
            all[i] = joined(MAJOR[major], words[MINOR + minor]);
            i += 1;
        }
        all
    }

    const fn small() -> [u64; 20] {
        let (mut all, mut i) = ([1; 20], 1);
        while i < 20 {
            all[i] = all[i - 1] * 10;
            i += 1;
        }
        all
    }

    static SMALL: [u64; 20] = small();
    static READY: [Power; COUNT] = ready();

    impl Powers for Ready {
        const DIVIDES: bool = true;

        #[inline(always)]
        fn word(self, i: u64) -> u64 {
            POWERS[i as usize]
        }

        #[inline(always)]
        fn power(self, exponent: i32) -> Power {
            READY[exponent.wrapping_sub(FIRST) as usize]
        }

        #[inline(always)]
        fn small(self, exponent: u32) -> u64 {
            SMALL[exponent as usize]
        }
    }
}
