//! Access to the words in memory that describe a type to readers and writers.

use super::powers::Powers;
host_only! {
    use super::powers::Ready;
}
use super::zone::table::Zone;
use crate::memory::In;

/// Words that are accessed by index.
pub trait Words: Copy {
    /// The type by which a reader of these words accesses powers of ten.
    type Powers: Powers;
    /// Returns word `i`, which MUST exist.
    fn get(self, i: u64) -> u64;
    /// Returns the powers of ten, whose table begins at word `from`.
    fn powers(self, from: u64) -> Self::Powers;
}

host_only! {
    impl Words for &[u64] {
        type Powers = Ready;

        #[inline(always)]
        fn get(self, i: u64) -> u64 {
            self[i as usize]
        }

        #[inline(always)]
        fn powers(self, _: u64) -> Ready {
            Ready
        }
    }
}

impl Words for In<u64> {
    type Powers = Table<In<u64>>;

    #[inline(always)]
    fn get(self, i: u64) -> u64 {
        In::get(self, i)
    }

    #[inline(always)]
    fn powers(self, from: u64) -> Table<In<u64>> {
        Table::new(self, from)
    }
}

/// A table after other words: powers of ten, whose number is fixed, or a zone, whose words follow their
/// number.
#[derive(Clone, Copy)]
pub struct Table<W> {
    words: W,
    from: u64,
}

impl<W: Words> Table<W> {
    /// Returns the table that begins at word `from`.
    #[inline(always)]
    pub fn new(words: W, from: u64) -> Table<W> {
        Table { words, from }
    }
}

impl<W: Words> Powers for Table<W> {
    #[inline(always)]
    fn word(self, i: u64) -> u64 {
        self.words.get(self.from + i)
    }
}

impl<W: Words> Zone for Table<W> {
    #[inline(always)]
    fn count(self) -> u64 {
        self.words.get(self.from)
    }

    #[inline(always)]
    fn word(self, i: u64) -> u64 {
        self.words.get(self.from + 1 + i)
    }
}
