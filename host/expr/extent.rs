//! How large an expression is: known without walking it, for whoever walks it takes stack, and shared parts again each time.

use crate::{Error, Result};

/// How deep an expression may be nested: binding and dropping that took between 250 and 500 kB of stack, optimised, and threads have
/// 2 MiB.
const MOST_DEEP: u32 = 200;

/// How many parts it may have, each counted as often as it is bound.
const MOST_PARTS: u32 = 20_000;

/// How many bytes its values may take: binding lists copies each once, as 16 bytes or as its text.
const MOST_BYTES: usize = 256 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    depth: u32,
    parts: u32,
    /// How many its values and names take, each counted as often as it is bound.
    bytes: usize,
}

impl Extent {
    /// Of an expression by those that it is made of.
    pub fn around(parts: &[Extent]) -> Extent {
        Extent {
            depth: parts.iter().map(|part| part.depth).max().unwrap_or(0).saturating_add(1),
            parts: parts.iter().fold(1, |sum, part| part.parts.saturating_add(sum)),
            bytes: parts.iter().fold(0, |sum, part| part.bytes.saturating_add(sum)),
        }
    }

    /// With so many bytes of values more.
    pub fn with_bytes(self, bytes: usize) -> Extent {
        Extent { bytes: self.bytes.saturating_add(bytes), ..self }
    }

    /// [`Error::Invalid`] where the values of expressions that are bound together take too much.
    pub fn check_together(all: impl Iterator<Item = Extent>) -> Result<()> {
        let bytes = all.fold(0, |sum: usize, one| sum.saturating_add(one.bytes));
        Extent { depth: 0, parts: 0, bytes }.check()
    }

    /// [`Error::Invalid`] where it is too large.
    pub fn check(self) -> Result<()> {
        let problem = match () {
            () if self.depth > MOST_DEEP => format!("nested more than {MOST_DEEP} deep"),
            () if self.parts > MOST_PARTS => format!("more than {MOST_PARTS} parts"),
            () if self.bytes > MOST_BYTES => format!("more than {} MiB of values", MOST_BYTES >> 20),
            () => return Ok(()),
        };
        Err(Error::invalid("expression", problem))
    }
}
