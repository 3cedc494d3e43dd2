//! Makes a data type from an input, at most three levels deep.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, UnionFields, UnionMode};

use super::input::Input;
use crate::support::{index_types, types};

const DEPTH: usize = 3;

/// Sizes of rows. Arrays can have only few rows of the last ones.
const SIZES: [i32; 8] = [1, 2, 3, 7, 33, 0, 1 << 20, i32::MAX];

/// Makes any data type.
pub fn data_type(input: &mut Input<'_>) -> DataType {
    of(input, &SIZES, 0)
}

/// A type whose rows take a little memory.
pub fn modest(input: &mut Input<'_>) -> DataType {
    of(input, &SIZES[..4], 0)
}

fn of(input: &mut Input<'_>, sizes: &[i32], depth: usize) -> DataType {
    use DataType::*;
    let kind = input.byte();
    if kind < 150 || depth == DEPTH {
        return leaf(input);
    }
    let field = |input: &mut Input<'_>, depth: usize| {
        let nullable = !input.one_in(4);
        let data_type = of(input, sizes, depth + 1);
        let nullable = nullable || sizes.len() < SIZES.len() && is_null(&data_type);
        Arc::new(Field::new("item", data_type, nullable))
    };
    match kind % 12 {
        0 => List(field(input, depth)),
        1 => LargeList(field(input, depth)),
        2 => ListView(field(input, depth)),
        3 => LargeListView(field(input, depth)),
        4 => FixedSizeList(field(input, depth), *input.pick(sizes)),
        5 => Struct((0..input.below(4)).map(|_| field(input, depth)).collect()),
        6 => {
            let key = of(input, sizes, depth + 1);
            let key = if is_null(&key) { Int32 } else { key };
            let key = Field::new("keys", key, false);
            let fields = Fields::from(vec![key, field(input, depth).as_ref().clone()]);
            Map(Arc::new(Field::new("entries", Struct(fields), false)), false)
        }
        7 | 8 => {
            // A union without members cannot have rows.
            let (ids, least) = ([5, 0, 127], usize::from(sizes.len() < SIZES.len()));
            let members: Vec<_> =
                (0..least + input.below(4 - least)).map(|i| (ids[i], field(input, depth))).collect();
            let mode = if kind % 12 == 7 { UnionMode::Sparse } else { UnionMode::Dense };
            Union(members.into_iter().collect::<UnionFields>(), mode)
        }
        9 => {
            let key = input.pick(&index_types()).clone();
            Dictionary(Box::new(key), Box::new(of(input, sizes, depth + 1)))
        }
        10 => {
            let ends = input.pick(&[Int32, Int16, Int64]).clone();
            let values = Field::new("values", of(input, sizes, depth + 1), true);
            RunEndEncoded(Arc::new(Field::new("run_ends", ends, false)), Arc::new(values))
        }
        _ => FixedSizeBinary(*input.pick(sizes)),
    }
}

/// A type of the same shape with other leaves, other nullability, and sometimes another kind of list.
pub fn akin(input: &mut Input<'_>, to: &DataType) -> DataType {
    use DataType::*;
    let field = |input: &mut Input<'_>, field: &Field| {
        let nullable = field.is_nullable() != input.one_in(4);
        Arc::new(Field::new(field.name(), akin(input, field.data_type()), nullable))
    };
    match to {
        List(item) | LargeList(item) => {
            let item = field(input, item);
            let made =
                [List(item.clone()), LargeList(item.clone()), FixedSizeList(item.clone(), 2), ListView(item)];
            input.pick(&made).clone()
        }
        FixedSizeList(item, size) => {
            let item = field(input, item);
            input.pick(&[FixedSizeList(item.clone(), *size), List(item.clone()), LargeList(item)]).clone()
        }
        Struct(fields) => Struct(fields.iter().map(|one| field(input, one)).collect()),
        Dictionary(key, of) if input.one_in(2) => Dictionary(key.clone(), Box::new(akin(input, of))),
        Dictionary(_, of) => akin(input, of),
        other if other.is_nested() || !input.one_in(2) => other.clone(),
        _ => leaf(input),
    }
}

/// Whether a part of the type is `Null`, whatever a field's nullability says.
fn is_null(of: &DataType) -> bool {
    format!("{of:?}").contains("Null")
}

fn leaf(input: &mut Input<'_>) -> DataType {
    let leaves: Vec<DataType> = types().into_iter().filter(|of| !of.is_nested()).collect();
    input.pick(&leaves).clone()
}

/// The name of its outermost kind. All types of a kind count as the same in what a case reached.
pub fn kind(of: &DataType) -> String {
    let all = format!("{of:?}");
    all.split(['(', '{', ' ']).next().unwrap_or_default().to_owned()
}
