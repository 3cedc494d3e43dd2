//! Lists, structs, and null arrays: the parts are cast, and the array is rebuilt around them.
//!
//! Unreferenced list items are cast along if that cannot change the result. They must not fail a cast that
//! may fail or whose items may not be null, nor make offsets overflow. In those cases the host reads the
//! extent of the rows, and only the items within it are cast.

use arrow_schema::{DataType, FieldRef, Fields};

use super::held::{Above, hold};
use super::inside::Cast;
use super::offsets::{Offsets, convert_offsets, do_not_fit, most, read_offsets, regular_offsets};
use super::views::{regular_views, to_fixed, to_lists, to_views};
use crate::array::{DeviceArray, Slot, is_list, layout};
use crate::gpu::bitmap::{aligned, nulls_of};
use crate::gpu::parts::{self, part_of};
use crate::gpu::rows::offsets_of;
use crate::pass::{Reach, Region, all};
use crate::{Error, Result};

/// Casts from or to a nested type; `None` if no device supports the pair.
pub(super) async fn cast(cast: Cast<'_>, values: &DeviceArray, to: &DataType) -> Result<Option<DeviceArray>> {
    use DataType::*;
    let done = match (values.data_type(), to) {
        (List(_) | LargeList(_), List(item) | LargeList(item)) => list(cast, values, to, item).await,
        (ListView(_) | LargeListView(_), List(item) | LargeList(item)) => {
            to_lists(cast, values, to, item).await
        }
        (List(_) | LargeList(_) | ListView(_) | LargeListView(_), ListView(item) | LargeListView(item)) => {
            to_views(cast, values, to, item).await
        }
        (List(_) | LargeList(_) | ListView(_) | LargeListView(_), FixedSizeList(item, size)) => {
            to_fixed(cast, values, to, (item, *size as usize)).await
        }
        (FixedSizeList(_, size), FixedSizeList(item, same)) if size == same => {
            let items = cast.cast(&values.child_rows(0)?, item.data_type()).await?;
            of_children(cast, values, to, vec![items], true).await
        }
        (FixedSizeList(_, size), List(item) | LargeList(item) | ListView(item) | LargeListView(item)) => {
            let items = cast.cast(&values.child_rows(0)?, item.data_type()).await?;
            regular_list(cast, values, to, items, *size as usize, true).await
        }
        (FixedSizeList(_, 1), _) if !is_list(to) => cast.cast(&values.child_rows(0)?, to).await,
        (from, _) if is_list(from) => return Ok(None),
        // Any other row becomes a list of one item, and a null row a null item.
        (_, List(item) | LargeList(item) | ListView(item) | LargeListView(item)) => {
            let items = cast.cast(values, item.data_type()).await?;
            regular_list(cast, values, to, items, 1, false).await
        }
        (_, FixedSizeList(item, 1)) => {
            let items = cast.cast(values, item.data_type()).await?;
            of_children(cast, values, to, vec![items], false).await
        }
        (Struct(from), Struct(into)) => structs(cast, values, to, from, into).await,
        (Map(..), Map(entries, _)) => map(cast, values, to, entries).await,
        _ => return Ok(None),
    };
    done.map(Some)
}

/// Casts lists with offsets to lists with offsets, of the same or the other width.
async fn list(cast: Cast<'_>, values: &DeviceArray, to: &DataType, item: &FieldRef) -> Result<DeviceArray> {
    let same_items = values.children()[0].data_type() == item.data_type();
    ranges(cast, values, to, (item, same_items), None).await
}

/// Casts maps: their entries are cast by position.
async fn map(cast: Cast<'_>, values: &DeviceArray, to: &DataType, entries: &FieldRef) -> Result<DeviceArray> {
    let DataType::Struct(into) = entries.data_type() else {
        return Err(Error::invalid("cast", "a map whose entries are no struct"));
    };
    ranges(cast, values, to, (entries, false), Some(into)).await
}

/// Casts the items of rows that offsets describe; with `into` they are structs that are cast by position.
/// Reads the rows' extent if unreferenced items must not be cast.
async fn ranges(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    (item, same_items): (&FieldRef, bool),
    into: Option<&Fields>,
) -> Result<DeviceArray> {
    let (Some(Slot::Offsets(from_width)), Some(Slot::Offsets(to_width))) =
        (values.layout().slots().next(), layout(to).slots().next())
    else {
        return Err(Error::invalid("cast", "lists without offsets"));
    };
    if values.is_empty() {
        return cast.of_no_rows(values, to, item).await;
    }
    let mut pass = cast.begin(&[values])?;
    let items = &values.children()[0];
    let narrow = to_width < from_width && items.len() as u64 > most(to_width);
    let look = narrow || cast.minds_unseen(items, item) && !(same_items && cannot_be_null(items));
    let mut parts = pass.parts(to.clone(), values.len());
    let mut seen = items.clone();
    if !look && from_width == to_width {
        (parts.offset, parts.buffers) = (values.offset(), values.buffers().to_vec());
        (parts.validity, parts.null_count) = (values.validity().cloned(), values.known_null_count());
    } else {
        parts = nulls_of(&mut pass, values, parts)?;
        let offsets = aligned(&mut pass, &offsets_of(values, from_width), from_width)?;
        let mut base = 0;
        if look {
            let ends = read_offsets(&mut pass, offsets, from_width, &[0, values.len() as u64]).await?;
            let (first, last) = (ends[0], ends[1]);
            if first > last || last > items.len() as u64 {
                let problem = format!("rows lie between {first} and {last} of {} items", items.len());
                return Err(Error::out_of_spec(format!("offsets of {}", values.data_type()), problem));
            }
            if last - first > most(to_width) {
                return Err(do_not_fit(last - first, to));
            }
            (base, seen) = (first, items.slice(first as usize, (last - first) as usize)?);
        }
        let reach = Reach::elements(items.len());
        let from = Offsets { offsets, width: from_width, rows: values.len(), reach, base };
        parts.buffers = vec![convert_offsets(&mut pass, &from, to_width, values, to)?.buffer()];
    }
    let seen = match into {
        Some(into) => by_position(cast, &seen, item.data_type(), into).await?,
        None => cast.cast(&seen, item.data_type()).await?,
    };
    pass.input(&seen)?;
    hold(cast, &mut pass, &seen, item, None).await?;
    parts.children = vec![part_of(&pass, seen)?];
    pass.finish()?;
    DeviceArray::try_new(parts)
}

/// Returns whether an array is known, without reading it, to have no null rows.
fn cannot_be_null(array: &DeviceArray) -> bool {
    array.possible_nulls().is_none() && array.layout().validity && array.dictionary().is_none()
}

/// Builds lists of `size` items each; they get the values' nulls if `nulls` is set.
async fn regular_list(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    items: DeviceArray,
    size: usize,
    nulls: bool,
) -> Result<DeviceArray> {
    use DataType::{LargeList, LargeListView, List, ListView};
    let (List(item) | LargeList(item) | ListView(item) | LargeListView(item)) = to else {
        return Err(Error::invalid("cast", "lists without offsets"));
    };
    let mut pass = cast.begin(&[values, &items])?;
    hold(cast, &mut pass, &items, item, None).await?;
    let rows = values.len();
    let described = match layout(to).slots().next() {
        Some(Slot::Offsets(width)) => vec![regular_offsets(&mut pass, rows, size, width, to)?],
        Some(Slot::Fixed(width)) => regular_views(&mut pass, rows, size, width, to)?.into(),
        _ => vec![],
    };
    let parts = pass.parts(to.clone(), values.len());
    let mut parts = if nulls { nulls_of(&mut pass, values, parts)? } else { parts };
    parts.buffers = described.iter().map(Region::buffer).collect();
    parts.children = vec![part_of(&pass, items)?];
    let casted = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(casted)
}

/// Builds an array that has no buffers of its own; it gets the values' nulls if `nulls` is set.
async fn of_children(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    children: Vec<DeviceArray>,
    nulls: bool,
) -> Result<DeviceArray> {
    let mut pass = cast.begin(&[values])?;
    children.iter().try_for_each(|child| pass.input(child))?;
    let (fields, each) = match to {
        DataType::Struct(fields) => (&fields[..], 1),
        DataType::FixedSizeList(item, size) => (std::slice::from_ref(item), *size as usize),
        _ => (&[][..], 0),
    };
    let above = nulls.then_some(Above { rows: values, each });
    for (child, field) in children.iter().zip(fields) {
        hold(cast, &mut pass, child, field, above).await?;
    }
    let parts = pass.parts(to.clone(), values.len());
    let mut parts = if nulls { nulls_of(&mut pass, values, parts)? } else { parts };
    parts.children = children.into_iter().map(|child| part_of(&pass, child)).collect::<Result<_>>()?;
    pass.finish()?;
    DeviceArray::try_new(parts)
}

/// Casts structs. Fields are matched by name if the names are the same in another order, else by position.
async fn structs(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    from: &Fields,
    into: &Fields,
) -> Result<DeviceArray> {
    let place = |name: &str| from.iter().position(|field| field.name() == name);
    let in_order =
        from.len() == into.len() && from.iter().zip(into).all(|(one, other)| one.name() == other.name());
    if in_order || into.iter().any(|field| place(field.name()).is_none()) {
        return by_position(cast, values, to, into).await;
    }
    let fields = into.iter().filter_map(|field| Some((place(field.name())?, field)));
    of_fields(cast, values, to, fields.collect()).await
}

async fn by_position(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    into: &Fields,
) -> Result<DeviceArray> {
    if into.len() > values.children().len() {
        let problem = format!("{} fields cannot become {}", values.children().len(), into.len());
        return Err(Error::Arrow { operation: "cast", problem });
    }
    of_fields(cast, values, to, into.iter().enumerate().collect()).await
}

async fn of_fields(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    fields: Vec<(usize, &FieldRef)>,
) -> Result<DeviceArray> {
    let parts = fields.into_iter().map(|(i, field)| Ok((values.child_rows(i)?, field)));
    let parts: Vec<(DeviceArray, &FieldRef)> = parts.collect::<Result<_>>()?;
    let casted = all(parts.iter().map(|(part, field)| cast.cast(part, field.data_type())).collect()).await?;
    of_children(cast, values, to, casted, true).await
}

/// Makes as many nulls as there are values; `None` for types that cannot represent a null row.
pub(super) fn nulls(cast: Cast, values: &DeviceArray, to: &DataType) -> Result<Option<DeviceArray>> {
    let mut pass = cast.begin(&[values])?;
    let nulls = parts::nulls(&mut pass, to, None, values.len())?;
    pass.finish()?;
    Ok(nulls)
}
