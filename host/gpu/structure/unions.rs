//! Unions: take, and the rows of one member.
//!
//! A take of a dense union orders its members by the taken rows: the format demands that offsets never
//! decrease.

use arrow_schema::{DataType, FieldRef, UnionFields, UnionMode};
use bowstring_kernels::encoded::unions::{MEMBERS, MemberRow, Members, OF_TYPE, OfType, SPREAD, Spread};
use bowstring_kernels::memory::{In, Out};

use super::{Marked, counted, viewed, written};
use crate::array::{Bitmap, DeviceArray, Parts, null_member, says_null};
use crate::expr::plan::number_of;
use crate::gpu::bitmap::{aligned, and};
use crate::gpu::draft::Pick;
use crate::gpu::indices::Outside;
use crate::gpu::map::{Column, map};
use crate::gpu::nulls::null_counts;
use crate::gpu::parts::part_of;
use crate::gpu::rows::rows_of;
use crate::pass::{Looks, Pass, Region, Table, bits, input, validity};
use crate::rules::fill_null;
use crate::{Error, Result, Stream};

/// Returns the error that the words report about rows of a union.
pub(super) fn check(words: &[u64]) -> Result<()> {
    match (words[0], words[1]) {
        (u64::MAX, u64::MAX) => Ok(()),
        (u64::MAX, row) => {
            Err(Error::out_of_spec("array.buffers[1]", format!("row {row} is beyond its member's last")))
        }
        (row, _) => Err(Error::out_of_spec("array.buffers[0]", format!("row {row} is of no member"))),
    }
}

/// Checks the rows of a union, and writes for each the validity of its member's row. Both buffers must be
/// aligned.
pub(super) fn look(
    pass: &mut Pass,
    (types, offsets): (In<u8>, In<u32>),
    (valid, valid_offset): (In<u32>, u64),
    rows: usize,
    members: &Table<MemberRow>,
    (out, faults): (Out<u32>, &Region),
) -> Result<()> {
    let uploaded = if members.is_empty() { pass.zeroed(64)? } else { pass.upload(members.words())? };
    let args = Members {
        types,
        offsets,
        valid,
        valid_offset,
        rows: rows as u64,
        members: uploaded.input(),
        count: members.len() as u64,
        out,
        faults: faults.out(),
    };
    pass.launch(&MEMBERS[0], &args)
}

/// Returns the type ids and offsets of a union's rows as kernels take them.
pub(super) fn buffers(pass: &mut Pass, array: &DeviceArray) -> Result<(In<u8>, In<u32>)> {
    let types = input(&rows_of(array, &array.buffers()[0], 1));
    match array.buffers().get(1) {
        Some(offsets) => Ok((types, aligned(pass, &rows_of(array, offsets, 4), 4)?.cast())),
        None => Ok((types, In::absent())),
    }
}

/// Returns the type ids of a union's rows, and for a dense union their offsets, as arrays of numbers.
pub(crate) fn numbers(array: &DeviceArray) -> Result<Vec<DeviceArray>> {
    let numbers = [DataType::Int8, DataType::Int32].into_iter().zip(array.buffers());
    numbers.map(|(of, buffer)| viewed(array, of, array.offset(), buffer.clone())).collect()
}

/// Describes a member of so many rows, whose validity is not wanted.
fn rows_of_member(id: i8, rows: usize) -> MemberRow {
    let (valid, valid_offset) = (In::absent(), 0);
    MemberRow { id: (id as u8).into(), len: rows as u64, valid, valid_offset, none: false }
}

/// Checks that every row of a union is a row of one of its members. Returns the union; a bad row is an error
/// when it is waited for.
pub(crate) fn checked(operation: &'static str, array: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let DataType::Union(fields, mode) = array.data_type() else {
        return Err(Error::invalid(operation, "an array that is no union"));
    };
    if array.is_empty() {
        return Ok(array.clone());
    }
    let mut pass = Pass::begin(operation, stream)?;
    pass.input(array)?;
    let members = fields.iter().zip(array.children()).map(|((id, _), child)| match mode {
        UnionMode::Sparse => rows_of_member(id, array.len()),
        UnionMode::Dense => rows_of_member(id, child.len()),
    });
    let (members, faults) = (members.collect(), pass.first_rows(2, array.len())?);
    let read = buffers(&mut pass, array)?;
    look(&mut pass, read, (In::absent(), 0), array.len(), &members, (Out::absent(), &faults))?;
    pass.report(&faults, check)?;
    let checked = part_of(&pass, array.clone())?;
    pass.finish()?;
    Ok(checked)
}

/// Taken rows of a union, without the members.
pub(crate) struct TakenUnion {
    pass: Pass,
    data_type: DataType,
    types: DeviceArray,
    /// The offsets into the members of a dense union.
    offsets: Option<Region>,
    pub members: Vec<Pick>,
}

impl TakenUnion {
    /// Finds the rows of each member. Needs at least one row and one index. `numbers` are the taken rows of
    /// [`numbers`]. Reads the number of rows of each member of a dense union, and the number of null indices
    /// if no member is nullable.
    pub async fn find(rows: &Pick, numbers: Vec<DeviceArray>, stream: &Stream) -> Result<TakenUnion> {
        let Pick { array, indices, outside } = rows;
        let (DataType::Union(fields, _), Some((taken, offsets))) = (array.data_type(), numbers.split_first())
        else {
            return Err(Error::invalid("take", "an array that is no union"));
        };
        let mut null_as = None;
        if indices.possible_nulls().is_some() || outside.is_null() {
            null_as = null_member(fields);
            if null_as.is_none() {
                refuse_nulls(taken, stream).await?;
            }
        }
        let types = match null_as {
            Some(id) => filled(taken, (id as u8).into(), stream)?,
            None => taken.clone(),
        };
        // Without a nullable member, no index was null or out of bounds.
        let outside = if null_as.is_none() && outside.is_null() { Outside::Refused } else { *outside };
        let data_type = array.data_type().clone();
        let Some(offsets) = offsets.first() else {
            // A null row selects the nullable member. The contents of other members there do not matter, so
            // one that cannot hold nulls takes any row.
            let blind = |(id, field): (i8, &FieldRef)| {
                outside == Outside::Refused && null_as.is_some_and(|null| null != id) && !says_null(field)
            };
            let any = fields.iter().any(blind).then(|| filled(indices, 0, stream)).transpose()?;
            let members = fields.iter().enumerate().map(|(i, member)| {
                let indices = any.as_ref().filter(|_| blind(member)).unwrap_or(indices).clone();
                Ok(Pick { array: array.child_rows(i)?, indices, outside })
            });
            let (members, pass) = (members.collect::<Result<_>>()?, Pass::begin("take", stream)?);
            return Ok(TakenUnion { pass, data_type, types, offsets: None, members });
        };
        let filled = match null_as {
            Some(_) => filled(offsets, u32::MAX.into(), stream)?,
            None => offsets.clone(),
        };
        let (pass, nulls) = (Pass::begin("take", stream)?, null_as.is_some());
        let outside = if nulls { outside.made_null() } else { Outside::Refused };
        let rows = Rows { types: &types, taken, offsets: &filled, nulls, outside };
        let (pass, offsets, members) = in_order(pass, array, fields, rows).await?;
        Ok(TakenUnion { pass, data_type, types, offsets: Some(offsets), members })
    }

    /// Adds the taken members.
    pub fn build(self, members: Vec<DeviceArray>) -> Result<DeviceArray> {
        let TakenUnion { mut pass, data_type, types, offsets, .. } = self;
        [&types].into_iter().chain(&members).try_for_each(|part| pass.input(part))?;
        let mut parts = pass.parts(data_type, types.len());
        parts.buffers = vec![types.buffers()[0].clone()];
        parts.buffers.extend(offsets.iter().map(Region::buffer));
        let members = members.into_iter().map(|member| part_of(&pass, member));
        parts.children = members.collect::<Result<_>>()?;
        let union = DeviceArray::try_new(parts)?;
        pass.finish()?;
        Ok(union)
    }
}

async fn refuse_nulls(taken: &DeviceArray, stream: &Stream) -> Result<()> {
    let Some(bits) = taken.possible_nulls() else { return Ok(()) };
    match null_counts(&[(taken, bits)], stream)?.await?[..] {
        [0] => Ok(()),
        _ => Err(no_null()),
    }
}

/// Makes the error for a null row in a union without a nullable member.
pub(crate) fn no_null() -> Error {
    Error::invalid("take", "null indices into a union without a nullable member")
}

/// Replaces nulls by a number.
fn filled(values: &DeviceArray, with: u64, stream: &Stream) -> Result<DeviceArray> {
    let number = number_of(values.data_type());
    let call = number.and_then(|number| fill_null(number.width()));
    let mut call = call.ok_or_else(|| Error::invalid("take", "no numbers"))?;
    call.words[0] = with;
    let call = Some(call);
    let filled = map("take", &[Column { values, to: values.data_type(), call }], true, stream)?;
    filled.into_iter().next().ok_or_else(|| Error::invalid("take", "no array"))
}

/// The taken type ids and offsets of a dense union.
struct Rows<'a> {
    types: &'a DeviceArray,
    /// The type ids, null for null rows.
    taken: &'a DeviceArray,
    offsets: &'a DeviceArray,
    /// Whether rows may be null.
    nulls: bool,
    /// How the members' rows are taken.
    outside: Outside,
}

/// Finds the new offsets of the rows, and each member's rows in their order.
async fn in_order(
    mut pass: Pass,
    array: &DeviceArray,
    fields: &UnionFields,
    rows: Rows<'_>,
) -> Result<(Pass, Region, Vec<Pick>)> {
    [array, rows.types, rows.taken, rows.offsets].into_iter().try_for_each(|of| pass.input(of))?;
    let len = rows.types.len();
    let faults = pass.first_rows(2, len)?;
    let (types, offsets) = (input(&rows.types.buffers()[0]), input(&rows.offsets.buffers()[0]));
    let members = fields.iter().zip(array.children()).map(|((id, _), child)| rows_of_member(id, child.len()));
    let members: Table<MemberRow> = members.collect();
    let looked_at = if rows.nulls { validity(rows.taken) } else { (In::absent(), 0) };
    look(&mut pass, (types, offsets), looked_at, len, &members, (Out::absent(), &faults))?;
    let (mut looks, mut marked) = (Looks::default(), vec![]);
    let faults = looks.at([&faults]);
    for (id, _) in fields.iter() {
        let bits = rows_of_type(&mut pass, types, id, len)?;
        let one = Marked::new(&mut pass, len, &bits)?;
        let seen = looks.at([one.counters()]);
        marked.push((one, seen));
    }
    let words = looks.read(&mut pass).await?;
    check(&words[&faults])?;
    let places = pass.rows(len, 4)?;
    let mut picked = vec![];
    for ((one, seen), member) in marked.iter().zip(array.children()) {
        let total = one.total(&words[seen]);
        if total > i32::MAX as usize {
            let rows = format!("{total} rows of a member");
            return Err(Error::too_long("take", rows, array.data_type()));
        }
        let out = pass.rows(total, 4)?;
        let (selected, words_offset) = one.mask.words();
        let args = Spread {
            words: selected,
            words_offset,
            tile_offsets: one.mask.offsets(),
            rows: len as u64,
            offsets,
            picked: out.out(),
            places: places.out(),
        };
        pass.launch(&SPREAD[0], &args)?;
        let indices = written(&pass, DataType::UInt32, total, &out)?;
        picked.push(Pick { array: member.clone(), indices, outside: rows.outside });
    }
    Ok((pass, places, picked))
}

/// Writes a bit for each row of one type id.
fn rows_of_type(pass: &mut Pass, types: In<u8>, id: i8, rows: usize) -> Result<Region> {
    let out = pass.output(rows.div_ceil(32) * 4)?;
    let args = OfType { types, id: (id as u8).into(), rows: rows as u64, out: out.out() };
    pass.launch(&OF_TYPE[0], &args)?;
    Ok(out)
}

/// Returns one member's rows, with nulls for rows of other members: an array, and its rows' indices unless
/// they are the array's rows. Indices of rows of other members are null.
pub(crate) fn member(
    operation: &'static str,
    array: &DeviceArray,
    place: usize,
    stream: &Stream,
) -> Result<(DeviceArray, Option<DeviceArray>)> {
    let DataType::Union(fields, mode) = array.data_type() else {
        return Err(Error::invalid(operation, "an array that is no union"));
    };
    let Some((id, _)) = fields.iter().nth(place) else {
        return Err(Error::invalid(operation, "a union without such a member"));
    };
    let child = array.child_rows(place)?;
    if array.is_empty() {
        return Ok((child.slice(0, 0)?, None));
    }
    let mut pass = Pass::begin(operation, stream)?;
    pass.input(array)?;
    let rows = array.len();
    let types = input(&rows_of(array, &array.buffers()[0], 1));
    let selected = rows_of_type(&mut pass, types, id, rows)?;
    let of_type = Bitmap { buffer: selected.buffer(), offset: 0 };
    if *mode == UnionMode::Sparse && child.layout().validity {
        let valid = match child.possible_nulls() {
            None => of_type,
            Some(own) => {
                let both = pass.zeroed(rows.div_ceil(8))?;
                and(&mut pass, (selected.input(), 0), bits(own), rows, &both)?;
                Bitmap { buffer: both.buffer(), offset: 0 }
            }
        };
        let parts = part_of(&pass, child)?.into_parts();
        let member = DeviceArray::try_new(Parts { validity: Some(valid), null_count: None, ..parts })?;
        pass.finish()?;
        return Ok((member, None));
    }
    if *mode == UnionMode::Dense {
        // Only the offsets of the member's rows are checked; those of other rows may be anything.
        let (_, offsets) = buffers(&mut pass, array)?;
        let row = rows_of_member(id, child.len());
        let (members, faults) = ([row].into_iter().collect(), pass.first_rows(2, rows)?);
        let looked_at = (selected.input(), 0);
        look(&mut pass, (types, offsets), looked_at, rows, &members, (Out::absent(), &faults))?;
        pass.report(&faults, check)?;
    }
    let parts = match mode {
        UnionMode::Dense => {
            let own = pass.parts(DataType::Int32, rows);
            Parts { offset: array.offset(), buffers: vec![array.buffers()[1].clone()], ..own }
        }
        UnionMode::Sparse => {
            let own = pass.parts(DataType::UInt64, rows);
            Parts { buffers: vec![counted(&mut pass, 0, rows, 8)?.buffer()], ..own }
        }
    };
    let indices = DeviceArray::try_new(Parts { validity: Some(of_type), null_count: None, ..parts })?;
    pass.finish()?;
    Ok((child, Some(indices)))
}
