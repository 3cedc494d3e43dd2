//! Null counts and bitmaps of nulls.

use bowstring_kernels::bitmap::{
    COMBINE, Combine, NULL_COUNT, NullCount, NullCountRow, bitmap_waves, null_count_parts,
};
use bowstring_kernels::memory::{In, Out};

use super::selection::Words;
use crate::array::{Array, Bitmap, Buffer};
use crate::launch::{Pass, Region, bits};
use crate::{Result, Stream};

/// How many of the rows are null by a bitmap. Synchronises.
pub(in crate::compute) fn null_count(values: &Array, validity: &Bitmap, stream: &Stream) -> Result<usize> {
    if values.is_empty() {
        return Ok(0);
    }
    let mut pass = Pass::begin("null_count", stream)?;
    pass.input(values)?;
    let (words, offset) = bits(validity);
    let len = values.len() as u64;
    let parts = null_count_parts(len, pass.width());
    let maps = pass.upload(&NullCountRow { words, offset, len }.words())?;
    let nulls = pass.zeroed(8)?;
    let args = NullCount { maps: maps.input(), count: 1, parts, nulls: nulls.out() };
    pass.launch(&NULL_COUNT[0], parts, &args)?;
    let count = pass.read(&nulls)?[0] as usize;
    pass.finish()?;
    Ok(count)
}

/// Which rows are null by a bitmap, as the values of a Boolean array; what that array waits for comes with it.
pub(in crate::compute) fn is_null(values: &Array, validity: &Bitmap, stream: &Stream) -> Result<Array> {
    let mut pass = Pass::begin("is_null", stream)?;
    pass.input(values)?;
    let target = pass.zeroed(values.len().div_ceil(8))?;
    unary(&mut pass, "bitmap_not", bits(validity), values.len(), &target)?;
    booleans(pass, values.len(), target.buffer())
}

/// Copies bits to the start of a region.
pub(super) fn copy_bits(pass: &mut Pass, source: Words, len: usize, target: &Region) -> Result<()> {
    unary(pass, "bitmap_copy", source, len, target)
}

fn unary(pass: &mut Pass, name: &str, source: Words, len: usize, target: &Region) -> Result<()> {
    combine(pass, name, source, (In::absent(), 0), len, target)
}

/// Makes bits of one or two others by the entry of this name.
pub(super) fn combine(
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
    pass.launch(entry, bitmap_waves(len), &args)
}

/// The same truth value for every row.
pub(in crate::compute) fn filled(
    operation: &'static str,
    value: bool,
    len: usize,
    stream: &Stream,
) -> Result<Array> {
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
