//! Functions of each row's value on a GPU. Each array takes one launch, which writes the values, the new
//! validity and the first row that does not fit; many arrays share one pass. The one idea: only the kernel's
//! entry knows the function.

use arrow_schema::DataType;
use bowstring_kernels::map::function::Number;
use bowstring_kernels::map::functions::{FunctionCall, Launcher};
use bowstring_kernels::map::task::MapTask;
use bowstring_kernels::memory::Out;
use bowstring_kernels::target::{Args, Entry};

use super::bitmap::nulls_of;
use crate::array::{Bitmap, DeviceArray, Parts, layout};
use crate::pass::{Counter, Granted, Pass, Region, Request, Requests, bits, validity};
use crate::{Error, Result, Stream};

/// An array, its target type, and the function that maps each value.
pub(crate) struct Column<'a> {
    pub values: &'a DeviceArray,
    pub to: &'a DataType,
    /// `None` if every value becomes zero.
    pub call: Option<FunctionCall>,
}

/// A column, and the memory requested for it.
struct Planned<'a> {
    column: &'a Column<'a>,
    /// The new values, and their validity if the function makes nulls.
    out: Option<Request>,
    out_valid: Option<Request>,
    /// The null count and, directly after it, the first bad row. `None` if neither is reported.
    status: Option<(Counter, Counter)>,
}

impl<'a> Planned<'a> {
    fn new(pass: &Pass, requests: &mut Requests, column: &'a Column<'a>, safe: bool) -> Result<Planned<'a>> {
        let mut planned = Planned { column, out: None, out_valid: None, status: None };
        let len = column.values.len();
        let Some(call) = &column.call else { return Ok(planned) };
        let bits = len.div_ceil(32) * 4;
        planned.out = Some(requests.output(match call.to {
            Number::Bit => bits,
            number => pass.times(len, number.width())?,
        }));
        match (call.fallible, safe) {
            (false, _) => {}
            (true, true) => planned.out_valid = Some(requests.output(bits)),
            (true, false) => {
                let nulls = match column.values.possible_nulls() {
                    Some(_) => requests.sum(),
                    None => requests.seldom_sums(1),
                };
                planned.status = Some((nulls, requests.first_row()));
            }
        }
        Ok(planned)
    }
}

/// Applies a function to every row of arrays on the stream's device, in one pass. A value that does not fit
/// becomes null if `safe`; otherwise it is an error of the first wait for any of the results.
pub(crate) fn map(
    operation: &'static str,
    columns: &[Column<'_>],
    safe: bool,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    if columns.is_empty() {
        return Ok(vec![]);
    }
    let mut pass = Pass::begin(operation, stream)?;
    columns.iter().try_for_each(|column| pass.input(column.values))?;
    let rows = columns.iter().map(|column| column.values.len()).max();
    let mut requests = Requests::over(rows.unwrap_or(0));
    let planned = columns.iter().map(|column| Planned::new(&pass, &mut requests, column, safe));
    let planned = planned.collect::<Result<Vec<_>>>()?;
    let granted = requests.grant(&mut pass, 0)?;
    let mapped = planned.iter().map(|planned| map_one(&mut pass, &granted, planned));
    let mapped = mapped.collect::<Result<Vec<_>>>()?;
    if granted.has_counters() {
        let strict = planned.iter().filter_map(|Planned { column, status, .. }| {
            Some((status.as_ref()?.1, column.values.data_type().clone(), column.to.clone()))
        });
        let strict: Vec<(Counter, DataType, DataType)> = strict.collect();
        pass.report(granted.counters(), move |words| {
            let bad = strict.into_iter().find(|(first, ..)| first.of(words) != u64::MAX);
            let Some((first, from, to)) = bad else { return Ok(()) };
            let problem = "the value does not fit".to_owned();
            Err(Error::Cast { row: first.of(words) as usize, from, to, problem })
        })?;
    }
    pass.finish()?;
    Ok(mapped)
}

fn map_one(pass: &mut Pass, granted: &Granted, planned: &Planned<'_>) -> Result<DeviceArray> {
    let Column { values, to, call } = planned.column;
    let (Some(call), Some(out)) = (call, planned.out) else { return zeros(pass, planned.column) };
    let len = values.len();
    let status = match &planned.status {
        Some((nulls, _)) => granted.counter(*nulls),
        None if !call.fallible => Out::absent(),
        // The null count is not requested; callers count the bitmap on demand.
        None => pass.discard_counters()?.out(),
    };
    let offset = values.offset().checked_mul(call.from.bits());
    let offset =
        offset.ok_or_else(|| Error::invalid(pass.operation(), "the offset is beyond any address"))?;
    let (rows, rows_offset) = bits(&Bitmap { buffer: values.buffers()[0].clone(), offset });
    let (valid, valid_offset) = validity(values);
    let (out, out_valid) = (&granted[out], planned.out_valid.map(|valid| &granted[valid]));
    let unsupported = || format!("{:?} from {:?} to {:?}", call.function, call.from, call.to);
    let task = MapTask {
        values: rows,
        offset: rows_offset,
        valid,
        valid_offset,
        len: len as u64,
        tiles: call.tiles(len as u64, pass.width()).ok_or_else(|| pass.unsupported(unsupported()))?,
        out: out.out(),
        out_valid: out_valid.map_or(Out::absent(), Region::out),
        status,
        words: call.words,
    };
    match call.launch(&task, Launch(pass)) {
        Some(launched) => launched?,
        None => return Err(pass.unsupported(unsupported())),
    }

    let parts = pass.parts(DataType::clone(to), len);
    let mut parts = match out_valid {
        Some(valid) => {
            Parts { validity: Some(Bitmap { buffer: valid.buffer(), offset: 0 }), null_count: None, ..parts }
        }
        None if call.fills_nulls => Parts { null_count: Some(0), ..parts },
        None => nulls_of(pass, values, parts)?,
    };
    parts.buffers = vec![out.buffer()];
    DeviceArray::try_new(parts)
}

/// Makes as many zeros as the column has values, with the column's nulls.
fn zeros(pass: &mut Pass, &Column { values, to, .. }: &Column<'_>) -> Result<DeviceArray> {
    let slot = layout(to).slots().next().ok_or_else(|| pass.unsupported(to))?;
    let zeros = pass.zeroed_rows(slot, values.len())?;
    let parts = pass.parts(to.clone(), values.len());
    let mut parts = nulls_of(pass, values, parts)?;
    parts.buffers = vec![zeros.buffer()];
    DeviceArray::try_new(parts)
}

/// Launches a function's kernel in a pass.
struct Launch<'a>(&'a mut Pass);

impl Launcher for Launch<'_> {
    type Output = Result<()>;
    fn launch<A: Args>(self, entry: &'static Entry<A>, args: &A) -> Result<()> {
        self.0.launch(entry, args)
    }
}
