//! Reads bytes as decisions: any bytes mean something, and more of them say more.
//!
//! The one idea: a zero, and the end of the input, is the tame answer. So a short input is a plain array of
//! few rows, and the few bytes that are not zero say what is wrong with an array.

use crate::support::Random;

/// Numbers at which arithmetic, signs and checks change.
const EDGES: [i64; 28] = [
    -1,
    -2,
    -8,
    i8::MIN as i64,
    i8::MAX as i64,
    128,
    255,
    256,
    1024,
    i16::MAX as i64,
    i16::MIN as i64,
    u16::MAX as i64,
    1 << 20,
    i32::MAX as i64,
    i32::MAX as i64 - 1,
    i32::MIN as i64,
    1 << 31,
    u32::MAX as i64,
    1 << 32,
    1 << 40,
    1 << 57,
    1 << 60,
    1 << 61,
    1 << 62,
    i64::MAX / 2,
    i64::MAX - 1,
    i64::MAX,
    i64::MIN,
];

/// The rest of an input.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    /// Splits it into two inputs, so that a change of one does not change what the other says.
    pub fn halves(mut self) -> [Input<'a>; 2] {
        let share = usize::from(self.byte());
        let (first, second) = self.0.split_at(self.0.len() * (256 - share) / 512 + self.0.len() / 4);
        [Input(first), Input(second)]
    }

    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `limit`, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let wide = if limit > 256 { usize::from(self.byte()) << 8 } else { 0 };
        (wide | usize::from(self.byte())).checked_rem(limit).unwrap_or(0)
    }

    /// One of these; the first if the input is over.
    pub fn pick<'b, T>(&mut self, from: &'b [T]) -> &'b T {
        &from[self.below(from.len())]
    }

    /// True for one byte in `n`.
    pub fn one_in(&mut self, n: u8) -> bool {
        self.byte() % n == n - 1
    }

    /// Any number; most often a small one or an edge.
    pub fn number(&mut self) -> i64 {
        match self.byte() {
            small @ 0..=99 => i64::from(small) % 20,
            100..=149 => i64::from(self.byte()),
            250.. => i64::from_le_bytes([(); 8].map(|()| self.byte())),
            edge => EDGES[usize::from(edge) % EDGES.len()],
        }
    }

    /// A random generator seeded by two bytes, for contents in which no single byte matters.
    pub fn chance(&mut self) -> Random {
        Random::new(u64::from(self.byte()) << 8 | u64::from(self.byte()))
    }
}
