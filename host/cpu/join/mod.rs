//! Joins on the host: a table of rows, the rows that others find there, and pairs of both.

use std::sync::{Arc, OnceLock};

use arrow_schema::DataType;

use super::hashed::{self, Columns, NONE, Nulls, RANGE, grouped_to_find, is_plain};
use super::rows::CHUNK;
use super::vectorise::{Loop, vectorised};
use super::{admitted, memory, rows};
use crate::array::{Bitmap, Buffer, DeviceArray, Parts};
use crate::device::{HostMemory, HostPool};
use crate::engine::Table;
use crate::ffi::DeviceType;
use crate::rules::{of_any_length, seeds::seed};
use crate::threads::{among_threads, each_part};
use crate::{Error, Pending, Result, Stream};

/// Rows in host memory that others find by their keys.
struct HostTable {
    /// The keys, if some are nested: these are compared by ranks, which both sides must share.
    nested: Option<Vec<DeviceArray>>,
    columns: Columns,
    nulls: Nulls,
    seed: u64,
    table: hashed::Table,
    ids: DeviceArray,
    /// The rows in the order of their groups, if some groups have several. Made for the first pairs, since to
    /// find rows does not take it; without a lock, so two threads may both make it.
    order: OnceLock<Order>,
}

/// Rows in the order of their groups.
struct Order {
    rows: HostMemory,
    /// The start of each group, and the end of the last.
    starts: HostMemory,
}

/// Makes a table of rows.
pub(super) fn table(
    keys: &[DeviceArray],
    nulls_equal: bool,
    stream: &Stream,
) -> Result<Pending<Arc<dyn Table>>> {
    let pool = stream.device().host_pool();
    let table = plain(keys, pool).and_then(|keys| made(&keys, nulls_equal, pool));
    Ok(Pending::known(table.map(|table| Arc::new(table) as Arc<dyn Table>)))
}

/// Returns the keys with values in the place of keys of dictionaries and runs.
fn plain(keys: &[DeviceArray], pool: &HostPool) -> Result<Vec<DeviceArray>> {
    let plain = |array: &DeviceArray| {
        let array = admitted(array)?;
        let mut of = array.data_type();
        loop {
            of = match of {
                DataType::Dictionary(_, of) => of,
                DataType::RunEndEncoded(_, of) => of.data_type(),
                _ => break,
            };
        }
        match of == array.data_type() || of.is_nested() {
            true => Ok(array.into_owned()),
            false => super::cast::cast(&array, of_any_length(of), &Default::default(), pool),
        }
    };
    keys.iter().map(plain).collect()
}

fn made(keys: &[DeviceArray], nulls_equal: bool, pool: &HostPool) -> Result<HostTable> {
    let (rows, seed) = (keys.first().map_or(0, DeviceArray::len), seed(0));
    let is_nested = |key: &DeviceArray| !is_plain(key.data_type()) && *key.data_type() != DataType::Null;
    let nested = keys.iter().any(is_nested).then(|| keys.to_vec());
    let none = keys.iter().map(|key| key.slice(0, 0)).collect::<Result<Vec<_>>>()?;
    let [columns, _] = Columns::of_sides([keys, &none], pool)?;
    let nulls = if nulls_equal { Nulls::Equal } else { Nulls::Apart };
    let keys = columns.keys(nulls);
    let (ids, table) = among_threads(rows > RANGE, |_| {
        let hashed::Groups { ids, table } = grouped_to_find(&keys, seed, pool)?;
        let ids = match keys.all_count() {
            true => DeviceArray::uint32(ids, rows)?,
            false => nullable(ids, rows, pool)?,
        };
        Ok::<_, Error>((ids, table))
    })?;
    Ok(HostTable { nested, columns, nulls, seed, table, ids, order: OnceLock::new() })
}

fn ordered(ids: &[u32], groups: usize, pool: &HostPool) -> Result<Order> {
    let mut starts = memory::zeroed((groups + 2) * 4, pool)?;
    let places = memory::values_mut::<u32>(&mut starts);
    // The group before a group's own counts its rows, so that the sums are where groups start; placing the
    // rows then moves each start to its group.
    ids.iter().filter(|id| **id != NONE).for_each(|id| places[*id as usize + 2] += 1);
    (2..groups + 2).for_each(|i| places[i] += places[i - 1]);
    let mut order = pool.alloc(ids.len() * 4)?;
    let rows = memory::values_mut::<u32>(&mut order);
    for (row, id) in ids.iter().enumerate().filter(|(_, id)| **id != NONE) {
        let place = &mut places[*id as usize + 1];
        rows[*place as usize] = row as u32;
        *place += 1;
    }
    Ok(Order { rows: order, starts })
}

fn numbers(memory: &[u8]) -> &[u32] {
    memory::plain(memory).expect("our own memory")
}

/// Makes an array of groups, null where a row is in none.
fn nullable(ids: Buffer, rows: usize, pool: &HostPool) -> Result<DeviceArray> {
    let numbers = numbers(memory::bytes(&ids));
    let mut words = pool.alloc(rows.div_ceil(64) * 8)?;
    let out = &mut memory::values_mut::<u64>(&mut words)[..rows.div_ceil(64)];
    let parts = out.chunks_mut(CHUNK / 64).zip(numbers[..rows].chunks(CHUNK));
    let nulls = each_part(parts, |(words, ids)| vectorised(Valid { ids, words }))?.into_iter().sum();
    with_nulls(ids, rows, words, nulls)
}

/// Writes a bit for each row that is in a group. Returns the number of the others.
struct Valid<'a> {
    ids: &'a [u32],
    words: &'a mut [u64],
}

impl Loop for Valid<'_> {
    type Output = usize;
    #[inline(always)]
    fn run(self) -> usize {
        let bit = |word, (i, id): (usize, &u32)| word | u64::from(*id != NONE) << i;
        // Compilers vectorise blocks of a known length.
        let (blocks, rest) = self.ids.as_chunks::<64>();
        let blocks = blocks.iter().map(|block| block.iter().enumerate().fold(0, bit));
        let all = blocks.chain((!rest.is_empty()).then(|| rest.iter().enumerate().fold(0, bit)));
        let mut valid = 0;
        for (word, made) in self.words.iter_mut().zip(all) {
            *word = made;
            valid += made.count_ones() as usize;
        }
        self.ids.len() - valid
    }
}

/// Makes an array of groups, of which so many are null.
fn with_nulls(ids: Buffer, rows: usize, words: HostMemory, nulls: usize) -> Result<DeviceArray> {
    let mut parts = Parts::new(DataType::UInt32, rows);
    if nulls > 0 {
        parts.validity = Some(Bitmap { buffer: words.freeze(rows.div_ceil(8)), offset: 0 });
    }
    (parts.buffers, parts.null_count) = (vec![ids], Some(nulls));
    DeviceArray::made(parts, true)
}

impl Table for HostTable {
    fn ids(&self) -> &DeviceArray {
        &self.ids
    }

    fn groups(&self) -> usize {
        self.table.len()
    }

    fn is_unique(&self) -> bool {
        self.table.len() == self.ids.len()
    }

    fn find(self: Arc<Self>, keys: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>> {
        let pool = stream.device().host_pool();
        let found = plain(keys, pool).and_then(|keys| self.found(&keys, pool));
        Ok(Pending::known(found))
    }

    fn pairs(
        &self,
        found: &DeviceArray,
        first: usize,
        outer: bool,
        most: u64,
        stream: &Stream,
    ) -> Result<Pending<[DeviceArray; 2]>> {
        let (pool, rows) = (stream.device().host_pool(), found.len());
        Ok(Pending::known(among_threads(rows > RANGE, |_| self.written(found, first, (outer, most), pool))))
    }
}

impl HostTable {
    /// Finds the group of each row.
    fn found(&self, keys: &[DeviceArray], pool: &HostPool) -> Result<DeviceArray> {
        let rows = keys.first().map_or(0, DeviceArray::len);
        let Some(own) = &self.nested else {
            let none = keys.iter().map(|key| key.slice(0, 0)).collect::<Result<Vec<_>>>()?;
            let [others, _] = Columns::of_sides([keys, &none], pool)?;
            return found(&self.table, [&self.columns, &others], self.nulls, rows, pool);
        };
        // Groups are numbered by their first rows, so they have the same numbers in a table of other ranks.
        let [own, others] = Columns::of_sides([own, keys], pool)?;
        let table =
            among_threads(rows > RANGE, |_| grouped_to_find(&own.keys(self.nulls), self.seed, pool))?.table;
        found(&table, [&own, &others], self.nulls, rows, pool)
    }

    /// The rows in the order of their groups; `None` if each row is a group.
    fn order(&self, pool: &HostPool) -> Result<Option<&Order>> {
        if self.is_unique() {
            return Ok(None);
        }
        if self.order.get().is_none() {
            let ids = numbers(memory::bytes(&self.ids.buffers()[0]));
            // Another thread may have made it meanwhile, and the same.
            let _ = self.order.set(ordered(&ids[..self.ids.len()], self.table.len(), pool)?);
        }
        Ok(self.order.get())
    }

    /// Counts the pairs of chunks of rows, and then writes them if there are at most `most`.
    fn written(
        &self,
        found: &DeviceArray,
        first: usize,
        (outer, most): (bool, u64),
        pool: &HostPool,
    ) -> Result<[DeviceArray; 2]> {
        let ids = rows::values::<4>(&found.buffers()[0], found.offset(), found.len());
        let valid = rows::validity(found);
        let has = |row: usize| valid.is_none_or(|valid| valid.get(row));
        let group = |row: usize| u32::from_le_bytes(ids[row]) as usize;
        let order =
            self.order(pool)?.map(|order| (numbers(order.rows.bytes()), numbers(order.starts.bytes())));
        // The places of a group's rows.
        let places = |group: usize| match order {
            None => group..group + 1,
            Some((_, starts)) => starts[group] as usize..starts[group + 1] as usize,
        };
        let chunks = || (0..ids.len()).step_by(CHUNK).map(|first| first..ids.len().min(first + CHUNK));
        let counts = each_part(chunks(), |rows| {
            let count = |row| if has(row) { places(group(row)).len() } else { usize::from(outer) };
            rows.map(count).sum::<usize>()
        })?;
        let pairs: usize = counts.iter().sum();
        let too_many = || Error::TooManyPairs { pairs: pairs as u64, device: DeviceType::Cpu };
        let bytes = pairs.checked_mul(4).filter(|_| pairs as u64 <= most).ok_or_else(too_many)?;
        let room = || pool.alloc(bytes).map_err(|error| error.of_pairs(pairs as u64));
        let (mut left, mut right) = (room()?, room()?);
        let mut rest = (
            &mut memory::values_mut::<u32>(&mut left)[..pairs],
            &mut memory::values_mut::<u32>(&mut right)[..pairs],
        );
        let parts = chunks().zip(counts).map(|(rows, count)| {
            let (left, lefts) = std::mem::take(&mut rest.0).split_at_mut(count);
            let (right, rights) = std::mem::take(&mut rest.1).split_at_mut(count);
            rest = (lefts, rights);
            (rows, left, right)
        });
        each_part(parts.collect::<Vec<_>>(), |(rows, left, right)| {
            let mut at = 0;
            for row in rows {
                let to = (first + row) as u32;
                if has(row) {
                    for place in places(group(row)) {
                        left[at] = order.map_or(place as u32, |(rows, _)| rows[place]);
                        right[at] = to;
                        at += 1;
                    }
                } else if outer {
                    (left[at], right[at]) = (NONE, to);
                    at += 1;
                }
            }
        })?;
        let (left, right) = (left.freeze(bytes), right.freeze(bytes));
        let left = if outer { nullable(left, pairs, pool)? } else { DeviceArray::uint32(left, pairs)? };
        Ok([left, DeviceArray::uint32(right, pairs)?])
    }
}

/// Finds the group that each row of the second columns has in a table of the first.
fn found(
    table: &hashed::Table,
    [own, others]: [&Columns; 2],
    nulls: Nulls,
    rows: usize,
    pool: &HostPool,
) -> Result<DeviceArray> {
    let (own, keys) = (own.keys(nulls), others.keys(nulls));
    among_threads(rows > RANGE, |_| {
        let (mut found, mut valid) =
            (pool.alloc(rows.saturating_mul(4))?, pool.alloc(rows.div_ceil(64) * 8)?);
        let ids = &mut memory::values_mut::<u32>(&mut found)[..rows];
        let words = &mut memory::values_mut::<u64>(&mut valid)[..rows.div_ceil(64)];
        let parts = ids.chunks_mut(CHUNK).zip(words.chunks_mut(CHUNK / 64)).enumerate();
        // Validity is written while the groups are in the caches.
        let nulls = each_part(parts, |(i, (ids, words))| {
            table.find_rows(&own, &keys, i * CHUNK..i * CHUNK + ids.len(), ids)?;
            Ok(vectorised(Valid { ids, words }))
        })?;
        let nulls = nulls.into_iter().sum::<Result<usize>>()?;
        with_nulls(found.freeze(rows * 4), rows, valid, nulls)
    })
}

/// Marks the rows whose numbers are in an array.
pub(super) fn mark(of: &DeviceArray, rows: usize, stream: &Stream) -> Result<DeviceArray> {
    let of = admitted(of)?;
    let mut marks = memory::zeroed(rows.div_ceil(64) * 8, stream.device().host_pool())?;
    let words = memory::values_mut::<u64>(&mut marks);
    let numbers = self::rows::values::<4>(&of.buffers()[0], of.offset(), of.len());
    let valid = self::rows::validity(&of);
    for (i, number) in numbers.iter().enumerate() {
        let row = u32::from_le_bytes(*number) as usize;
        if valid.is_none_or(|valid| valid.get(i)) && row < rows {
            words[row / 64] |= 1 << (row % 64);
        }
    }
    let buffers = vec![marks.freeze(rows.div_ceil(8))];
    DeviceArray::made(Parts { buffers, ..Parts::new(DataType::Boolean, rows) }, true)
}
