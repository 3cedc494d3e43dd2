//! The size of an expression, computed while it is built: walking an expression takes stack, and visits
//! shared parts repeatedly.

use crate::{Error, Result};

/// The deepest nesting. Binding and dropping an expression of this depth took between 250 and 500 kB of
/// stack, optimised; threads have 2 MiB.
const MOST_DEEP: u32 = 200;

/// The most nodes. A shared node counts each time, because it is bound each time.
const MOST_PARTS: u32 = 20_000;

/// The most bytes of values: binding copies each list once, as 16 bytes per number or as its text.
pub(super) const MOST_BYTES: usize = 256 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    depth: u32,
    parts: u32,
    /// The size of its values and names in bytes; shared ones count each time.
    bytes: usize,
}

impl Extent {
    /// The extent of an expression with these operands.
    pub fn around(parts: &[Extent]) -> Extent {
        Extent {
            depth: parts.iter().map(|part| part.depth).max().unwrap_or(0).saturating_add(1),
            parts: parts.iter().fold(1, |sum, part| part.parts.saturating_add(sum)),
            bytes: parts.iter().fold(0, |sum, part| part.bytes.saturating_add(sum)),
        }
    }

    /// Adds the size of an expression's own values.
    pub fn with_bytes(self, bytes: usize) -> Extent {
        Extent { bytes: self.bytes.saturating_add(bytes), ..self }
    }

    /// Returns [`Error::Invalid`] if the values of expressions that are bound together are too large.
    pub fn check_together(all: impl Iterator<Item = Extent>) -> Result<()> {
        let bytes = all.fold(0, |sum: usize, one| sum.saturating_add(one.bytes));
        Extent { depth: 0, parts: 0, bytes }.check()
    }

    /// Returns [`Error::Invalid`] if the expression is too large.
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

/// The most steps of expressions that are bound together; devices number steps and columns by 16 bits.
const MOST_STEPS: usize = 60_000;

/// Returns [`Error::Invalid`] if expressions have become too many steps.
pub(super) fn check_steps(steps: usize) -> Result<()> {
    match steps {
        ..=MOST_STEPS => Ok(()),
        _ => Err(Error::invalid("expression", format!("{steps} steps together, of at most {MOST_STEPS}"))),
    }
}
