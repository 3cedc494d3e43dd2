//! Moves of registers that stay where the code has them.
//!
//! The one idea: a value that some instructions replace has one register if no two of its versions are needed
//! at once. Otherwise the compiler for NVIDIA keeps a second one, and copies it in every instruction, also in
//! those that change nothing. So code that still needs the old version moves it away first.

#![allow(unsafe_code)]

use super::task::Values;
use super::word::Word;
use crate::target::Wave;

/// The values in registers of their own. Those that they had are free for what is loaded next.
#[inline(always)]
pub(super) fn moved<V: Word, const K: usize>(values: Values<V, K>, wave: &Wave) -> Values<V, K> {
    wave.each(move |l| {
        let mut own = values.at(l);
        for value in &mut own {
            *value = value.map_halves(register);
        }
        own
    })
}

#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn register(x: u64) -> u64 {
    let to;
    // SAFETY: copies a register. Without `pure`, it keeps its place among the loads.
    unsafe {
        core::arch::asm!("mov.b64 {}, {};", out(reg64) to, in(reg64) x, options(nomem, nostack, preserves_flags))
    }
    to
}

#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
fn register(x: u64) -> u64 {
    x
}
