//! Device memory as a kernel sees it: [`In`], [`Out`], [`Bits`], and tables of buffers.
//!
//! On a GPU each of these is one machine word, and an access is one instruction. On the host they know their
//! extent, and every access is checked: see [`target`](crate::target). The host side promises, when it makes
//! one:
//! - typed pointers are aligned to their type (or the operation takes a byte-wise path),
//! - bitmaps go through `In::bitmap`, which moves the pointer down to a multiple of 16 and adds to the bit
//!   offset; a kernel never reads a word that holds no wanted bit,
//! - an `In` does not change during the launch: loads go through the read-only cache.

use core::marker::PhantomData;

use crate::target::{Address, Atomic, Lane, Value, Wave, funnel};

/// Memory that a kernel reads.
#[repr(transparent)]
pub struct In<T>(pub(crate) Address, pub(crate) PhantomData<T>);

/// Memory that a kernel writes. Lanes of one launch must write different elements, or use the atomic updates.
#[repr(transparent)]
pub struct Out<T>(pub(crate) Address, pub(crate) PhantomData<T>);

impl<T> Clone for In<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}
impl<T> Clone for Out<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T: Value> In<T> {
    /// Loads element `i` of the memory.
    #[inline(always)]
    pub fn get(self, i: u64) -> T {
        self.0.read(i)
    }

    /// Loads element `i`, which no other lane needs, nor anything near it: it need not stay in the
    /// first-level cache.
    #[inline(always)]
    pub fn stream(self, i: u64) -> T {
        self.0.stream(i)
    }

    /// The memory without its first `n` elements.
    #[inline(always)]
    pub fn skip(self, n: u64) -> In<T> {
        In(self.0.skip(n.wrapping_mul(size_of::<T>() as u64)), PhantomData)
    }

    /// The same memory, read as elements of type `U`.
    #[inline(always)]
    pub fn cast<U: Value>(self) -> In<U> {
        In(self.0, PhantomData)
    }

    /// The two words that describe this memory in a table.
    pub fn described(self) -> [u64; 2] {
        self.0.describe()
    }

    /// Whether the memory starts at an address at which a `U` may be accessed.
    #[inline(always)]
    pub fn is_aligned<U: Value>(self) -> bool {
        self.0.word() % align_of::<U>() as u64 == 0
    }

    /// Whether there is no memory, as for the validity of an array without nulls.
    #[inline(always)]
    pub fn is_absent(self) -> bool {
        self.0.is_absent()
    }
}

impl<T: Value> Out<T> {
    /// Stores `value` in element `i`.
    #[inline(always)]
    pub fn set(self, _by: Lane<'_>, i: u64, value: T) {
        self.0.write(i, value)
    }

    /// The memory without its first `n` elements.
    #[inline(always)]
    pub fn skip(self, n: u64) -> Out<T> {
        Out(self.0.skip(n.wrapping_mul(size_of::<T>() as u64)), PhantomData)
    }

    /// The same memory, written as elements of type `U`.
    #[inline(always)]
    pub fn cast<U: Value>(self) -> Out<U> {
        Out(self.0, PhantomData)
    }

    /// The two words that describe this memory in a table.
    pub fn described(self) -> [u64; 2] {
        self.0.describe()
    }

    /// Whether the memory starts at an address at which a `U` may be accessed.
    #[inline(always)]
    pub fn is_aligned<U: Value>(self) -> bool {
        self.0.word() % align_of::<U>() as u64 == 0
    }

    /// Whether there is no memory, as for an output that the caller does not want.
    #[inline(always)]
    pub fn is_absent(self) -> bool {
        self.0.is_absent()
    }
}

/// Atomic updates, relaxed, without the old value: no GPU waits for them.
impl<T: Atomic> Out<T> {
    /// Adds `value` to element `i`, wrapping.
    #[inline(always)]
    pub fn add(self, _by: Lane<'_>, i: u64, value: T) {
        self.0.add(i, value)
    }

    /// Sets the bits of `value` in element `i`. On AMD this is a loop: if no other lane sets the same bits,
    /// `add` them.
    #[inline(always)]
    pub fn or(self, _by: Lane<'_>, i: u64, value: T) {
        self.0.or(i, value)
    }

    /// Lowers element `i` to `value`, if that is less. On AMD this is a loop.
    #[inline(always)]
    pub fn min(self, _by: Lane<'_>, i: u64, value: T) {
        self.0.min(i, value)
    }
}

/// Atomic accesses, relaxed, that return what element `i` held when the memory got to them. Lanes arrive in
/// any order, so each lane has its own answer, and no result of a kernel may depend on it but as a choice
/// among equals. Nothing here may wait for another wave: the waves of a launch need not run at once.
///
/// Beside atomic updates of other lanes, a look at an element MUST be a `load` too.
impl<T: Atomic> Out<T> {
    /// Loads element `i`, which other lanes may be updating.
    #[inline(always)]
    pub fn load(self, _by: Lane<'_>, i: u64) -> T {
        self.0.load(i)
    }

    /// Adds `value` to element `i`, wrapping, and returns the old value.
    #[inline(always)]
    pub fn fetch_add(self, _by: Lane<'_>, i: u64, value: T) -> T {
        self.0.fetch_add(i, value)
    }

    /// Lowers element `i` to `value`, if that is less, and returns the old value. On AMD this is a loop.
    #[inline(always)]
    pub fn fetch_min(self, _by: Lane<'_>, i: u64, value: T) -> T {
        self.0.fetch_min(i, value)
    }

    /// Stores `new` in element `i` if that holds `expected`, and returns the old value: the exchange happened
    /// if it is `expected`.
    #[inline(always)]
    pub fn compare_exchange(self, _by: Lane<'_>, i: u64, expected: T, new: T) -> T {
        self.0.compare_exchange(i, expected, new)
    }
}

/// A row of a table in device memory, as the words that a kernel reads.
pub trait TableRow {
    /// An array of the row's words.
    type Words: AsRef<[u64]>;
    /// The number of words in a row.
    const ROW: u64 = (size_of::<Self::Words>() / size_of::<u64>()) as u64;
    /// The words of this row, in the order that kernels read.
    fn words(&self) -> Self::Words;
}

/// Tables: buffers described in device memory, two words each (see [`In::described`]), for launches over many
/// columns.
///
/// On AMD, the address of a buffer that the whole wave uses is in scalar registers. So `input` and `output`
/// are collectives: they take `&mut Wave`, which no lane can have. A lane that needs a buffer of its own uses
/// `input_of`.
impl In<u64> {
    /// The buffer that elements `i` and `i + 1` describe, for the whole wave.
    #[inline(always)]
    pub fn input<T: Value>(self, wave: &mut Wave, i: u64) -> In<T> {
        In(self.0.described(wave, self.get(i), self.extent(i + 1)), PhantomData)
    }

    /// The buffer that elements `i` and `i + 1` describe, for the whole wave, to be written.
    #[inline(always)]
    pub fn output<T: Value>(self, wave: &mut Wave, i: u64) -> Out<T> {
        Out(self.0.described(wave, self.get(i), self.extent(i + 1)), PhantomData)
    }

    /// The buffer that elements `i` and `i + 1` describe, for one lane.
    #[inline(always)]
    pub fn input_of<T: Value>(self, by: Lane<'_>, i: u64) -> In<T> {
        In(self.0.described_to(by, self.get(i), self.extent(i + 1)), PhantomData)
    }

    /// The second word of a description, which only the host reads.
    #[inline(always)]
    fn extent(self, i: u64) -> u64 {
        if Address::KNOWS_EXTENT { self.get(i) } else { 0 }
    }
}

/// A bitmap of `len` bits, the first of which is bit `offset` of `words`. The least significant bit comes
/// first.
#[derive(Clone, Copy)]
pub struct Bits {
    words: In<u32>,
    offset: u64,
    len: u64,
}

impl Bits {
    /// The bitmap that a pair from `In::bitmap` describes.
    #[inline(always)]
    pub fn new(words: In<u32>, offset: u64, len: u64) -> Bits {
        Bits { words, offset, len }
    }

    /// Whether there is no bitmap, as for an array without nulls.
    #[inline(always)]
    pub fn is_absent(self) -> bool {
        self.words.is_absent()
    }

    /// The bitmap from bit `from` on, which MUST be one of its bits.
    #[inline(always)]
    pub fn window(self, from: u64) -> Window {
        let bit = self.offset + from;
        let left = (self.len - from).min(1 << 30) as u32;
        let shift = bit as u32 % 32;
        Window { words: self.words.skip(bit / 32), shift, left, last: (shift + left - 1) / 32 }
    }

    /// Bits `32 * w ..`, like [`Window::word`]. At least one of them MUST be the bitmap's.
    #[inline(always)]
    pub fn word(self, w: u64) -> u32 {
        self.window(w * 32).word(0)
    }

    /// The bitmap from bit `from` on, which MUST be one of its bits, 128 bits at a time.
    #[inline(always)]
    pub fn blocks(self, from: u64) -> Blocks {
        let bit = self.offset + from;
        let left = (self.len - from).min(1 << 30) as u32;
        let shift = bit as u32 % 128;
        Blocks { chunks: self.words.cast().skip(bit / 128), shift, left, last: (shift + left - 1) / 128 }
    }

    /// Bit `i`, which MUST be one of the bitmap's.
    #[inline(always)]
    pub fn get(self, i: u64) -> bool {
        let bit = self.offset + i;
        self.words.get(bit / 32) >> (bit as u32 % 32) & 1 != 0
    }
}

/// The next 2^30 bits of a bitmap from some bit on. Arithmetic that is the same for a whole tile happens
/// once, and the rest has 32 bits.
#[derive(Clone, Copy)]
pub struct Window {
    words: In<u32>,
    shift: u32,
    left: u32,
    last: u32,
}

impl Window {
    /// Bits `32 * w ..` of the window; bits past the end are zero.
    ///
    /// This loads two neighbouring words from clamped indices, without a branch, so that both loads are in
    /// flight at once; the second one hits the cache line that the next lane's first one fetches.
    #[inline(always)]
    pub fn word(self, w: u32) -> u32 {
        let low = self.words.get(u64::from(w.min(self.last)));
        let high = self.words.get(u64::from((w + 1).min(self.last)));
        funnel(high, low, self.shift) & ones(u64::from(self.left.saturating_sub(w * 32)))
    }
}

impl Window {
    /// Bit `i` of the window; past the end, the result is arbitrary.
    #[inline(always)]
    pub fn get(self, i: u32) -> bool {
        let bit = self.shift + i;
        self.words.get(u64::from((bit / 32).min(self.last))) >> (bit % 32) & 1 != 0
    }
}

/// The next 2^30 bits of a bitmap from some bit on, like [`Window`], but sixteen bytes at a time.
///
/// Memory is read in aligned chunks of sixteen bytes, each of which holds a wanted bit.
#[derive(Clone, Copy)]
pub struct Blocks {
    chunks: In<u128>,
    shift: u32,
    left: u32,
    last: u32,
}

impl Blocks {
    /// Whether bit 0 is the first bit of a chunk, so that [`chunk`](Blocks::chunk) can replace
    /// [`block`](Blocks::block).
    #[inline(always)]
    pub fn are_chunks(self) -> bool {
        self.shift == 0
    }

    /// Bits `128 * i ..`, where they are a chunk; bits past the end are arbitrary.
    #[inline(always)]
    pub fn chunk(self, i: u32) -> u128 {
        self.chunks.stream(u64::from(i.min(self.last)))
    }

    /// Bits `128 * i ..`, at any alignment; bits past the end are arbitrary.
    #[inline(always)]
    pub fn block(self, i: u32) -> u128 {
        let low = self.chunks.get(u64::from(i.min(self.last)));
        let high = self.chunks.get(u64::from((i + 1).min(self.last)));
        let (a, b, c) = if self.shift >= 64 {
            ((low >> 64) as u64, high as u64, (high >> 64) as u64)
        } else {
            (low as u64, (low >> 64) as u64, high as u64)
        };
        let by = self.shift % 64;
        let upper = |x: u64| x << 1 << (63 - by);
        u128::from(b >> by | upper(c)) << 64 | u128::from(a >> by | upper(b))
    }

    /// A mask of those of bits `128 * i ..` that are before the end.
    #[inline(always)]
    pub fn inside(self, i: u32) -> u128 {
        let left = self.left.saturating_sub(i * 128);
        let ones = |n: u32| if n < 64 { !(!0 << n) } else { !0u64 };
        u128::from(ones(left.saturating_sub(64))) << 64 | u128::from(ones(left))
    }

    /// Whether the bitmap has at least `n` bits.
    #[inline(always)]
    pub fn has(self, n: u32) -> bool {
        self.left >= n
    }
}

/// A word whose lowest `n` bits are set; all of them where `n` is 32 or more.
#[inline(always)]
pub fn ones(n: u64) -> u32 {
    if n < 32 { !(!0 << n as u32) } else { !0 }
}
