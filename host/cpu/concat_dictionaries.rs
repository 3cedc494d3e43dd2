//! Concatenation of dictionaries whose values are more than their keys can number, unless equal ones are
//! merged and unused ones left out. arrow-select does so by a table in which colliding values displace each
//! other, so some stay twice, and the keys may not suffice.

use arrow_cast::CastOptions;
use arrow_schema::{ArrowError, DataType, SortOptions};

use super::cast::cast;
use super::indices::{Indices, Rows};
use super::memory;
use super::sort;
use super::take::take;
use crate::array::{DeviceArray, Parts};
use crate::device::HostPool;
use crate::engine::Ties;
use crate::{Error, Result};

/// The values that are used, one array for each part, and the place among them of each row's value.
pub(super) struct Used {
    pub values: Vec<DeviceArray>,
    rows: Rows,
}

/// The error that says that keys do not suffice, as arrow-select has it.
pub(super) fn overflow() -> Error {
    Error::Arrow { operation: "concat", problem: ArrowError::DictionaryKeyOverflowError.to_string() }
}

impl Used {
    /// Finds the used values of dictionary arrays.
    pub fn of(arrays: &[DeviceArray], pool: &HostPool) -> Result<Used> {
        let rows = arrays.iter().fold(0usize, |rows, array| rows.saturating_add(array.len()));
        let mut used = Used { values: vec![], rows: Rows::with_room(rows, pool)? };
        let mut before = 0;
        for array in arrays {
            let (DataType::Dictionary(key, _), Some(values)) = (array.data_type(), array.dictionary()) else {
                return Err(overflow());
            };
            let keys = Parts { data_type: (**key).clone(), dictionary: None, ..array.clone().into_parts() };
            let keys = Indices::new(&DeviceArray::made(keys, true)?, pool)?;
            // One more than the place of each value that is used.
            let mut places = memory::zeroed(values.len().saturating_mul(8), pool)?;
            let places = &mut memory::values_mut::<u64>(&mut places)[..values.len()];
            let mut picked = Rows::with_room(values.len().min(array.len()), pool)?;
            keys.visit(values.len(), |_, key| {
                let Some(key) = key else { return used.rows.push(None) };
                if places[key] == 0 {
                    picked.push(Some(key))?;
                    places[key] = picked.len() as u64;
                }
                used.rows.push(Some(before + places[key] as usize - 1))
            })?;
            before += picked.len();
            used.values.push(take(values, &picked.finish(), pool)?);
        }
        Ok(used)
    }

    /// Makes the array, of all values of all parts. An error if the different ones are too many for the keys.
    pub fn merged(self, all: &DeviceArray, to: &DataType, pool: &HostPool) -> Result<DeviceArray> {
        let DataType::Dictionary(key, _) = to else { return Err(overflow()) };
        let ranks = sort::ranks(all, SortOptions::default(), Ties::Dense, pool)?;
        let ranks = memory::plain::<u32>(memory::bytes(&ranks.buffers()[0])).expect("our own memory");
        let ranks = &ranks[..all.len()];
        let count = ranks.iter().copied().max().unwrap_or(0) as usize;
        let mut firsts = memory::zeroed(count * 4, pool)?;
        let mut numbers = pool.alloc(all.len() * 4)?;
        let to_first = &mut memory::values_mut::<u32>(&mut firsts)[..count];
        for ((row, rank), number) in (0u32..).zip(ranks).zip(memory::values_mut::<u32>(&mut numbers)) {
            *number = rank - 1;
            // Any of equal values will do.
            to_first[*number as usize] = row;
        }
        let firsts = Indices::of_buffer(firsts.freeze(count * 4), false, count);
        let values = take(all, &firsts, pool)?;
        let numbers = DeviceArray::uint32(numbers.freeze(all.len() * 4), all.len())?;
        let numbers = take(&numbers, &self.rows.finish(), pool)?;
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let keys = cast(&numbers, key, &strict, pool).map_err(|_| overflow())?;
        let parts = Parts { data_type: to.clone(), dictionary: Some(values), ..keys.into_parts() };
        DeviceArray::made(parts, true)
    }
}
