//! Makes arrays of an untrusted producer from an input, with their C structs: of any type, with lies in every
//! field and every buffer.
//!
//! The one idea: memory is exactly as long as the interface, read to the letter, demands for what the structs
//! and their contents say, lies included, and the page after it is inaccessible. A buffer that would take
//! more than [`LARGEST`] bytes is null instead, which an importer can see. So an importer can notice
//! everything that is wrong here, and a read of one byte too many ends the process.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use arrow_schema::{DataType, UnionMode};
use bowstring::array::Place;

use super::input::Input;
use crate::exchange::foreign::{Inside, RawArray, RawDeviceArray, Releases};
use crate::support::{Exact, Random, guarded};

/// The length of the longest buffer.
const LARGEST: usize = 1 << 16;

/// More bytes than any machine has, so no honest producer can mean it.
const IMPOSSIBLE: usize = 1 << 57;

/// The trees of one case; each of their structs is to be released once.
#[derive(Default)]
pub struct Strangers {
    pub releases: Releases,
    structs: usize,
}

/// A buffer's contents, or the length that they would have.
enum Content {
    Bytes(Vec<u8>),
    TooLong(Option<usize>),
}

use Content::{Bytes, TooLong};

impl Strangers {
    /// Counts the releases of so many more things along with the structs'.
    pub fn and(&mut self, more: usize) {
        self.structs += more;
    }

    /// Fails unless every struct was released exactly once.
    pub fn assert_released(&self) {
        assert_eq!(self.releases.count(), self.structs, "structs released");
    }

    /// An array in the memory of this place; the host can read it all the same.
    pub fn array(&mut self, input: &mut Input<'_>, of: &DataType, place: Place) -> RawDeviceArray {
        let rows = input.below(80);
        let raw = self.node(input, of, rows);
        RawDeviceArray {
            device_id: place.device_id,
            device_type: place.device_type as i32,
            reserved: [0; 3],
            ..raw.on_cpu()
        }
    }

    /// Makes one node of the tree, which should have so many rows for its parent.
    fn node(&mut self, input: &mut Input<'_>, of: &DataType, rows: usize) -> RawArray {
        self.structs += 1;
        let length = if input.one_in(32) { input.number() } else { rows as i64 };
        let offset = match input.byte() {
            0..=191 => 0,
            192..=247 => input.below(40) as i64,
            _ => input.number(),
        };
        // The number of rows that its buffers and children must have. If no such number exists, none of them
        // can be right.
        let end = offset.checked_add(length).and_then(|end| usize::try_from(end).ok());
        let end = end.filter(|_| offset >= 0 && length >= 0);
        let rng = &mut input.chance();
        let mut inside = Inside::default();
        let validity = !matches!(of, DataType::Null | DataType::Union(..) | DataType::RunEndEncoded(..));
        let mut null_count = 0;
        if validity {
            let (bits, nulls) = self.validity(input, end, (offset, length), rng);
            null_count = nulls;
            let pointer = bits.map_or(null(), |bits| place(bits, &mut inside, input));
            inside.pointers.push(pointer);
        }
        let Some(rows) = end.filter(|end| *end <= LARGEST || bufferless(of)) else {
            return self.impossible(input, of, (length, offset, end), inside);
        };
        let (contents, below) = contents(input, of, rows, rng);
        for content in contents {
            let pointer = place(content, &mut inside, input);
            inside.pointers.push(pointer);
        }
        let child = |this: &mut Strangers, input: &mut Input<'_>, (of, rows): &(DataType, usize)| {
            let more = if input.one_in(5) { input.below(9) } else { 0 };
            Box::into_raw(Box::new(this.node(input, of, rows.saturating_add(more))))
        };
        let below: Vec<_> = below.iter().map(|below| child(self, input, below)).collect();
        match of {
            DataType::Dictionary(..) => inside.dictionary = below.first().copied(),
            _ => inside.children = below,
        }
        let mut raw = RawArray::over(0, inside, &self.releases);
        (raw.length, raw.offset) = (length, offset);
        raw.null_count = if *of == DataType::Null { length } else { null_count };
        bend(input, of, &mut raw);
        raw
    }

    /// A validity bitmap, and the null count that the struct claims.
    fn validity(
        &self,
        input: &mut Input<'_>,
        end: Option<usize>,
        (offset, length): (i64, i64),
        rng: &mut Random,
    ) -> (Option<Content>, i64) {
        let kind = input.byte();
        if kind < 128 {
            return (None, if kind % 16 == 15 { input.number() } else { 0 });
        }
        let bits = match end.filter(|end| *end <= 8 * LARGEST) {
            Some(end) => (0..end.div_ceil(8)).map(|_| (rng.bits() | rng.bits()) as u8).collect(),
            None => return (Some(TooLong(end.map(|end| end.div_ceil(8)))), 0),
        };
        let null = |row: &i64| {
            let bits: &Vec<u8> = &bits;
            bits[*row as usize / 8] >> (row % 8) & 1 == 0
        };
        let nulls = (offset..offset + length).filter(null).count() as i64;
        let said = match kind % 8 {
            0 | 1 => -1,
            2 => input.number(),
            _ => nulls,
        };
        (Some(Bytes(bits)), said)
    }

    /// An array that must be refused, or that has more rows than fit in memory.
    fn impossible(
        &mut self,
        input: &mut Input<'_>,
        of: &DataType,
        (length, offset, end): (i64, i64, Option<usize>),
        mut inside: Inside,
    ) -> RawArray {
        // Each row takes at least a bit.
        for _ in 0..arrow_buffers(of) {
            let pointer = place(TooLong(end.map(|end| end / 8)), &mut inside, input);
            inside.pointers.push(pointer);
        }
        let mut raw = RawArray::over(0, inside, &self.releases);
        (raw.length, raw.offset) = (length, offset);
        raw
    }
}

/// Changes the fields of a struct so that they lie.
fn bend(input: &mut Input<'_>, of: &DataType, raw: &mut RawArray) {
    // With one buffer fewer, some of a view's data would be the sizes of the rest.
    let buffers = if arrow_data::layout(of).variadic { 3 } else { raw.n_buffers };
    match input.byte() {
        255 => raw.n_buffers = input.number().min(buffers),
        254 => raw.n_children = [-1, 0, i64::MIN][input.below(3)],
        253 => raw.buffers = null_mut(),
        252 if raw.n_children > 0 => raw.children = null_mut(),
        251 => raw.dictionary = null_mut(),
        250 if raw.n_children > 0 => raw.hide_child(input.below(raw.n_children as usize)),
        249 if raw.n_children > 0 => raw.child(input.below(raw.n_children as usize)).release(),
        248 if raw.n_buffers > 0 => *raw.buffer(input.below(raw.n_buffers as usize)) = null(),
        247 if raw.n_buffers == 0 => raw.n_buffers = input.number(),
        246 if raw.n_children == 0 => raw.n_children = input.number(),
        _ => {}
    }
}

/// Places a buffer in memory that ends after its last byte.
fn place(content: Content, inside: &mut Inside, input: &mut Input<'_>) -> *const c_void {
    let (bytes, said) = match content {
        Bytes(bytes) if bytes.len() <= LARGEST => (bytes, None),
        Bytes(bytes) => (vec![], Some(bytes.len())),
        TooLong(said) => (vec![], Some(said.unwrap_or(usize::MAX))),
    };
    if said.is_some_and(|said| said <= IMPOSSIBLE) {
        return null();
    }
    if std::env::var_os("BOWSTRING_SANITIZED").is_some() || input.one_in(8) {
        let exact = Exact::holding(&bytes, usize::from(input.byte()) % 16);
        let pointer = std::ptr::with_exposed_provenance(exact.address());
        inside.memory.push(exact);
        return pointer;
    }
    let elsewhere = guarded(&bytes);
    inside.spoil.push(elsewhere.spoil);
    elsewhere.pointer
}

/// Whether an array of this type has no buffers of its own for its rows.
fn bufferless(of: &DataType) -> bool {
    use DataType::*;
    matches!(of, Null | FixedSizeList(..) | Struct(_) | RunEndEncoded(..) | FixedSizeBinary(0))
}

/// The number of buffers besides validity; for views, of those that always exist.
fn arrow_buffers(of: &DataType) -> usize {
    let layout = arrow_data::layout(of);
    layout.buffers.len() + usize::from(layout.variadic)
}

/// The buffers besides validity for so many rows, and the children with the rows that each must have.
fn contents(
    input: &mut Input<'_>,
    of: &DataType,
    end: usize,
    rng: &mut Random,
) -> (Vec<Content>, Vec<(DataType, usize)>) {
    use DataType::*;
    let fixed = |width: usize, rng: &mut Random| match end.checked_mul(width).filter(|all| *all <= LARGEST) {
        Some(all) => Bytes(rng.bytes(all)),
        None => TooLong(end.checked_mul(width)),
    };
    match of {
        Null => (vec![], vec![]),
        Boolean => (vec![Bytes(rng.bytes(end.div_ceil(8)))], vec![]),
        Utf8 | Binary | LargeUtf8 | LargeBinary => {
            let width = if matches!(of, Utf8 | Binary) { 4 } else { 8 };
            let (offsets, last) = offsets(input, end, width, rng);
            let bytes = match usize::try_from(last) {
                Ok(last) if last <= LARGEST => Bytes(text(input, last, rng)),
                Ok(last) => TooLong(Some(last)),
                Err(_) => Bytes(vec![]),
            };
            (vec![offsets, bytes], vec![])
        }
        Utf8View | BinaryView => (views(input, end, rng), vec![]),
        List(field) | Map(field, _) => {
            let (offsets, last) = offsets(input, end, 4, rng);
            (vec![offsets], vec![(field.data_type().clone(), few(last))])
        }
        LargeList(field) => {
            let (offsets, last) = offsets(input, end, 8, rng);
            (vec![offsets], vec![(field.data_type().clone(), few(last))])
        }
        ListView(field) | LargeListView(field) => {
            let width = if matches!(of, ListView(_)) { 4 } else { 8 };
            let items = 1 + rng.below(20);
            let starts: Vec<i64> = (0..end).map(|_| rng.below(items) as i64).collect();
            let sizes = starts.iter().map(|start| rng.below(items - *start as usize) as i64).collect();
            let buffers = [starts, sizes].map(|numbers| integers(input, numbers, width));
            (buffers.into(), vec![(field.data_type().clone(), items)])
        }
        FixedSizeList(field, size) => {
            (vec![], vec![(field.data_type().clone(), end.saturating_mul(*size as usize))])
        }
        Struct(fields) => (vec![], fields.iter().map(|field| (field.data_type().clone(), end)).collect()),
        Union(members, mode) => {
            let ids: Vec<i64> = members.iter().map(|(id, _)| id.into()).collect();
            let pick = |rng: &mut Random| ids.get(rng.below(ids.len())).copied().unwrap_or(3);
            let named: Vec<i64> = (0..end).map(|_| pick(rng)).collect();
            let rows = 1 + rng.below(20);
            let mut buffers = vec![integers(input, named, 1)];
            if *mode == UnionMode::Dense {
                let rows = (0..end).map(|_| rng.below(rows) as i64).collect();
                buffers.push(integers(input, rows, 4));
            }
            let below = if *mode == UnionMode::Dense { rows } else { end };
            (buffers, members.iter().map(|(_, field)| (field.data_type().clone(), below)).collect())
        }
        Dictionary(key, values) => {
            let width = key.primitive_width().expect("keys are integers");
            let distinct = 1 + rng.below(20);
            let keys = (0..end).map(|_| rng.below(distinct) as i64).collect();
            (vec![integers(input, keys, width)], vec![(values.as_ref().clone(), distinct)])
        }
        RunEndEncoded(ends, values) => {
            let runs = if end == 0 { 0 } else { 1 + rng.below(end.min(12)) };
            (vec![], vec![(ends.data_type().clone(), runs), (values.data_type().clone(), runs)])
        }
        FixedSizeBinary(size) => (vec![fixed(usize::try_from(*size).unwrap_or(0), rng)], vec![]),
        _ => match of.primitive_width() {
            Some(width) => (vec![numbers(input, end, width, rng)], vec![]),
            None => panic!("{of} has no row here"),
        },
    }
}

/// The number of rows that a child needs to reach an offset; few for an offset that no child could reach.
fn few(last: i64) -> usize {
    usize::try_from(last).map_or(0, |last| last.min(LARGEST))
}

/// Numbers: small ones, any, or ascending ones like run ends.
fn numbers(input: &mut Input<'_>, rows: usize, width: usize, rng: &mut Random) -> Content {
    if rows.saturating_mul(width) > LARGEST {
        return TooLong(rows.checked_mul(width));
    }
    let kind = input.byte();
    if width > 8 || kind % 4 == 3 {
        return Bytes(rng.bytes(rows * width));
    }
    let mut last = 0;
    let number = |_| match kind % 4 {
        0 => {
            last += 1 + rng.below(20) as i64;
            last
        }
        1 => rng.below(100) as i64,
        _ => rng.bits() as i64 >> rng.below(64),
    };
    let numbers = (0..rows).map(number).collect();
    integers(input, numbers, width)
}

/// Integers of so many bytes, some of which an input may change.
fn integers(input: &mut Input<'_>, mut numbers: Vec<i64>, width: usize) -> Content {
    if input.one_in(4) && !numbers.is_empty() {
        for _ in 0..=input.below(3) {
            let at = input.below(numbers.len());
            numbers[at] = input.number();
        }
    }
    Bytes(numbers.iter().flat_map(|number| number.to_le_bytes().into_iter().take(width)).collect())
}

/// Offsets, some of which lie, and the last one as an importer reads it.
fn offsets(input: &mut Input<'_>, end: usize, width: usize, rng: &mut Random) -> (Content, i64) {
    let mut at = rng.below(2) as i64 * 3;
    let longest = *input.pick(&[6, 1, 40, 200]);
    let mut all = vec![at];
    for _ in 0..end {
        at += rng.below(longest) as i64;
        all.push(at);
    }
    if input.one_in(3) {
        for _ in 0..=input.below(3) {
            let at = input.below(end + 1);
            all[at] = input.number();
        }
    }
    if end == 0 && input.one_in(4) {
        // An array of no rows needs no offsets.
        return (Bytes(vec![]), 0);
    }
    let last = if width == 4 { i64::from(all[end] as i32) } else { all[end] };
    (integers(&mut Input::new(&[]), all, width), last)
}

/// Bytes in which casts find values; sometimes they are not valid text.
fn text(input: &mut Input<'_>, len: usize, rng: &mut Random) -> Vec<u8> {
    const FOUND: &[u8] = b"0123456789-:.Te+ 012tfrue,{}[]\"x";
    if input.one_in(6) {
        return rng.bytes(len);
    }
    (0..len).map(|_| FOUND[rng.below(FOUND.len())]).collect()
}

/// Views, their data buffers, and the sizes of these.
fn views(input: &mut Input<'_>, rows: usize, rng: &mut Random) -> Vec<Content> {
    let data: Vec<Vec<u8>> = (0..input.below(4)).map(|_| text(input, 13 + rng.below(60), rng)).collect();
    let mut views = vec![];
    for _ in 0..rows {
        let bytes = data.get(rng.below(data.len() + 1));
        let view = match bytes {
            None => {
                let len = rng.below(13);
                [vec![len as u8, 0, 0, 0], text(&mut Input::new(&[]), len, rng), vec![0; 12 - len]].concat()
            }
            Some(bytes) => {
                let which = data.iter().position(|one| std::ptr::eq(one, bytes)).expect("one of them");
                let (start, len) = (rng.below(bytes.len() - 12), 13);
                let words = [len as u32, which as u32, start as u32].map(u32::to_le_bytes);
                [&words[0][..], &bytes[start..start + 4], &words[1], &words[2]].concat()
            }
        };
        views.extend(view);
    }
    if input.one_in(3) && rows > 0 {
        for _ in 0..=input.below(3) {
            let at = input.below(views.len() / 4) * 4;
            views[at..at + 4].copy_from_slice(&(input.number() as i32).to_le_bytes());
        }
    }
    let mut sizes: Vec<i64> = data.iter().map(|bytes| bytes.len() as i64).collect();
    if input.one_in(16) && !sizes.is_empty() {
        let which = input.below(sizes.len());
        // The claimed size may be too small, or impossible.
        let said = input.number();
        sizes[which] = if said > 0 && said <= IMPOSSIBLE as i64 { said.min(sizes[which]) } else { said };
    }
    let has_data = !sizes.is_empty();
    let exact = data.into_iter().zip(&sizes).map(|(mut bytes, size)| {
        bytes.truncate(usize::try_from(*size).unwrap_or(0));
        Bytes(bytes)
    });
    let exact: Vec<Content> = exact.collect();
    let sizes = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
    let sizes = if has_data { Bytes(sizes) } else { Bytes(vec![]) };
    [Bytes(views)].into_iter().chain(exact).chain([sizes]).collect()
}
