//! Logical validity for types that keep their nulls elsewhere: among a dictionary's values, in the members of
//! a union, in the values of runs.
//!
//! The one idea: the validity of a row is a bit of the element it points to, so the bits are taken by the
//! same indices as the rows.

use arrow_schema::{DataType, UnionMode};
use bowstring_kernels::encoded::unions::MemberRow;
use bowstring_kernels::memory::In;

use super::{booleans, runs, unions};
use crate::array::{DeviceArray, Parts};
use crate::engine::Valid;
use crate::gpu::indices::Outside;
use crate::gpu::take::take_one;
use crate::pass::{Pass, Table, bits};
use crate::{Error, Result, Stream};

/// Returns the logical validity of an array's rows, wherever its type keeps nulls. Does not synchronise.
pub(crate) fn valid(operation: &'static str, array: &DeviceArray, stream: &Stream) -> Result<Valid> {
    let of = |part: &DeviceArray| valid(operation, part, stream);
    match array.data_type() {
        DataType::Null => Ok(Valid::None),
        _ if array.is_empty() => Ok(Valid::All),
        DataType::Dictionary(key, _) => {
            let values = array.dictionary().map(of).transpose()?;
            match values {
                Some(Valid::These(values)) => {
                    let keys =
                        Parts { data_type: (**key).clone(), dictionary: None, ..array.clone().into_parts() };
                    let taken = take_one(&values, &DeviceArray::try_new(keys)?, Outside::BadKey, stream)?;
                    // Taken booleans are known at once.
                    Ok(Valid::These(set(&taken.wait()?)?))
                }
                Some(Valid::None) => Ok(Valid::None),
                _ => own(array),
            }
        }
        DataType::RunEndEncoded(..) => match of(&array.children()[1])? {
            Valid::These(values) => {
                let runs = runs::of_rows(operation, array, stream)?;
                Ok(Valid::These(take_one(&values, &runs, Outside::Refused, stream)?.wait()?))
            }
            same => Ok(same),
        },
        DataType::Union(..) => {
            let members = (0..array.children().len()).map(|i| of(&array.child_rows(i)?));
            of_members(operation, array, members.collect::<Result<_>>()?, stream)
        }
        _ => own(array),
    }
}

/// Returns the array's own bitmap as its validity.
fn own(array: &DeviceArray) -> Result<Valid> {
    array.possible_nulls().map_or(Ok(Valid::All), |bits| booleans(array, bits).map(Valid::These))
}

/// Returns booleans that are true where the given ones are true and valid.
fn set(taken: &DeviceArray) -> Result<DeviceArray> {
    // Taken bits are unset for null indices, and also for rows that are null because the source is empty.
    let parts = Parts { validity: None, null_count: Some(0), ..taken.clone().into_parts() };
    DeviceArray::try_new(parts)
}

fn of_members(
    operation: &'static str,
    array: &DeviceArray,
    members: Vec<Valid>,
    stream: &Stream,
) -> Result<Valid> {
    let DataType::Union(fields, mode) = array.data_type() else {
        return Err(Error::invalid(operation, "an array that is no union"));
    };
    if members.iter().all(|member| matches!(member, Valid::All)) {
        return Ok(Valid::All);
    }
    let mut pass = Pass::begin(operation, stream)?;
    pass.input(array)?;
    let mut table = Table::default();
    for (((id, _), child), member) in fields.iter().zip(array.children()).zip(&members) {
        let (valid, valid_offset) = match member {
            Valid::These(these) => {
                pass.input(these)?;
                bits(&crate::array::Bitmap { buffer: these.buffers()[0].clone(), offset: these.offset() })
            }
            Valid::All | Valid::None => (In::absent(), 0),
        };
        let len = if *mode == UnionMode::Sparse { array.len() } else { child.len() } as u64;
        let none = matches!(member, Valid::None);
        table.push(&MemberRow { id: (id as u8).into(), len, valid, valid_offset, none });
    }
    let rows = array.len();
    let (out, faults) = (pass.output(rows.div_ceil(32) * 4)?, pass.first_rows(2, rows)?);
    let read = unions::buffers(&mut pass, array)?;
    unions::look(&mut pass, read, (In::absent(), 0), rows, &table, (out.out(), &faults))?;
    pass.report(&faults, unions::check)?;
    let mut parts = pass.parts(DataType::Boolean, rows);
    parts.buffers = vec![out.buffer()];
    let valid = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(Valid::These(valid))
}
