//! Random arrays of any type, as irregular as the format allows: extremes of every number type, offsets that
//! start anywhere, null rows with contents, dictionaries with unused keys, bitmaps at any bit.

use std::sync::Arc;

use arrow_array::builder::make_view;
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, UnionFields, UnionMode};

use super::Random;
use super::scalars::{blob, fixed, text};

/// The pattern of null rows, for types with nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// No nulls and no bitmap, in children neither.
    None,
    /// A bitmap without nulls.
    Unused,
    /// About every third row is null.
    Some,
    /// Long runs of nulls and of valid rows.
    Runs,
    /// Every row is null.
    All,
}

impl Nulls {
    pub const ALL: [Nulls; 5] = [Nulls::None, Nulls::Unused, Nulls::Some, Nulls::Runs, Nulls::All];

    /// The nulls of a nested array's children: of any pattern, but none if the array has [`Nulls::None`].
    fn below(self, nullable: bool, rng: &mut Random) -> Nulls {
        if self == Nulls::None || !nullable { Nulls::None } else { Nulls::ALL[rng.below(5)] }
    }
}

/// Random bits, `percent` of them set, in runs of `run` on average, starting at any bit of the first byte.
pub fn bitmap(len: usize, percent: f64, run: usize, rng: &mut Random) -> BooleanBuffer {
    let before = if rng.percent(50.0) { rng.below(70) } else { 0 };
    let mut bit = rng.percent(percent);
    let bits = (0..before + len).map(|_| {
        if rng.below(run) == 0 {
            bit = rng.percent(percent);
        }
        bit
    });
    BooleanBuffer::from_iter(bits).slice(before, len)
}

fn validity(nulls: Nulls, len: usize, rng: &mut Random) -> Option<NullBuffer> {
    let bits = match nulls {
        Nulls::None => return None,
        Nulls::Unused => bitmap(len, 100.0, 1, rng),
        Nulls::Some => bitmap(len, 67.0, 1, rng),
        Nulls::Runs => bitmap(len, 50.0, 40, rng),
        Nulls::All => bitmap(len, 0.0, 1, rng),
    };
    Some(NullBuffer::new(bits))
}

/// Rows `offset .. offset + len`, without copying.
pub fn sliced(array: &ArrayRef, offset: usize, len: usize) -> ArrayRef {
    array.slice(offset, len)
}

/// Rows drawn at random from a few.
pub fn some_of(few: &ArrayRef, len: usize, random: &mut Random) -> ArrayRef {
    let rows = UInt32Array::from_iter_values((0..len).map(|_| random.below(few.len()) as u32));
    arrow_select::take::take(few, &rows, None).unwrap()
}

/// A random array of this type, length and pattern of nulls.
pub fn array(data_type: &DataType, len: usize, nulls: Nulls, rng: &mut Random) -> ArrayRef {
    use DataType::*;
    match data_type {
        Null => Arc::new(NullArray::new(len)),
        Boolean => Arc::new(BooleanArray::new(bitmap(len, 50.0, 1, rng), validity(nulls, len, rng))),
        Utf8 => {
            let (offsets, bytes) = strings(len, rng, text);
            Arc::new(StringArray::new(offsets_32(offsets), bytes, validity(nulls, len, rng)))
        }
        LargeUtf8 => {
            let (offsets, bytes) = strings(len, rng, text);
            Arc::new(LargeStringArray::new(offsets_64(offsets), bytes, validity(nulls, len, rng)))
        }
        Binary => {
            let (offsets, bytes) = strings(len, rng, blob);
            Arc::new(BinaryArray::new(offsets_32(offsets), bytes, validity(nulls, len, rng)))
        }
        LargeBinary => {
            let (offsets, bytes) = strings(len, rng, blob);
            Arc::new(LargeBinaryArray::new(offsets_64(offsets), bytes, validity(nulls, len, rng)))
        }
        Utf8View => {
            let (views, data) = views(len, rng, text);
            Arc::new(StringViewArray::new(views, data, validity(nulls, len, rng)))
        }
        BinaryView => {
            let (views, data) = views(len, rng, blob);
            Arc::new(BinaryViewArray::new(views, data, validity(nulls, len, rng)))
        }
        List(field) => {
            let offsets = offsets(len, rng);
            let items = items(field, &offsets, nulls, rng);
            let (offsets, validity) = (offsets_32(offsets), validity(nulls, len, rng));
            Arc::new(ListArray::new(field.clone(), offsets, items, validity))
        }
        LargeList(field) => {
            let offsets = offsets(len, rng);
            let items = items(field, &offsets, nulls, rng);
            let (offsets, validity) = (offsets_64(offsets), validity(nulls, len, rng));
            Arc::new(LargeListArray::new(field.clone(), offsets, items, validity))
        }
        Map(field, sorted) => {
            let offsets = offsets(len, rng);
            let entries = items(field, &offsets, nulls, rng);
            let entries = StructArray::from(entries.to_data());
            let (offsets, validity) = (offsets_32(offsets), validity(nulls, len, rng));
            Arc::new(MapArray::new(field.clone(), offsets, entries, validity, *sorted))
        }
        ListView(field) => {
            let (offsets, sizes) = extents(len, rng);
            let items = child(field, len + 5, nulls, rng);
            let narrow = |values: Vec<usize>| values.into_iter().map(|value| value as i32).collect();
            let validity = validity(nulls, len, rng);
            Arc::new(ListViewArray::new(field.clone(), narrow(offsets), narrow(sizes), items, validity))
        }
        LargeListView(field) => {
            let (offsets, sizes) = extents(len, rng);
            let items = child(field, len + 5, nulls, rng);
            let wide = |values: Vec<usize>| values.into_iter().map(|value| value as i64).collect();
            let validity = validity(nulls, len, rng);
            Arc::new(LargeListViewArray::new(field.clone(), wide(offsets), wide(sizes), items, validity))
        }
        FixedSizeList(field, size) => {
            let items = child(field, len * *size as usize, nulls, rng);
            let validity = validity(nulls, len, rng);
            Arc::new(FixedSizeListArray::new(field.clone(), *size, items, validity))
        }
        Struct(fields) => {
            let columns = fields.iter().map(|field| child(field, len, nulls, rng)).collect();
            let validity = validity(nulls, len, rng);
            let made = StructArray::try_new_with_length(fields.clone(), columns, validity, len);
            Arc::new(made.expect("columns of the fields' types"))
        }
        Union(members, mode) => Arc::new(union(members, *mode, len, nulls, rng)),
        Dictionary(key, of) => dictionary(data_type, key, of, len, nulls, rng),
        RunEndEncoded(ends, values) => run_ends(data_type, ends, values, len, nulls, rng),
        _ => {
            let bytes: Vec<u8> = (0..len).flat_map(|_| fixed(data_type, rng)).collect();
            from_parts(data_type, len, bytes, validity(nulls, len, rng), vec![])
        }
    }
}

/// The array of a field; sometimes a slice of a longer one.
fn child(field: &Field, len: usize, nulls: Nulls, rng: &mut Random) -> ArrayRef {
    let nulls = nulls.below(field.is_nullable(), rng);
    let before = if rng.percent(30.0) { 1 + rng.below(40) } else { 0 };
    array(field.data_type(), before + len, nulls, rng).slice(before, len)
}

fn from_parts(
    data_type: &DataType,
    len: usize,
    bytes: Vec<u8>,
    nulls: Option<NullBuffer>,
    children: Vec<ArrayData>,
) -> ArrayRef {
    // Copies through a vector of 16-byte words, because a `Vec<u8>` has no alignment.
    let mut words = vec![0u128; bytes.len().div_ceil(16)];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(16)) {
        let mut whole = [0; 16];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u128::from_ne_bytes(whole);
    }
    let buffer = Buffer::from_vec(words).slice_with_length(0, bytes.len());
    let data = ArrayData::builder(data_type.clone()).len(len).nulls(nulls).add_buffer(buffer);
    make_array(data.child_data(children).build().expect("parts that fit"))
}

/// Offsets that start above 0 half of the time, and bytes that continue after the last offset.
fn strings(len: usize, rng: &mut Random, one: impl Fn(&mut Random) -> Vec<u8>) -> (Vec<usize>, Buffer) {
    let mut bytes = "é".repeat(rng.below(2) * 3).into_bytes();
    let mut offsets = vec![bytes.len()];
    for _ in 0..len {
        bytes.extend(one(rng));
        offsets.push(bytes.len());
    }
    bytes.extend(b"behind");
    (offsets, Buffer::from_vec(bytes))
}

fn offsets_32(offsets: Vec<usize>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(offsets.into_iter().map(|offset| offset as i32).collect())
}

fn offsets_64(offsets: Vec<usize>) -> OffsetBuffer<i64> {
    OffsetBuffer::new(offsets.into_iter().map(|offset| offset as i64).collect())
}

/// Views into up to three data buffers; some views share bytes.
fn views(
    len: usize,
    rng: &mut Random,
    one: impl Fn(&mut Random) -> Vec<u8>,
) -> (ScalarBuffer<u128>, Vec<Buffer>) {
    let mut data: Vec<Vec<u8>> = vec![vec![]; 1 + rng.below(3)];
    let mut last = None;
    let mut view = |_| match last {
        Some(last) if rng.percent(10.0) => last,
        _ => {
            let (value, block) = (one(rng), rng.below(data.len()));
            let offset = data[block].len();
            if value.len() > 12 {
                data[block].extend(&value);
            }
            *last.insert(make_view(&value, block as u32, offset as u32))
        }
    };
    let views = (0..len).map(&mut view).collect();
    (views, data.into_iter().map(Buffer::from_vec).collect())
}

/// Offsets of short lists: null rows have items too, and the first offset may be above 0.
fn offsets(len: usize, rng: &mut Random) -> Vec<usize> {
    let mut end = rng.below(2) * 3;
    let mut offsets = vec![end];
    for _ in 0..len {
        end += [0, 1, 2, 5][rng.below(4)];
        offsets.push(end);
    }
    offsets
}

/// The items that these offsets need, and two more.
fn items(field: &Field, offsets: &[usize], nulls: Nulls, rng: &mut Random) -> ArrayRef {
    child(field, offsets[offsets.len() - 1] + 2, nulls, rng)
}

/// The offsets and sizes of list views in `len + 5` items: in no order, with gaps and overlaps.
fn extents(len: usize, rng: &mut Random) -> (Vec<usize>, Vec<usize>) {
    let mut extent = |_| {
        let start = rng.below(len + 5);
        (start, rng.below(4).min(len + 5 - start))
    };
    (0..len).map(&mut extent).unzip()
}

fn union(members: &UnionFields, mode: UnionMode, len: usize, nulls: Nulls, rng: &mut Random) -> UnionArray {
    let mut used = vec![0; members.len()];
    let mut offsets = vec![];
    let mut ids = vec![];
    for _ in 0..len {
        let member = rng.below(members.len());
        ids.push(members.iter().nth(member).expect("below their number").0);
        // A child may have rows that no row refers to.
        used[member] += rng.below(10) / 9;
        offsets.push(used[member] as i32);
        used[member] += 1;
    }
    let dense = mode == UnionMode::Dense;
    let rows = |member: usize| if dense { used[member] } else { len };
    let children =
        members.iter().enumerate().map(|(i, (_, field))| child(field, rows(i), nulls, rng)).collect();
    let offsets = dense.then(|| ScalarBuffer::from(offsets));
    UnionArray::try_new(members.clone(), ids.into(), offsets, children).expect("a union that fits")
}

/// Keys that leave some values unused, values that may be null or duplicates, and arbitrary keys under nulls.
fn dictionary(
    data_type: &DataType,
    key: &DataType,
    of: &DataType,
    len: usize,
    nulls: Nulls,
    rng: &mut Random,
) -> ArrayRef {
    let distinct = if len == 0 { rng.below(3) } else { 1 + rng.below(20) };
    let below = nulls.below(true, rng);
    let values = array(of, distinct, below, rng);
    let validity = validity(nulls, len, rng);
    let width = key.primitive_width().expect("keys are integers");
    let keys = (0..len).flat_map(|i| match &validity {
        Some(validity) if validity.is_null(i) && rng.percent(50.0) => vec![0x7f; width],
        _ => rng.below(distinct.div_ceil(2).max(1)).to_le_bytes()[..width].to_vec(),
    });
    let keys = keys.collect();
    from_parts(data_type, len, keys, validity, vec![values.to_data()])
}

/// Runs of one to six rows; half of the time a slice of a longer array, which cuts the first run.
fn run_ends(
    data_type: &DataType,
    ends: &Field,
    values: &Field,
    len: usize,
    nulls: Nulls,
    rng: &mut Random,
) -> ArrayRef {
    let before = rng.below(2) * rng.below(9);
    let width = ends.data_type().primitive_width().expect("run ends are integers");
    assert!(width > 2 || before + len <= i16::MAX as usize, "16-bit run ends cannot reach {len} rows");
    let (mut bytes, mut runs, mut end) = (vec![], 0, 0);
    while end < before + len {
        end = (end + 1 + rng.below(6)).min(before + len);
        bytes.extend(&end.to_le_bytes()[..width]);
        runs += 1;
    }
    let ends = from_parts(ends.data_type(), runs, bytes, None, vec![]);
    let values = child(values, runs, nulls, rng);
    let data = ArrayData::builder(data_type.clone()).len(before + len);
    let data = data.child_data(vec![ends.to_data(), values.to_data()]).build().expect("runs that fit");
    make_array(data).slice(before, len)
}
