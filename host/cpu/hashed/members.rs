//! The groups of a table.

use super::super::memory;
use super::keys::Prefix;
use crate::Result;
use crate::device::{HostMemory, HostPool, interrupt};

/// The number of groups that a new table has room for.
const ROOM: usize = 512;

/// The groups of a table: the word and the first row of each, and if keys are text its prefix.
pub(super) struct Members {
    words: HostMemory,
    firsts: HostMemory,
    prefixes: Option<HostMemory>,
    len: usize,
    /// The number of groups that there is room for.
    room: usize,
    pool: HostPool,
}

impl Members {
    pub fn new(prefixes: bool, pool: &HostPool) -> Result<Members> {
        let (words, firsts) = (pool.alloc(ROOM * 8)?, pool.alloc(ROOM * 4)?);
        let prefixes = if prefixes { Some(pool.alloc(ROOM * size_of::<Prefix>())?) } else { None };
        Ok(Members { words, firsts, prefixes, len: 0, room: ROOM, pool: pool.clone() })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn pool(&self) -> &HostPool {
        &self.pool
    }

    pub fn firsts(&self) -> &[u32] {
        &memory::plain(self.firsts.bytes()).expect("our own memory")[..self.len]
    }

    pub fn words(&self) -> &[u64] {
        &memory::plain(self.words.bytes()).expect("our own memory")[..self.len]
    }

    /// The prefixes of all groups; none unless keys are text.
    pub fn prefixes(&self) -> &[Prefix] {
        self.prefixes
            .as_ref()
            .map_or(&[], |prefixes| &memory::plain(prefixes.bytes()).expect("our own memory")[..self.len])
    }

    /// Adds a group. Returns its number.
    #[inline(never)]
    pub fn add(&mut self, word: u64, row: u32, prefix: Prefix) -> Result<u32> {
        if self.len == self.room {
            self.grow()?;
        }
        memory::values_mut::<u64>(&mut self.words)[self.len] = word;
        memory::values_mut::<u32>(&mut self.firsts)[self.len] = row;
        if let Some(prefixes) = &mut self.prefixes {
            memory::values_mut::<Prefix>(prefixes)[self.len] = prefix;
        }
        self.len += 1;
        Ok((self.len - 1) as u32)
    }

    /// Makes room for four times as many groups.
    fn grow(&mut self) -> Result<()> {
        interrupt::check()?;
        self.room *= 4;
        let (mut words, mut firsts) = (self.pool.alloc(self.room * 8)?, self.pool.alloc(self.room * 4)?);
        memory::values_mut::<u64>(&mut words)[..self.len].copy_from_slice(self.words());
        memory::values_mut::<u32>(&mut firsts)[..self.len].copy_from_slice(self.firsts());
        if self.prefixes.is_some() {
            let mut prefixes = self.pool.alloc(self.room * size_of::<Prefix>())?;
            memory::values_mut::<Prefix>(&mut prefixes)[..self.len].copy_from_slice(self.prefixes());
            self.prefixes = Some(prefixes);
        }
        (self.words, self.firsts) = (words, firsts);
        Ok(())
    }
}
