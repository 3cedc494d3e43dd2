//! AMD's loads, stores and atomics, as Rust has them.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::{Number, Value};

/// The requirement on a value in memory; plain loads and stores suffice.
pub trait Memory: Copy + 'static {}
impl<T: Copy + 'static> Memory for T {}

/// Relaxed atomics. Rust's have system scope, at which a load, `add` and the exchange are one instruction
/// each and the others are loops around a compare-and-swap: to set bits that no other lane sets, add them.
/// LLVM asks for the old value only where something uses it. If all lanes update one element, it combines
/// their values first, in a loop over the lanes, and one lane makes the update.
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
    ($($t:ty, $atomic:ident;)*) => { $(impl Atomic for $t {
        #[inline(always)]
        unsafe fn red_add(p: *mut $t, value: $t) {
            // SAFETY: the caller's.
            unsafe { $atomic::from_ptr(p).fetch_add(value, Relaxed) };
        }
        #[inline(always)]
        unsafe fn red_or(p: *mut $t, value: $t) {
            // SAFETY: the caller's.
            unsafe { $atomic::from_ptr(p).fetch_or(value, Relaxed) };
        }
        #[inline(always)]
        unsafe fn red_min(p: *mut $t, value: $t) {
            // SAFETY: the caller's.
            unsafe { $atomic::from_ptr(p).fetch_min(value, Relaxed) };
        }
        #[inline(always)]
        unsafe fn atom_load(p: *mut $t) -> $t {
            // SAFETY: the caller's.
            unsafe { $atomic::from_ptr(p).load(Relaxed) }
        }
        #[inline(always)]
        unsafe fn atom_add(p: *mut $t, value: $t) -> $t {
            // SAFETY: the caller's.
            unsafe { $atomic::from_ptr(p).fetch_add(value, Relaxed) }
        }
        #[inline(always)]
        unsafe fn atom_min(p: *mut $t, value: $t) -> $t {
            // SAFETY: the caller's.
            unsafe { $atomic::from_ptr(p).fetch_min(value, Relaxed) }
        }
        #[inline(always)]
        unsafe fn atom_exchange(p: *mut $t, expected: $t, new: $t) -> $t {
            // SAFETY: the caller's.
            match unsafe { $atomic::from_ptr(p).compare_exchange(expected, new, Relaxed, Relaxed) } {
                Ok(old) | Err(old) => old,
            }
        }
    })* };
}
atomic! { u32, AtomicU32; u64, AtomicU64; }
