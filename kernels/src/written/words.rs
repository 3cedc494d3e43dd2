//! What readers and writers are told of a type, in memory.

use super::powers::Powers;
host_only! {
    use super::powers::Ready;
}
use super::zone::Zone;
use crate::memory::In;

/// Words that are found by their number.
pub trait Words: Copy {
    /// The powers of ten that who reads words has.
    type Powers: Powers;
    /// Word `i`, of those there are.
    fn get(self, i: u64) -> u64;
    /// Those, where they are told from word `from` on.
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

/// A table behind other words: powers of ten, which are as many as they are, or a zone, before whose words stands how many there are.
#[derive(Clone, Copy)]
pub struct Table<W> {
    words: W,
    from: u64,
}

impl<W: Words> Table<W> {
    /// The table that begins with a word.
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
