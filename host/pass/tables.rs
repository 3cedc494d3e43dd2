//! Tables of words that kernels read in device memory. The kernel's row type determines the width.

use std::marker::PhantomData;

use bowstring_kernels::memory::TableRow;

/// The rows of a table before its upload.
pub(crate) struct Table<R> {
    words: Vec<u64>,
    rows: PhantomData<fn(R)>,
}

impl<R: TableRow> Table<R> {
    /// The size of a row in bytes.
    pub const ROW_BYTES: usize = R::ROW as usize * size_of::<u64>();

    /// Adds a row, and returns its index.
    pub fn push(&mut self, row: &R) -> usize {
        self.words.extend_from_slice(row.words().as_ref());
        self.len() - 1
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.words.len() / R::ROW as usize
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words of the rows, one row after the other.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The size of the table in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.words[..])
    }
}

impl<R> Default for Table<R> {
    fn default() -> Table<R> {
        Table { words: vec![], rows: PhantomData }
    }
}

impl<R: TableRow> FromIterator<R> for Table<R> {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Table<R> {
        let mut table = Table::default();
        for row in rows {
            table.push(&row);
        }
        table
    }
}
