//! Runs every operation on a few types on a device, and compares each row of the result with arrow-rs, or
//! with the CPU.
//!
//! On the device, arrays are slices of longer ones, so bits lie at odd places. The host's arrays hold the
//! same rows in fresh buffers.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Array as _, ArrayRef, BooleanArray, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::samples::{Sample, samples};
use bowstring::compute::*;
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::expr::{Expr, Literal, col, count, max, min, sum};
use bowstring::{DeviceArray, DeviceBatch, Error, Result, Stream};

/// Rows that are cut off at the start of each array.
const BEFORE: usize = 3;
/// The numbers of rows: one below a wave's word, one of several tiles.
const ROWS: [usize; 2] = [61, 3000];
/// How many differences the report describes.
const TOLD: usize = 8;

/// The outcome so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Equivalence {
    pub compared: usize,
    pub of: usize,
    /// How many results differed or failed.
    pub wrong: usize,
    /// Descriptions of the first of these.
    pub told: Vec<String>,
    pub operations: Vec<&'static str>,
}

/// A sample's arrays in the memory of the device that an operation runs on.
struct There {
    values: DeviceArray,
    mask: DeviceArray,
    indices: DeviceArray,
}

type Ours = Box<dyn Fn(&There, &Stream) -> Result<ArrayRef>>;
type Theirs = Box<dyn Fn(&Sample) -> Result<ArrayRef, ArrowError>>;

/// An operation: how to run it on a device, and how to get arrow-rs's result. Without the latter, our CPU
/// gives the expected result.
struct Operation {
    name: &'static str,
    what: String,
    run: Ours,
    arrow: Option<Theirs>,
}

fn operation(name: &'static str, run: impl Fn(&There, &Stream) -> Result<ArrayRef> + 'static) -> Operation {
    Operation { name, what: name.into(), run: Box::new(run), arrow: None }
}

impl Operation {
    fn arrow(mut self, arrow: impl Fn(&Sample) -> Result<ArrayRef, ArrowError> + 'static) -> Operation {
        self.arrow = Some(Box::new(arrow));
        self
    }

    fn of(mut self, what: impl ToString) -> Operation {
        self.what = format!("{} {}", self.name, what.to_string());
        self
    }
}

fn down(stream: &Stream, array: &DeviceArray) -> Result<ArrayRef> {
    to_arrow(&stream.download(array)?)
}

fn counted(count: usize) -> ArrayRef {
    Arc::new(UInt64Array::from(vec![count as u64]))
}

fn is_null_at(values: &ArrayRef, wanted: bool) -> ArrayRef {
    let nulls = values.logical_nulls();
    let null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    Arc::new(BooleanArray::from_iter((0..values.len()).map(|row| Some(null(row) == wanted))))
}

/// The types that each type is cast to: enough for every path through the kernels.
fn casts(from: &DataType) -> Vec<DataType> {
    use DataType::*;
    match from {
        Int64 => vec![Int8, Int32, Float64, Decimal128(18, 2), Boolean],
        Int32 => vec![Int64, Int16, Float32],
        Float64 => vec![Int32, Float32],
        Decimal128(..) => vec![Int64, Decimal128(38, 4), Float64],
        Utf8 => vec![LargeUtf8, Utf8View],
        Timestamp(..) => vec![Date32, Int64],
        Boolean => vec![Int32],
        _ => vec![],
    }
}

/// Whether the same program also has a decimal.
const BESIDE: [(&str, bool); 2] = [("alone", false), ("beside decimals", true)];

fn decimal() -> Expr {
    Literal::decimal(15, 15, 2).into()
}

/// The operations on values of a type.
fn operations(of: &DataType) -> Vec<Operation> {
    let options = CastOptions::default;
    let mut all = vec![
        operation("filter", |on, stream| down(stream, &filter(&on.values, &on.mask, stream).wait()?))
            .arrow(|sample| arrow_select::filter::filter(&sample.values, &sample.mask)),
        operation("take", |on, stream| {
            down(stream, &take(&on.values, &on.indices, &TakeOptions::default(), stream).wait()?)
        })
        .arrow(|sample| arrow_select::take::take(&sample.values, &sample.indices, None)),
        operation("concat", |on, stream| {
            let parts = [on.values.slice(5, on.values.len() - 5)?, on.values.clone()];
            down(stream, &concat(&parts.each_ref(), stream).wait()?)
        })
        .arrow(|sample| {
            let first = sample.values.slice(5, sample.values.len() - 5);
            arrow_select::concat::concat(&[&first, &sample.values])
        }),
        operation("null_count", |on, stream| Ok(counted(null_count(&on.values, stream).wait()?)))
            .arrow(|sample| Ok(counted(sample.values.null_count()))),
    ];
    for to in casts(of) {
        let (wanted, what) = (to.clone(), to.to_string());
        let run = move |on: &There, stream: &Stream| {
            down(stream, &cast(&on.values, &to, &options(), stream).wait()?)
        };
        all.push(
            operation("cast", run).of(what).arrow(move |sample| arrow_cast::cast(&sample.values, &wanted)),
        );
    }
    if !matches!(of, DataType::Dictionary(..)) {
        all.extend([
            operation("logical_null_count", |on, stream| {
                Ok(counted(logical_null_count(&on.values, stream).wait()?))
            })
            .arrow(|sample| Ok(counted(sample.values.logical_null_count()))),
            operation("is_null", |on, stream| down(stream, &is_null(&on.values, stream).wait()?))
                .arrow(|sample| Ok(is_null_at(&sample.values, true))),
            operation("is_not_null", |on, stream| down(stream, &is_not_null(&on.values, stream).wait()?))
                .arrow(|sample| Ok(is_null_at(&sample.values, false))),
            operation("drop_nulls", |on, stream| {
                down(stream, &drop_nulls(&on.values, &DropOptions::default(), stream).wait()?)
            }),
            operation("fill_null", |on, stream| {
                let first = down(
                    stream,
                    &drop_nulls(&on.values, &DropOptions::default(), stream).wait()?.slice(0, 1)?,
                )?;
                let scalar = Scalar::try_new(&from_arrow(&first)?)?;
                down(stream, &fill_null(&on.values, &scalar, stream).wait()?)
            }),
        ]);
    }
    // No device sorts or groups nested values.
    if !of.is_nested() {
        all.extend([
            operation("sort_to_indices", |on, stream| {
                down(stream, &sort_to_indices(&on.values, SortOptions::default(), None, stream).wait()?)
            }),
            operation("distinct", |on, stream| down(stream, &distinct(&on.values, stream).wait()?)),
        ]);
    }
    if of.is_integer() || of.is_floating() || matches!(of, DataType::Decimal128(..) | DataType::Timestamp(..))
    {
        let predicate = || col("a").gt(col("b")) | col("a").is_null();
        all.push(operation("filter_where", move |on, stream| {
            down(stream, &filter_where(&batch(on)?, &predicate(), stream).wait()?.columns()[0])
        }));
        // By themselves, and with a decimal: then programs have values of another width.
        for (what, beside) in BESIDE {
            let evaluated = operation("evaluate", move |on, stream| {
                let chosen =
                    bowstring::expr::if_else(col("a").lt_eq(col("b")), col("a"), col("b")).coalesce(col("b"));
                let all: Vec<Expr> = [chosen].into_iter().chain(beside.then(decimal)).collect();
                down(stream, &evaluate(&batch(on)?, &all, stream).wait()?.columns()[0])
            });
            all.push(evaluated.of(what));
        }
    }
    if of.is_integer() || of.is_floating() {
        for (what, beside) in BESIDE {
            let aggregated = operation("aggregate", move |on, stream| {
                let mut asked = vec![sum(col("a")), min(col("a")), max(col("a")), count(col("a"))];
                asked.extend(beside.then(|| sum(decimal())));
                let (predicate, batch): (Expr, _) = (col("mask"), batch(on)?);
                let row = aggregate(&batch, &asked, Some(&predicate), stream).wait()?;
                let columns =
                    row.columns().iter().map(|column| down(stream, column)).collect::<Result<Vec<_>>>()?;
                let text: Vec<String> = columns.iter().map(|column| format!("{column:?}")).collect();
                Ok(Arc::new(arrow_array::StringArray::from(text)))
            });
            all.push(aggregated.of(what));
        }
    }
    if matches!(of, DataType::Utf8 | DataType::Utf8View) {
        all.push(operation("evaluate", |on, stream| {
            let found = col("a").like("%1_%2%") | col("a").starts_with("-");
            down(stream, &evaluate(&batch(on)?, &[found], stream).wait()?.columns()[0])
        }));
    }
    all
}

/// A batch of the values, the values shifted by one row, and the mask.
fn batch(on: &There) -> Result<DeviceBatch> {
    let of = on.values.data_type();
    let fields = [("a", of), ("b", of), ("mask", on.mask.data_type())];
    let fields: Vec<Field> = fields.iter().map(|(name, of)| Field::new(*name, (*of).clone(), true)).collect();
    let rows = on.values.len() - 1;
    let columns = [on.values.slice(0, rows)?, on.values.slice(1, rows)?, on.mask.slice(0, rows)?];
    DeviceBatch::try_new(Arc::new(Schema::new(fields)), columns.into(), rows)
}

/// Uploads a sample and slices off its first `BEFORE` rows.
fn there(sample: &Sample, stream: &Stream) -> Result<There> {
    let part = |array: &dyn arrow_array::Array| {
        let rows = array.len() - BEFORE;
        stream.upload(&from_arrow(array)?)?.slice(BEFORE, rows)
    };
    Ok(There { values: part(&sample.values)?, mask: part(&sample.mask)?, indices: part(&sample.indices)? })
}

/// The same rows copied to fresh buffers on the host. Indices count from the first of them.
fn anew(sample: &Sample) -> Result<Sample, ArrowError> {
    let rows = sample.values.len() - BEFORE;
    let fresh = |array: &dyn arrow_array::Array| {
        let part = array.slice(BEFORE, rows);
        let empty = part.slice(0, 0);
        arrow_select::concat::concat(&[&*empty, &*part])
    };
    let (mask, indices) = (fresh(&sample.mask)?, fresh(&sample.indices)?);
    Ok(Sample {
        values: fresh(&sample.values)?,
        mask: BooleanArray::from(mask.to_data()),
        indices: arrow_array::Int32Array::from(indices.to_data()),
    })
}

fn on_host(sample: &Sample) -> Result<There> {
    Ok(There {
        values: from_arrow(&sample.values)?,
        mask: from_arrow(&sample.mask)?,
        indices: from_arrow(&sample.indices)?,
    })
}

fn arrow_failed(error: ArrowError) -> Error {
    Error::Arrow { operation: "doctor", problem: error.to_string() }
}

/// Compares all cases on a stream's device until the time is over. `note` receives the name of the next case
/// and the outcome so far.
pub(super) fn compare(stream: &Stream, until: Instant, note: &dyn Fn(&str, &Equivalence)) -> Result<()> {
    let mut cases = vec![];
    for rows in ROWS {
        for sample in samples(rows + BEFORE).map_err(arrow_failed)? {
            let rows = rows as i32;
            // Indices must be below the number of rows that remain.
            let indices = sample.indices.unary(|i| i % rows);
            let sample = Arc::new(Sample { indices, ..sample });
            let all = operations(sample.values.data_type());
            cases.extend(all.into_iter().map(|operation| (sample.clone(), operation)));
        }
    }
    let mut found = Equivalence { of: cases.len(), ..Equivalence::default() };
    for (sample, operation) in &cases {
        note(&format!("{} of {}", operation.what, sample.values.data_type()), &found);
        if Instant::now() >= until {
            return Ok(());
        }
        let answer = there(sample, stream).and_then(|there| (operation.run)(&there, stream));
        let host = anew(sample).map_err(arrow_failed)?;
        let expected = match &operation.arrow {
            Some(arrow) => arrow(&host).map_err(arrow_failed)?,
            None => (operation.run)(&on_host(&host)?, &Stream::cpu())?,
        };
        found.compared += 1;
        if !found.operations.contains(&operation.name) {
            found.operations.push(operation.name);
        }
        let wrong = match answer {
            Ok(answer) if *answer == *expected => continue,
            Ok(answer) => difference(&answer, &expected),
            Err(error) => error.to_string(),
        };
        found.wrong += 1;
        if found.told.len() < TOLD {
            let of = sample.values.data_type();
            found.told.push(format!("{} of {} rows of {of}: {wrong}", operation.what, host.values.len()));
        }
    }
    note("", &found);
    Ok(())
}

fn difference(ours: &ArrayRef, theirs: &ArrayRef) -> String {
    if (ours.data_type(), ours.len()) != (theirs.data_type(), theirs.len()) {
        return format!(
            "{} rows of {}, not {} of {}",
            ours.len(),
            ours.data_type(),
            theirs.len(),
            theirs.data_type()
        );
    }
    let differs = |row: &usize| *ours.slice(*row, 1) != *theirs.slice(*row, 1);
    let rows: Vec<usize> = (0..ours.len()).filter(differs).collect();
    format!("{} of {} rows differ, the first is {:?}", rows.len(), ours.len(), rows.first())
}
