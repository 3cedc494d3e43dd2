//! Which casts exist: arrow-cast's answer, and structs that lose fields.

use std::sync::Arc;

use arrow_cast::can_cast_types;
use arrow_schema::{DataType, Field, FieldRef};

/// Whether [`cast`](crate::compute::cast) supports a cast between these types; single values may still not
/// fit. A struct may lose fields: the fields of the target select by name, or, if a name is new, by place.
/// arrow-cast performs such casts, although its `can_cast_types` returns false.
pub fn can_cast(from: &DataType, to: &DataType) -> bool {
    can_cast_types(from, to)
        || chosen(from, to).is_some_and(|chosen| chosen != *from && can_cast_types(&chosen, to))
}

/// The type reduced to the struct fields that have a counterpart in another type; `None` if it has too few.
fn chosen(from: &DataType, to: &DataType) -> Option<DataType> {
    use DataType::*;
    let field = |of: &FieldRef, to: &FieldRef| -> Option<FieldRef> {
        Some(Arc::new(Field::clone(of).with_data_type(chosen(of.data_type(), to.data_type())?)))
    };
    let item = |of: &FieldRef| match to {
        List(to) | LargeList(to) | ListView(to) | LargeListView(to) | FixedSizeList(to, _) => field(of, to),
        _ => Some(of.clone()),
    };
    Some(match (from, to) {
        (Struct(from), Struct(to)) if to.is_empty() || to.len() > from.len() => return None,
        (Struct(from), Struct(to)) => {
            let named = |to: &FieldRef| from.iter().find(|of| of.name() == to.name());
            let by_name: Option<Vec<&FieldRef>> = to.iter().map(named).collect();
            let of = by_name.unwrap_or_else(|| from.iter().collect());
            Struct(of.into_iter().zip(to).map(|(of, to)| field(of, to)).collect::<Option<_>>()?)
        }
        (List(of), _) => List(item(of)?),
        (LargeList(of), _) => LargeList(item(of)?),
        (ListView(of), _) => ListView(item(of)?),
        (LargeListView(of), _) => LargeListView(item(of)?),
        (FixedSizeList(of, size), _) => FixedSizeList(item(of)?, *size),
        _ => from.clone(),
    })
}
