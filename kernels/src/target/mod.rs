//! The machines a kernel body can run on, and the vocabulary in which it is written.
//!
//! The one idea: a body is written for a whole **wave** (32 or 64 lanes that run together), as if it were a
//! single sequential program. A number outside a closure is the same in every lane. A value that differs from
//! lane to lane is a [`Lanes`]; closures that run once a lane make and read it, and lanes exchange values
//! only through the collectives of [`Wave`].
//!
//! ```text
//! let words = wave.each(|l| bits.word(first + l.index()));      // a register in each lane
//! let ones  = wave.each(|l| words.at(l).count_ones());
//! let (before, total) = wave.scan(ones);                        // a collective: &mut Wave
//! wave.each(|l| out.set(l, before.at(l), …));                   // stores and atomics need a lane
//! ```
//!
//! This rules out, at compile time:
//! - **A divergent collective.** Collectives take `&mut Wave`, per-lane closures run while the wave is
//!   borrowed, and a [`Lane`] cannot leave its closure (its lifetime is the closure's), so no condition
//!   outside a closure can depend on a lane. Every branch around a collective is the same for the whole wave.
//! - **A store or an atomic that all lanes make by mistake.** Both need the [`Lane`] that makes them: `each`
//!   or `once`.
//! - **A uniform operation on values that differ from lane to lane.** On AMD, a mask, the lane that a
//!   broadcast reads and the buffer that a table describes to a wave are in scalar registers: if lanes
//!   disagreed, the first would decide for all. So each operation that needs scalar registers takes `&mut
//!   Wave` too, and cannot run in a closure, the only place where lanes differ. An operation whose inputs
//!   each lane may choose takes the [`Lane`].
//!
//! ```
//! # use bowstring_kernels::{memory::In, target::{Mask, Wave}};
//! fn uniform(table: In<u64>, mask: Mask, wave: &mut Wave) {
//!     let (all, some) = (table.input::<u32>(wave, 0), wave.members(mask));
//!     wave.each(|l| if some.at(l) { all.get(0) } else { 0 });
//! }
//! fn by_lane(table: In<u64>, wave: &mut Wave) {
//!     wave.each(|l| table.input_of::<u32>(l, l.index().into()).get(0));
//! }
//! ```
//! ```compile_fail,E0502
//! # use bowstring_kernels::{memory::In, target::Wave};
//! fn one_buffer_for_lanes_that_differ(table: In<u64>, wave: &mut Wave) {
//!     wave.each(|l| table.input::<u32>(wave, l.index().into()).get(0));
//! }
//! ```
//! ```compile_fail,E0502
//! # use bowstring_kernels::target::{Mask, Wave};
//! fn one_mask_for_lanes_that_differ(masks: [Mask; 2], wave: &mut Wave) {
//!     wave.each(|l| wave.members(masks[l.index() as usize % 2]).at(l));
//! }
//! ```
//!
//! Per-lane closures are `Fn`, not `FnMut`: lanes share nothing but memory. To have several loads in flight,
//! they SHOULD load unconditionally from a clamped index and select afterwards: a divergent branch around
//! each load makes both compilers wait inside it.
//!
//! The vocabulary has three implementations. **The host's is the definition**: plain loops over the lanes,
//! width 32 or 64 chosen at run time, every access checked against the extent of the argument it goes
//! through. `nvptx` and `amdgpu` must agree with it; `selftest` has a kernel for each operation.
//!
//! Atomics (`add`, `or`, `min`; with the old value `fetch_add`, `fetch_min`, `compare_exchange`; `load`)
//! are relaxed, of 32 or 64 bits. They show the order in which lanes and waves arrive, and no GPU promises
//! one. So the host runs the waves of a launch, and the lanes of each closure, in a random order from a seed
//! (`AnyEntry::emulate_in_order`): results must not change with it. It runs a lane's closure to its end
//! before the next lane's; the interpreters of images let lanes and waves take turns inside it.
//!
//! The vocabulary costs nothing (rustc 1.96, ptxas 13.4, read in the SASS). `Lanes<T>` is a register, `each`
//! is its body, `ballot` of a comparison is `ISETP` + `VOTE`, `broadcast` one `SHFL`, `once` a predicate. On
//! AMD, masks and broadcasts live in scalar registers (`v_readlane`), and [`Wave::members`] makes the mask
//! itself `exec`.
//!
//! Only this directory asks for the target architecture.

#[cfg(target_arch = "nvptx64")]
#[path = "nvptx.rs"]
mod machine;
#[cfg(target_arch = "amdgpu")]
#[path = "amdgpu.rs"]
mod machine;
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
#[path = "host.rs"]
mod machine;
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
#[macro_use]
mod entry;
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
mod faults;
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
mod order;
mod truncate;

/// Whether this build is for a processor, which predicts branches, and not for a GPU.
pub(crate) const HOST: bool = cfg!(not(any(target_arch = "nvptx64", target_arch = "amdgpu")));

#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub use entry::{AnyEntry, Args, Argument, Entry, Field, Kind, Makers, Table, find};
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub use faults::{Access, Cause, Fault, Faults};
pub(crate) use machine::Address;
pub use machine::{Atomic, Lane, Lanes, Mask, Wave};
pub use truncate::Truncate;

/// Threads in a block, on every GPU. A block only serves to launch: its waves share nothing.
pub const BLOCK: u32 = 256;

/// The most waves of a launch: the AMD runtime counts a launch's threads in 32 bits. Blocks are whole at
/// either width.
pub const MAX_WAVES: u64 = (1 << 26) - 8;

/// A value that memory holds and that a lane loads or stores at once.
///
/// On a GPU each load or store is one instruction (16 bytes: one 128-bit access; `[T; 2]`: two accesses).
///
/// # Safety
///
/// Every bit pattern of the type's size is a value of the type.
pub unsafe trait Value: machine::Memory {
    /// The value whose bits are all zero.
    const ZERO: Self;
}

macro_rules! values {
    ($($t:ty)*) => { $(
        // SAFETY: a number.
        unsafe impl Value for $t {
            const ZERO: $t = 0 as $t;
        }
    )* };
}
values! { u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64 }

// SAFETY: two values, without padding.
unsafe impl<T: Value> Value for [T; 2] {
    const ZERO: [T; 2] = [T::ZERO; 2];
}

/// An integer that lanes can exchange and combine. Sums wrap.
pub trait Number: Copy + Ord + core::ops::BitOr<Output = Self> + 'static {
    /// The number zero of this type.
    const ZERO: Self;
    /// Whether the type has an upper half, and so 64 bits.
    const WIDE: bool;
    /// The sum, wrapping on overflow.
    fn plus(self, other: Self) -> Self;
    /// The difference, wrapping on overflow.
    fn minus(self, other: Self) -> Self;
    /// The lower and upper 32 bits, which a lane exchange moves one at a time.
    fn halves(self) -> (u32, u32);
    /// The inverse of `halves`.
    fn from_halves(low: u32, high: u32) -> Self;
}

macro_rules! numbers {
    ($($t:ident)*) => { $(impl Number for $t {
        const ZERO: $t = 0;
        const WIDE: bool = size_of::<$t>() == 8;
        #[inline(always)]
        fn plus(self, other: $t) -> $t {
            self.wrapping_add(other)
        }
        #[inline(always)]
        fn minus(self, other: $t) -> $t {
            self.wrapping_sub(other)
        }
        #[inline(always)]
        fn halves(self) -> (u32, u32) {
            (self as u32, if Self::WIDE { (self as u64 >> 32) as u32 } else { 0 })
        }
        #[inline(always)]
        fn from_halves(low: u32, high: u32) -> $t {
            if Self::WIDE { (u64::from(high) << 32 | u64::from(low)) as $t } else { low as $t }
        }
    })* };
}
numbers! { u32 i32 u64 i64 }

/// The 32 bits of `high:low` from bit `by % 32` on. This is one funnel shift on every GPU.
#[inline(always)]
pub fn funnel(high: u32, low: u32, by: u32) -> u32 {
    machine::funnel(high, low, by)
}

impl Wave {
    /// The set bits of `masks`, laid end to end, as 32-bit words: lane `j` gets word `j`.
    ///
    /// This makes a bitmap of ballots with one coalesced store. `N * width / 32` must not exceed the width.
    #[inline(always)]
    pub fn words<const N: usize>(&self, masks: &[Mask; N]) -> Lanes<u32> {
        let halves = self.width() / 32;
        self.each(|l| {
            let mut word = 0;
            for (k, mask) in masks.iter().enumerate() {
                if l.index() / halves == k as u32 {
                    word = mask.half(l.index() % halves);
                }
            }
            word
        })
    }

    /// Makes a mask of `width` bits: bit `i` of lane `first`'s word belongs to lane `i`, and so on into the
    /// next lane's word.
    #[inline(always)]
    pub fn mask(&mut self, words: Lanes<u32>, first: u32) -> Mask {
        let low = self.broadcast(words, first);
        let high = if self.width() == 64 { self.broadcast(words, first + 1) } else { 0 };
        Mask::from_halves(low, high)
    }

    /// The sum over all lanes, or `u64::MAX` where that overflows.
    #[inline(always)]
    pub fn saturating_sum(&mut self, x: Lanes<u64>) -> u64 {
        // Sums without further checks where each value is so small that 64 of them cannot overflow.
        let large = self.each(|l| x.at(l) >> 58 != 0);
        if !self.any(large) {
            return self.sum(x);
        }
        let (low, high) = (self.each(|l| x.at(l) & 0xffff_ffff), self.each(|l| x.at(l) >> 32));
        let low = self.sum(low);
        let high = self.sum(high) + (low >> 32);
        if high >> 32 == 0 { high << 32 | low & 0xffff_ffff } else { u64::MAX }
    }

    /// Whether any lane's value is true.
    #[inline(always)]
    pub fn any(&mut self, x: Lanes<bool>) -> bool {
        !self.ballot(x).is_empty()
    }
}

/// For `selftest`: a branch on a lane's value, a ballot, and the same branch again, on bare registers. Kernel
/// bodies cannot express this (their branches are inside closures, and a collective is not), and rustc up to
/// 1.96 miscompiles it: its jump threading copies the ballot into both branches. ptx/build.sh switches that
/// pass off, and ptx/check.sh counts the ballots.
#[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
#[inline(always)]
pub(crate) fn bait(wave: &mut Wave, x: Lanes<u32>, limit: u32) -> Lanes<u32> {
    let x = machine::value(x);
    let mut y;
    if x & 1 == 0 {
        y = x.wrapping_mul(3);
    } else {
        y = x ^ 0x55;
    }
    let over = wave.ballot(machine::lanes(x > limit)).half(0);
    if x & 1 == 0 {
        y = y.wrapping_add(over);
    } else {
        y ^= over;
    }
    machine::lanes(y)
}
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub(crate) fn bait(wave: &mut Wave, x: Lanes<u32>, limit: u32) -> Lanes<u32> {
    let over = wave.each(|l| x.at(l) > limit);
    let over = wave.ballot(over).half(0);
    wave.each(|l| {
        if x.at(l) & 1 == 0 { x.at(l).wrapping_mul(3).wrapping_add(over) } else { x.at(l) ^ 0x55 ^ over }
    })
}

/// Items that only the host's build has.
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
macro_rules! host_only {
    ($($item:item)*) => { $($item)* };
}
/// Items that only the host's build has.
#[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
macro_rules! host_only {
    ($($item:item)*) => {};
}

/// A function that every kernel inlines on a device, since images contain no calls. On the host one copy is
/// enough where the types it is generic over go through [`one_type_on_host`]; a family of many entries then
/// compiles many times faster.
macro_rules! inlined_on_devices {
    ($function:item) => {
        #[cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), inline(always))]
        $function
    };
}

/// Leaves a closure as it is on a device, so that it can be inlined; makes it a function pointer on the host.
#[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
macro_rules! one_type_on_host {
    ($pointer:ty, $closure:expr) => {
        $closure
    };
}
/// Leaves a closure as it is on a device, so that it can be inlined; makes it a function pointer on the host.
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
macro_rules! one_type_on_host {
    ($pointer:ty, $closure:expr) => {
        $closure as $pointer
    };
}

/// Declares a kernel: its arguments, and its entries (the instantiations a GPU looks up by name).
///
/// ```text
/// kernel! {
///     family "filter";                      // which image the entries are in
///     /// What it does.
///     Scatter {
///         /// The values.
///         values: In<u8>,
///         /// How many.
///         len: u64,
///     }
///     waves |args, width| args.len.div_ceil(u64::from(width));
///     /// By width in bytes.
///     SCATTER {
///         filter_scatter_b4 [4] = scatter::<u32>,
///         filter_scatter_b8 [8] = scatter::<u64>,
///     }
/// }
/// ```
///
/// `waves` gives the number of waves in a launch with these arguments, on a machine whose waves have `width`
/// lanes. The launch calls it, so that no caller repeats the arithmetic. If entries need different numbers,
/// each has its own after its body: `= body; waves ...,`.
///
/// A table that a macro generates can give a name in parts: `cast_up<i32, i64>` is `cast_up_i32_i64`.
///
/// Hints to a compiler about a family's entries follow its name, where the tool that builds images reads
/// them:
///
/// ```text
/// family "take", blocks 3;                               // blocks to fit on an NVIDIA processor; else 4
/// family "cast", blocks 3 for cast_f64_i64 cast_f64_u64; // the same, for the entries named
/// family "cast_float", blocks 2, threads 256 for …;      // entries whose block size AMD's compiler is told
/// ```
///
/// An entry that exists on one maker's machines only says so between its key and its body:
/// `wide [16] on nvidia = wide::<u128>`. The other maker's images lack it, and an operation that would launch
/// it there is unsupported.
///
/// An argument is `In<T>`, `Out<T>` or `u64`: one machine word, passed one by one (a struct by value would
/// make every access generic in PTX, and AMD would pass it as a pointer). On a device each entry is an
/// exported function; on the host the declaration is the argument struct and a table of [`Entry`], whose
/// `key` is the list in brackets.
#[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
macro_rules! kernel {
    (
        family $family:literal $(, $tuning:ident $value:literal $(for $($tuned:ident)+)?)*;
        $(#[$doc:meta])* $args:ident $fields:tt
        waves $waves:expr;
        $(#[$table_doc:meta])* $table:ident {
            $($name:ident $(<$($part:ident),+>)? $([$($key:expr),+])? $(on $maker:ident)? = $body:expr,)+
        }
    ) => {
        kernel! {
            family $family;
            $args $fields
            $table { $($name $(<$($part),+>)? $(on $maker)? = $body; waves $waves,)+ }
        }
    };
    (
        family $family:literal;
        $(#[$doc:meta])* $args:ident $fields:tt
        $(#[$table_doc:meta])* $table:ident {
            $($name:ident $(<$($part:ident),+>)? $([$($key:expr),+])? $(on $maker:ident)? = $body:expr; waves $waves:expr,)+
        }
    ) => {
        kernel! { @args $args $fields }
        $(kernel! { @on [$($maker)?] @entry $family $args $fields [$name $($($part)+)?] $body })+
    };
    (@on [] $($entry:tt)+) => { kernel! { $($entry)+ } };
    (@on [nvidia] $($entry:tt)+) => {
        #[cfg(target_arch = "nvptx64")]
        kernel! { $($entry)+ }
    };
    (@on [amd] $($entry:tt)+) => {
        #[cfg(target_arch = "amdgpu")]
        kernel! { $($entry)+ }
    };
    (@args $args:ident { $($(#[$doc:meta])* $field:ident: $ty:ty,)+ }) => {
        #[derive(Clone, Copy)]
        pub struct $args { $(pub $field: $ty,)+ }
    };
    (
        @entry $family:literal $args:ident { $($(#[$doc:meta])* $field:ident: $ty:ty,)+ }
        [$name:ident $($part:ident)*] $body:expr
    ) => {
        #[cfg(any(not(family), family = $family))]
        const _: () = {
            $(assert!(size_of::<$ty>() == 8, "a kernel argument is one machine word");)+
            // Outside the function, whose parameters would hide names that the body uses.
            const BODY: fn(&$args, &mut $crate::target::Wave) = $body;
            #[unsafe(export_name = concat!(stringify!($name) $(, "_", stringify!($part))*))]
            extern "gpu-kernel" fn exported($($field: $ty,)+) {
                BODY(&$args { $($field,)+ }, &mut $crate::target::Wave::current())
            }
        };
    };
}
