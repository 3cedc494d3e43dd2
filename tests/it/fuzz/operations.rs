//! All operations that a program can apply to an array. Each is decided before it runs, so that two devices
//! can run the same one.

use std::slice::from_ref;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BooleanArray, Int8Array, Int32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::Place;
use bowstring::compute::{
    CastOptions, DropOptions, OutOfBounds, Selection, TakeOptions, aggregate, cast, drop_nulls, evaluate,
    filter, filter_where, is_not_null, is_null, logical_null_count, null_count, take,
};
use bowstring::exchange::{
    export_array, export_dlpack, export_host_array, from_arrow, import_dlpack, to_arrow, validate_on,
};
use bowstring::expr::{Aggregation, Expr};
use bowstring::ffi::dlpack::DLManagedTensorVersioned;
use bowstring::{DeviceArray, DeviceBatch, Result, Stream};

use super::expressions;
use super::input::Input;
use super::types::{akin, data_type};
use crate::exchange::foreign::{import_host, import_on};
use crate::support::Random;

/// The most rows of a mask or of indices that a program makes itself.
pub const ROWS: usize = 2000;

/// An operation and its arguments.
#[derive(Debug)]
pub enum Operation {
    Slice(usize, usize),
    Filter(ArrayRef),
    Select(ArrayRef),
    Take(ArrayRef, OutOfBounds),
    Cast(DataType, bool),
    NullCount,
    LogicalNullCount,
    IsNull,
    IsNotNull,
    DropNulls,
    Child(usize),
    Export,
    Download,
    Upload,
    Copy,
    Transfer(usize),
    Tensor,
    Validate,
    ToArrow,
    Evaluate(Expr),
    FilterWhere(Expr),
    Aggregate(Vec<Aggregation>, Option<Expr>),
}

/// The result of an operation.
pub enum Given {
    Array(DeviceArray),
    Count(usize),
    Nothing,
}

impl Operation {
    /// Reads from an input which operation to run on an array.
    pub fn of(input: &mut Input<'_>, array: &DeviceArray) -> Operation {
        use Operation::*;
        let len = array.len();
        let of = array.data_type();
        let what = input.byte();
        match if what < 216 { what % 24 } else { what } {
            216..230 => Evaluate(expressions::value(input, of)),
            230..243 => FilterWhere(expressions::condition(input, of)),
            243.. => {
                let all = expressions::aggregates(input, of);
                Aggregate(all, input.one_in(2).then(|| expressions::condition(input, of)))
            }
            0 | 1 => {
                let start = input.below(len.min(usize::from(u16::MAX)) + 1);
                let most = len - start;
                let rows =
                    if input.one_in(4) { input.number() as usize } else { most - input.below(most.min(9)) };
                Slice(start, if input.one_in(16) { rows } else { rows.min(most) })
            }
            2 | 3 => Filter(mask(input, len)),
            4 => Select(mask(input, len)),
            5..=7 => {
                let of = [OutOfBounds::Error, OutOfBounds::Null];
                Take(indices(input, len), *input.pick(&of))
            }
            8..=11 => {
                let safe = !input.one_in(3);
                Cast(if input.one_in(2) { akin(input, array.data_type()) } else { data_type(input) }, safe)
            }
            12 => NullCount,
            13 => LogicalNullCount,
            14 => IsNull,
            15 => IsNotNull,
            16 => DropNulls,
            17 => Child(input.below(array.children().len().max(1))),
            18 => Export,
            19 => Download,
            20 => Upload,
            21 => Copy,
            22 => Transfer(input.below(3)),
            _ => [Tensor, Validate, ToArrow].into_iter().nth(input.below(3)).expect("one of three"),
        }
    }

    /// A name that runs of the same kind of operation share.
    pub fn name(&self) -> String {
        let all = match self {
            Operation::Cast(to, safe) => format!("Cast {} {safe}", super::types::kind(to)),
            other => format!("{other:?}"),
        };
        all.split(['(', '\n']).next().unwrap_or_default().to_owned()
    }

    /// Runs it with an array on the stream's device; `streams` are those of all devices.
    pub fn run(&self, array: &DeviceArray, stream: &Stream, streams: &[Stream]) -> Result<Given> {
        let on = |array: &ArrayRef| match stream.device().place() {
            Place::CPU => from_arrow(array),
            _ => stream.upload(&from_arrow(array)?),
        };
        let field = || Field::new("f", array.data_type().clone(), true);
        let batch =
            || DeviceBatch::try_new(Arc::new(Schema::new(vec![field()])), vec![array.clone()], array.len());
        let first = |batch: DeviceBatch| batch.columns()[0].clone();
        let done = match self {
            Operation::Slice(start, len) => array.slice(*start, *len)?,
            Operation::Filter(mask) => filter(array, &on(mask)?, stream).wait()?,
            Operation::Select(mask) => Selection::of_mask(&on(mask)?, stream).wait()?.filter(array).wait()?,
            Operation::Take(indices, out_of_bounds) => {
                let options = TakeOptions { out_of_bounds: *out_of_bounds };
                take(array, &on(indices)?, &options, stream).wait()?
            }
            Operation::Cast(to, safe) => {
                let options = CastOptions { safe: *safe, ..CastOptions::default() };
                cast(array, to, &options, stream).wait()?
            }
            Operation::NullCount => return null_count(array, stream).wait().map(Given::Count),
            Operation::LogicalNullCount => return logical_null_count(array, stream).wait().map(Given::Count),
            Operation::IsNull => is_null(array, stream).wait()?,
            Operation::IsNotNull => is_not_null(array, stream).wait()?,
            Operation::DropNulls => drop_nulls(array, &DropOptions::default(), stream).wait()?,
            Operation::Child(i) if *i < array.children().len() => array.child_rows(*i)?,
            Operation::Child(_) => return Ok(Given::Nothing),
            Operation::Export if stream.device().place() == Place::CPU => {
                let (array, schema) = export_host_array(array, &field())?;
                import_host(array, &schema)?.1
            }
            Operation::Export => {
                let (mut array, schema) = export_array(array, &field())?;
                import_on(stream.device(), &mut array, &schema)?.1
            }
            Operation::Download => stream.download(array)?,
            Operation::Upload => {
                let there = array.place() == Place::CPU;
                if there { stream.upload(array)? } else { stream.upload(&stream.download(array)?)? }
            }
            Operation::Copy => stream.copy(array)?,
            Operation::Transfer(to) => streams[*to].transfer(array, stream)?,
            Operation::Tensor => {
                let tensor = export_dlpack::<DLManagedTensorVersioned>(array, Some(stream))?;
                import_dlpack(tensor, stream)?
            }
            Operation::Validate => return validate_on(array, stream).map(|()| Given::Nothing),
            Operation::ToArrow => from_arrow(&to_arrow(array)?)?,
            Operation::Evaluate(expr) => first(evaluate(&batch()?, from_ref(expr), stream).wait()?),
            Operation::FilterWhere(expr) => first(filter_where(&batch()?, expr, stream).wait()?),
            Operation::Aggregate(all, condition) => {
                let row = aggregate(&batch()?, all, condition.as_ref(), stream).wait()?;
                row.columns().last().expect("one at least").clone()
            }
        };
        Ok(Given::Array(done))
    }

    /// Whether it only moves rows, so that another device returns the same rows whatever they hold.
    pub fn only_moves(&self) -> bool {
        use Operation::*;
        matches!(self, Export | Download | Upload | Copy | Transfer(_) | Tensor | ToArrow)
    }
}

/// A mask that usually has so many rows.
fn mask(input: &mut Input<'_>, rows: usize) -> ArrayRef {
    let (kind, rng) = (input.byte(), &mut input.chance());
    let rows = if input.one_in(16) { input.below(100) } else { rows.min(ROWS) };
    let percent = [50.0, 100.0, 0.0, 3.0, 97.0][usize::from(kind) % 5];
    let nulls = if kind % 7 == 6 { 20.0 } else { 0.0 };
    let bit = |rng: &mut Random| (!rng.percent(nulls)).then(|| rng.percent(percent));
    let before = rng.below(9);
    let bits: BooleanArray = (0..before + rows).map(|_| bit(rng)).collect();
    Arc::new(bits.slice(before, rows))
}

/// Indices that are usually below so many rows.
fn indices(input: &mut Input<'_>, rows: usize) -> ArrayRef {
    let (kind, rng) = (input.byte(), &mut input.chance());
    let count = input.below(100);
    let nulls = if kind % 4 == 3 { 20.0 } else { 0.0 };
    let mut all: Vec<Option<i64>> =
        (0..count).map(|_| (!rng.percent(nulls)).then(|| rng.below(rows) as i64)).collect();
    if input.one_in(4) && count > 0 {
        let at = input.below(count);
        all[at] = Some(input.number());
    }
    match kind / 4 % 3 {
        0 => Arc::new(all.into_iter().map(|i| i.map(|i| i as i32)).collect::<Int32Array>()),
        1 => Arc::new(all.into_iter().map(|i| i.map(|i| i as u64)).collect::<UInt64Array>()),
        _ => Arc::new(all.into_iter().map(|i| i.map(|i| i as i8)).collect::<Int8Array>()),
    }
}

/// Whether an array is small enough to write down all its rows.
pub fn is_small(array: &DeviceArray) -> bool {
    array.len() <= ROWS && array.children().iter().chain(array.dictionary()).all(is_small)
}

/// Copies an array from any place to an arrow-rs array.
pub fn down(array: &DeviceArray, stream: &Stream) -> Result<ArrayRef> {
    let there = match array.place() {
        Place::CPU => array.clone(),
        _ => stream.download(array)?,
    };
    there.wait()?;
    let rows = to_arrow(&there)?;
    assert_eq!(rows.len(), array.len());
    Ok(rows)
}
