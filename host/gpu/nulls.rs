//! Null counts and bitmaps of nulls.

use bowstring_kernels::bitmap::{COMBINE, Combine, NULL_COUNT, NullCount, NullCountRow, null_count_parts};
use bowstring_kernels::memory::{In, Out};

use super::part_of;
use super::selection::Words;
use crate::array::{Array, Bitmap, Buffer};
use crate::pass::{Pass, Pending, Region, Table, bits};
use crate::{Result, Stream};

/// How many of the rows of each array are null by a bitmap, in one launch. Synchronises once, when the numbers are waited
/// for.
pub(crate) fn null_counts(arrays: &[(&Array, &Bitmap)], stream: &Stream) -> Result<Pending<Vec<usize>>> {
    if arrays.iter().all(|(values, _)| values.is_empty()) {
        return Ok(Pending::known(Ok(vec![0; arrays.len()])));
    }
    let mut pass = Pass::begin("null_count", stream)?;
    let nulls = counted(&mut pass, arrays)?;
    pass.read_later(&nulls, |pass, words| {
        pass.finish()?;
        Ok(words.iter().map(|nulls| *nulls as usize).collect())
    })
}

/// How many of the rows of each array are null by a bitmap: a word each, which a pass computes in one launch.
fn counted(pass: &mut Pass, arrays: &[(&Array, &Bitmap)]) -> Result<Region> {
    let longest = arrays.iter().map(|(values, _)| values.len()).max().unwrap_or(0);
    let mut table = Table::default();
    for (values, validity) in arrays {
        pass.input(values)?;
        let ((words, offset), len) = (bits(validity), values.len() as u64);
        table.push(&NullCountRow { words, offset, len });
    }
    pass.expect(&[table.bytes(), 8 * arrays.len()], (0, 0));
    let (maps, nulls) = (pass.upload(table.words())?, pass.zeroed(8 * arrays.len())?);
    let (count, parts) = (arrays.len() as u64, null_count_parts(longest as u64, pass.width()));
    let args = NullCount { maps: maps.input(), count, parts, nulls: nulls.out() };
    pass.launch(&NULL_COUNT[0], &args)?;
    Ok(nulls)
}

/// The arrays, each with a bitmap, and `check` on how many rows of each are null, which whoever first waits for one of them is
/// told. Does not synchronise.
pub(crate) fn with_null_counts_checked(
    arrays: &[&Array],
    check: impl FnOnce(&[u64]) -> Result<()> + Send + 'static,
    stream: &Stream,
) -> Result<Vec<Array>> {
    let bitmaps = arrays.iter().filter_map(|array| Some((*array, array.validity()?)));
    let mut pass = Pass::begin("cast", stream)?;
    let nulls = counted(&mut pass, &bitmaps.collect::<Vec<_>>())?;
    pass.report(&nulls, check)?;
    let checked = arrays.iter().map(|array| part_of(&pass, (*array).clone())).collect::<Result<_>>()?;
    pass.finish()?;
    Ok(checked)
}

/// Which rows are null by a bitmap, as the values of a Boolean array; what that array waits for comes with it.
pub(crate) fn is_null(values: &Array, validity: &Bitmap, stream: &Stream) -> Result<Array> {
    let mut pass = Pass::begin("is_null", stream)?;
    pass.input(values)?;
    let target = pass.zeroed(values.len().div_ceil(8))?;
    unary(&mut pass, "bitmap_not", bits(validity), values.len(), &target)?;
    booleans(pass, values.len(), target.buffer())
}

/// Copies bits to the start of a region.
pub(crate) fn copy_bits(pass: &mut Pass, source: Words, len: usize, target: &Region) -> Result<()> {
    unary(pass, "bitmap_copy", source, len, target)
}

fn unary(pass: &mut Pass, name: &str, source: Words, len: usize, target: &Region) -> Result<()> {
    combine(pass, name, source, (In::absent(), 0), len, target)
}

/// Makes bits of one or two others by the entry of this name.
pub(crate) fn combine(
    pass: &mut Pass,
    name: &str,
    (left, left_offset): Words,
    (right, right_offset): Words,
    len: usize,
    target: &Region,
) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    let entry = COMBINE.iter().find(|entry| entry.name == name).ok_or_else(|| pass.unsupported(name))?;
    let len = len as u64;
    let args =
        Combine { left, left_offset, right, right_offset, len, target: target.out(), nulls: Out::absent() };
    pass.launch(entry, &args)
}

/// The same truth value for every row.
pub(crate) fn filled(operation: &'static str, value: bool, len: usize, stream: &Stream) -> Result<Array> {
    let mut pass = Pass::begin(operation, stream)?;
    let target = pass.output(len.div_ceil(8))?;
    pass.fill(&target, if value { 0xff } else { 0 })?;
    booleans(pass, len, target.buffer())
}

fn booleans(pass: Pass, len: usize, bits: Buffer) -> Result<Array> {
    let mut parts = pass.parts(arrow_schema::DataType::Boolean, len);
    parts.buffers = vec![bits];
    let array = Array::try_new(parts)?;
    pass.finish()?;
    Ok(array)
}
