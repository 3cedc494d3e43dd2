//! NVIDIA's loads, stores and atomics, in inline assembly. `ld.global` is used also through pointers
//! loaded from memory (LLVM would make those generic), and loads go through the read-only cache. As the
//! assembly is not `pure`, loads stay in the order of the source, so that all loads of a step are in flight
//! together.

use core::arch::asm;

use super::{Number, Value};

/// Loads and stores of one type.
pub trait Memory: Copy + 'static {
    /// # Safety
    /// `p` is readable and aligned.
    unsafe fn load(p: *const Self) -> Self;
    /// # Safety
    /// As `load`.
    unsafe fn stream(p: *const Self) -> Self;
    /// # Safety
    /// `p` is writable and aligned.
    unsafe fn store(p: *mut Self, value: Self);
}

/// The type, the register type that holds it, the register class, and the instruction's suffix. Small
/// integers are zero- or sign-extended.
macro_rules! memory {
    ($($t:ty, $reg:ty, $class:ident, $suffix:literal;)*) => { $(impl Memory for $t {
        #[inline(always)]
        unsafe fn load(p: *const $t) -> $t {
            let r: $reg;
            // SAFETY: the caller's.
            unsafe { asm!(concat!("ld.global.nc.", $suffix, " {}, [{}];"), out($class) r, in(reg64) p,
                options(readonly, nostack, preserves_flags)) }
            // SAFETY: the load extended it.
            unsafe { core::hint::assert_unchecked(r as $t as $reg == r || size_of::<$t>() >= 4) }
            r as $t
        }
        #[inline(always)]
        unsafe fn stream(p: *const $t) -> $t {
            let r: $reg;
            // SAFETY: the caller's.
            unsafe { asm!(concat!("ld.global.nc.L1::no_allocate.", $suffix, " {}, [{}];"), out($class) r, in(reg64) p,
                options(readonly, nostack, preserves_flags)) }
            // SAFETY: the load extended it.
            unsafe { core::hint::assert_unchecked(r as $t as $reg == r || size_of::<$t>() >= 4) }
            r as $t
        }
        #[inline(always)]
        unsafe fn store(p: *mut $t, value: $t) {
            // SAFETY: the caller's.
            unsafe { asm!(concat!("st.global.", $suffix, " [{}], {};"), in(reg64) p, in($class) value as $reg,
                options(nostack, preserves_flags)) }
        }
    })* };
}
memory! {
    u8, u32, reg32, "u8"; i8, i32, reg32, "s8"; u16, u32, reg32, "u16"; i16, i32, reg32, "s16";
    u32, u32, reg32, "b32"; i32, i32, reg32, "b32"; u64, u64, reg64, "b64"; i64, i64, reg64, "b64";
    f32, f32, reg32, "b32"; f64, f64, reg64, "b64";
}

macro_rules! memory_16 {
    ($($t:ty)*) => { $(impl Memory for $t {
        #[inline(always)]
        unsafe fn load(p: *const $t) -> $t {
            let (low, high): (u64, u64);
            // SAFETY: the caller's.
            unsafe { asm!("ld.global.nc.v2.b64 {{{}, {}}}, [{}];", out(reg64) low, out(reg64) high, in(reg64) p,
                options(readonly, nostack, preserves_flags)) }
            (u128::from(high) << 64 | u128::from(low)) as $t
        }
        #[inline(always)]
        unsafe fn stream(p: *const $t) -> $t {
            let (low, high): (u64, u64);
            // SAFETY: the caller's.
            unsafe { asm!("ld.global.nc.L1::no_allocate.v2.b64 {{{}, {}}}, [{}];", out(reg64) low, out(reg64) high,
                in(reg64) p, options(readonly, nostack, preserves_flags)) }
            (u128::from(high) << 64 | u128::from(low)) as $t
        }
        #[inline(always)]
        unsafe fn store(p: *mut $t, value: $t) {
            // SAFETY: the caller's.
            unsafe { asm!("st.global.v2.b64 [{}], {{{}, {}}};", in(reg64) p, in(reg64) value as u64,
                in(reg64) (value as u128 >> 64) as u64, options(nostack, preserves_flags)) }
        }
    })* };
}
memory_16! { u128 i128 }

impl<T: Memory> Memory for [T; 2] {
    #[inline(always)]
    unsafe fn load(p: *const [T; 2]) -> [T; 2] {
        // SAFETY: the caller's.
        unsafe { [T::load(p.cast()), T::load(p.cast::<T>().add(1))] }
    }
    #[inline(always)]
    unsafe fn stream(p: *const [T; 2]) -> [T; 2] {
        // SAFETY: the caller's.
        unsafe { [T::stream(p.cast()), T::stream(p.cast::<T>().add(1))] }
    }
    #[inline(always)]
    unsafe fn store(p: *mut [T; 2], value: [T; 2]) {
        // SAFETY: the caller's.
        unsafe {
            T::store(p.cast(), value[0]);
            T::store(p.cast::<T>().add(1), value[1]);
        }
    }
}

/// Atomic accesses, relaxed, at device scope: `RED` without the old value, `ATOM` with it. Rust's own would
/// have the scope of the system, which the memory of one GPU does not need.
pub trait Atomic: Value + Number {
    /// # Safety
    /// `p` is writable and aligned.
    unsafe fn red_add(p: *mut Self, value: Self);
    /// # Safety
    /// As `red_add`.
    unsafe fn red_or(p: *mut Self, value: Self);
    /// # Safety
    /// As `red_add`.
    unsafe fn red_min(p: *mut Self, value: Self);
    /// # Safety
    /// As `red_add`.
    unsafe fn atom_load(p: *mut Self) -> Self;
    /// # Safety
    /// As `red_add`.
    unsafe fn atom_add(p: *mut Self, value: Self) -> Self;
    /// # Safety
    /// As `red_add`.
    unsafe fn atom_min(p: *mut Self, value: Self) -> Self;
    /// # Safety
    /// As `red_add`.
    unsafe fn atom_exchange(p: *mut Self, expected: Self, new: Self) -> Self;
}

macro_rules! atomic {
    ($($t:ty, $class:ident, $bits:literal;)*) => { $(impl Atomic for $t {
        #[inline(always)]
        unsafe fn red_add(p: *mut $t, value: $t) {
            // SAFETY: the caller's.
            unsafe { asm!(concat!("red.relaxed.gpu.global.add.u", $bits, " [{}], {};"), in(reg64) p, in($class) value,
                options(nostack, preserves_flags)) }
        }
        #[inline(always)]
        unsafe fn red_or(p: *mut $t, value: $t) {
            // SAFETY: the caller's.
            unsafe { asm!(concat!("red.relaxed.gpu.global.or.b", $bits, " [{}], {};"), in(reg64) p, in($class) value,
                options(nostack, preserves_flags)) }
        }
        #[inline(always)]
        unsafe fn red_min(p: *mut $t, value: $t) {
            // SAFETY: the caller's.
            unsafe { asm!(concat!("red.relaxed.gpu.global.min.u", $bits, " [{}], {};"), in(reg64) p, in($class) value,
                options(nostack, preserves_flags)) }
        }
        #[inline(always)]
        unsafe fn atom_load(p: *mut $t) -> $t {
            let held;
            // SAFETY: the caller's.
            unsafe { asm!(concat!("ld.relaxed.gpu.global.b", $bits, " {}, [{}];"), out($class) held, in(reg64) p,
                options(readonly, nostack, preserves_flags)) }
            held
        }
        #[inline(always)]
        unsafe fn atom_add(p: *mut $t, value: $t) -> $t {
            let old;
            // SAFETY: the caller's.
            unsafe { asm!(concat!("atom.relaxed.gpu.global.add.u", $bits, " {}, [{}], {};"), out($class) old,
                in(reg64) p, in($class) value, options(nostack, preserves_flags)) }
            old
        }
        #[inline(always)]
        unsafe fn atom_min(p: *mut $t, value: $t) -> $t {
            let old;
            // SAFETY: the caller's.
            unsafe { asm!(concat!("atom.relaxed.gpu.global.min.u", $bits, " {}, [{}], {};"), out($class) old,
                in(reg64) p, in($class) value, options(nostack, preserves_flags)) }
            old
        }
        #[inline(always)]
        unsafe fn atom_exchange(p: *mut $t, expected: $t, new: $t) -> $t {
            let old;
            // SAFETY: the caller's.
            unsafe { asm!(concat!("atom.relaxed.gpu.global.cas.b", $bits, " {}, [{}], {}, {};"), out($class) old,
                in(reg64) p, in($class) expected, in($class) new, options(nostack, preserves_flags)) }
            old
        }
    })* };
}
atomic! { u32, reg32, "32"; u64, reg64, "64"; }
