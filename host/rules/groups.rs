//! Folds of the values of groups: their types, and the order in which floats are added.

use std::sync::Arc;

use arrow_buffer::i256;
use arrow_schema::{DataType, FieldRef};

use crate::expr::plan::number_of;
use crate::expr::{Fold, Reduction};
use crate::{Error, Result};

/// The number of a group's rows that are added one after the other; the sums of such pieces are added in the
/// same way.
pub(crate) const PIECE: usize = bowstring_kernels::group::segments::PIECE as usize;

/// The places that make a node of frames, and the nodes that make one of the next level.
pub(crate) const NODE: usize = bowstring_kernels::group::frames::NODE as usize;

/// Returns how many nodes each level above the values has, of so many places: as many levels as frames of a
/// length may have nodes of.
pub(crate) fn levels(places: usize, longest: usize) -> Vec<usize> {
    let (mut levels, mut nodes, mut covered) = (vec![], places, NODE);
    while nodes > NODE && covered <= longest {
        nodes = nodes.div_ceil(NODE);
        levels.push(nodes);
        covered = covered.saturating_mul(NODE);
    }
    levels
}

/// Returns the type of a fold's result; `None` if engines do not fold such values.
pub(crate) fn folded_type(fold: Reduction, of: &DataType, wraps: bool) -> Option<DataType> {
    let fold = match fold {
        Reduction::Fold(fold) => fold,
        Reduction::Bits(_) => return of.is_integer().then(|| of.clone()),
        Reduction::First | Reduction::Last => return Some(DataType::UInt32),
    };
    Some(match (fold, of) {
        (Fold::Count, _) => DataType::Int64,
        (Fold::Min | Fold::Max, of) => {
            number_of(of).filter(|_| *of != DataType::Boolean)?;
            of.clone()
        }
        (Fold::Sum, DataType::Int64 | DataType::UInt64) if wraps => of.clone(),
        (Fold::Sum, DataType::Int64 | DataType::UInt64) => DataType::Decimal128(38, 0),
        (Fold::Sum, DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) => {
            DataType::Decimal256(76, *scale)
        }
        (Fold::Sum, DataType::Float32 | DataType::Float64) => of.clone(),
        (Fold::Sum, _) => return None,
    })
}

/// Returns the type that keys of dictionaries and runs refer to in the end.
pub(crate) fn value_type(of: &DataType) -> &DataType {
    match of {
        DataType::Dictionary(_, of) => value_type(of),
        DataType::RunEndEncoded(_, of) => value_type(of.data_type()),
        of => of,
    }
}

/// Returns the type that values have in the place of keys and runs: text becomes views, which share it, since
/// repeated it may be longer than offsets of 32 bits, or than memory.
pub(crate) fn of_any_length(of: &DataType) -> &DataType {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 => &DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => &DataType::BinaryView,
        of => of,
    }
}

/// Returns a nested type of which the types inside are others. Unions, dictionaries and runs stay as they
/// are.
pub(crate) fn with_parts(of: &DataType, part: &dyn Fn(&DataType) -> DataType) -> DataType {
    use DataType::*;
    let field = |of: &FieldRef| Arc::new((**of).clone().with_data_type(part(of.data_type())));
    match of {
        List(item) => List(field(item)),
        LargeList(item) => LargeList(field(item)),
        ListView(item) => ListView(field(item)),
        LargeListView(item) => LargeListView(field(item)),
        FixedSizeList(item, size) => FixedSizeList(field(item), *size),
        Map(entries, sorted) => Map(field(entries), *sorted),
        Struct(fields) => Struct(fields.iter().map(field).collect()),
        of => of.clone(),
    }
}

/// Returns the type whose keys of dictionaries and ends of runs have 64 bits, so that they number the values
/// and rows of several arrays, at every depth but inside of unions.
pub(crate) fn widened_type(of: &DataType) -> DataType {
    widened(of, true)
}

/// Returns the type whose ends of runs have 64 bits. Keys of dictionaries stay as they are: a concatenation
/// that has too many values for them finds the equal ones.
pub(crate) fn with_long_ends(of: &DataType) -> DataType {
    widened(of, false)
}

fn widened(of: &DataType, with_keys: bool) -> DataType {
    let inside = |of: &DataType| widened(of, with_keys);
    let field = |field: &FieldRef, of: DataType| Arc::new((**field).clone().with_data_type(of));
    match of {
        DataType::Dictionary(key, values) => {
            let key = if with_keys { DataType::Int64 } else { (**key).clone() };
            DataType::Dictionary(Box::new(key), Box::new(inside(values)))
        }
        DataType::RunEndEncoded(ends, values) => {
            DataType::RunEndEncoded(field(ends, DataType::Int64), field(values, inside(values.data_type())))
        }
        of => with_parts(of, &inside),
    }
}

/// Divides the sum of decimals by their number, after moving its point by `up` digits. A quotient of more
/// than 38 digits is an error, or `None` if `safe`.
pub(crate) fn mean_of_decimals(
    sum: i256,
    count: i64,
    up: u32,
    scale: i8,
    safe: bool,
) -> Result<Option<i128>> {
    let moved = 10i128.checked_pow(up).and_then(|up| sum.checked_mul(i256::from_i128(up)));
    let mean = moved.and_then(|moved| moved.checked_div(i256::from_i128(count.into())));
    let mean = mean.and_then(i256::to_i128).filter(|mean| mean.unsigned_abs() < 10u128.pow(38));
    match mean {
        None if !safe => Err(too_large_a_mean(scale)),
        mean => Ok(mean),
    }
}

/// Makes the error for a mean of too many digits.
pub(crate) fn too_large_a_mean(scale: i8) -> Error {
    Error::invalid("aggregate", format!("a mean does not fit {}", DataType::Decimal128(38, scale)))
}
