//! AMD: a wave is a wavefront of 64 lanes on gfx9, of 32 elsewhere (a `cfg` the build passes).
//!
//! Values that are the same in every lane stay in scalar registers: masks, broadcasts, the wave's index. Rust
//! 1.96 has no inline assembly for this target, and this module needs none.

use core::arch::amdgpu;
use core::marker::PhantomData;

#[path = "amdgpu_memory.rs"]
mod memory;

pub use memory::{Atomic, Memory};

use super::{BLOCK, Number, Value};

#[cfg(gpu_wave32)]
const WIDTH: u32 = 32;
#[cfg(gpu_wave64)]
const WIDTH: u32 = 64;
#[cfg(gpu_wave32)]
type Word = u32;
#[cfg(gpu_wave64)]
type Word = u64;

unsafe extern "C" {
    #[cfg_attr(gpu_wave32, link_name = "llvm.amdgcn.ballot.i32")]
    #[cfg_attr(gpu_wave64, link_name = "llvm.amdgcn.ballot.i64")]
    safe fn ballot(x: bool) -> Word;
    #[cfg_attr(gpu_wave32, link_name = "llvm.amdgcn.inverse.ballot.i32")]
    #[cfg_attr(gpu_wave64, link_name = "llvm.amdgcn.inverse.ballot.i64")]
    safe fn inverse_ballot(mask: Word) -> bool;
    #[link_name = "llvm.fshr.i32"]
    safe fn funnel_right(high: u32, low: u32, by: u32) -> u32;
    #[cfg(gpu_gfx9)]
    #[link_name = "llvm.amdgcn.s.waitcnt"]
    safe fn wait(counters: i32);
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // LLVM deletes the function where it cannot be reached; ptx/check.sh refuses an image in which it
    // survived.
    amdgpu::endpgm()
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
        below(mask.0)
    }
}

/// How many set bits of `mask` belong to lower lanes.
#[inline(always)]
fn below(mask: Word) -> u32 {
    let low = amdgpu::mbcnt_lo(mask as u32, 0);
    if WIDTH == 64 { amdgpu::mbcnt_hi((mask as u64 >> 32) as u32, low) } else { low }
}

#[inline(always)]
fn lane_index() -> u32 {
    below(!0)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mask(Word);

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
    pub fn half(self, half: u32) -> u32 {
        if WIDTH == 64 { (self.0 as u64 >> (32 * half)) as u32 } else { self.0 as u32 }
    }

    #[inline(always)]
    pub fn from_halves(low: u32, high: u32) -> Mask {
        Mask((u64::from(high) << 32 | u64::from(low)) as Word)
    }
}

pub struct Wave(());

#[inline(always)]
fn by_halves<N: Number>(x: N, f: impl Fn(u32) -> u32) -> N {
    let (low, high) = x.halves();
    N::from_halves(f(low), if N::WIDE { f(high) } else { 0 })
}

/// The value of `x` in the lane `CTRL & 15` below, within a row of 16 lanes; `old` where there is none.
#[inline(always)]
fn row_shift<const CTRL: u32, N: Number>(old: N, x: N) -> N {
    let (old_low, old_high) = old.halves();
    let (low, high) = x.halves();
    // SAFETY: every lane is active: a collective is never in a branch.
    unsafe {
        N::from_halves(
            amdgpu::update_dpp::<CTRL, 0xf, 0xf, false>(old_low, low),
            if N::WIDE { amdgpu::update_dpp::<CTRL, 0xf, 0xf, false>(old_high, high) } else { 0 },
        )
    }
}

impl Wave {
    #[inline(always)]
    pub fn current() -> Wave {
        Wave(())
    }

    /// Moves a number that is the same in every lane to a scalar register, where collectives need it.
    #[inline(always)]
    fn scalar(&mut self, x: u32) -> u32 {
        amdgpu::readfirstlane_u32(x)
    }

    /// All threads of a wave have the same quotient, so every lane, inside a closure too, gets the same
    /// answer.
    #[inline(always)]
    pub fn index(&self) -> u64 {
        let wave = amdgpu::readfirstlane_u32(amdgpu::workitem_id_x() / WIDTH);
        u64::from(amdgpu::workgroup_id_x() * (BLOCK / WIDTH) + wave)
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
        Mask(ballot(x.0))
    }

    /// The mask itself becomes `exec`, without a shift or a comparison. It must be in scalar registers, and
    /// so be the same in every lane.
    #[inline(always)]
    pub fn members(&mut self, mask: Mask) -> Lanes<bool> {
        Lanes(inverse_ballot(mask.0))
    }

    #[inline(always)]
    pub fn broadcast<N: Number>(&mut self, x: Lanes<N>, from: u32) -> N {
        // SAFETY: the lane exists.
        by_halves(x.0, |half| unsafe { amdgpu::readlane_u32(half, from % WIDTH) })
    }

    #[inline(always)]
    pub fn shuffle<N: Number>(&mut self, x: Lanes<N>, from: Lanes<u32>) -> Lanes<N> {
        // SAFETY: every lane is active: a collective is never in a branch.
        Lanes(by_halves(x.0, |half| unsafe { amdgpu::ds_bpermute(from.0 % WIDTH * 4, half) }))
    }

    #[inline(always)]
    pub fn shift_up<N: Number>(&mut self, x: Lanes<N>, by: u32) -> Lanes<N> {
        let other = self.shuffle(x, Lanes(lane_index().wrapping_sub(by)));
        Lanes(if lane_index() >= by { other.0 } else { N::ZERO })
    }

    /// Adds four times within rows of 16 lanes by DPP, then adds the rows' totals through scalar registers.
    #[inline(always)]
    pub fn scan<N: Number>(&mut self, x: Lanes<N>) -> (Lanes<N>, N) {
        let mut upto = x.0;
        upto = upto.plus(row_shift::<0x111, N>(N::ZERO, upto));
        upto = upto.plus(row_shift::<0x112, N>(N::ZERO, upto));
        upto = upto.plus(row_shift::<0x114, N>(N::ZERO, upto));
        upto = upto.plus(row_shift::<0x118, N>(N::ZERO, upto));
        let (mut total, mut before) = (N::ZERO, N::ZERO);
        let mut row = 0;
        while row < WIDTH / 16 {
            before = if lane_index() / 16 == row { total } else { before };
            total = total.plus(self.broadcast(Lanes(upto), row * 16 + 15));
            row += 1;
        }
        (Lanes(upto.plus(before).minus(x.0)), total)
    }

    #[inline(always)]
    pub fn sum<N: Number>(&mut self, x: Lanes<N>) -> N {
        self.scan(x).1
    }

    /// For operations that may count a value twice: lanes without a lower neighbour combine with themselves.
    #[inline(always)]
    fn reduce<N: Number>(&mut self, x: Lanes<N>, combine: impl Fn(N, N) -> N) -> N {
        let mut upto = x.0;
        upto = combine(upto, row_shift::<0x111, N>(upto, upto));
        upto = combine(upto, row_shift::<0x112, N>(upto, upto));
        upto = combine(upto, row_shift::<0x114, N>(upto, upto));
        upto = combine(upto, row_shift::<0x118, N>(upto, upto));
        let mut all = self.broadcast(Lanes(upto), 15);
        let mut row = 1;
        while row < WIDTH / 16 {
            all = combine(all, self.broadcast(Lanes(upto), row * 16 + 15));
            row += 1;
        }
        all
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

    /// On gfx9, loads and stores share a counter, and a wait inside a conditional store also waits for the
    /// stores before it. One wait for the loads, before the stores, removes the waits inside them. gfx10 and
    /// later count stores separately.
    #[inline(always)]
    pub fn loads_done(&self) {
        #[cfg(gpu_gfx9)]
        wait(0xf70)
    }
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

    /// Computes the address as an offset from the table, whose pointer LLVM knows to be global: a pointer
    /// loaded from memory would be generic. The offset is the same in every lane. It goes through scalar
    /// registers so that LLVM cannot see where it comes from; otherwise LLVM would add the two back together
    /// into the pointer from memory.
    #[inline(always)]
    pub fn described(self, wave: &mut Wave, base: u64, _: u64) -> Address {
        let offset = base.wrapping_sub(self.word());
        let (low, high) = (wave.scalar(offset as u32), wave.scalar((offset >> 32) as u32));
        Address(self.0.wrapping_add((u64::from(high) << 32 | u64::from(low)) as usize))
    }

    /// Like `described`, but each lane keeps its own offset. A count of no lanes is added to the offset,
    /// which LLVM cannot see through.
    #[inline(always)]
    pub fn described_to(self, _: Lane<'_>, base: u64, _: u64) -> Address {
        let offset = base.wrapping_sub(self.word());
        let (low, high) = (amdgpu::mbcnt_lo(0, offset as u32), amdgpu::mbcnt_lo(0, (offset >> 32) as u32));
        Address(self.0.wrapping_add((u64::from(high) << 32 | u64::from(low)) as usize))
    }

    #[inline(always)]
    fn element<T>(self, i: u64) -> *mut T {
        self.0.cast::<T>().wrapping_add(i as usize)
    }

    #[inline(always)]
    pub fn read<T: Value>(self, i: u64) -> T {
        // SAFETY: the caller that launches the kernel vouches for the memory it reads; the host
        // implementation checked that it reads no more.
        unsafe { self.element::<T>(i).read() }
    }

    #[inline(always)]
    pub fn stream<T: Value>(self, i: u64) -> T {
        self.read(i)
    }

    #[inline(always)]
    pub fn write<T: Value>(self, i: u64, value: T) {
        // SAFETY: as in `read`.
        unsafe { self.element::<T>(i).write(value) }
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
