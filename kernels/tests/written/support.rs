//! Random numbers, and exact numbers of any length.

/// Numbers that look random.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

/// So many cases, times the number in `BOWSTRING_CASES`.
pub fn cases(usual: u64) -> u64 {
    let more = std::env::var("BOWSTRING_CASES").ok().and_then(|cases| cases.parse().ok());
    usual * more.unwrap_or(1)
}

/// A natural number, its lowest 32 bits first.
#[derive(Clone, Debug)]
pub struct Natural(Vec<u32>);

impl Natural {
    pub fn new(value: u128) -> Natural {
        Natural((0..4).map(|i| (value >> (32 * i)) as u32).collect())
    }

    pub fn times(mut self, by: u32, count: u32) -> Natural {
        for _ in 0..count {
            let mut carry = 0;
            for word in &mut self.0 {
                let product = u64::from(*word) * u64::from(by) + carry;
                (*word, carry) = (product as u32, product >> 32);
            }
            self.0.push(carry as u32);
            self.trim();
        }
        self
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    pub fn at_most(&self, other: &Natural) -> bool {
        let key = |natural: &Natural| {
            let mut natural = natural.clone();
            natural.trim();
            (natural.0.len(), natural.0.into_iter().rev().collect::<Vec<_>>())
        };
        key(self) <= key(other)
    }

    /// The decimal digits of the number; empty for zero.
    pub fn digits(mut self) -> String {
        let mut digits = vec![];
        self.trim();
        while !self.0.is_empty() {
            let mut rest = 0;
            for word in self.0.iter_mut().rev() {
                let value = rest << 32 | u64::from(*word);
                (*word, rest) = ((value / 10) as u32, value % 10);
            }
            digits.push(b'0' + rest as u8);
            self.trim();
        }
        digits.iter().rev().map(|digit| *digit as char).collect()
    }
}

/// The digits of `value * 2^power`, and how many of them are before the point.
pub fn decimal(value: u64, power: i32) -> (String, i32) {
    let natural = Natural::new(value.into());
    let digits = natural.times(if power < 0 { 5 } else { 2 }, power.unsigned_abs()).digits();
    let point = digits.len() as i32 + power.min(0);
    (digits, point)
}

/// The midpoint between the float of these bits and the next one.
pub fn midpoint(bits: u64, fraction: u32, bias: i32) -> (String, i32) {
    let (field, kept) = ((bits >> fraction) as i32, bits & ((1 << fraction) - 1));
    let significand = if field == 0 { kept } else { kept | 1 << fraction };
    decimal(2 * significand + 1, field.max(1) - bias - fraction as i32 - 1)
}
