//! Casts on a GPU: of each array one launch for the values, the new validity and the first row that does not fit; of many
//! arrays one pass.

use arrow_schema::DataType;
use bowstring_kernels::cast::{
    CAST_FLOAT, CAST_NUMBERS, CAST_SCALE, CAST_TIME, CastFloat, CastNumbers, CastScale, CastTime, Task, tile,
};
use bowstring_kernels::memory::Out;
use bowstring_kernels::numeric::{Operation, Recipe};
use bowstring_kernels::target::{Args, Entry, find};

use super::nulls_of;
use crate::array::{Array, Bitmap, Parts, layout};
use crate::pass::{Pass, Region, bits, validity};
use crate::{Error, Result, Stream};

/// Waves that fill the largest GPUs a few times over: from there on each does several tiles.
const WAVES: u64 = 1 << 15;

/// An array whose values are converted each by itself, and the type they get.
pub(crate) struct Column<'a> {
    pub values: &'a Array,
    pub to: &'a DataType,
    /// None where every value becomes zero.
    pub recipe: Option<Recipe>,
}

impl Column<'_> {
    fn is_fallible(&self) -> bool {
        self.recipe.as_ref().is_some_and(|recipe| recipe.fallible)
    }

    /// What is written of it: values, and a bitmap.
    fn bytes(&self, safe: bool) -> [usize; 2] {
        let (len, bits) = (self.values.len(), self.values.len().div_ceil(32) * 4);
        let values = self.recipe.as_ref().map_or(0, |recipe| match recipe.operation {
            Operation::ToBits => bits,
            _ => len.saturating_mul(recipe.to.width()),
        });
        [values, if safe && self.is_fallible() { bits } else { 0 }]
    }
}

/// Words of a column that may fail: the number of its nulls, and its first bad row.
const STATUS: usize = 2;

/// Converts every row of arrays on the stream's device, in one pass. What does not fit becomes null where the cast is `safe`,
/// else an error when somebody first waits for any of the results.
pub(crate) fn convert(columns: &[Column<'_>], safe: bool, stream: &Stream) -> Result<Vec<Array>> {
    if columns.is_empty() {
        return Ok(vec![]);
    }
    let mut pass = Pass::begin("cast", stream)?;
    columns.iter().try_for_each(|column| pass.input(column.values))?;
    let strict: Vec<&Column> = columns.iter().filter(|column| !safe && column.is_fallible()).collect();
    let words = [0, u64::MAX].repeat(strict.len());
    pass.expect(&[size_of_val(&words[..])], (0, 0));
    let status = if strict.is_empty() { None } else { Some(pass.upload(&words)?) };
    pass.expect_outputs(columns.iter().flat_map(|column| column.bytes(safe)));
    let (mut casted, mut used) = (vec![], 0);
    for column in columns {
        let status = match (&status, column.is_fallible()) {
            (_, false) => Out::absent(),
            (Some(status), true) => {
                used += STATUS as u64;
                status.out().skip(used - STATUS as u64)
            }
            // Nobody asks: who wants to know how many nulls there are looks at the bitmap.
            (None, true) => pass.sink()?.out(),
        };
        casted.push(match &column.recipe {
            Some(recipe) => convert_one(&mut pass, recipe, column, safe, status)?,
            None => zeros(&mut pass, column)?,
        });
    }
    if let Some(status) = &status {
        let types = strict.iter().map(|column| (column.values.data_type().clone(), column.to.clone()));
        let types: Vec<(DataType, DataType)> = types.collect();
        pass.report(status, move |words| {
            let rows = words.chunks_exact(STATUS).map(|words| words[1]);
            match rows.zip(types).find(|(row, _)| *row != u64::MAX) {
                None => Ok(()),
                Some((row, (from, to))) => {
                    let problem = "the value does not fit".to_owned();
                    Err(Error::Cast { row: row as usize, from, to, problem })
                }
            }
        })?;
    }
    pass.finish()?;
    Ok(casted)
}

fn convert_one(
    pass: &mut Pass,
    recipe: &Recipe,
    &Column { values, to, .. }: &Column<'_>,
    safe: bool,
    status: Out<u64>,
) -> Result<Array> {
    let len = values.len();
    let from_bits = match recipe.operation {
        Operation::FromBits => 1,
        _ => 8 * recipe.from.width(),
    };
    let bytes = match recipe.operation {
        Operation::ToBits => len.div_ceil(32) * 4,
        _ => pass.times(len, recipe.to.width())?,
    };
    let offset = values.offset().checked_mul(from_bits);
    let offset = offset.ok_or_else(|| Error::invalid("cast", "the offset is beyond any address"))?;
    let (rows, rows_offset) = bits(&Bitmap { buffer: values.buffers()[0].clone(), offset });
    let (valid, valid_offset) = validity(values);
    let out = pass.output(bytes)?;
    let out_valid = (recipe.fallible && safe).then(|| pass.output(len.div_ceil(32) * 4)).transpose()?;

    let size = tile(recipe, pass.width());
    let size = size.ok_or_else(|| pass.unsupported(format_args!("{recipe:?}")))?;
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
        status,
        words: recipe.words,
    };
    let waves = (len as u64).div_ceil(size * tiles);
    match recipe.operation {
        Operation::FromBits | Operation::ToBits | Operation::Direct => {
            launch(pass, CAST_NUMBERS, recipe, waves, &CastNumbers::of(&task))
        }
        Operation::Up | Operation::Down => launch(pass, CAST_SCALE, recipe, waves, &CastScale::of(&task)),
        Operation::Round | Operation::Quotient | Operation::Product => {
            launch(pass, CAST_FLOAT, recipe, waves, &CastFloat::of(&task))
        }
        _ => launch(pass, CAST_TIME, recipe, waves, &CastTime::of(&task)),
    }?;

    let parts = pass.parts(to.clone(), len);
    let mut parts = match &out_valid {
        Some(valid) => {
            Parts { validity: Some(Bitmap { buffer: valid.buffer(), offset: 0 }), null_count: None, ..parts }
        }
        None => nulls_of(pass, values, parts)?,
    };
    parts.buffers = vec![out.buffer()];
    Array::try_new(parts)
}

/// As many zeros as there are values, null where they are.
fn zeros(pass: &mut Pass, &Column { values, to, .. }: &Column<'_>) -> Result<Array> {
    let slot = layout(to).slots().next().ok_or_else(|| pass.unsupported(to))?;
    let zeros = pass.zeroed_rows(slot, values.len())?;
    let parts = pass.parts(to.clone(), values.len());
    let mut parts = nulls_of(pass, values, parts)?;
    parts.buffers = vec![zeros.buffer()];
    Array::try_new(parts)
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
