//! Says whether this run makes the change of a number. `tests/mutants/run.py` puts this file into its copies
//! of `host/` and `kernels/src`; each copy has its own.
//!
//! One build has all changes; a process makes the one in `BOWSTRING_MUTANT`, or none. The numbers of the
//! changes that it reaches are appended to the file in `BOWSTRING_MUTANTS_REACHED`, one a line.

// `kernels` does not use it otherwise.
extern crate std;

use std::format;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

const UNREAD: u32 = u32::MAX;
static CHOSEN: AtomicU32 = AtomicU32::new(UNREAD);
static REACHED: [AtomicBool; 20_000] = [const { AtomicBool::new(false) }; 20_000];

pub(crate) fn mutant(number: u32) -> bool {
    if !REACHED[number as usize].load(Relaxed) && !REACHED[number as usize].swap(true, Relaxed) {
        note(number);
    }
    let mut chosen = CHOSEN.load(Relaxed);
    if chosen == UNREAD {
        chosen =
            std::env::var("BOWSTRING_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(UNREAD - 1);
        CHOSEN.store(chosen, Relaxed);
    }
    chosen == number
}

fn note(number: u32) {
    if let Some(path) = std::env::var_os("BOWSTRING_MUTANTS_REACHED") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // A failure is ignored: some tests take files or memory away on purpose.
        let _ = file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
    }
}
