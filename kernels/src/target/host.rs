//! The host: every collective is a loop over the lanes. This is the definition.

use core::cell::Cell;
use core::marker::PhantomData;

use super::faults::{Access, Cause, Fault, Faults};
use super::order::Order;
use super::{Number, Value};

/// The most lanes a wave has. A wave of 32 leaves the upper half of every [`Lanes`] unused.
const MOST: usize = 64;

/// A value for each lane of a wave.
#[derive(Clone, Copy)]
pub struct Lanes<T>([T; MOST]);

impl<T: Copy> Lanes<T> {
    /// The value of the lane that runs the closure.
    #[inline]
    pub fn at(&self, lane: Lane<'_>) -> T {
        self.0[lane.index as usize]
    }
}

/// The lane that runs a closure. It lives as long as that run.
#[derive(Clone, Copy)]
pub struct Lane<'run> {
    index: u32,
    run: PhantomData<Cell<&'run ()>>,
}

impl Lane<'_> {
    /// The lane's index, in `0..width`.
    #[inline]
    pub fn index(self) -> u32 {
        self.index
    }

    /// How many lanes below this one have their bit set in `mask`.
    #[inline]
    pub fn rank(self, mask: Mask) -> u32 {
        (mask.0 & ((1 << self.index) - 1)).count_ones()
    }
}

/// One bit for each lane; the same mask in every lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mask(u64);

impl Mask {
    /// How many lanes have their bit set.
    #[inline]
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether no lane has its bit set.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Bits 0..32 (`half` 0), or bits 32..64 (`half` 1). A wave of 32 has no half 1; a GPU returns any number
    /// for it.
    #[inline]
    pub fn half(self, half: u32) -> u32 {
        (self.0 >> (32 * half)) as u32
    }

    /// The inverse of `half`.
    #[inline]
    pub fn from_halves(low: u32, high: u32) -> Mask {
        Mask(u64::from(high) << 32 | u64::from(low))
    }
}

/// The lanes that run a kernel body together.
pub struct Wave {
    width: u32,
    index: u64,
    /// The order in which closures run in the lanes, drawn anew for each.
    order: Cell<Order>,
}

impl Wave {
    /// Wave `index` of a launch, on a machine whose waves have `width` lanes.
    pub fn new(width: u32, index: u64) -> Wave {
        Wave::in_order(width, index, Order::new(0, index))
    }

    /// The same, whose lanes run in this order.
    pub(super) fn in_order(width: u32, index: u64, order: Order) -> Wave {
        assert!(width == 32 || width == 64, "a wave has 32 or 64 lanes");
        Wave { width, index, order: Cell::new(order) }
    }

    /// Which wave of the launch this is.
    #[inline]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// How many lanes the wave has: 32 or 64. A constant on a GPU.
    #[inline]
    pub fn width(&self) -> u32 {
        self.width
    }

    fn lanes(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.width as usize
    }

    /// Runs `f` in each lane, in a random order, and keeps the results.
    #[inline]
    pub fn each<T: Copy>(&self, f: impl for<'run> Fn(Lane<'run>) -> T) -> Lanes<T> {
        let run = |index| f(Lane { index, run: PhantomData });
        let (mut order, last) = (self.order.get(), self.width - 1);
        let drawn = order.draw();
        self.order.set(order);
        // An odd step around a circle of 32 or 64 meets each lane once.
        let (mut lane, step) = (drawn as u32 & last, (drawn >> 32) as u32 | 1);
        let mut all = [run(lane); MOST];
        for _ in 0..last {
            lane = lane.wrapping_add(step) & last;
            all[lane as usize] = run(lane);
        }
        Lanes(all)
    }

    /// Runs `f` in lane 0 only.
    #[inline]
    pub fn once(&self, f: impl for<'run> Fn(Lane<'run>)) {
        f(Lane { index: 0, run: PhantomData })
    }

    /// The lanes whose value is true.
    pub fn ballot(&mut self, x: Lanes<bool>) -> Mask {
        Mask(self.lanes().fold(0, |mask, i| mask | u64::from(x.0[i]) << i))
    }

    /// In each lane, whether its bit is set: the inverse of `ballot`.
    pub fn members(&mut self, mask: Mask) -> Lanes<bool> {
        self.each(|l| mask.0 >> l.index & 1 != 0)
    }

    /// The value that lane `from % width` holds.
    pub fn broadcast<N: Number>(&mut self, x: Lanes<N>, from: u32) -> N {
        x.0[(from % self.width) as usize]
    }

    /// In each lane, the value that lane `from % width` holds.
    pub fn shuffle<N: Number>(&mut self, x: Lanes<N>, from: Lanes<u32>) -> Lanes<N> {
        self.each(|l| x.0[(from.at(l) % self.width) as usize])
    }

    /// In each lane, the value of the lane `by` below; zero where there is none.
    pub fn shift_up<N: Number>(&mut self, x: Lanes<N>, by: u32) -> Lanes<N> {
        self.each(|l| if l.index >= by { x.0[(l.index - by) as usize] } else { N::ZERO })
    }

    /// The sum over the lanes below, and the sum over all lanes.
    pub fn scan<N: Number>(&mut self, x: Lanes<N>) -> (Lanes<N>, N) {
        let mut before = x;
        let mut total = N::ZERO;
        for i in self.lanes() {
            before.0[i] = total;
            total = total.plus(x.0[i]);
        }
        (before, total)
    }

    /// The sum over all lanes.
    pub fn sum<N: Number>(&mut self, x: Lanes<N>) -> N {
        self.lanes().fold(N::ZERO, |sum, i| sum.plus(x.0[i]))
    }

    /// The least value in any lane.
    pub fn min<N: Number>(&mut self, x: Lanes<N>) -> N {
        self.lanes().fold(x.0[0], |min, i| min.min(x.0[i]))
    }

    /// The greatest value in any lane.
    pub fn max<N: Number>(&mut self, x: Lanes<N>) -> N {
        self.lanes().fold(x.0[0], |max, i| max.max(x.0[i]))
    }

    /// The bits that are set in any lane.
    pub fn or<N: Number>(&mut self, x: Lanes<N>) -> N {
        self.lanes().fold(N::ZERO, |or, i| or | x.0[i])
    }

    /// A hint without effect on results: the loads made so far are needed now. It saves gfx9 a wait in every
    /// conditional store.
    #[inline]
    pub fn loads_done(&self) {}
}

pub(super) fn funnel(high: u32, low: u32, by: u32) -> u32 {
    ((u64::from(high) << 32 | u64::from(low)) >> (by % 32)) as u32
}

/// The requirement on a [`Value`] for this machine's memory.
pub trait Memory: Copy + 'static {}
impl<T: Copy + 'static> Memory for T {}

/// An integer that memory can update in one step.
pub trait Atomic: Value + Number {}
impl Atomic for u32 {}
impl Atomic for u64 {}

/// Memory with an extent, `start..end` in bytes from `base`.
///
/// A bitmap's extent is ragged: `In::bitmap` moves its pointer down to an aligned one, so the extent may
/// start after `base`, and start or end inside a word. A word that is only partly inside reads as zeros
/// outside; a GPU reads those bits and ignores them.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    base: u64,
    start: u64,
    end: u64,
    ragged: bool,
    skipped: u64,
    argument: usize,
    faults: *const Faults,
}

// SAFETY: `faults` is null until `bind`, which only an emulation on one thread calls, on a copy of its own.
// The caller of `AnyEntry::emulate` hands over the memory itself, as that contract says.
unsafe impl Send for Address {}

/// The number of the first `count` bytes at `memory` that precede the first one that AddressSanitizer knows
/// to be unowned; all `count` if the first byte itself is. If only the device knows how long a buffer is, a
/// GPU reads the bytes past its end that share a block with wanted bytes, and that is no mistake, so the
/// emulator leaves them out. A read of a block without a wanted byte is a mistake; it gets the full `count`,
/// so that the sanitizer reports it.
#[cfg(sanitized)]
fn addressable(memory: *mut u8, count: usize) -> usize {
    unsafe extern "C" {
        fn __asan_region_is_poisoned(start: *mut u8, bytes: usize) -> *mut u8;
    }
    // SAFETY: the function looks at the sanitizer's own notes, which cover any address.
    let first = unsafe { __asan_region_is_poisoned(memory, count) };
    if first.is_null() || first == memory { count } else { first.addr() - memory.addr() }
}

impl Address {
    pub const KNOWS_EXTENT: bool = true;
    pub const ABSENT: Address = Address::new(0, 0, 0, false);

    pub const fn new(base: u64, start: u64, end: u64, ragged: bool) -> Address {
        Address { base, start, end, ragged, skipped: 0, argument: 0, faults: core::ptr::null() }
    }

    /// The machine word that a launch passes.
    pub fn word(self) -> u64 {
        self.base + self.skipped
    }

    /// The first address that may be accessed, and the number of bytes from there.
    pub fn extent(self) -> (u64, u64) {
        (self.base + self.start, self.end - self.start)
    }

    /// Makes the address record its faults in `faults` from now on, as accesses through argument `argument`.
    pub fn bind(&mut self, argument: usize, faults: &Faults) {
        self.argument = argument;
        self.faults = faults;
    }

    pub fn is_absent(self) -> bool {
        self.base == 0
    }

    pub fn skip(self, bytes: u64) -> Address {
        Address { skipped: self.skipped.wrapping_add(bytes), ..self }
    }

    /// The two words that describe this memory in a table; a GPU reads the first one only.
    pub fn describe(self) -> [u64; 2] {
        [self.base, self.end | self.start << 48 | u64::from(self.ragged) << 63]
    }

    /// The memory that `describe` described, reached through the table `self`. It is the same for the whole
    /// wave.
    pub fn described(self, _: &mut Wave, base: u64, extent: u64) -> Address {
        self.memory(base, extent)
    }

    /// The memory that `describe` described, for one lane.
    pub fn described_to(self, _: Lane<'_>, base: u64, extent: u64) -> Address {
        self.memory(base, extent)
    }

    fn memory(self, base: u64, extent: u64) -> Address {
        let (end, start, ragged) = (extent & 0xffff_ffff_ffff, extent >> 48 & 0x7f, extent >> 63 != 0);
        Address { base, start, end, ragged, skipped: 0, ..self }
    }

    /// Locates the bytes of element `i` that are inside: their address in memory, their offset in the
    /// element, and their number.
    fn locate<T: Value>(self, i: u64, access: Access) -> Option<(*mut u8, usize, usize)> {
        let size = size_of::<T>() as u64;
        let at = i.saturating_mul(size).wrapping_add(self.skipped);
        let (from, to) = (at.max(self.start), at.saturating_add(size).min(self.end));
        let whole = from == at && to == at.saturating_add(size);
        let cause = if self.base == 0 || from >= to || !(whole || self.ragged && access == Access::Read) {
            Cause::Outside
        } else if !(self.base + at).is_multiple_of(align_of::<T>() as u64) {
            Cause::Misaligned
        } else {
            let memory = core::ptr::with_exposed_provenance_mut((self.base + from) as usize);
            return Some((memory, (from - at) as usize, (to - from) as usize));
        };
        // SAFETY: not null, it is the reference `bind` was given, and the emulation that called `bind` is
        // still running.
        if let Some(faults) = unsafe { self.faults.as_ref() } {
            faults.record(Fault { argument: self.argument, index: at / size, access, cause });
        }
        None
    }

    #[inline]
    pub fn read<T: Value>(self, i: u64) -> T {
        let mut value = T::ZERO;
        if let Some((memory, skip, count)) = self.locate::<T>(i, Access::Read) {
            #[cfg(sanitized)]
            let count = if self.ragged { addressable(memory, count) } else { count };
            // SAFETY: inside the extent that the caller of `emulate` vouches for; `skip + count` is at most
            // the size of a `T`, and every bit pattern is a `T`.
            unsafe { core::ptr::copy_nonoverlapping(memory, (&raw mut value).cast::<u8>().add(skip), count) }
        }
        value
    }

    #[inline]
    pub fn stream<T: Value>(self, i: u64) -> T {
        self.read(i)
    }

    #[inline]
    pub fn write<T: Value>(self, i: u64, value: T) {
        if let Some((memory, ..)) = self.locate::<T>(i, Access::Write) {
            // SAFETY: inside the extent that the caller of `emulate` vouches for, and aligned.
            unsafe { memory.cast::<T>().write(value) }
        }
    }

    /// Updates element `i`, and returns its old value; zero where there is no element. Lanes of an emulation
    /// run one after another, so an atomic update is a read and a write.
    fn update<T: Atomic>(self, i: u64, f: impl FnOnce(T) -> T) -> T {
        let Some((memory, ..)) = self.locate::<T>(i, Access::Write) else { return <T as Value>::ZERO };
        let memory = memory.cast::<T>();
        // SAFETY: as in `write`; the memory was written before, as `read` requires.
        unsafe {
            let old = memory.read();
            memory.write(f(old));
            old
        }
    }

    pub fn add<T: Atomic>(self, i: u64, value: T) {
        self.fetch_add(i, value);
    }

    pub fn or<T: Atomic>(self, i: u64, value: T) {
        self.update(i, |old: T| old | value);
    }

    pub fn min<T: Atomic>(self, i: u64, value: T) {
        self.fetch_min(i, value);
    }

    pub fn load<T: Atomic>(self, i: u64) -> T {
        self.read(i)
    }

    pub fn fetch_add<T: Atomic>(self, i: u64, value: T) -> T {
        self.update(i, |old: T| old.plus(value))
    }

    pub fn fetch_min<T: Atomic>(self, i: u64, value: T) -> T {
        self.update(i, |old: T| old.min(value))
    }

    pub fn compare_exchange<T: Atomic>(self, i: u64, expected: T, new: T) -> T {
        self.update(i, |old: T| if old == expected { new } else { old })
    }
}
