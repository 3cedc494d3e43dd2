//! The steps of a plan that its program cannot run, such as casts, tests of text and parts of it: they
//! run before it.

use std::borrow::Cow;

use super::cast::cast;
use super::text::{substring, test_text};
use super::{CastOptions, computed, concat, engine, nulls, reach};
use crate::array::Side;
use crate::expr::plan::{Bound, Bytes, Id, Op, Plan, TextTest, number_of};
use crate::{DeviceArray, DeviceBatch, Error, Result, Stream};

/// Whether a program runs a node, so that nothing has to run before.
fn is_program(node: &Bound, plan: &Plan, stream: &Stream) -> bool {
    match &node.op {
        Op::Bytes(_) | Op::Cast(_) | Op::Substring(..) | Op::Text(_) | Op::TextIn(_) => false,
        Op::Literal(_) | Op::Select => number_of(&node.data_type).is_some(),
        Op::Valid(_) => number_of(&plan.nodes[node.inputs[0]].data_type).is_some(),
        Op::In(_) => !computed::is_searched(node, stream),
        _ => true,
    }
}

/// The plan for a batch of the types that it was bound to, and its columns. Steps that the program cannot run
/// (casts, text) are executed first; each result becomes an extra column. Extra outputs may follow the
/// original ones; they are evaluated only to detect rows that fail.
pub(super) async fn settled<'a>(
    operation: &'static str,
    plan: &'a Plan,
    batch: &DeviceBatch,
    stream: &Stream,
) -> Result<(Cow<'a, Plan>, Vec<DeviceArray>)> {
    let mut columns = vec![];
    for column in batch.columns() {
        reach(operation, column, stream)?;
        columns.push(engine(stream).admit(column, stream)?.into_owned());
    }
    if plan.nodes.iter().all(|node| is_program(node, plan, stream)) {
        return Ok((Cow::Borrowed(plan), columns));
    }
    let mut plan = Cow::Borrowed(plan);
    // For each node that has become a column of a type that plans do not support: the nodes that can fail its
    // rows.
    let mut failing: Vec<Vec<Id>> = vec![vec![]; plan.nodes.len()];
    let texts = computed::texts(&plan);
    // A test of text takes a constant as it is, also where the same constant becomes a column for others: a
    // test of a dictionary has other rows than that column.
    let same = |node: &Bound| match &node.op {
        Op::Bytes(text) => Some(text.clone()),
        _ => None,
    };
    let same: Vec<Option<Bytes>> = plan.nodes.iter().map(same).collect();
    for id in 0..plan.nodes.len() {
        let node = &plan.nodes[id];
        if is_program(node, &plan, stream) {
            continue;
        }
        let input = |columns: &[DeviceArray]| match plan.nodes[node.inputs[0]].op {
            Op::Column(index) => Ok(columns[index].clone()),
            _ => {
                // Failing rows are null for now. A later step finds the first one, and whether it counts.
                let of = plan.only(&[node.inputs[0]]).quiet();
                let made = computed::outputs(&of, columns, batch.len(), stream)?.pop();
                made.ok_or_else(|| Error::invalid(operation, "no array"))
            }
        };
        let made = match &node.op {
            _ if texts[id] => computed::text(node, batch.len(), stream).await?,
            Op::In(values) => computed::searched(&input(&columns)?, values, stream).await?,
            Op::Cast(safe) => {
                let options = CastOptions { safe: *safe, ..CastOptions::default() };
                cast(&input(&columns)?, &node.data_type, &options, stream).await?
            }
            Op::Substring(start, count) => substring(&input(&columns)?, *start, *count, stream).await?,
            Op::Valid(null) => {
                let array = input(&columns)?;
                let is = if *null { nulls::is_null } else { nulls::is_not_null };
                is(&array, stream).await?
            }
            // Text operands have become columns in earlier iterations.
            Op::Text(test) => {
                let side =
                    |input: usize| match (&same[node.inputs[input]], &plan.nodes[node.inputs[input]].op) {
                        (Some(Bytes(text)), _) => Ok(Side::Same(text)),
                        (None, Op::Column(index)) => Ok(Side::Column(&columns[*index])),
                        _ => Err(Error::invalid(operation, "no text")),
                    };
                test_text(*test, side(0)?, side(1)?, batch.len(), stream).await?
            }
            // So have the texts that a condition chooses from.
            Op::Select => {
                let text = |input: usize| match plan.nodes[node.inputs[input]].op {
                    Op::Column(index) => Ok(columns[index].clone()),
                    _ => Err(Error::invalid(operation, "no text")),
                };
                let both = concat(&[&text(1)?, &text(2)?], stream);
                computed::chosen(both, &input(&columns)?, stream).await?
            }
            Op::TextIn(list) => {
                let list: Vec<&[u8]> = list.iter().map(|Bytes(text)| &**text).collect();
                let column = input(&columns)?;
                test_text(TextTest::In, Side::Column(&column), Side::List(&list), batch.len(), stream).await?
            }
            _ => continue,
        };
        let mut fail: Vec<Id> = vec![];
        for input in &node.inputs {
            if !matches!(plan.nodes[*input].op, Op::Column(_)) && plan.only(&[*input]).can_fail() {
                fail.push(*input);
            }
            fail.extend(&failing[*input]);
        }
        columns.push(made);
        if number_of(&node.data_type).is_some() {
            plan.to_mut().becomes_checked(id, columns.len() - 1, fail);
        } else {
            plan.to_mut().becomes_column(id, columns.len() - 1);
            failing[id] = fail;
        }
    }
    // An output that no plan computes cannot report failures, so the failing nodes become additional outputs.
    let fail: Vec<Id> = plan.outputs.iter().flat_map(|output| failing[*output].clone()).collect();
    if !fail.is_empty() {
        plan.to_mut().outputs.extend(fail);
    }
    // Drops nodes that only the extra columns needed, so that they are not computed again.
    let plan = match plan {
        Cow::Borrowed(plan) => Cow::Borrowed(plan),
        Cow::Owned(plan) => Cow::Owned(plan.pruned()),
    };
    Ok((plan, columns))
}
