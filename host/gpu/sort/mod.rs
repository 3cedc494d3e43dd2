//! Sorting on a device: words for each key, and placements by the digits in which they differ.
//!
//! The one idea: see [`bowstring_kernels::sort`]. The host looks once, at the bits in which the words of each
//! key differ, and launches a placement for every eight of them, from the last key to the first. Keys that do
//! not differ, and the upper bits of small numbers, cost nothing.
//!
//! Memory for a row: 4 or 8 bytes for each word of a key, and up to 32 for its order and what is in work.

pub(crate) mod digits;
pub(crate) mod groups;
pub(crate) mod keys;
mod ties;

use arrow_schema::{DataType, SortOptions};

use super::plain::decoded;
use crate::array::DeviceArray;
use crate::pass::{Pass, Pending, Region};
use crate::rules::check_rows;
use crate::{Result, Stream};
use digits::{Placements, unchanged};
use keys::{Part, add_parts};

/// Returns the rows of columns of one length in their order, the first `limit` of them, as UInt32. It reads
/// once, and as often as a cast of dictionaries and runs to their values.
pub(crate) fn sort_to_indices(
    columns: &[(&DeviceArray, SortOptions)],
    limit: Option<usize>,
    stream: &Stream,
) -> Result<Pending<DeviceArray>> {
    let (values, options): (Vec<DeviceArray>, Vec<SortOptions>) =
        columns.iter().map(|(values, options)| ((*values).clone(), *options)).unzip();
    let on = stream.clone();
    Ok(Pending::begin(stream, async move {
        let plain: Vec<_> = decoded(&values, &on).await?.into_iter().zip(options).collect();
        let rows = plain.first().map_or(0, |(values, _)| values.len());
        let mut pass = Pass::begin("sort_to_indices", &on)?;
        for (values, _) in &plain {
            pass.input(values)?;
        }
        let order = order(&mut pass, &plain, rows).await?;
        numbers(pass, &order, limit.unwrap_or(rows).min(rows))
    }))
}

/// Returns the numbers from 0 on, of so many rows, as UInt32.
pub(crate) fn row_numbers(rows: usize, stream: &Stream) -> Result<DeviceArray> {
    let mut pass = Pass::begin("sort_to_indices", stream)?;
    check_rows(pass.operation(), rows)?;
    let made = unchanged(&mut pass, rows)?;
    numbers(pass, &made, rows)
}

/// Ends a pass that has made row numbers or ranks.
fn numbers(pass: Pass, made: &Region, len: usize) -> Result<DeviceArray> {
    let numbers = pass.array(DataType::UInt32, len, made)?;
    pass.finish()?;
    Ok(numbers)
}

/// Returns the rows in order.
async fn order(pass: &mut Pass, columns: &[(DeviceArray, SortOptions)], rows: usize) -> Result<Region> {
    check_rows(pass.operation(), rows)?;
    let mut parts = vec![];
    for (values, options) in columns {
        add_parts(pass, values, *options, &mut parts)?;
    }
    if rows < 2 || parts.is_empty() {
        return unchanged(pass, rows);
    }
    let sources = parts.iter().map(|part| if let Part::Words(source) = part { Some(source) } else { None });
    let Some(sources) = sources.collect::<Option<Vec<_>>>() else {
        return ties::sorted(pass, &parts, rows).await;
    };
    let differs = pass.zeroed(8 * sources.len())?;
    let mut keys = vec![];
    for (i, source) in sources.iter().enumerate() {
        keys.push(source.key(pass, rows, differs.out_from(8 * i))?);
    }
    let differs = pass.read(&[&differs]).await?;
    if differs.iter().all(|differs| *differs == 0) {
        return unchanged(pass, rows);
    }
    let mut placements = Placements::new(pass, rows, keys.iter().map(|key| key.width).max().unwrap_or(8))?;
    for (key, differs) in keys.iter().zip(&differs).rev().filter(|(_, differs)| **differs != 0) {
        placements.sort(pass, *key, *differs)?;
    }
    placements.order().cloned().map_or_else(|| unchanged(pass, rows), Ok)
}
