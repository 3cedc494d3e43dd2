//! The columns that expressions use, numbered in the order of their first use.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use bowstring::expr::{Expr, nth};
use datafusion::arrow::datatypes::Schema;

use crate::types::our_type;

/// Columns of an input, of which only some are needed.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    theirs: Arc<Schema>,
    used: Vec<usize>,
}

impl Inputs {
    /// None of the columns of this schema yet.
    pub fn of(theirs: &Arc<Schema>) -> Inputs {
        Inputs { theirs: theirs.clone(), used: vec![] }
    }

    /// The number of a column among those that are used, which it is from now on; `None` where there is no such column.
    pub fn place(&mut self, column: usize) -> Option<usize> {
        if column >= self.theirs.fields().len() {
            return None;
        }
        let found = self.used.iter().position(|used| *used == column);
        Some(found.unwrap_or_else(|| {
            self.used.push(column);
            self.used.len() - 1
        }))
    }

    /// The column as an expression.
    pub fn column(&mut self, column: usize) -> Option<Expr> {
        self.place(column).map(nth)
    }

    /// All that are used, by their numbers in the whole.
    pub fn used(&self) -> &[usize] {
        &self.used
    }

    /// What these were numbered in.
    pub fn theirs(&self) -> &Arc<Schema> {
        &self.theirs
    }

    /// Those that are used, as ours. Their names may be each other's: they are known by their numbers.
    pub fn schema(&self) -> SchemaRef {
        let field = |column: &usize| {
            let field = self.theirs.field(*column);
            arrow_schema::Field::new(field.name(), our_type(field.data_type()), true)
        };
        Arc::new(arrow_schema::Schema::new(self.used.iter().map(field).collect::<Vec<_>>()))
    }
}
