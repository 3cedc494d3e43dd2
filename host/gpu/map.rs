//! Functions of each row's value on a GPU: of each array one launch for the values, the new validity and the first row that
//! does not fit; of many arrays one pass. The one idea: which function it is only the kernel's entry knows.

use arrow_schema::DataType;
use bowstring_kernels::function::Number;
use bowstring_kernels::functions::{FunctionCall, Launcher};
use bowstring_kernels::map::MapTask;
use bowstring_kernels::memory::Out;
use bowstring_kernels::target::{Args, Entry};

use super::nulls_of;
use crate::array::{Array, Bitmap, Parts, layout};
use crate::pass::{Pass, Region, bits, validity};
use crate::{Error, Result, Stream};

/// An array, the type it gets, and the function of each value.
pub(crate) struct Column<'a> {
    pub values: &'a Array,
    pub to: &'a DataType,
    /// None where every value becomes zero.
    pub call: Option<FunctionCall>,
}

impl Column<'_> {
    fn is_fallible(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.fallible)
    }

    /// What is written of it: values, and a bitmap.
    fn bytes(&self, safe: bool) -> [usize; 2] {
        let (len, bits) = (self.values.len(), self.values.len().div_ceil(32) * 4);
        let values = self.call.as_ref().map_or(0, |call| match call.to {
            Number::Bit => bits,
            number => len.saturating_mul(number.width()),
        });
        [values, if safe && self.is_fallible() { bits } else { 0 }]
    }
}

/// Words of a column that may fail: the number of its nulls, and its first bad row.
const STATUS: usize = 2;

/// Applies a function to every row of arrays on the stream's device, in one pass. What does not fit becomes null where that is
/// `safe`, else it is an error of the first wait for any of the results.
pub(crate) fn map(
    operation: &'static str,
    columns: &[Column<'_>],
    safe: bool,
    stream: &Stream,
) -> Result<Vec<Array>> {
    if columns.is_empty() {
        return Ok(vec![]);
    }
    let mut pass = Pass::begin(operation, stream)?;
    columns.iter().try_for_each(|column| pass.input(column.values))?;
    let strict: Vec<&Column> = columns.iter().filter(|column| !safe && column.is_fallible()).collect();
    let words = [0, u64::MAX].repeat(strict.len());
    pass.expect(&[size_of_val(&words[..])], (0, 0));
    let status = if strict.is_empty() { None } else { Some(pass.upload(&words)?) };
    pass.expect_outputs(columns.iter().flat_map(|column| column.bytes(safe)));
    let (mut mapped, mut used) = (vec![], 0);
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
        mapped.push(match &column.call {
            Some(call) => map_one(&mut pass, call, column, safe, status)?,
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
    Ok(mapped)
}

fn map_one(
    pass: &mut Pass,
    call: &FunctionCall,
    &Column { values, to, .. }: &Column<'_>,
    safe: bool,
    status: Out<u64>,
) -> Result<Array> {
    let len = values.len();
    let bytes = match call.to {
        Number::Bit => len.div_ceil(32) * 4,
        number => pass.times(len, number.width())?,
    };
    let offset = values.offset().checked_mul(call.from.bits());
    let offset =
        offset.ok_or_else(|| Error::invalid(pass.operation(), "the offset is beyond any address"))?;
    let (rows, rows_offset) = bits(&Bitmap { buffer: values.buffers()[0].clone(), offset });
    let (valid, valid_offset) = validity(values);
    let out = pass.output(bytes)?;
    let out_valid = (call.fallible && safe).then(|| pass.output(len.div_ceil(32) * 4)).transpose()?;

    let unsupported = || format!("{:?} from {:?} to {:?}", call.function, call.from, call.to);
    let task = MapTask {
        values: rows,
        offset: rows_offset,
        valid,
        valid_offset,
        len: len as u64,
        tiles: call.tiles(len as u64, pass.width()).ok_or_else(|| pass.unsupported(unsupported()))?,
        out: out.out(),
        out_valid: out_valid.as_ref().map_or(Out::absent(), Region::out),
        status,
        words: call.words,
    };
    match call.launch(&task, Launch(pass)) {
        Some(launched) => launched?,
        None => return Err(pass.unsupported(unsupported())),
    }

    let parts = pass.parts(to.clone(), len);
    let mut parts = match &out_valid {
        Some(valid) => {
            Parts { validity: Some(Bitmap { buffer: valid.buffer(), offset: 0 }), null_count: None, ..parts }
        }
        None if call.fills_nulls => Parts { null_count: Some(0), ..parts },
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

/// A pass that launches what it is given.
struct Launch<'a>(&'a mut Pass);

impl Launcher for Launch<'_> {
    type Output = Result<()>;
    fn launch<A: Args>(self, entry: &'static Entry<A>, args: &A) -> Result<()> {
        self.0.launch(entry, args)
    }
}
