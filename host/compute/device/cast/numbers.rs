//! Casts on a GPU: one launch for the values, the new validity and the first row that does not fit.

use arrow_schema::DataType;
use bowstring_kernels::cast::{
    CAST_FLOAT, CAST_NUMBERS, CAST_SCALE, CAST_TIME, CastFloat, CastNumbers, CastScale, CastTime, Task, tile,
};
use bowstring_kernels::memory::Out;
use bowstring_kernels::numeric::{Number, Operation, Recipe};
use bowstring_kernels::target::{Args, Entry, find};

use super::nulls_of;
use crate::array::{Array, Bitmap, Parts, layout};
use crate::launch::{Pass, Region, bits, validity};
use crate::{Error, Result, Stream};

/// Waves that fill the largest GPUs a few times over: from there on each does several tiles.
const WAVES: u64 = 1 << 15;

/// Converts every row of an array on the stream's device. What does not fit becomes null where the cast is `safe`, else an
/// error when somebody first waits for the result.
pub(in crate::compute) fn convert(
    recipe: &Recipe,
    values: &Array,
    to: &DataType,
    safe: bool,
    stream: &Stream,
) -> Result<Array> {
    let mut pass = Pass::begin("cast", stream)?;
    pass.input(values)?;
    let len = values.len();
    // Booleans count as bytes where tiles are measured.
    let (from_width, from_bits) = match recipe.operation {
        Operation::FromBits => (1, 1),
        _ => (recipe.from.width(), 8 * recipe.from.width()),
    };
    let (to_width, bytes) = match recipe.operation {
        Operation::ToBits => (1, len.div_ceil(32) * 4),
        _ => (recipe.to.width(), bytes_of(&pass, recipe.to, len)?),
    };
    let offset = values.offset().checked_mul(from_bits);
    let offset = offset.ok_or_else(|| Error::invalid("cast", "the offset is beyond any address"))?;
    let (rows, rows_offset) = bits(&Bitmap { buffer: values.buffers()[0].clone(), offset });
    let (valid, valid_offset) = validity(values);
    let out = pass.output(bytes)?;
    let out_valid = (recipe.fallible && safe).then(|| pass.output(len.div_ceil(32) * 4)).transpose()?;
    // The number of nulls, and the first bad row.
    let status = recipe.fallible.then(|| pass.upload(&[0, u64::MAX])).transpose()?;

    let size = tile(from_width, to_width, pass.width());
    let tiles = ((len as u64).div_ceil(size) / WAVES).max(1);
    let task = Task {
        values: rows,
        offset: rows_offset,
        valid,
        valid_offset,
        len: len as u64,
        tiles,
        out: out.out(),
        out_valid: out_valid.as_ref().map_or(Out::absent(), Region::out),
        status: status.as_ref().map_or(Out::absent(), Region::out),
        words: recipe.words,
    };
    let waves = (len as u64).div_ceil(size * tiles);
    match recipe.operation {
        Operation::FromBits | Operation::ToBits | Operation::Direct => {
            launch(&mut pass, CAST_NUMBERS, recipe, waves, &CastNumbers::of(&task))
        }
        Operation::Up | Operation::Down => {
            launch(&mut pass, CAST_SCALE, recipe, waves, &CastScale::of(&task))
        }
        Operation::Round | Operation::Quotient | Operation::Product => {
            launch(&mut pass, CAST_FLOAT, recipe, waves, &CastFloat::of(&task))
        }
        _ => launch(&mut pass, CAST_TIME, recipe, waves, &CastTime::of(&task)),
    }?;

    if let (Some(status), false) = (&status, safe) {
        let (from, to) = (values.data_type().clone(), to.clone());
        pass.report(status, move |words| match words[1] {
            u64::MAX => Ok(()),
            row => {
                let problem = "the value does not fit".to_owned();
                Err(Error::Cast { row: row as usize, from, to, problem })
            }
        })?;
    }
    let parts = pass.parts(to.clone(), len);
    let mut parts = match &out_valid {
        Some(valid) => {
            Parts { validity: Some(Bitmap { buffer: valid.buffer(), offset: 0 }), null_count: None, ..parts }
        }
        None => nulls_of(&mut pass, values, parts)?,
    };
    parts.buffers = vec![out.buffer()];
    let casted = Array::try_new(parts)?;
    pass.finish()?;
    Ok(casted)
}

/// As many zeros as there are values, null where they are.
pub(in crate::compute) fn zeros(values: &Array, to: &DataType, stream: &Stream) -> Result<Array> {
    let mut pass = Pass::begin("cast", stream)?;
    pass.input(values)?;
    let width = layout(to).slots().next().and_then(|slot| slot.bytes_for(1)).expect("numbers have a width");
    let zeros = pass.zeroed(values.len() * width)?;
    let parts = pass.parts(to.clone(), values.len());
    let mut parts = nulls_of(&mut pass, values, parts)?;
    parts.buffers = vec![zeros.buffer()];
    let casted = Array::try_new(parts)?;
    pass.finish()?;
    Ok(casted)
}

fn bytes_of(pass: &Pass, number: Number, len: usize) -> Result<usize> {
    let too_many = Error::OutOfMemory { bytes: usize::MAX, device: pass.place().device_type };
    len.checked_mul(number.width()).ok_or(too_many)
}

fn launch<A: Args>(
    pass: &mut Pass,
    table: &'static [Entry<A>],
    recipe: &Recipe,
    waves: u64,
    args: &A,
) -> Result<()> {
    let key = [recipe.operation as u32, recipe.from as u32, recipe.to as u32];
    let entry = find(table, &key).ok_or_else(|| pass.unsupported(format_args!("{recipe:?}")))?;
    pass.launch(entry, waves, args)
}
