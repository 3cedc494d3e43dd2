//! Groups of equal rows that follow each other, and ranks.

use arrow_schema::{DataType, SortOptions};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::sort::ranks::{DENSE, HIGHEST, LOWEST, RANKS, Ranks};
use bowstring_kernels::sort::ties::{NARROW, Narrow};

use super::digits::entry;
use super::keys::add_parts;
use super::order::{numbers, ordered};
use crate::array::{Bitmap, DeviceArray};
use crate::engine::Ties;
use crate::gpu::bitmap::{and, not};
use crate::gpu::concat::joined::join_bits;
use crate::gpu::indices::Outside;
use crate::gpu::structure::Marked;
use crate::gpu::structure::alike::stretches;
use crate::gpu::take::take_one;
use crate::pass::{BitPointer, Pass, Region, input};
use crate::rules::check_rows;
use crate::{Result, Stream};

/// Groups of equal rows.
struct Groups {
    /// The rows that begin a group.
    begins: Marked,
    /// The numbers of these rows.
    starts: Region,
    count: usize,
}

/// Returns the rows, as UInt32, that differ from the row before them in any column, and the first row.
pub(super) async fn partition_flat(
    columns: &[DeviceArray],
    rows: usize,
    stream: &Stream,
) -> Result<DeviceArray> {
    let mut pass = Pass::begin("partition", stream)?;
    check_rows(pass.operation(), rows)?;
    if rows == 0 {
        let none = pass.output(0)?;
        return numbers(pass, &none, 0);
    }
    let groups = groups(&mut pass, columns, rows).await?;
    numbers(pass, &groups.starts, groups.count)
}

/// Returns the rank of each row in the order of all columns, as UInt32, from 1 on.
pub(super) async fn rank_flat(
    columns: &[(DeviceArray, SortOptions)],
    rows: usize,
    ties: Ties,
    stream: &Stream,
) -> Result<DeviceArray> {
    let mut pass = Pass::begin("rank", stream)?;
    check_rows(pass.operation(), rows)?;
    for (values, options) in columns {
        add_parts(&pass, values, *options, &mut vec![])?;
    }
    if rows == 0 {
        let none = pass.output(0)?;
        return numbers(pass, &none, 0);
    }
    pass.finish()?;
    let order = ordered(columns, rows, None, stream).await?;
    let mut sorted = vec![];
    for (values, _) in columns {
        sorted.push(take_one(values, &order, Outside::Refused, stream)?.await?);
    }
    let mut pass = Pass::begin("rank", stream)?;
    pass.input(&order)?;
    let groups = groups(&mut pass, &sorted, rows).await?;
    let out = pass.rows(rows, 4)?;
    let args = Ranks {
        begins: groups.begins.mask.words().0,
        begins_offsets: groups.begins.mask.offsets(),
        starts: groups.starts.input(),
        groups: groups.count as u64,
        order: input(&order.buffers()[0]),
        rows: rows as u64,
        ties: match ties {
            Ties::Highest => HIGHEST,
            Ties::Lowest => LOWEST,
            Ties::Dense => DENSE,
        },
        out: out.out(),
    };
    let ranks = entry(&pass, RANKS, &[])?;
    pass.launch(ranks, &args)?;
    numbers(pass, &out, rows)
}

/// Finds the groups of equal rows in columns of at least one row, in the order that they have.
async fn groups(pass: &mut Pass, columns: &[DeviceArray], rows: usize) -> Result<Groups> {
    // A bit for each row that equals the next one.
    let mut alike: Option<Region> = None;
    for values in columns.iter().filter(|values| *values.data_type() != DataType::Null) {
        pass.input(values)?;
        add_parts(pass, values, SortOptions::default(), &mut vec![])?;
        let differs = stretches(pass, values).await?;
        let own = pass.output(rows.div_ceil(32) * 4)?;
        not(pass, bitmap(&differs), rows, &own)?;
        alike = Some(match alike {
            None => own,
            Some(others) => {
                let both = pass.output(rows.div_ceil(32) * 4)?;
                and(pass, bitmap(&others), bitmap(&own), rows, &both)?;
                both
            }
        });
    }
    let differs = match alike {
        Some(alike) => {
            let differs = pass.output(rows.div_ceil(32) * 4)?;
            not(pass, bitmap(&alike), rows, &differs)?;
            differs
        }
        None => pass.zeroed(rows.div_ceil(32) * 4)?,
    };
    // The first row begins a group, and so does each row after one that differs from it.
    let differs = Bitmap { buffer: differs.buffer(), offset: 0 };
    let begins = join_bits(pass, [(None, 1), (Some(differs), rows - 1)].into_iter(), rows)?;
    let begins = Marked::new(pass, rows, &begins)?;
    let count = begins.total(&pass.read(&[begins.counters()]).await?);
    let starts = pass.rows(count, 4)?;
    let (words, offsets) = (begins.mask.words().0, begins.mask.offsets());
    let args = Narrow {
        begins: words,
        begins_offsets: offsets,
        goes_on: words,
        goes_on_offsets: offsets,
        places: In::absent(),
        order: In::absent(),
        rows: rows as u64,
        out_places: starts.out(),
        out_order: Out::absent(),
        out_groups: Out::absent(),
    };
    let narrow = entry(pass, NARROW, &[])?;
    pass.launch(narrow, &args)?;
    Ok(Groups { begins, starts, count })
}

fn bitmap(region: &Region) -> BitPointer {
    (region.input(), 0)
}
