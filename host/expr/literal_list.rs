//! Lists of constants that come one at a time, such as the rows of an array.

use std::vec::IntoIter;

use super::Literal;
use super::extent::MOST_BYTES;
use crate::{Error, Result};

/// Values for [`super::Expr::in_list`], as many as an expression may have. A list from a stranger can be
/// endless, or have more nulls than any memory has bytes; this one refuses them before it is too large.
#[derive(Debug, Default)]
pub struct LiteralList {
    literals: Vec<Literal>,
    bytes: usize,
}

impl LiteralList {
    /// Makes an empty list.
    pub fn new() -> LiteralList {
        LiteralList::default()
    }

    /// Returns [`Error::Invalid`] if the list could not have this many more values, whatever they are.
    pub fn check_room(&self, values: usize) -> Result<()> {
        self.check(values.saturating_mul(size_of::<Literal>()))
    }

    /// Adds a value. Returns [`Error::Invalid`] if all values together are too large for an expression, and
    /// [`Error::OutOfMemory`] if there is no memory for them.
    pub fn push(&mut self, literal: impl Into<Literal>) -> Result<()> {
        let literal = literal.into();
        let bytes = literal.bytes();
        self.check(bytes)?;
        let room = self.literals.try_reserve(1);
        let asked = 2 * size_of::<Literal>() * self.literals.capacity();
        room.map_err(|_| Error::out_of_host_memory(asked))?;
        self.bytes += bytes;
        self.literals.push(literal);
        Ok(())
    }

    fn check(&self, more: usize) -> Result<()> {
        match self.bytes.saturating_add(more) > MOST_BYTES {
            true => Err(Error::invalid("in_list", format!("more than {} MiB of values", MOST_BYTES >> 20))),
            false => Ok(()),
        }
    }
}

impl IntoIterator for LiteralList {
    type Item = Literal;
    type IntoIter = IntoIter<Literal>;

    fn into_iter(self) -> IntoIter<Literal> {
        self.literals.into_iter()
    }
}
