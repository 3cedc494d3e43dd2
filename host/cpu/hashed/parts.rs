//! Parts of rows that hashes of their keys choose. The hashes are those of devices, so they are not the
//! table's.

use std::ops::Range;

use bowstring_kernels::group::parts::{SEED, mixed, null_hash, part_of};

use super::super::memory;
use super::super::sort::{CHUNK, by_digit};
use super::super::text::layout::{Column as Text, Layout};
use super::columns::Columns;
use super::hash::first_bytes;
use super::keys::{Key, Keys, Nulls, Values};
use crate::Result;
use crate::array::{Buffer, DeviceArray, outside};
use crate::device::HostPool;
use crate::threads::{among_threads, each_part};

/// Orders the rows of plain columns by the part that a hash of their keys chooses. Returns the rows, as
/// numbers of four bytes, and where each part starts, and the end.
pub(in crate::cpu) fn partition_by_hash(
    columns: &[DeviceArray],
    parts: usize,
    pool: &HostPool,
) -> Result<(Buffer, Vec<usize>)> {
    let columns = Columns::new(columns, pool)?;
    let keys = columns.keys(Nulls::Equal);
    let rows = keys.rows;
    among_threads(rows > CHUNK, |_| {
        let (mut items, mut ordered) = (pool.alloc(rows * 8)?, pool.alloc(rows * 8)?);
        let items = &mut memory::values_mut::<u64>(&mut items)[..rows];
        let chunks = items.chunks_mut(CHUNK).enumerate();
        let make = |(i, items): (usize, &mut [u64])| {
            keys.hashes(i * CHUNK..i * CHUNK + items.len(), items)?;
            for (row, item) in (i * CHUNK..).zip(items) {
                *item = u64::from(part_of(*item, parts as u64)) << 32 | row as u64;
            }
            Ok(())
        };
        each_part(chunks, make)?.into_iter().collect::<Result<()>>()?;

        let ordered = &mut memory::values_mut::<u64>(&mut ordered)[..rows];
        let mut starts = by_digit(items, ordered, 32, parts.next_power_of_two().trailing_zeros())?;
        starts.truncate(parts + 1);
        let mut out = pool.alloc(rows * 4)?;
        let numbers = &mut memory::values_mut::<u32>(&mut out)[..rows];
        each_part(numbers.chunks_mut(CHUNK).zip(ordered.chunks(CHUNK)), |(numbers, items)| {
            numbers.iter_mut().zip(items).for_each(|(number, item)| *number = *item as u32);
        })?;
        Ok((out.freeze(rows * 4), starts))
    })
}

/// Makes the hashes that choose parts, of 8 bytes each.
pub(in crate::cpu) fn hash_rows(columns: &[DeviceArray], pool: &HostPool) -> Result<Buffer> {
    let columns = Columns::new(columns, pool)?;
    let keys = columns.keys(Nulls::Equal);
    let rows = keys.rows;
    among_threads(rows > CHUNK, |_| {
        let mut out = pool.alloc(rows * 8)?;
        let chunks = memory::values_mut::<u64>(&mut out)[..rows].chunks_mut(CHUNK).enumerate();
        let make = |(i, out): (usize, &mut [u64])| keys.hashes(i * CHUNK..i * CHUNK + out.len(), out);
        each_part(chunks, make)?.into_iter().collect::<Result<()>>()?;
        Ok(out.freeze(rows * 8))
    })
}

impl Keys<'_> {
    /// Makes the hashes of some rows.
    fn hashes(&self, rows: Range<usize>, out: &mut [u64]) -> Result<()> {
        out.fill(if self.columns.is_empty() { 0 } else { SEED });
        self.columns.iter().try_for_each(|key| key.add_hashes(rows.clone(), out))
    }
}

impl Key<'_> {
    /// Adds the column to the hashes of some rows: words of a value one after the other.
    fn add_hashes(&self, rows: Range<usize>, out: &mut [u64]) -> Result<()> {
        match &self.values {
            Values::Bits(bits) => self.add_each(rows, out, |row, hash| mixed(hash, bits.get(row).into())),
            Values::Fixed(bytes, 4) => self.add_one::<4>(bytes, rows, out),
            Values::Fixed(bytes, 8) => self.add_one::<8>(bytes, rows, out),
            Values::Fixed(bytes, width) => {
                // As wide as divides a value, and of 1, 4 or 8 bytes, as a device reads it.
                let word = match width % 8 {
                    0 => 8,
                    4 => 4,
                    _ => 1,
                };
                let value = |row: usize| bytes[row * width..][..*width].chunks_exact(word);
                self.add_each(rows, out, |row, hash| {
                    value(row).fold(hash, |hash, word| mixed(hash, first_bytes(word, word.len()) as u64))
                });
            }
            Values::Text(Text::Short(text)) => return self.add_text_hashes(text, rows, out),
            Values::Text(Text::Long(text)) => return self.add_text_hashes(text, rows, out),
            Values::Text(Text::Views(text)) => return self.add_text_hashes(text, rows, out),
        }
        Ok(())
    }

    fn add_one<const W: usize>(&self, bytes: &[u8], rows: Range<usize>, out: &mut [u64]) {
        let values = memory::plain::<[u8; W]>(bytes).expect("bytes are always aligned");
        let word =
            |value: &[u8; W]| u64::from_le_bytes(std::array::from_fn(|i| if i < W { value[i] } else { 0 }));
        self.add_each(rows, out, |row, hash| mixed(hash, word(&values[row])));
    }

    #[inline(always)]
    fn add_each(&self, rows: Range<usize>, out: &mut [u64], add: impl Fn(usize, u64) -> u64) {
        for (row, hash) in rows.zip(out) {
            let valid = self.valid.is_none_or(|valid| valid.get(row));
            *hash = if valid { add(row, *hash) } else { null_hash(*hash) };
        }
    }

    /// Adds the length of a text, then its bytes, sixteen at a time.
    fn add_text_hashes(&self, text: &impl Layout, rows: Range<usize>, out: &mut [u64]) -> Result<()> {
        for (row, hash) in rows.zip(out) {
            if !self.valid.is_none_or(|valid| valid.get(row)) {
                *hash = null_hash(*hash);
                continue;
            }
            let bytes = text.row(row).ok_or_else(|| outside(row))?;
            *hash = bytes.chunks(16).fold(mixed(*hash, bytes.len() as u64), |hash, sixteen| {
                let sixteen = first_bytes(sixteen, sixteen.len());
                mixed(mixed(hash, sixteen as u64), (sixteen >> 64) as u64)
            });
        }
        Ok(())
    }
}
