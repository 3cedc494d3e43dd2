//! The order of rows by columns that are not nested.

use arrow_schema::{DataType, SortOptions};

use super::digits::Placements;
use super::keys::{Part, add_parts};
use super::ties;
use crate::array::DeviceArray;
use crate::gpu::structure::counted;
use crate::pass::{Pass, Region};
use crate::rules::check_rows;
use crate::{Result, Stream};

/// Returns the rows in order, the first `limit` of them, as UInt32.
pub(super) async fn ordered(
    columns: &[(DeviceArray, SortOptions)],
    rows: usize,
    limit: Option<usize>,
    stream: &Stream,
) -> Result<DeviceArray> {
    let mut pass = Pass::begin("sort_to_indices", stream)?;
    columns.iter().try_for_each(|(values, _)| pass.input(values))?;
    let order = order(&mut pass, columns, rows).await?;
    numbers(pass, &order, limit.unwrap_or(rows).min(rows))
}

/// Returns the numbers from 0 on, of so many rows, as UInt32.
pub(crate) fn row_numbers(rows: usize, stream: &Stream) -> Result<DeviceArray> {
    let mut pass = Pass::begin("sort_to_indices", stream)?;
    check_rows(pass.operation(), rows)?;
    let made = counted(&mut pass, 0, rows, 4)?;
    numbers(pass, &made, rows)
}

/// Ends a pass that has made row numbers or ranks.
pub(super) fn numbers(pass: Pass, made: &Region, len: usize) -> Result<DeviceArray> {
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
        return counted(pass, 0, rows, 4);
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
        return counted(pass, 0, rows, 4);
    }
    let mut placements = Placements::new(pass, rows, keys.iter().map(|key| key.width).max().unwrap_or(8))?;
    for (key, differs) in keys.iter().zip(&differs).rev().filter(|(_, differs)| **differs != 0) {
        placements.sort(pass, *key, *differs)?;
    }
    placements.order().cloned().map_or_else(|| counted(pass, 0, rows, 4), Ok)
}
