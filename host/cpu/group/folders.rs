//! The functions of folds: how a value changes a group's state, and how two states become one.

use crate::cpu::memory::Plain;
use crate::expr::Bits;
use crate::rules::Word;

/// A fold of values of `W` bytes.
pub(super) trait Folder<const W: usize>: Sync {
    type State: Plain;
    /// Whether the values matter.
    const READS: bool = true;
    /// The state of a group without values.
    fn empty(&self) -> Self::State;
    fn add(&self, state: Self::State, value: [u8; W]) -> Self::State;
    fn merge(&self, state: Self::State, other: Self::State) -> Self::State;
}

/// The number of values.
pub(super) struct Count;

impl Folder<1> for Count {
    type State = u64;
    const READS: bool = false;

    fn empty(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn add(&self, state: u64, _: [u8; 1]) -> u64 {
        state + 1
    }

    fn merge(&self, state: u64, other: u64) -> u64 {
        state + other
    }
}

/// The exact sum of integers of eight bytes.
pub(super) struct Sum {
    pub signed: bool,
}

impl Folder<8> for Sum {
    type State = i128;

    fn empty(&self) -> i128 {
        0
    }

    #[inline(always)]
    fn add(&self, state: i128, value: [u8; 8]) -> i128 {
        let value = u64::from_le_bytes(value);
        state + if self.signed { i128::from(value as i64) } else { i128::from(value) }
    }

    fn merge(&self, state: i128, other: i128) -> i128 {
        state + other
    }
}

/// The sum of integers of eight bytes, modulo 2^64.
pub(super) struct Wrapping;

impl Folder<8> for Wrapping {
    type State = u64;

    fn empty(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn add(&self, state: u64, value: [u8; 8]) -> u64 {
        state.wrapping_add(u64::from_le_bytes(value))
    }

    fn merge(&self, state: u64, other: u64) -> u64 {
        state.wrapping_add(other)
    }
}

/// The sum of integers of 16 or 32 bytes, modulo 2^256.
pub(super) struct SumWide<const W: usize>;

impl<const W: usize> Folder<W> for SumWide<W> {
    type State = [u64; 4];

    fn empty(&self) -> [u64; 4] {
        [0; 4]
    }

    #[inline(always)]
    fn add(&self, state: [u64; 4], value: [u8; W]) -> [u64; 4] {
        // A narrow value continues with its sign.
        let sign = if value[W - 1] < 128 { 0 } else { u64::MAX };
        let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|k| value[(8 * i + k) % W]));
        self.merge(state, std::array::from_fn(|i| if 8 * i < W { word(i) } else { sign }))
    }

    #[inline(always)]
    fn merge(&self, state: [u64; 4], other: [u64; 4]) -> [u64; 4] {
        let mut carry = false;
        std::array::from_fn(|i| {
            let (sum, over) = state[i].overflowing_add(other[i]);
            let (sum, over_by_carry) = sum.overflowing_add(carry.into());
            carry = over || over_by_carry;
            sum
        })
    }
}

/// The least, or the greatest, of values of one word. The state is a number that orders as the values.
pub(super) struct Least<const W: usize> {
    always: u64,
    negative: u64,
    descending: u64,
}

impl<const W: usize> Least<W> {
    pub fn new(word: &Word, descending: bool) -> Least<W> {
        let [always, negative] = word.order.flips(W);
        Least { always, negative, descending: if descending { u64::MAX >> (64 - 8 * W) } else { 0 } }
    }

    /// The value that a state stands for.
    #[inline(always)]
    pub fn value(&self, key: u64) -> [u8; W] {
        let value = key ^ self.descending ^ self.always;
        let value = value ^ (self.negative & self.sign(value));
        let bytes = value.to_le_bytes();
        std::array::from_fn(|i| bytes[i])
    }

    /// All ones if the highest bit of a value is set.
    #[inline(always)]
    fn sign(&self, value: u64) -> u64 {
        ((value << (64 - 8 * W)) as i64 >> 63) as u64
    }
}

impl<const W: usize> Folder<W> for Least<W> {
    type State = u64;

    fn empty(&self) -> u64 {
        u64::MAX
    }

    #[inline(always)]
    fn add(&self, state: u64, value: [u8; W]) -> u64 {
        let value = u64::from_le_bytes(std::array::from_fn(|i| if i < W { value[i] } else { 0 }));
        state.min(value ^ self.always ^ (self.negative & self.sign(value)) ^ self.descending)
    }

    fn merge(&self, state: u64, other: u64) -> u64 {
        state.min(other)
    }
}

/// The least, or the greatest, integer of 16 bytes.
pub(super) struct LeastWide {
    pub descending: bool,
}

impl Folder<16> for LeastWide {
    type State = i128;

    fn empty(&self) -> i128 {
        if self.descending { i128::MIN } else { i128::MAX }
    }

    #[inline(always)]
    fn add(&self, state: i128, value: [u8; 16]) -> i128 {
        self.merge(state, i128::from_le_bytes(value))
    }

    #[inline(always)]
    fn merge(&self, state: i128, other: i128) -> i128 {
        if self.descending { state.max(other) } else { state.min(other) }
    }
}

/// An operation on the bits of integers.
pub(super) struct Bitwise<const W: usize>(pub Bits);

impl<const W: usize> Folder<W> for Bitwise<W>
where
    [u8; W]: Plain,
{
    type State = [u8; W];

    fn empty(&self) -> [u8; W] {
        [if self.0 == Bits::And { 255 } else { 0 }; W]
    }

    #[inline(always)]
    fn add(&self, state: [u8; W], value: [u8; W]) -> [u8; W] {
        std::array::from_fn(|i| match self.0 {
            Bits::And => state[i] & value[i],
            Bits::Or => state[i] | value[i],
            Bits::Xor => state[i] ^ value[i],
        })
    }

    fn merge(&self, state: [u8; W], other: [u8; W]) -> [u8; W] {
        self.add(state, other)
    }
}
