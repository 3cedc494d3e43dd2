//! Plain loops compiled for wide vectors, chosen at run time.
//!
//! A [`Loop`] is ordinary safe Rust that the compiler can vectorise. [`vectorised`] holds it once per vector
//! extension, in a function that has the extension enabled, and calls the widest that this machine has. The
//! arithmetic is the same at every level; only its speed differs.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};

/// Work that is compiled for wide vectors.
///
/// `run` and everything it calls for each row must be `#[inline(always)]`: code that is not inlined into the
/// function with the extension enabled is compiled without it.
pub(crate) trait Loop {
    /// The result of the work, `()` for loops that write to borrowed memory.
    type Output;
    /// Executes the loop, compiled for the level of the caller.
    fn run(self) -> Self::Output;
}

/// The vector extensions that loops are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VectorLevel {
    /// The baseline that every machine of the architecture has.
    Plain,
    /// AVX2 with the bit instructions of its time (Haswell, 2013, and Zen).
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with the population count and byte compression (Ice Lake, 2019, and Zen 4).
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The environment variable that limits a process to vectors of the named level, for measuring and testing
/// narrower ones.
const LEVEL: &str = "BOWSTRING_LEVEL";

/// Returns the level of a name; `None` on another architecture, and for an unknown name.
fn named(name: &str) -> Option<VectorLevel> {
    match name {
        "plain" => Some(VectorLevel::Plain),
        #[cfg(target_arch = "x86_64")]
        "avx2" => Some(VectorLevel::Avx2),
        #[cfg(target_arch = "x86_64")]
        "avx512" => Some(VectorLevel::Avx512),
        _ => None,
    }
}

/// All levels in order; each includes those before it.
#[cfg(target_arch = "x86_64")]
const ALL: &[VectorLevel] = &[VectorLevel::Plain, VectorLevel::Avx2, VectorLevel::Avx512];
#[cfg(not(target_arch = "x86_64"))]
const ALL: &[VectorLevel] = &[VectorLevel::Plain];

/// A number that is computed once, without a lock. Two threads may compute it, with the same result: a forked
/// child must not wait for a thread of its parent.
struct Found(AtomicUsize);

impl Found {
    fn or(&self, find: impl FnOnce() -> usize) -> usize {
        match self.0.load(Ordering::Relaxed) {
            0 => {
                let found = find();
                self.0.store(found + 1, Ordering::Relaxed);
                found
            }
            known => known - 1,
        }
    }
}

/// Returns whether the gather instruction beats loading scattered values one by one. It does on Intel's
/// processors; on AMD's (measured on Zen 4 and 5) it takes up to three times as long.
#[inline(never)]
pub(crate) fn gathers() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        static GATHERS: Found = Found(AtomicUsize::new(0));
        let is_of_intel = || {
            let maker = std::arch::x86_64::__cpuid(0);
            let name = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes);
            name.as_flattened() == b"GenuineIntel"
        };
        GATHERS.or(|| is_of_intel().into()) != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

impl VectorLevel {
    /// Returns the levels that this machine has, widest last.
    pub(crate) fn available() -> &'static [VectorLevel] {
        #[cfg(target_arch = "x86_64")]
        {
            let has = |all: &[bool]| all.iter().all(|one| *one);
            let avx2 = has(&[
                is_x86_feature_detected!("avx2"),
                is_x86_feature_detected!("bmi1"),
                is_x86_feature_detected!("bmi2"),
                is_x86_feature_detected!("lzcnt"),
                is_x86_feature_detected!("popcnt"),
            ]);
            let avx512 = has(&[
                is_x86_feature_detected!("avx512f"),
                is_x86_feature_detected!("avx512bw"),
                is_x86_feature_detected!("avx512cd"),
                is_x86_feature_detected!("avx512dq"),
                is_x86_feature_detected!("avx512vl"),
                is_x86_feature_detected!("avx512vbmi"),
                is_x86_feature_detected!("avx512vbmi2"),
                is_x86_feature_detected!("avx512vpopcntdq"),
            ]);
            &ALL[..1 + usize::from(avx2) + usize::from(avx2 && avx512)]
        }
        #[cfg(not(target_arch = "x86_64"))]
        ALL
    }

    /// Returns the widest level that this machine has and [`LEVEL`] allows. It is not inlined because two
    /// hundred places call it.
    #[inline(never)]
    pub(crate) fn widest() -> VectorLevel {
        static WIDEST: Found = Found(AtomicUsize::new(0));
        let widest = || {
            let asked = std::env::var(LEVEL).ok();
            let allowed =
                |level: &VectorLevel| asked.as_deref().and_then(named).is_none_or(|most| *level <= most);
            VectorLevel::available().iter().rposition(allowed).expect("there is always the plain level")
        };
        ALL[WIDEST.or(widest)]
    }

    /// Runs `work` as compiled for this level, which must be one of [`VectorLevel::available`]. If the level
    /// is a constant, `work` is not compiled for the others, provided that nothing here borrows the level.
    pub(crate) fn run<L: Loop>(self, work: L) -> L::Output {
        if self > VectorLevel::Plain && self > VectorLevel::widest() {
            lacking(self);
        }
        // SAFETY: it is one of this machine's.
        unsafe { self.run_here(work) }
    }

    /// # Safety
    ///
    /// The machine has the level.
    unsafe fn run_here<L: Loop>(self, work: L) -> L::Output {
        match self {
            VectorLevel::Plain => work.run(),
            // SAFETY: the machine has the level's features.
            #[cfg(target_arch = "x86_64")]
            VectorLevel::Avx2 => unsafe { avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            VectorLevel::Avx512 => unsafe { avx512(work) },
        }
    }
}

#[cold]
fn lacking(level: VectorLevel) -> ! {
    panic!("this machine has no {level:?}")
}

/// Runs `work` as compiled for the widest vectors of this machine.
pub(crate) fn vectorised<L: Loop>(work: L) -> L::Output {
    // SAFETY: it is this machine's.
    unsafe { VectorLevel::widest().run_here(work) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn avx2<L: Loop>(work: L) -> L::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq"
)]
fn avx512<L: Loop>(work: L) -> L::Output {
    work.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_bounds_the_level() {
        if let Ok(name) = std::env::var(LEVEL) {
            let asked = named(&name).expect("a level of this architecture");
            let widest = *VectorLevel::available().last().unwrap();
            assert_eq!(VectorLevel::widest(), asked.min(widest));
            return;
        }
        assert_eq!(VectorLevel::widest(), *VectorLevel::available().last().unwrap());
        for name in ["plain", "avx2", "avx512"].into_iter().filter(|name| named(name).is_some()) {
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "cpu::vectorise::tests::the_variable_bounds_the_level"])
                .env(LEVEL, name)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&child.stdout);
            assert!(child.status.success() && said.contains("1 passed"), "{name}: {said}");
        }
    }
}
