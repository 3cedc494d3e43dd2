//! The columns that expressions use, numbered in the order of their first use.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use bowstring::expr::{Expr, nth};
use datafusion::arrow::datatypes::{FieldRef, Schema};

use crate::types::our_type;

/// The columns of an input, only some of which are used.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    theirs: Arc<Schema>,
    used: Vec<usize>,
}

impl Inputs {
    /// Starts with no columns of this schema in use.
    pub fn of(theirs: &Arc<Schema>) -> Inputs {
        Inputs { theirs: theirs.clone(), used: vec![] }
    }

    /// Starts with all columns of this schema in use, in their order.
    pub fn all_of(theirs: &Arc<Schema>) -> Inputs {
        Inputs { theirs: theirs.clone(), used: (0..theirs.fields().len()).collect() }
    }

    /// Marks a column as used and returns its number among the used columns; `None` if the input has no such
    /// column.
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

    /// Marks a column as used and returns it as an expression.
    pub fn column(&mut self, column: usize) -> Option<Expr> {
        self.place(column).map(nth)
    }

    /// The input's column numbers of all used columns.
    pub fn used(&self) -> &[usize] {
        &self.used
    }

    /// The schema that the column numbers refer to.
    pub fn theirs(&self) -> &Arc<Schema> {
        &self.theirs
    }

    /// The used columns' fields, in their types.
    pub fn their_fields(&self) -> impl Iterator<Item = FieldRef> {
        self.used.iter().map(|column| self.theirs.fields()[*column].clone())
    }

    /// The schema of the used columns, in our types. Names may repeat: columns are known by their numbers.
    pub fn schema(&self) -> SchemaRef {
        let field = |column: &usize| {
            let field = self.theirs.field(*column);
            arrow_schema::Field::new(field.name(), our_type(field.data_type()), true)
        };
        Arc::new(arrow_schema::Schema::new(self.used.iter().map(field).collect::<Vec<_>>()))
    }
}
