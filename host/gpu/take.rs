//! Take: rows by indices, with columns of equal width in one launch.
//!
//! The one idea: this file alone knows that a take consists of takes. Runs, unions and some lists are taken
//! in parts: `structure` finds the indices of the parts and puts the taken parts together, and this file
//! takes them. So every file below is free of takes, and all takes of a batch run at the same time: the host
//! waits as often as for the column that needs it most.
//!
//! The size of most results is known beforehand. Then the call does not wait, and an index out of bounds
//! surfaces when the result is waited for. The host reads the totals of all strings and lists once, together
//! with the null counts.

use arrow_schema::DataType;

use super::draft::{Draft, Pick};
use super::indices::{Outside, index_width};
use super::parts::{empty_like, nulls};
use super::structure::unions::{self, TakenUnion, no_null};
use super::structure::{lists, runs};
use super::take_tables::Plan;
use crate::array::DeviceArray;
use crate::pass::{Pass, Pending, all, both};
use crate::{Error, Result, Stream};

/// Takes the rows at `indices` from columns of `rows` rows. If rows are ranges, it reads numbers once; for
/// runs and unions it reads more, see [`structure`](super::structure). Otherwise the result is known at once.
pub(crate) fn take(
    columns: &[&DeviceArray],
    rows: usize,
    indices: &DeviceArray,
    outside: Outside,
    stream: &Stream,
) -> Result<Pending<Vec<DeviceArray>>> {
    let mut pass = Pass::begin("take", stream)?;
    pass.input(indices)?;
    for column in columns {
        pass.input(column)?;
    }
    if indices.is_empty() {
        index_width(indices.data_type())?;
        let taken = columns.iter().map(|column| empty_like(&pass, column)).collect::<Result<_>>()?;
        pass.finish()?;
        return Ok(Pending::known(Ok(taken)));
    }
    // With no row to take from, every row is null, provided that the indices are null or may be out of
    // bounds.
    let planned = if rows == 0 { &[] } else { columns };
    let mut plan = Plan::new(indices, rows, outside)?;
    for column in planned {
        plan.add(&pass, column)?;
    }
    let taken = plan.launch(&mut pass)?;
    let in_parts = |pick| Pending::begin(stream, in_parts(pick, stream.clone()));
    let begun: Vec<Pending<DeviceArray>> = taken.apart().into_iter().map(in_parts).collect();
    let gpu = pass.gpu().clone();
    let counters = taken.granted.counters().clone();
    let without_rows: Vec<DeviceArray> =
        if rows == 0 { columns.iter().copied().cloned().collect() } else { vec![] };
    Ok(Pending::begin(stream, async move {
        let own = async {
            let mut words = vec![];
            // Without rows the result depends on no launch that could report the error later.
            if taken.reads || rows == 0 && !outside.is_null() {
                words = pass.read(&[&counters]).await?;
                taken.indices.check(&gpu, &words)?;
            } else if !outside.is_null() {
                let indices = taken.indices.clone();
                pass.keep_for_checks(&indices.array);
                pass.report(&counters, move |words| indices.check(&gpu, words))?;
            }
            let len = taken.indices.len();
            let of_nulls = |column: &DeviceArray| {
                let nulls = nulls(&mut pass, column.data_type(), Some(column), len)?;
                nulls.map(Draft::Whole).ok_or_else(no_null)
            };
            let drafts: Vec<Draft> = match rows {
                0 => without_rows.iter().map(of_nulls).collect::<Result<_>>()?,
                _ => taken.build(&mut pass, &words)?,
            };
            let lacking = all(begin(&drafts, pass.stream())?).await?;
            Ok((pass, drafts, lacking))
        };
        let ((mut pass, drafts, lacking), begun) = both(own, all(begun)).await?;
        let built = finish(&mut pass, drafts, lacking, begun)?;
        pass.finish()?;
        Ok(built)
    }))
}

/// Takes rows of one array, as [`take`] does.
pub(crate) fn take_one(
    array: &DeviceArray,
    indices: &DeviceArray,
    outside: Outside,
    stream: &Stream,
) -> Result<Pending<DeviceArray>> {
    let taken = take(&[array], array.len(), indices, outside, stream)?;
    Ok(taken.map(|taken| taken.into_iter().next().ok_or_else(|| Error::invalid("take", "no array"))))
}

fn pick(rows: &Pick, stream: &Stream) -> Result<Pending<DeviceArray>> {
    take_one(&rows.array, &rows.indices, rows.outside, stream)
}

/// Takes the rows that drafts lack, and finishes the arrays.
pub(crate) async fn finished(pass: &mut Pass, drafts: Vec<Draft>) -> Result<Vec<DeviceArray>> {
    let lacking = all(begin(&drafts, pass.stream())?).await?;
    finish(pass, drafts, lacking, vec![])
}

fn begin(drafts: &[Draft], stream: &Stream) -> Result<Vec<Pending<DeviceArray>>> {
    drafts.iter().flat_map(Draft::lacking).map(|rows| pick(&rows, stream)).collect()
}

fn finish(
    pass: &mut Pass,
    drafts: Vec<Draft>,
    lacking: Vec<DeviceArray>,
    begun: Vec<DeviceArray>,
) -> Result<Vec<DeviceArray>> {
    let (mut lacking, mut begun) = (lacking.into_iter(), begun.into_iter());
    drafts.into_iter().map(|draft| draft.finish(pass, &mut lacking, &mut begun)).collect()
}

/// Takes rows of an array of a type whose parts are taken by indices of their own. Needs at least one row and
/// one index.
async fn in_parts(rows: Pick, stream: Stream) -> Result<DeviceArray> {
    let Pick { array, indices, outside } = &rows;
    match array.data_type() {
        DataType::RunEndEncoded(..) => {
            let runs = runs::taken(&rows, &stream).await?;
            let values = pick(&runs.values, &stream)?.await?;
            runs.build(values, &stream).await
        }
        DataType::FixedSizeList(..) => {
            let without_items = lists::without_items(array)?;
            let without_items = take_one(&without_items, indices, *outside, &stream)?.await?;
            let lists = lists::taken(&rows, without_items, &stream)?;
            let items = pick(&lists.items, &stream)?.await?;
            lists.build(items, &stream)
        }
        _ => {
            let numbers = unions::numbers(array)?;
            let numbers = numbers.iter().collect::<Vec<_>>();
            let numbers = take(&numbers, array.len(), indices, *outside, &stream)?.await?;
            let union = TakenUnion::find(&rows, numbers, &stream).await?;
            let members = union.members.iter().map(|member| pick(member, &stream));
            let members = all(members.collect::<Result<_>>()?).await?;
            union.build(members)
        }
    }
}
