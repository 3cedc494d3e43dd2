//! Evaluates nodes of a plan as arrays.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::{ArrayRef, BinaryArray, LargeBinaryArray, LargeStringArray, StringArray};
use arrow_schema::DataType;

use super::cast::cast;
use super::text::test_text;
use super::{CastOptions, Columns, TakeOptions, engine, take};
use crate::array::Side;
use crate::expr::plan::{Bad, Bound, Bytes, Id, Op, Plan, TextTest, is_text, number_of};
use crate::expr::{Arithmetic, lit};
use crate::{DeviceArray, Error, Pending, Result, Stream, exchange};

/// Evaluates the outputs of a plan.
pub(super) fn outputs(
    plan: &Plan,
    columns: &[DeviceArray],
    rows: usize,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    if plan.outputs.is_empty() {
        return Ok(vec![]);
    }
    engine(stream).evaluate(plan, columns, rows, stream)
}

/// Marks constant text nodes that must become columns: results, and inputs of casts and choices.
pub(super) fn texts(plan: &Plan) -> Vec<bool> {
    let is_same = |id: Id| {
        let node = &plan.nodes[id];
        matches!(node.op, Op::Bytes(_) | Op::Literal(_)) && is_text(&node.data_type)
    };
    let mut texts = vec![false; plan.nodes.len()];
    plan.outputs.iter().for_each(|output| texts[*output] |= is_same(*output));
    for node in plan.nodes.iter().filter(|node| matches!(node.op, Op::Cast(_) | Op::Select)) {
        node.inputs.iter().for_each(|input| texts[*input] |= is_same(*input));
    }
    texts
}

/// A column of a constant text, or of nulls: `take` repeats the only row of an array.
pub(super) async fn text(node: &Bound, rows: usize, stream: &Stream) -> Result<DeviceArray> {
    let (value, bytes) = match &node.op {
        Op::Bytes(Bytes(bytes)) => (Some(0), &**bytes),
        _ => (None, &[][..]),
    };
    let one = stream.upload(&exchange::from_arrow(&one_row(&node.data_type, bytes)?)?)?;
    let index = Bound { op: Op::Literal(value), data_type: DataType::Int32, inputs: vec![], written: lit(0) };
    let plan = Plan { nodes: vec![index], condition: None, outputs: vec![0] };
    let indices = outputs(&plan, &[], rows, stream)?.pop();
    let indices = indices.ok_or_else(|| Error::invalid("expression", "no array"))?;
    take(&one, &indices, &TakeOptions::default(), stream).await
}

/// The place of each row among those of two sides, one after the other: of the first if `mask` is true there,
/// or else of the second.
fn places(mask: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let rows = mask.len();
    let columns = [engine(stream).numbers(rows, stream)?, mask.clone()];
    let node = |op: Op, data_type: DataType, inputs: &[Id]| Bound {
        op,
        data_type,
        inputs: inputs.to_vec(),
        written: lit(0),
    };
    let nodes = vec![
        node(Op::Column(0), DataType::UInt32, &[]),
        node(Op::Widen, DataType::UInt64, &[0]),
        node(Op::Literal(Some(rows as i128)), DataType::UInt64, &[]),
        node(Op::Arithmetic(Arithmetic::Add, Bad::Wraps), DataType::UInt64, &[1, 2]),
        node(Op::Column(1), DataType::Boolean, &[]),
        node(Op::Select, DataType::UInt64, &[4, 1, 3]),
    ];
    let places = outputs(&Plan { nodes, condition: None, outputs: vec![5] }, &columns, rows, stream)?.pop();
    places.ok_or_else(|| Error::invalid("zip", "no array"))
}

/// The rows of one of two sides, which are one after the other in `both`: of the first where `mask` is true.
pub(super) async fn chosen<C: Columns>(both: Pending<C>, mask: &DeviceArray, stream: &Stream) -> Result<C> {
    let places = places(mask, stream)?;
    take(&both.await?, &places, &TakeOptions::default(), stream).await
}

fn one_row(data_type: &DataType, bytes: &[u8]) -> Result<ArrayRef> {
    let text =
        || std::str::from_utf8(bytes).map_err(|_| Error::invalid("expression", format!("no {data_type}")));
    Ok(match data_type {
        DataType::Utf8 => Arc::new(StringArray::from(vec![text()?])),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from(vec![text()?])),
        DataType::Utf8View => {
            let mut one = StringViewBuilder::new();
            one.append_value(text()?);
            Arc::new(one.finish())
        }
        DataType::LargeBinary => Arc::new(LargeBinaryArray::from(vec![bytes])),
        DataType::BinaryView => {
            let mut one = BinaryViewBuilder::new();
            one.append_value(bytes);
            Arc::new(one.finish())
        }
        _ => Arc::new(BinaryArray::from(vec![bytes])),
    })
}

/// Whether a node's list is so long that a separate launch searches it.
pub(super) fn is_searched(node: &Bound, stream: &Stream) -> bool {
    matches!(&node.op, Op::In(values) if values.len() > engine(stream).longest_list())
}

/// Tests whether each row is one of the values. The values are compared as bytes, so any order will do.
pub(super) async fn searched(column: &DeviceArray, values: &[i128], stream: &Stream) -> Result<DeviceArray> {
    let number = number_of(column.data_type());
    let width =
        number.map(|number| number.width()).ok_or_else(|| Error::invalid("expression", "no number"))?;
    let rows = column.len();
    let mut parts = column.clone().into_parts();
    parts.data_type = DataType::FixedSizeBinary(width as i32);
    let is_long = rows.saturating_mul(width) > i32::MAX as usize;
    let to = if is_long { DataType::LargeBinary } else { DataType::Binary };
    let bytes = cast(&DeviceArray::try_new(parts)?, &to, &CastOptions::default(), stream).await?;
    // The values themselves, their bytes in order, and the position of each.
    let _taken = stream.device().host_pool().reserve(size_of_val(values).saturating_mul(3))?;
    let mut list: Vec<[u8; 16]> = values.iter().map(|value| value.to_le_bytes()).collect();
    list.sort_unstable_by(|a, b| a[..width].cmp(&b[..width]));
    let list: Vec<&[u8]> = list.iter().map(|value| &value[..width]).collect();
    test_text(TextTest::In, Side::Column(&bytes), Side::List(&list), rows, stream).await
}
