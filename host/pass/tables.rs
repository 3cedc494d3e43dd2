//! Tables that kernels read in device memory: rows of words, as wide as the kernel that reads them says.

use std::marker::PhantomData;

use bowstring_kernels::memory::TableRow;

/// Rows of a table, until they are uploaded.
pub(crate) struct Table<R> {
    words: Vec<u64>,
    rows: PhantomData<fn(R)>,
}

impl<R: TableRow> Table<R> {
    /// Bytes of a row.
    pub const ROW_BYTES: usize = R::ROW as usize * size_of::<u64>();

    /// Adds a row, and says which it is.
    pub fn push(&mut self, row: &R) -> usize {
        self.words.extend_from_slice(row.words().as_ref());
        self.len() - 1
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.words.len() / R::ROW as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The rows' words, one row after the other.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// How many bytes those are.
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
