//! Aggregates: the types of their results, and the merging of the partial aggregates of tiles and launches
//! into one row. Every device leaves the same partial aggregates.

use std::sync::Arc;

use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema};
use bowstring_kernels::map::function::Number;
use bowstring_kernels::program::code::PART_WORDS;
use bowstring_kernels::program::word::{key, plain_nan_f32, plain_nan_f64};

use crate::array::{Bitmap, Parts};
use crate::expr::plan::{Bound, Id, Op, Plan, number_of};
use crate::expr::{Finish, Fold, Folding, Options, Overflow, extended};
use crate::{Device, DeviceArray, DeviceBatch, Error, Result};

/// Whether folds find the least and the greatest of values of a type.
pub(crate) fn has_extremes(of: &DataType) -> bool {
    number_of(of).is_some_and(|number| number != Number::Bit)
}

/// Adds the steps that an aggregate of a node needs before its fold to the plan. Returns the node to
/// aggregate.
pub(crate) fn prepared(one: &Folding, plan: &mut Plan, id: Id) -> Result<Id> {
    let data_type = plan.nodes[id].data_type.clone();
    let Some(number) = number_of(&data_type) else {
        return Err(Error::invalid("expression", format!("{one}: not of {data_type}")));
    };
    let summed = one.fold == Fold::Sum;
    if number == Number::Bit || result_type(one, &data_type).is_none() {
        return Err(Error::invalid("expression", format!("{one}: no such aggregate of {data_type}")));
    }
    let to = match (one.finish, number) {
        (Finish::Mean, Number::F16 | Number::F32) => DataType::Float64,
        (Finish::Mean, _) if data_type.is_integer() => DataType::Float64,
        (_, Number::F16) if summed => DataType::Float32,
        _ => return Ok(id),
    };
    let written = one.of.clone();
    Ok(plan.add(Bound { op: Op::Cast(true), data_type: to, inputs: vec![id], written }))
}

/// The type of an aggregate's result; `None` if the aggregate does not support the input type.
pub(crate) fn result_type(one: &Folding, of: &DataType) -> Option<DataType> {
    Some(match (one.fold, one.finish) {
        (Fold::Count, _) => DataType::Int64,
        (_, Finish::Truth) => DataType::Boolean,
        (Fold::Min | Fold::Max, _) => of.clone(),
        (Fold::Sum, finish) => match (of, finish) {
            (DataType::Decimal32(_, scale), Finish::Mean) => DataType::Decimal128(38, mean_scale(*scale)),
            (DataType::Decimal64(_, scale), Finish::Mean) => DataType::Decimal128(38, mean_scale(*scale)),
            (DataType::Decimal128(_, scale), Finish::Mean) => DataType::Decimal128(38, mean_scale(*scale)),
            (DataType::Decimal32(_, scale), _) => DataType::Decimal128(38, *scale),
            (DataType::Decimal64(_, scale), _) => DataType::Decimal128(38, *scale),
            (DataType::Decimal128(_, scale), _) => DataType::Decimal128(38, *scale),
            (of, Finish::Mean) if of.is_numeric() => DataType::Float64,
            (of, _) if of.is_signed_integer() => DataType::Int64,
            (of, _) if of.is_unsigned_integer() => DataType::UInt64,
            (DataType::Float16 | DataType::Float32, _) => DataType::Float32,
            (DataType::Float64, _) => DataType::Float64,
            (DataType::Duration(unit), Finish::Value) => DataType::Duration(*unit),
            _ => return None,
        },
    })
}

fn mean_scale(scale: i8) -> i8 {
    scale.saturating_add(4).min(38)
}

/// The information that turns partial aggregates into a row.
#[derive(Clone, Debug)]
pub(crate) struct Folded {
    pub aggregations: Vec<Folding>,
    /// The types of the aggregated values.
    pub types: Vec<DataType>,
    pub options: Options,
}

impl Folded {
    /// The schema of the result row.
    pub fn schema(&self) -> Schema {
        let field = |(one, of): (&Folding, &DataType)| {
            let to = result_type(one, of).unwrap_or_else(|| of.clone());
            Field::new(&one.name, to, one.fold != Fold::Count)
        };
        Schema::new(self.aggregations.iter().zip(&self.types).map(field).collect::<Vec<_>>())
    }

    /// Computes the result row from the partial aggregates of each launch.
    pub fn row(&self, launches: &[Vec<u64>]) -> Result<DeviceBatch> {
        let most = bowstring_kernels::program::code::AGGREGATES;
        let mut columns = vec![];
        // A launch on a device has as many aggregates as fit; the host's single run has all.
        let each = if launches.len() == 1 { self.types.len().max(1) } else { most };
        for (i, (one, of)) in self.aggregations.iter().zip(&self.types).enumerate() {
            let words = &launches[i / each];
            let together = each.min(self.types.len() - i / each * each);
            let parts = words.chunks(together * PART_WORDS as usize);
            let parts = parts.map(|part| &part[i % each * PART_WORDS as usize..][..PART_WORDS as usize]);
            let to = result_type(one, of).ok_or_else(|| Error::invalid("aggregate", "no such aggregate"))?;
            let value = self.value(one, of, &to, parts)?;
            columns.push(of_one_row(&to, value)?);
        }
        DeviceBatch::try_new(Arc::new(self.schema()), columns, 1)
    }

    fn value<'a>(
        &self,
        one: &Folding,
        of: &DataType,
        to: &DataType,
        parts: impl Iterator<Item = &'a [u64]> + Clone,
    ) -> Result<Option<i128>> {
        let rows = parts.clone().try_fold(0u64, |rows, words| rows.checked_add(words[4]));
        let rows = rows.filter(|rows| i64::try_from(*rows).is_ok());
        let rows = rows.ok_or_else(|| {
            Error::invalid("aggregate", format!("{one}: more rows than an `i64` can count"))
        })?;
        let number = number_of(of).expect("aggregated values have a number");
        if one.fold == Fold::Count {
            return Ok(Some(rows.into()));
        }
        if rows == 0 {
            return Ok(None);
        }
        let some = parts.filter(|words| words[4] > 0);
        let value = match (one.fold, number) {
            (Fold::Sum, Number::F32) => {
                let sum = some.fold(0.0, |sum, words| plain_nan_f32(sum + f32::from_bits(words[0] as u32)));
                i128::from(sum.to_bits())
            }
            (Fold::Sum, Number::F64) => {
                let sum = some.fold(0.0, |sum, words| plain_nan_f64(sum + f64::from_bits(words[0])));
                let sum = if one.finish == Finish::Mean { sum / rows as f64 } else { sum };
                i128::from(sum.to_bits())
            }
            (Fold::Sum, _) => return self.sum(one, of, to, rows, some),
            (fold, _) => {
                let values =
                    some.map(|words| extended(u128::from(words[1]) << 64 | u128::from(words[0]), number));
                let order = |value: &i128| match number {
                    Number::F16 | Number::F32 | Number::F64 => key(*value),
                    _ => *value,
                };
                let best =
                    if fold == Fold::Min { values.min_by_key(order) } else { values.max_by_key(order) };
                best.expect("there are rows")
            }
        };
        Ok(Some(value))
    }

    /// Merges partial sums of integers. The result is exact.
    fn sum<'a>(
        &self,
        one: &Folding,
        of: &DataType,
        to: &DataType,
        rows: u64,
        parts: impl Iterator<Item = &'a [u64]>,
    ) -> Result<Option<i128>> {
        let limb = |value: i128, by: u32| i256::from_i128(value).wrapping_mul(i256::from_i128(1 << by));
        let total = parts.fold(i256::ZERO, |sum, words| {
            let low = limb(words[0].into(), 0).wrapping_add(limb((words[1] as i64).into(), 32));
            let high = limb(words[2].into(), 64).wrapping_add(limb((words[3] as i64).into(), 96));
            sum.wrapping_add(low).wrapping_add(high)
        });
        let total = match (one.finish, to) {
            (Finish::Mean, DataType::Decimal128(_, scale)) => {
                let from = match of {
                    DataType::Decimal32(_, from)
                    | DataType::Decimal64(_, from)
                    | DataType::Decimal128(_, from) => *from,
                    _ => *scale,
                };
                let up = i256::from_i128(10i128.pow((scale - from).unsigned_abs().into()));
                total.checked_mul(up).and_then(|total| total.checked_div(i256::from_i128(rows.into())))
            }
            _ => Some(total),
        };
        let fits = |value: i128| match to {
            DataType::Int64 | DataType::Duration(_) => i64::try_from(value).is_ok(),
            DataType::UInt64 => u64::try_from(value).is_ok(),
            _ => value.unsigned_abs() < 10u128.pow(38),
        };
        let exact = total.and_then(i256::to_i128).filter(|value| fits(*value));
        match (exact, self.options.overflow, to) {
            (Some(value), ..) => Ok(Some(value)),
            (None, Overflow::Null, _) => Ok(None),
            (None, Overflow::Wrap, DataType::Int64 | DataType::UInt64 | DataType::Duration(_)) => {
                Ok(Some(total.unwrap_or(i256::ZERO).as_i128()))
            }
            _ => Err(Error::invalid("aggregate", format!("{one} does not fit {to}"))),
        }
    }
}

/// Creates an array of one row in host memory.
fn of_one_row(data_type: &DataType, value: Option<i128>) -> Result<DeviceArray> {
    let pool = Device::cpu();
    let mut bytes = pool.host_pool().alloc_zeroed(16)?;
    bytes.bytes_mut()[..16].copy_from_slice(&value.unwrap_or(0).to_le_bytes());
    let width = number_of(data_type).map_or(16, Number::width);
    let mut parts = Parts::new(data_type.clone(), 1);
    parts.buffers = vec![bytes.freeze(width)];
    if value.is_none() {
        let none = pool.host_pool().alloc_zeroed(1)?.freeze(1);
        (parts.validity, parts.null_count) = (Some(Bitmap { buffer: none, offset: 0 }), Some(1));
    }
    DeviceArray::made(parts, true)
}
