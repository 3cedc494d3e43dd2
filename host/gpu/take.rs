//! Take: values by indices, columns of equal width in one launch. Everything but an error is known beforehand, so
//! nothing is waited for: an index out of range surfaces when somebody waits for the result. Only how much strings and
//! lists have is data: where there are some, the host looks at the totals of all of them, once, and at the null counts.

use arrow_schema::DataType;

use super::ranges::Node;
use super::take_tables::{Count, Taking};
use super::{empty_like, rows_of};
use crate::array::{Array, Bitmap, Parts};
use crate::device::{Gpu, fetch};
use crate::pass::{Pass, Pending};
use crate::{Error, Result, Stream};

/// The rows of columns of `rows` rows at `indices`. Where rows are ranges, the result synchronises once when it is waited
/// for; else it is there.
pub(crate) fn take(
    columns: &[&Array],
    rows: usize,
    indices: &Array,
    null_out_of_bounds: bool,
    stream: &Stream,
) -> Result<Pending<Vec<Array>>> {
    let mut pass = Pass::begin("take", stream)?;
    pass.input(indices)?;
    for column in columns {
        pass.input(column)?;
    }
    if indices.is_empty() {
        index_width(indices)?;
        let taken = columns.iter().map(|column| empty_like(column, &pass)).collect::<Result<_>>()?;
        pass.finish()?;
        return Ok(Pending::known(Ok(taken)));
    }
    if rows == 0 {
        // There is no row to take: nulls, if the indices have nothing else to say. Synchronises, to be sure.
        Taking::new(&mut pass, rows, indices, null_out_of_bounds, &[])?.launch(&mut pass)?;
        let taken = columns
            .iter()
            .map(|column| nulls_like(&mut pass, column, indices.len()))
            .collect::<Result<_>>()?;
        pass.finish()?;
        return Ok(Pending::known(Ok(taken)));
    }
    let mut taking = Taking::new(&mut pass, rows, indices, null_out_of_bounds, columns)?;
    let planned: Vec<Planned> =
        columns.iter().map(|column| taking.column(&mut pass, column)).collect::<Result<_>>()?;
    taking.launch(&mut pass)?;
    let totals = taking.has_ranges.then(|| (taking.status.region.clone(), taking.check()));
    let build = move |mut pass: Pass, words: &[u64]| {
        let build = |planned: Planned| planned.build(&mut pass, &taking, words);
        let taken = planned.into_iter().map(build).collect::<Result<_>>()?;
        pass.finish()?;
        Ok(taken)
    };
    match totals {
        None => Ok(Pending::known(build(pass, &[]))),
        Some((status, check)) => pass.read_later(&status, move |pass, words| {
            check(words)?;
            build(pass, words)
        }),
    }
}

/// `len` null rows like those of `array`.
fn nulls_like(pass: &mut Pass, array: &Array, len: usize) -> Result<Array> {
    let (data_type, layout) = (array.data_type(), array.layout());
    let mut parts = pass.parts(data_type.clone(), len);
    if layout.validity {
        let bits = pass.zeroed(len.div_ceil(8))?;
        parts.validity = Some(Bitmap { buffer: bits.buffer(), offset: 0 });
        parts.null_count = Some(len);
    } else if *data_type != DataType::Null {
        // A union or a run cannot say that a row is null.
        return Err(pass.unsupported(data_type));
    }
    for slot in layout.slots() {
        parts.buffers.push(pass.zeroed_rows(slot, len)?.buffer());
    }
    for child in array.children() {
        parts.children.push(match data_type {
            DataType::Struct(_) => nulls_like(pass, child, len)?,
            DataType::FixedSizeList(_, size) => {
                let rows = pass.times(len, *size as usize)?;
                nulls_like(pass, child, rows)?
            }
            _ => empty_like(child, pass)?,
        });
    }
    parts.dictionary = array.dictionary().cloned();
    Array::try_new(parts)
}

/// The bytes of an index, and the greatest that its type can say.
pub(crate) fn index_width(indices: &Array) -> Result<(usize, u64)> {
    use DataType::*;
    Ok(match indices.data_type() {
        Int8 => (1, i8::MAX as u64),
        UInt8 => (1, u8::MAX.into()),
        Int16 => (2, i16::MAX as u64),
        UInt16 => (2, u16::MAX.into()),
        Int32 => (4, i32::MAX as u64),
        UInt32 => (4, u32::MAX.into()),
        Int64 => (8, i64::MAX as u64),
        UInt64 => (8, u64::MAX),
        other => return Err(Error::invalid("take", format!("indices are {other}, not integers"))),
    })
}

/// An array as far as it is taken before the totals are known.
pub(crate) struct Planned {
    pub parts: Parts,
    /// Where its nulls are counted.
    pub nulls: Option<Count>,
    pub ranges: Option<Node>,
    /// Children that move along.
    pub children: Option<Vec<Planned>>,
}

impl Planned {
    /// The array, once its rows are taken. `words` are the status, or none where nobody has looked.
    fn build(mut self, pass: &mut Pass, taking: &Taking, words: &[u64]) -> Result<Array> {
        if let Some(nulls) = self.nulls.filter(|_| !words.is_empty()) {
            self.parts.null_count = Some(words[taking.place_of(nulls)] as usize);
        }
        if let Some(children) = self.children {
            let build = |child: Planned| child.build(pass, taking, words);
            self.parts.children = children.into_iter().map(build).collect::<Result<_>>()?;
        }
        if let Some(node) = self.ranges {
            node.build(pass, self.parts.len, words, &mut self.parts)?;
        }
        Array::try_new(self.parts)
    }
}

/// An index that was out of range: the device is asked for it when it is to be told, which is seldom.
pub(crate) fn index_at(gpu: &Gpu, indices: &Array, row: usize) -> Result<i128> {
    let (width, _) = index_width(indices)?;
    if row >= indices.len() {
        return Err(Error::invalid("take", format!("the device reports row {row} of {}", indices.len())));
    }
    let mut bytes =
        fetch(gpu, &rows_of(indices, &indices.buffers()[0], width).slice(row * width, None), width)?;
    bytes.resize(8, 0);
    let word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    Ok(match indices.data_type() {
        DataType::Int8 => i128::from(word as i8),
        DataType::Int16 => i128::from(word as i16),
        DataType::Int32 => i128::from(word as i32),
        DataType::Int64 => i128::from(word as i64),
        _ => i128::from(word),
    })
}
