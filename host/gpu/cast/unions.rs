//! Unions: one member is cast, and rows of other members become null.

use arrow_cast::can_cast_types;
use arrow_schema::{DataType, UnionFields};

use super::inside::Cast;
use crate::Result;
use crate::array::DeviceArray;
use crate::gpu::structure::unions::member;
use crate::gpu::{Outside, take_one};

/// Casts the member of a union that is nearest to the type; `None` if no member can be cast.
pub(super) async fn cast(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    fields: &UnionFields,
) -> Result<Option<DeviceArray>> {
    let Some(place) = nearest(fields, to) else { return Ok(None) };
    let (member, indices) = member("cast", values, place, cast.stream)?;
    let member = match indices {
        None => member,
        Some(indices) => take_one(&member, &indices, Outside::NullBelow, cast.stream)?.await?,
    };
    cast.cast(&member, to).await.map(Some)
}

/// Returns the member that arrow-cast chooses: the first of the same type, else of the same family, else the
/// first that can be cast.
fn nearest(fields: &UnionFields, to: &DataType) -> Option<usize> {
    let first = |is: &dyn Fn(&DataType) -> bool| fields.iter().position(|(_, field)| is(field.data_type()));
    first(&|of| of == to)
        .or_else(|| first(&|of| family(of).is_some() && family(of) == family(to)))
        .or_else(|| if to.is_nested() { None } else { first(&|of| can_cast_types(of, to)) })
}

/// Returns the family of a type: types that hold the same in another width or layout share one.
fn family(data_type: &DataType) -> Option<u8> {
    use DataType::*;
    Some(match data_type {
        Utf8 | LargeUtf8 | Utf8View => 0,
        Binary | LargeBinary | BinaryView => 1,
        Int8 | Int16 | Int32 | Int64 => 2,
        UInt8 | UInt16 | UInt32 | UInt64 => 3,
        Float16 | Float32 | Float64 => 4,
        _ => return None,
    })
}
