//! NVIDIA: a wave is a warp of 32.
//!
//! Cross-lane operations are LLVM intrinsics, which are `convergent`; inline assembly is not.

use core::arch::nvptx;
use core::marker::PhantomData;

#[path = "nvptx_memory.rs"]
mod memory;

pub use memory::{Atomic, Memory};

use super::{BLOCK, Number, Value};

const WIDTH: u32 = 32;
const ALL: u32 = !0;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    safe fn lane_index() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.lanemask.lt"]
    safe fn lanes_below() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.lanemask.eq"]
    safe fn lane_bit() -> u32;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    safe fn vote(lanes: u32, x: bool) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    safe fn shuffle_from(lanes: u32, x: u32, from: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32p"]
    safe fn shuffle_up(lanes: u32, x: u32, by: u32, clamp: u32) -> (u32, bool);
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    safe fn shuffle_xor(lanes: u32, x: u32, with: u32, clamp: u32) -> u32;
    #[link_name = "llvm.fshr.i32"]
    safe fn funnel_right(high: u32, low: u32, by: u32) -> u32;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // LLVM deletes the function where it cannot be reached; ptx/check.sh refuses an image in which it
    // survived.
    // SAFETY: ends the kernel.
    unsafe { nvptx::trap() }
}

#[derive(Clone, Copy)]
pub struct Lanes<T>(T);

impl<T: Copy> Lanes<T> {
    #[inline(always)]
    pub fn at(&self, _: Lane<'_>) -> T {
        self.0
    }
}

/// For `bait` only: the bare register of a lane's value.
#[inline(always)]
pub(super) fn value<T>(x: Lanes<T>) -> T {
    x.0
}

/// The inverse of `value`.
#[inline(always)]
pub(super) fn lanes<T>(x: T) -> Lanes<T> {
    Lanes(x)
}

#[derive(Clone, Copy)]
pub struct Lane<'run>(PhantomData<core::cell::Cell<&'run ()>>);

impl Lane<'_> {
    #[inline(always)]
    pub fn index(self) -> u32 {
        lane_index()
    }

    #[inline(always)]
    pub fn rank(self, mask: Mask) -> u32 {
        (mask.0 & lanes_below()).count_ones()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mask(u32);

impl Mask {
    #[inline(always)]
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub fn half(self, _: u32) -> u32 {
        self.0
    }

    #[inline(always)]
    pub fn from_halves(low: u32, _: u32) -> Mask {
        Mask(low)
    }
}

/// A wave of the launch; the field is its index.
pub struct Wave(u32);

#[inline(always)]
fn by_halves<N: Number>(x: N, f: impl Fn(u32) -> u32) -> N {
    let (low, high) = x.halves();
    N::from_halves(f(low), if N::WIDE { f(high) } else { 0 })
}

impl Wave {
    #[inline(always)]
    pub fn current() -> Wave {
        // SAFETY: reads special registers.
        let (block, thread) = unsafe { (nvptx::_block_idx_x() as u32, nvptx::_thread_idx_x() as u32) };
        // The shuffle is for ptxas: it then knows that values derived from the index are the same in every
        // lane, and does not guard every collective against a divergence that cannot occur. It is here, where
        // all lanes are together: `index` may be called inside a lane's closure, and must not be a
        // collective.
        Wave(shuffle_from(ALL, block * (BLOCK / WIDTH) + thread / WIDTH, 0, 31))
    }

    #[inline(always)]
    pub fn index(&self) -> u64 {
        u64::from(self.0)
    }

    #[inline(always)]
    pub fn width(&self) -> u32 {
        WIDTH
    }

    #[inline(always)]
    pub fn each<T: Copy>(&self, f: impl for<'run> Fn(Lane<'run>) -> T) -> Lanes<T> {
        Lanes(f(Lane(PhantomData)))
    }

    #[inline(always)]
    pub fn once(&self, f: impl for<'run> Fn(Lane<'run>)) {
        if lane_index() == 0 {
            f(Lane(PhantomData))
        }
    }

    #[inline(always)]
    pub fn ballot(&mut self, x: Lanes<bool>) -> Mask {
        Mask(vote(ALL, x.0))
    }

    #[inline(always)]
    pub fn members(&mut self, mask: Mask) -> Lanes<bool> {
        Lanes(mask.0 & lane_bit() != 0)
    }

    #[inline(always)]
    pub fn broadcast<N: Number>(&mut self, x: Lanes<N>, from: u32) -> N {
        by_halves(x.0, |half| shuffle_from(ALL, half, from, 31))
    }

    #[inline(always)]
    pub fn shuffle<N: Number>(&mut self, x: Lanes<N>, from: Lanes<u32>) -> Lanes<N> {
        Lanes(self.broadcast(x, from.0))
    }

    #[inline(always)]
    pub fn shift_up<N: Number>(&mut self, x: Lanes<N>, by: u32) -> Lanes<N> {
        // The shuffle itself reports whether there was a lane. (A comparison of the lane's index would be
        // hoisted out of loops, five of them for a scan, and a filter's loads need those predicate
        // registers.)
        let other = by_halves(x.0, |half| match shuffle_up(ALL, half, by, 0) {
            (other, true) => other,
            (_, false) => 0,
        });
        Lanes(other)
    }

    #[inline(always)]
    pub fn scan<N: Number>(&mut self, x: Lanes<N>) -> (Lanes<N>, N) {
        let mut upto = x;
        let mut by = 1;
        while by < WIDTH {
            upto = Lanes(upto.0.plus(self.shift_up(upto, by).0));
            by *= 2;
        }
        (Lanes(upto.0.minus(x.0)), self.broadcast(upto, WIDTH - 1))
    }

    #[inline(always)]
    fn reduce<N: Number>(&mut self, x: Lanes<N>, combine: impl Fn(N, N) -> N) -> N {
        let mut all = x.0;
        let mut with = WIDTH / 2;
        while with > 0 {
            all = combine(all, by_halves(all, |half| shuffle_xor(ALL, half, with, 31)));
            with /= 2;
        }
        all
    }

    #[inline(always)]
    pub fn sum<N: Number>(&mut self, x: Lanes<N>) -> N {
        self.reduce(x, N::plus)
    }

    #[inline(always)]
    pub fn min<N: Number>(&mut self, x: Lanes<N>) -> N {
        self.reduce(x, N::min)
    }

    #[inline(always)]
    pub fn max<N: Number>(&mut self, x: Lanes<N>) -> N {
        self.reduce(x, N::max)
    }

    #[inline(always)]
    pub fn or<N: Number>(&mut self, x: Lanes<N>) -> N {
        self.reduce(x, |a, b| a | b)
    }

    #[inline(always)]
    pub fn loads_done(&self) {}
}

#[inline(always)]
pub(super) fn funnel(high: u32, low: u32, by: u32) -> u32 {
    funnel_right(high, low, by)
}

/// A bare address, without an extent.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Address(*mut u8);

impl Address {
    pub const KNOWS_EXTENT: bool = false;

    pub fn describe(self) -> [u64; 2] {
        [self.0.addr() as u64, 0]
    }

    #[inline(always)]
    pub fn word(self) -> u64 {
        self.0.addr() as u64
    }

    #[inline(always)]
    pub fn is_absent(self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    pub fn skip(self, bytes: u64) -> Address {
        Address(self.0.wrapping_add(bytes as usize))
    }

    #[inline(always)]
    pub fn described(self, _: &mut Wave, base: u64, _: u64) -> Address {
        Address(base as *mut u8)
    }

    #[inline(always)]
    pub fn described_to(self, _: Lane<'_>, base: u64, _: u64) -> Address {
        Address(base as *mut u8)
    }

    #[inline(always)]
    fn element<T>(self, i: u64) -> *mut T {
        self.0.cast::<T>().wrapping_add(i as usize)
    }

    #[inline(always)]
    pub fn read<T: Value>(self, i: u64) -> T {
        // SAFETY: the caller that launches the kernel vouches for the memory it reads; the host
        // implementation checked that it reads no more.
        unsafe { T::load(self.element(i)) }
    }

    #[inline(always)]
    pub fn stream<T: Value>(self, i: u64) -> T {
        // SAFETY: as in `read`.
        unsafe { T::stream(self.element(i)) }
    }

    #[inline(always)]
    pub fn write<T: Value>(self, i: u64, value: T) {
        // SAFETY: as in `read`.
        unsafe { T::store(self.element(i), value) }
    }

    #[inline(always)]
    pub fn add<T: Atomic>(self, i: u64, value: T) {
        // SAFETY: as in `read`.
        unsafe { T::red_add(self.element(i), value) }
    }

    #[inline(always)]
    pub fn or<T: Atomic>(self, i: u64, value: T) {
        // SAFETY: as in `read`.
        unsafe { T::red_or(self.element(i), value) }
    }

    #[inline(always)]
    pub fn min<T: Atomic>(self, i: u64, value: T) {
        // SAFETY: as in `read`.
        unsafe { T::red_min(self.element(i), value) }
    }

    #[inline(always)]
    pub fn load<T: Atomic>(self, i: u64) -> T {
        // SAFETY: as in `read`.
        unsafe { T::atom_load(self.element(i)) }
    }

    #[inline(always)]
    pub fn fetch_add<T: Atomic>(self, i: u64, value: T) -> T {
        // SAFETY: as in `read`.
        unsafe { T::atom_add(self.element(i), value) }
    }

    #[inline(always)]
    pub fn fetch_min<T: Atomic>(self, i: u64, value: T) -> T {
        // SAFETY: as in `read`.
        unsafe { T::atom_min(self.element(i), value) }
    }

    #[inline(always)]
    pub fn compare_exchange<T: Atomic>(self, i: u64, expected: T, new: T) -> T {
        // SAFETY: as in `read`.
        unsafe { T::atom_exchange(self.element(i), expected, new) }
    }
}
