//! A table from the keys of rows to groups, which are numbered in the order of their first rows.
//!
//! The one idea: each thread groups a range of rows in a table of its own, and the tables are merged in the
//! order of their ranges. So a group's number does not depend on the number of threads. Keys that are numbers
//! of a short span are places of an array. For others, slots of a hash table are fetched for a block of rows
//! before any of them is looked at, so that a table larger than the caches costs the processor's many misses
//! at once, and not one after the other.

use std::ops::Range;

use super::super::intrinsics::prefetch;
use super::super::memory;
use super::super::rows::CHUNK;
use super::BLOCK;
use super::hash::fold;
use super::keys::{Keys, Prefix};
use super::members::Members;
use super::places::Places;
use crate::Result;
use crate::array::Buffer;
use crate::device::{HostMemory, HostPool, interrupt};
use crate::threads::{each_part, here};

/// The number of slots of a new table.
const SLOTS: usize = 1 << 10;

/// Fewer rows are not worth a thread of their own.
pub(in crate::cpu) const RANGE: usize = 64 << 10;

/// So many numbers for each row are not worth a hash.
const SPARSE: usize = 4;

/// So many are not worth one where other rows look for theirs: their bits take as much memory as slots.
const RANKED: usize = 256;

/// The places of all threads, for each row.
const PLACES: usize = 4;

/// The group of a row that is in none.
pub(in crate::cpu) const NONE: u32 = u32::MAX;

/// A word, and one more than the group that has it; zero if the slot is free.
type Slot = [u64; 2];

/// Groups of rows, by the words of their keys.
pub(in crate::cpu) struct Table {
    /// The places of the keys, if the words are places.
    places: Option<Places>,
    /// The slots; for places, one more than the group of each, in four bytes.
    slots: HostMemory,
    /// The number of slots is two to the power of 64 less this.
    shift: u32,
    members: Members,
    seed: u64,
}

impl Table {
    fn new(places: Option<Places>, prefixes: bool, pool: &HostPool, seed: u64) -> Result<Table> {
        let bytes = match &places {
            None => SLOTS * size_of::<Slot>(),
            Some(places) => places.len().saturating_mul(4),
        };
        let (slots, shift) = (memory::zeroed(bytes, pool)?, 64 - SLOTS.trailing_zeros());
        Ok(Table { places, slots, shift, members: Members::new(prefixes, pool)?, seed })
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The first row of each group.
    pub fn firsts(&self) -> &[u32] {
        self.members.firsts()
    }

    fn slots(&self) -> &[Slot] {
        &memory::plain(self.slots.bytes()).expect("our own memory")[..1 << (64 - self.shift)]
    }

    /// Makes the words of some rows.
    #[inline(always)]
    fn words_of(
        &self,
        keys: &Keys<'_>,
        rows: Range<usize>,
        words: &mut [u64],
        prefixes: &mut [Prefix],
    ) -> Result<()> {
        match &self.places {
            None if keys.have_prefixes() => keys.prefixes(rows, self.seed, prefixes, words),
            None => keys.words(rows, self.seed, words),
            Some(places) => {
                places.write(keys, rows, words);
                Ok(())
            }
        }
    }

    #[inline(always)]
    fn place(&self, word: u64) -> usize {
        (fold(word ^ self.seed) >> self.shift) as usize
    }

    /// Fetches the slots of some words.
    #[inline(always)]
    fn fetch(&self, words: &[u64]) {
        if self.places.is_none() {
            let slots = self.slots();
            words.iter().for_each(|word| prefetch(&slots[self.place(*word)], 0));
        }
    }

    /// Returns the group of a word, or the slot that is free for it. `same` tells whether a group with that
    /// word has the same keys.
    #[inline(always)]
    fn find(&self, slots: &[Slot], word: u64, same: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mut place = self.place(word);
        loop {
            let [held, group] = slots[place];
            if group == 0 {
                return Err(place);
            }
            if held == word && same((group - 1) as u32) {
                return Ok((group - 1) as u32);
            }
            place += 1;
            if place == slots.len() {
                place = 0;
            }
        }
    }

    /// Whether a row, of `keys`, has the keys of a group of this table, whose keys are `own`. Their words are
    /// equal.
    #[inline(always)]
    fn is_like(&self, own: &Keys<'_>, group: u32, keys: &Keys<'_>, row: usize, prefix: Prefix) -> bool {
        if own.exact {
            return true;
        }
        if let Some(of_group) = self.members.prefixes().get(group as usize)
            && (*of_group != prefix || Keys::is_whole(prefix))
        {
            return *of_group == prefix;
        }
        keys.same(row, own, self.firsts()[group as usize] as usize)
    }

    /// Returns the group of a row; makes one if there is none.
    #[inline(always)]
    fn insert(
        &mut self,
        word: u64,
        row: u32,
        prefix: Prefix,
        same: impl Fn(&Table, u32) -> bool,
    ) -> Result<u32> {
        match self.find(self.slots(), word, |group| same(self, group)) {
            Ok(group) => Ok(group),
            Err(place) => {
                let group = self.members.add(word, row, prefix)?;
                memory::values_mut::<Slot>(&mut self.slots)[place] = [word, u64::from(group) + 1];
                if 2 * self.members.len() >= 1 << (64 - self.shift) {
                    self.grow()?;
                }
                Ok(group)
            }
        }
    }

    /// Makes four times as many slots.
    fn grow(&mut self) -> Result<()> {
        interrupt::check()?;
        let len = 4usize << (64 - self.shift);
        let mut slots = memory::zeroed(len.saturating_mul(size_of::<Slot>()), self.members.pool())?;
        let into = &mut memory::values_mut::<Slot>(&mut slots)[..len];
        self.shift -= 2;
        let mut group = 0;
        for words in self.members.words().chunks(BLOCK) {
            words.iter().for_each(|word| prefetch(&into[self.place(*word)], 0));
            for word in words {
                group += 1;
                // Groups differ even where their words are equal.
                if let Err(place) = self.find(&*into, *word, |_| false) {
                    into[place] = [*word, group];
                }
            }
        }
        self.slots = slots;
        Ok(())
    }

    /// Groups some rows, and writes the group of each.
    fn add_rows(&mut self, keys: &Keys<'_>, rows: Range<usize>, ids: &mut [u32]) -> Result<()> {
        let all = keys.all_count();
        let (mut words, mut prefixes) = ([0; BLOCK], [[0; 2]; BLOCK]);
        // Only words that are keys, and prefixes, tell equal keys without a look at the first row of a group.
        let tells = all && (keys.exact || keys.have_prefixes());
        let mut hits = false;
        for (chunk, ids) in ids.chunks_mut(CHUNK).enumerate() {
            interrupt::check()?;
            let first = rows.start + chunk * CHUNK;
            for (i, ids) in ids.chunks_mut(BLOCK).enumerate() {
                let first = first + i * BLOCK;
                let words = &mut words[..ids.len()];
                self.words_of(keys, first..first + ids.len(), words, &mut prefixes)?;
                if let Some(places) = &self.places {
                    let groups = &mut memory::values_mut::<u32>(&mut self.slots)[..places.len()];
                    for (i, (id, word)) in ids.iter_mut().zip(&*words).enumerate() {
                        *id = match all || keys.counts(first + i) {
                            true => placed(groups, &mut self.members, *word, (first + i) as u32)?,
                            false => NONE,
                        };
                    }
                    continue;
                }
                self.fetch(words);
                if hits && self.find_in_place(keys, words, &prefixes, ids) {
                    continue;
                }
                let groups = self.members.len();
                for (i, ((id, word), prefix)) in ids.iter_mut().zip(words).zip(prefixes).enumerate() {
                    if hits && *id != NONE {
                        continue;
                    }
                    let row = first + i;
                    let same = |table: &Table, group| table.is_like(keys, group, keys, row, prefix);
                    *id = match all || keys.counts(row) {
                        true => self.insert(*word, row as u32, prefix, same)?,
                        false => NONE,
                    };
                }
                // If many groups are new, it is a waste to look for each twice.
                hits = tells && 4 * (self.members.len() - groups) < BLOCK;
            }
        }
        Ok(())
    }

    /// Writes the groups of rows whose words are in their first slots, and [`NONE`] for all others. Returns
    /// whether all are there. It adds no group, so it need not ask for the slots again for each row.
    #[inline(always)]
    fn find_in_place(&self, keys: &Keys<'_>, words: &[u64], prefixes: &[Prefix], ids: &mut [u32]) -> bool {
        let (slots, known) = (self.slots(), self.members.prefixes());
        let mut all = true;
        for ((id, word), prefix) in ids.iter_mut().zip(words).zip(prefixes) {
            let [held, group] = slots[self.place(*word)];
            let group = (group as u32).wrapping_sub(1);
            let is = held == *word && group != NONE;
            let same = keys.exact || Keys::is_whole(*prefix) && known.get(group as usize) == Some(prefix);
            *id = if is && same { group } else { NONE };
            all &= is && same;
        }
        all
    }

    /// Adds the groups of another table, whose rows come later. Writes what their numbers become.
    fn merge(&mut self, keys: &Keys<'_>, other: &Table, map: &mut [u32]) -> Result<()> {
        if let Some(places) = &self.places {
            let groups = &mut memory::values_mut::<u32>(&mut self.slots)[..places.len()];
            for ((row, word), to) in other.firsts().iter().zip(other.members.words()).zip(map) {
                *to = placed(groups, &mut self.members, *word, *row)?;
            }
            return interrupt::check();
        }
        let rows = other.firsts().chunks(BLOCK).zip(other.members.words().chunks(BLOCK));
        let mut prefixes = other.members.prefixes().iter();
        for ((rows, words), map) in rows.zip(map.chunks_mut(BLOCK)) {
            self.fetch(words);
            for ((row, word), to) in rows.iter().zip(words).zip(map) {
                let prefix = prefixes.next().copied().unwrap_or_default();
                let same = |table: &Table, group| table.is_like(keys, group, keys, *row as usize, prefix);
                *to = self.insert(*word, *row, prefix, same)?;
            }
        }
        interrupt::check()
    }

    /// Writes the group that each of some rows of other keys has; [`NONE`] for a row without one. `own` are
    /// the keys of the table.
    pub fn find_rows(
        &self,
        own: &Keys<'_>,
        keys: &Keys<'_>,
        rows: Range<usize>,
        ids: &mut [u32],
    ) -> Result<()> {
        let all = keys.all_count();
        let (mut words, mut prefixes) = ([0; BLOCK], [[0; 2]; BLOCK]);
        for (i, ids) in ids.chunks_mut(BLOCK).enumerate() {
            let first = rows.start + i * BLOCK;
            let words = &mut words[..ids.len()];
            self.words_of(keys, first..first + ids.len(), words, &mut prefixes)?;
            if let Some(places) = &self.places {
                let groups = memory::plain::<u32>(self.slots.bytes()).expect("our own memory");
                let groups = &groups[..places.len()];
                // A place without a group wraps around to none.
                let group = |place: u64| groups[place as usize].wrapping_sub(1);
                ids.iter_mut().zip(&*words).for_each(|(id, word)| *id = group(*word));
                if !all {
                    let rows = (first..).zip(ids.iter_mut());
                    rows.filter(|(row, _)| !keys.counts(*row)).for_each(|(_, id)| *id = NONE);
                }
                continue;
            }
            self.fetch(words);
            let slots = self.slots();
            for (i, ((id, word), prefix)) in ids.iter_mut().zip(words).zip(prefixes).enumerate() {
                let row = first + i;
                let same = |group| self.is_like(own, group, keys, row, prefix);
                *id = match all || keys.counts(row) {
                    true => self.find(slots, *word, same).unwrap_or(NONE),
                    false => NONE,
                };
            }
        }
        Ok(())
    }
}

/// Returns the group of a row by its place; makes one if there is none.
#[inline(always)]
fn placed(groups: &mut [u32], members: &mut Members, place: u64, row: u32) -> Result<u32> {
    let group = &mut groups[place as usize];
    if *group == 0 {
        *group = members.add(place, row, Prefix::default())? + 1;
    }
    Ok(*group - 1)
}

/// Rows with their groups.
pub(in crate::cpu) struct Groups {
    /// The group of each row, in four bytes; [`NONE`] for a row that is in none.
    pub ids: Buffer,
    pub table: Table,
}

/// Groups the rows of keys.
pub(in crate::cpu) fn grouped(keys: &Keys<'_>, seed: u64, pool: &HostPool) -> Result<Groups> {
    let places = keys.span(SPARSE)?.map(Places::of_numbers);
    grouped_at(places, keys, seed, pool)
}

/// Groups the rows of keys, for other rows to find them.
pub(in crate::cpu) fn grouped_to_find(keys: &Keys<'_>, seed: u64, pool: &HostPool) -> Result<Groups> {
    let places = match keys.span(RANKED)? {
        Some(span) if span.len > keys.rows.saturating_mul(SPARSE) => Some(Places::of_keys(span, keys, pool)?),
        span => span.map(Places::of_numbers),
    };
    grouped_at(places, keys, seed, pool)
}

fn grouped_at(places: Option<Places>, keys: &Keys<'_>, seed: u64, pool: &HostPool) -> Result<Groups> {
    let rows = keys.rows;
    let prefixes = places.is_none() && keys.have_prefixes();
    let mut memory = pool.alloc(rows.saturating_mul(4))?;
    let ids = &mut memory::values_mut::<u32>(&mut memory)[..rows];
    // All places together take no more memory than a hash table would.
    let most = places.as_ref().map_or(usize::MAX, |places| (PLACES * rows / places.len()).max(1));
    let range = rows.div_ceil(here().min(most)).max(RANGE);
    let parts = ids.chunks_mut(range).enumerate();
    let tables = each_part(parts, |(i, ids)| {
        let mut table = Table::new(places.clone(), prefixes, pool, seed)?;
        table.add_rows(keys, i * range..i * range + ids.len(), ids)?;
        Ok(table)
    })?;
    let mut tables = tables.into_iter().collect::<Result<Vec<_>>>()?.into_iter();
    let mut table = tables.next().map_or_else(|| Table::new(places.clone(), prefixes, pool, seed), Ok)?;
    let mut maps = vec![];
    for other in tables {
        let mut map = pool.alloc(other.len() * 4)?;
        table.merge(keys, &other, &mut memory::values_mut::<u32>(&mut map)[..other.len()])?;
        maps.push(map);
    }
    let later = ids.chunks_mut(range).skip(1).zip(&maps);
    let parts = later.flat_map(|(ids, map)| ids.chunks_mut(CHUNK).map(move |ids| (ids, map)));
    each_part(parts, |(ids, map)| {
        let map = memory::plain::<u32>(map.bytes()).expect("our own memory");
        ids.iter_mut().filter(|id| **id != NONE).for_each(|id| *id = map[*id as usize]);
    })?;
    Ok(Groups { ids: memory.freeze(rows * 4), table })
}
