//! The table of operations: the name of each, its arguments, its call, and its expected result.
//!
//! The one idea: every test of all operations reads this table: equivalence on every device, refusals of
//! devices (and with them the README's table), failures of the runtime, the soak, changed kernels, costs. A
//! row in the table adds an operation to all of these.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, BooleanArray, UInt32Array};
use arrow_cast::can_cast_types;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType};
use bowstring::compute::*;
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{DeviceArray, Error, Pending, Stream};

use super::ordered::order;
use super::{
    Mask, Nulls, Random, Value, array, filtered, has_nulls, indices, is_nothing, mask, numbers, rows, taken,
    types,
};

/// The argument of an operation besides the values.
#[derive(Clone, Debug)]
pub enum Argument {
    Nothing,
    Mask(ArrayRef),
    Indices(ArrayRef, OutOfBounds),
    /// A target type, and whether the cast is safe.
    Type(DataType, bool),
    /// A scalar, as an array of one row.
    Scalar(ArrayRef),
}

/// An argument on a device.
pub struct There<'a> {
    argument: &'a Argument,
    array: Option<DeviceArray>,
}

/// The result of an operation: ours is a [`DeviceArray`], arrow-rs' an [`ArrayRef`].
#[derive(Clone, Debug)]
pub enum Answer<A> {
    Array(A),
    Count(usize),
}

/// A row of the table.
pub struct Operation {
    pub name: &'static str,
    /// An argument for this many rows of a type; `None` if no argument is possible.
    pub argument: fn(&DataType, usize, &mut Random) -> Option<Argument>,
    pub call: fn(&DeviceArray, &There<'_>, &Stream) -> Pending<Answer<DeviceArray>>,
    /// The expected rows by definition; `None` if only arrow-rs can tell.
    pub definition: fn(&[Value], &Argument) -> Option<Vec<Value>>,
    pub arrow: fn(&ArrayRef, &Argument) -> Result<Answer<ArrayRef>, ArrowError>,
}

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "filter",
        argument: |_, len, rng| {
            Some(Argument::Mask(Arc::new(mask(Mask { percent: 50.0, run: 2, nulls: Nulls::Some }, len, rng))))
        },
        call: |values, there, stream| array_of(filter(values, there.array(), stream)),
        definition: |values, argument| {
            let Argument::Mask(mask) = argument else { unreachable!("filter is given a mask") };
            Some(filtered(values, mask.as_boolean()))
        },
        arrow: |values, argument| {
            let Argument::Mask(mask) = argument else { unreachable!("filter is given a mask") };
            arrow_select::filter::filter(values, mask.as_boolean()).map(Answer::Array)
        },
    },
    Operation {
        name: "take",
        argument: |data_type, len, rng| {
            // A union has no null, so a null index has no value.
            let nulls = if has_nulls(data_type) { Nulls::Some } else { Nulls::None };
            let there_are = len > 0 || has_nulls(data_type);
            let drawn = |rng| indices(&DataType::Int32, 1 + len * 3 / 2, len, nulls, rng);
            there_are.then(|| Argument::Indices(drawn(rng), OutOfBounds::Error))
        },
        call: |values, there, stream| {
            let Argument::Indices(_, out_of_bounds) = there.argument else {
                unreachable!("take is given indices")
            };
            array_of(take(values, there.array(), &TakeOptions { out_of_bounds: *out_of_bounds }, stream))
        },
        definition: |values, argument| {
            let Argument::Indices(indices, OutOfBounds::Error) = argument else { return None };
            Some(taken(values, &numbers(indices)))
        },
        arrow: |values, argument| {
            let Argument::Indices(indices, _) = argument else { unreachable!("take is given indices") };
            arrow_select::take::take(values, indices, None).map(Answer::Array)
        },
    },
    Operation {
        name: "cast",
        argument: |from, _, rng| {
            let types: Vec<DataType> = types().into_iter().filter(|to| can_cast_types(from, to)).collect();
            (!types.is_empty()).then(|| Argument::Type(types[rng.below(types.len())].clone(), true))
        },
        call: |values, there, stream| {
            let Argument::Type(to, safe) = there.argument else { unreachable!("cast is given a type") };
            array_of(cast(values, to, &CastOptions { safe: *safe, ..Default::default() }, stream))
        },
        definition: |_, _| None,
        arrow: |values, argument| {
            let Argument::Type(to, safe) = argument else { unreachable!("cast is given a type") };
            let options = CastOptions { safe: *safe, ..Default::default() };
            arrow_cast::cast_with_options(values, to, &options).map(Answer::Array)
        },
    },
    Operation {
        name: "null_count",
        argument: nothing,
        call: |values, _, stream| count_of(null_count(values, stream)),
        definition: |_, _| None,
        arrow: |values, _| Ok(Answer::Count(values.null_count())),
    },
    Operation {
        name: "logical_null_count",
        argument: nothing,
        call: |values, _, stream| count_of(logical_null_count(values, stream)),
        definition: |values, _| {
            Some(Answer::<ArrayRef>::Count(values.iter().filter(|value| is_nothing(value)).count()).rows())
        },
        arrow: |values, _| Ok(Answer::Count(values.logical_null_count())),
    },
    Operation {
        name: "is_null",
        argument: nothing,
        call: |values, _, stream| array_of(is_null(values, stream)),
        definition: |values, _| Some(values.iter().map(|value| bit(is_nothing(value))).collect()),
        arrow: |values, _| Ok(Answer::Array(Arc::new(nothing_in(values, true)))),
    },
    Operation {
        name: "is_not_null",
        argument: nothing,
        call: |values, _, stream| array_of(is_not_null(values, stream)),
        definition: |values, _| Some(values.iter().map(|value| bit(!is_nothing(value))).collect()),
        arrow: |values, _| Ok(Answer::Array(Arc::new(nothing_in(values, false)))),
    },
    Operation {
        name: "drop_nulls",
        argument: nothing,
        call: |values, _, stream| array_of(drop_nulls(values, &DropOptions::default(), stream)),
        definition: |values, _| Some(values.iter().filter(|value| !is_nothing(value)).cloned().collect()),
        arrow: |values, _| {
            arrow_select::filter::filter(values, &nothing_in(values, false)).map(Answer::Array)
        },
    },
    Operation {
        name: "fill_null",
        argument: |data_type, _, rng| {
            let nulls = if rng.below(8) == 0 { Nulls::All } else { Nulls::None };
            Some(Argument::Scalar(array(data_type, 4, nulls, rng).slice(3, 1)))
        },
        call: |values, there, stream| {
            let Argument::Scalar(scalar) = there.argument else {
                unreachable!("fill_null is given a scalar")
            };
            let scalar = Scalar::from_arrow(scalar).expect("an array of one row");
            array_of(fill_null(values, &scalar, stream))
        },
        definition: |values, argument| {
            let Argument::Scalar(scalar) = argument else { unreachable!("fill_null is given a scalar") };
            if scalar.is_null(0) {
                // Filling a null with null keeps its encoding.
                return Some(values.to_vec());
            }
            let scalar = rows(scalar).remove(0);
            Some(values.iter().map(|value| if is_nothing(value) { &scalar } else { value }.clone()).collect())
        },
        arrow: |values, argument| {
            let Argument::Scalar(scalar) = argument else { unreachable!("fill_null is given a scalar") };
            let scalar = arrow_array::Scalar::new(scalar.clone());
            arrow_select::zip::zip(&nothing_in(values, false), values, &scalar).map(Answer::Array)
        },
    },
    Operation {
        name: "sort_to_indices",
        argument: |data_type, _, _| Some(Argument::Type(data_type.clone(), true)),
        call: |values, _, stream| array_of(sort_to_indices(values, SortOptions::default(), None, stream)),
        definition: |values, argument| {
            let Argument::Type(of, _) = argument else { unreachable!("sorts are given a type") };
            let order = order(&[(values.to_vec(), of.clone(), SortOptions::default())]);
            Some(rows(&(Arc::new(UInt32Array::from(order)) as ArrayRef)))
        },
        arrow: |values, _| {
            let bytes = row_bytes(values)?;
            let mut order: Vec<u32> = (0..bytes.len() as u32).collect();
            order.sort_by(|a, b| bytes[*a as usize].cmp(&bytes[*b as usize]));
            Ok(Answer::Array(Arc::new(UInt32Array::from(order))))
        },
    },
    Operation {
        name: "distinct",
        argument: nothing,
        call: |values, _, stream| array_of(distinct(values, stream)),
        definition: |values, _| {
            let is_first = |(row, value): &(usize, &Value)| !values[..*row].contains(value);
            Some(values.iter().enumerate().filter(is_first).map(|(_, value)| value.clone()).collect())
        },
        arrow: |values, _| {
            let (bytes, mut known) = (row_bytes(values)?, HashSet::new());
            let firsts: BooleanArray = bytes.iter().map(|bytes| Some(known.insert(bytes))).collect();
            arrow_select::filter::filter(values, &firsts).map(Answer::Array)
        },
    },
];

/// The bytes that arrow-row makes of each row: they are equal, and order, as the rows do.
fn row_bytes(values: &ArrayRef) -> Result<Vec<Vec<u8>>, ArrowError> {
    let field = SortField::new(values.data_type().clone());
    let rows = RowConverter::new(vec![field])?.convert_columns(std::slice::from_ref(values))?;
    Ok(rows.iter().map(|row| row.as_ref().to_vec()).collect())
}

/// Finds an operation by its name.
pub fn operation(name: &str) -> &'static Operation {
    OPERATIONS.iter().find(|operation| operation.name == name).expect("an operation of the table")
}

fn nothing(_: &DataType, _: usize, _: &mut Random) -> Option<Argument> {
    Some(Argument::Nothing)
}

fn array_of(pending: Pending<DeviceArray>) -> Pending<Answer<DeviceArray>> {
    pending.map(|array| Ok(Answer::Array(array)))
}

fn count_of(pending: Pending<usize>) -> Pending<Answer<DeviceArray>> {
    pending.map(|count| Ok(Answer::Count(count)))
}

fn bit(set: bool) -> Value {
    Value::Bytes(vec![u8::from(set)])
}

/// The rows that are null (or not null), by arrow-rs.
fn nothing_in(values: &ArrayRef, null: bool) -> BooleanArray {
    let nulls = values.logical_nulls();
    let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    (0..values.len()).map(|row| Some(is_null(row) == null)).collect()
}

impl Argument {
    /// The argument on a stream's device. Arrays are uploaded with some extra rows in front, which are sliced
    /// off there, so that their bits are at odd places.
    pub fn on(&self, stream: &Stream) -> Result<There<'_>, Error> {
        let array = match self {
            Argument::Mask(array) | Argument::Indices(array, _) => {
                let before = array.len().min(3);
                let longer = arrow_select::concat::concat(&[&array.slice(0, before), array]);
                let longer = stream.upload(&from_arrow(&longer.expect("of one type"))?)?;
                Some(longer.slice(before, array.len())?)
            }
            Argument::Nothing | Argument::Type(..) | Argument::Scalar(_) => None,
        };
        Ok(There { argument: self, array })
    }
}

impl There<'_> {
    fn array(&self) -> &DeviceArray {
        self.array.as_ref().expect("an argument that is an array")
    }
}

impl Operation {
    /// Runs the operation on values on the stream's device.
    pub fn run(
        &self,
        values: &DeviceArray,
        argument: &Argument,
        stream: &Stream,
    ) -> Result<Answer<DeviceArray>, Error> {
        (self.call)(values, &argument.on(stream)?, stream).wait()
    }
}

impl Answer<DeviceArray> {
    /// Reads the answer's rows on the host.
    pub fn read(&self, stream: &Stream) -> Result<Vec<Value>, Error> {
        Ok(match self {
            Answer::Array(array) => rows(&to_arrow(&stream.download(array)?)?),
            Answer::Count(count) => vec![count_value(*count)],
        })
    }
}

impl Answer<ArrayRef> {
    pub fn rows(&self) -> Vec<Value> {
        match self {
            Answer::Array(array) => rows(array),
            Answer::Count(count) => vec![count_value(*count)],
        }
    }
}

fn count_value(count: usize) -> Value {
    Value::Bytes(count.to_le_bytes().to_vec())
}
