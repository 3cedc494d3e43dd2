//! Groups of equal rows on the host: their numbers, and folds of their values.

mod chosen;
mod divide;
mod floats;
mod folders;
mod folds;
mod frames;
mod root;
mod rows;

use super::all_admitted;
use super::hashed::{Columns, Nulls, RANGE, grouped};
use super::memory;
use crate::array::{Buffer, DeviceArray};
use crate::device::HostPool;
use crate::engine::Groups;
use crate::rules::check_rows;
use crate::rules::seeds::seed;
use crate::threads::among_threads;
use crate::{Pending, Result, Stream};

pub(super) use divide::divide_sums;
pub(super) use folds::fold_groups;
pub(super) use frames::{fold_frames, frame_ends};
pub(super) use root::roots;

/// Numbers the groups of equal rows.
pub(super) fn group(columns: &[DeviceArray], stream: &Stream) -> Result<Pending<Groups>> {
    Ok(Pending::known(groups(columns, stream.device().host_pool())))
}

fn groups(columns: &[DeviceArray], pool: &HostPool) -> Result<Groups> {
    let columns = all_admitted(columns)?;
    let (rows, seed) = (columns.first().map_or(0, DeviceArray::len), seed(0));
    let columns = Columns::new(&columns, pool)?;
    among_threads(rows > RANGE, |_| {
        let keys = columns.keys(Nulls::Equal).packed();
        let made = grouped(&keys, seed, pool)?;
        let firsts = copied(made.table.firsts(), pool)?;
        let firsts = DeviceArray::uint32(firsts, made.table.len())?;
        Ok(Groups { ids: DeviceArray::uint32(made.ids, rows)?, firsts })
    })
}

/// Copies numbers to memory of their own.
fn copied(numbers: &[u32], pool: &HostPool) -> Result<Buffer> {
    let bytes = size_of_val(numbers);
    let mut copy = pool.alloc(bytes)?;
    memory::values_mut::<u32>(&mut copy)[..numbers.len()].copy_from_slice(numbers);
    Ok(copy.freeze(bytes))
}

/// Returns the numbers from 0 on, of so many rows.
pub(super) fn numbers(rows: usize, pool: &HostPool) -> Result<DeviceArray> {
    check_rows("sort_to_indices", rows)?;
    let mut numbers = pool.alloc(rows * 4)?;
    for (row, number) in memory::values_mut::<u32>(&mut numbers)[..rows].iter_mut().enumerate() {
        *number = row as u32;
    }
    DeviceArray::uint32(numbers.freeze(rows * 4), rows)
}
