//! Null counts and bitmaps of nulls.

use arrow_schema::DataType;
use bowstring_kernels::reduce::bitmap::{NULL_COUNT, NullCount, NullCountRow, null_count_parts};

use super::bitmap::not;
use super::parts::part_of;
use super::structure::counted;
use crate::array::{Bitmap, Buffer, DeviceArray};
use crate::pass::{BitPointer, Granted, Pass, Pending, Requests, Table, bits};
use crate::{Result, Stream};

/// Counts the nulls of each array by its bitmap, in one launch. Synchronises once, when the counts are waited
/// for.
pub(crate) fn null_counts(
    arrays: &[(&DeviceArray, &Bitmap)],
    stream: &Stream,
) -> Result<Pending<Vec<usize>>> {
    if arrays.iter().all(|(values, _)| values.is_empty()) {
        return Ok(Pending::known(Ok(vec![0; arrays.len()])));
    }
    let mut pass = Pass::begin("null_count", stream)?;
    let bitmaps = entered(&mut pass, arrays)?;
    let counted = unset(&mut pass, &bitmaps)?;
    Ok(Pending::begin(stream, async move {
        let words = pass.read_last(&[counted.counters()]).await?;
        Ok(words.iter().map(|nulls| *nulls as usize).collect())
    }))
}

/// Adds inputs to a pass and returns their bitmaps as kernels take them, each with its length.
fn entered(pass: &mut Pass, arrays: &[(&DeviceArray, &Bitmap)]) -> Result<Vec<(BitPointer, usize)>> {
    arrays
        .iter()
        .map(|(values, validity)| pass.input(values).map(|()| (bits(validity), values.len())))
        .collect()
}

/// Counts the unset bits of each bitmap in one launch, a counter for each.
fn unset(pass: &mut Pass, bitmaps: &[(BitPointer, usize)]) -> Result<Granted> {
    let (mut table, mut longest) = (Table::default(), 0);
    for ((words, offset), len) in bitmaps {
        let (words, offset, len) = (*words, *offset, *len as u64);
        table.push(&NullCountRow { words, offset, len });
        longest = longest.max(len);
    }
    let (count, parts) = (bitmaps.len() as u64, null_count_parts(longest, pass.width()));
    let mut requests = Requests::over(longest as usize);
    let nulls = requests.sums_of(bitmaps.len(), parts);
    let granted = requests.grant(pass, table.bytes())?;
    let maps = pass.table(table.words(), count.saturating_mul(parts))?;
    let args = NullCount { maps: maps.input(), count, parts, nulls: granted.counter(nulls) };
    pass.launch(&NULL_COUNT[0], &args)?;
    Ok(granted)
}

/// Returns the arrays with a check of their null counts, each by its bitmap. An error of `check` surfaces at
/// the first wait for any of them. Does not synchronise.
pub(crate) fn with_null_counts_checked(
    arrays: &[DeviceArray],
    check: impl FnOnce(&[u64]) -> Result<()> + Send + 'static,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    let bitmaps = arrays.iter().filter_map(|array| Some((array, array.validity()?)));
    let mut pass = Pass::begin("cast", stream)?;
    let bitmaps = entered(&mut pass, &bitmaps.collect::<Vec<_>>())?;
    let counted = unset(&mut pass, &bitmaps)?;
    pass.report(counted.counters(), check)?;
    let checked = arrays.iter().map(|array| part_of(&pass, array.clone())).collect::<Result<_>>()?;
    pass.finish()?;
    Ok(checked)
}

/// Passes the number of a bitmap's unset bits to `check`, whose error surfaces at the first wait for what the
/// pass makes.
pub(super) fn report_unset(
    pass: &mut Pass,
    bitmap: BitPointer,
    len: usize,
    check: impl FnOnce(usize) -> Result<()> + Send + 'static,
) -> Result<()> {
    let counted = unset(pass, &[(bitmap, len)])?;
    pass.report(counted.counters(), move |words| check(words[0] as usize))
}

/// Returns which rows are null by a bitmap, as a Boolean array. It waits for everything that `values` waits
/// for.
pub(crate) fn is_null(values: &DeviceArray, validity: &Bitmap, stream: &Stream) -> Result<DeviceArray> {
    let mut pass = Pass::begin("is_null", stream)?;
    pass.input(values)?;
    let target = pass.zeroed(values.len().div_ceil(8))?;
    not(&mut pass, bits(validity), values.len(), &target)?;
    booleans(pass, values.len(), target.buffer())
}

/// Returns a Boolean array with the same value in every row.
pub(crate) fn filled(
    operation: &'static str,
    value: bool,
    len: usize,
    stream: &Stream,
) -> Result<DeviceArray> {
    let mut pass = Pass::begin(operation, stream)?;
    let target = pass.output(len.div_ceil(8))?;
    pass.fill(&target, if value { 0xff } else { 0 })?;
    booleans(pass, len, target.buffer())
}

/// Returns the numbers of the array's rows, from 0 on, null wherever `valid` is unset.
pub(crate) fn numbers(
    operation: &'static str,
    of: &DeviceArray,
    valid: Bitmap,
    stream: &Stream,
) -> Result<DeviceArray> {
    let mut pass = Pass::begin(operation, stream)?;
    pass.input(of)?;
    let mut parts = pass.parts(DataType::UInt64, of.len());
    parts.buffers = vec![counted(&mut pass, 0, of.len(), 8)?.buffer()];
    (parts.validity, parts.null_count) = (Some(valid), None);
    let array = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(array)
}

fn booleans(pass: Pass, len: usize, bits: Buffer) -> Result<DeviceArray> {
    let mut parts = pass.parts(DataType::Boolean, len);
    parts.buffers = vec![bits];
    let array = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(array)
}
