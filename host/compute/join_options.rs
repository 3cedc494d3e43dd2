//! The kinds of joins, and their options.

use crate::expr::{Expr, Options};
use crate::{Error, Result};

/// The rows that a join returns. "Left" is the side whose rows are in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JoinKind {
    /// The pairs of rows whose keys are equal.
    #[default]
    Inner,
    /// The pairs, and the left rows without a partner.
    Left,
    /// The pairs, and the right rows without a partner.
    Right,
    /// The pairs, and the rows of both sides without a partner.
    Full,
    /// The left rows that have a partner.
    LeftSemi,
    /// The right rows that have a partner.
    RightSemi,
    /// The left rows that have none.
    LeftAnti,
    /// The right rows that have none.
    RightAnti,
    /// All left rows, and a column, `mark`, that tells whether they have a partner.
    LeftMark,
    /// All right rows, and a column, `mark`, that tells whether they have a partner.
    RightMark,
}

/// The options of a [`join`](super::join()).
#[derive(Clone, Debug, Default)]
pub struct JoinOptions {
    /// The rows that are returned.
    pub kind: JoinKind,
    /// Whether a null key equals another one. By default, it equals nothing.
    pub nulls_equal: bool,
    /// Whether an anti join is SQL's `NOT IN`, which is true of a row only if its key certainly differs from
    /// all keys of the other side: none of them may be null, and nor may its own, unless the other side has
    /// no rows. For one key, and without a filter.
    pub null_aware: bool,
    /// A condition that pairs must meet besides, over the left columns and then the right ones. A pair for
    /// which it is not true does not count.
    pub filter: Option<Expr>,
    /// How the condition is evaluated; its order of floats also says which are equal as keys: by default,
    /// those with the same bits.
    pub evaluation: Options,
}

impl JoinKind {
    /// The kind that returns the rows that are known for each right batch: `None` if none are, since a kind
    /// of left rows returns them when all right ones have been seen.
    pub(super) fn of_each_batch(self) -> Option<JoinKind> {
        use JoinKind::*;
        match self {
            Inner | Left => Some(Inner),
            Right | Full => Some(Right),
            RightSemi | RightAnti | RightMark => Some(self),
            LeftSemi | LeftAnti | LeftMark => None,
        }
    }

    /// Whether left rows are returned that depend on all right rows.
    pub(super) fn has_rest(self) -> bool {
        use JoinKind::*;
        matches!(self, Left | Full | LeftSemi | LeftAnti | LeftMark)
    }
}

impl JoinOptions {
    /// Checks the options of a join by some keys.
    pub(super) fn check(&self, keys: usize) -> Result<()> {
        let is_anti = matches!(self.kind, JoinKind::LeftAnti | JoinKind::RightAnti);
        if self.null_aware && !(is_anti && keys == 1 && self.filter.is_none()) {
            let problem = "only an anti join by one key, without a filter, is aware of nulls";
            return Err(Error::invalid("join", problem));
        }
        Ok(())
    }
}
