//! Casts on a GPU, by what the types are made of: [`map`](super::map) has the types of fixed width, [`text`] strings and binaries,
//! [`nested`] what has children, [`dictionary`] dictionaries.
//!
//! The one idea: whatever changes the shape of an array (offsets, views, keys) is a pass of its own kind, and casts what is
//! inside by the public cast again, as arrow-cast does; the caller passes that in. What a type is made of decides; no pair is listed
//! twice, and a pair that nobody here knows is `None`.

mod dictionary;
mod nested;
mod text;

use arrow_cast::CastOptions;
use arrow_schema::DataType;
use bowstring_kernels::memory::In;
use bowstring_kernels::offsets::{CONVERT, Convert, OFFENDER, Offender, REGULAR, Regular};
use bowstring_kernels::target::find;

use crate::array::{Array, Buffer, layout};
use crate::gpu::nulls_of;
use crate::pass::{Pass, Reach, Region};
use crate::{Error, Result, Stream};

/// Casts a part of an array, whatever way there is.
pub(crate) type CastInside = dyn Fn(&Array, &DataType, &CastOptions<'_>) -> Result<Array>;

/// A cast on its way down.
#[derive(Clone, Copy)]
struct Cast<'a> {
    options: &'a CastOptions<'a>,
    stream: &'a Stream,
    inside: &'a CastInside,
}

impl Cast<'_> {
    /// The values as another type, whatever way there is.
    fn cast(self, values: &Array, to: &DataType) -> Result<Array> {
        (self.inside)(values, to, self.options)
    }

    /// A pass that reads these.
    fn begin(self, inputs: &[&Array]) -> Result<Pass> {
        let mut pass = Pass::begin("cast", self.stream)?;
        inputs.iter().try_for_each(|input| pass.input(input))?;
        Ok(pass)
    }
}

/// Casts what is not a plain value of fixed width; `None` for pairs of types that no device knows.
pub(crate) fn cast(
    values: &Array,
    to: &DataType,
    options: &CastOptions<'_>,
    stream: &Stream,
    inside: &CastInside,
) -> Result<Option<Array>> {
    use DataType::*;
    let cast = Cast { options, stream, inside };
    // In arrow-cast's order: what stands first wins.
    match (values.data_type(), to) {
        (Null, _) => nested::nulls(cast, values, to),
        (RunEndEncoded(..) | Union(..), _) | (_, RunEndEncoded(..) | Union(..)) => Ok(None),
        (Dictionary(..), _) => dictionary::cast(cast, values, to).map(Some),
        (_, Dictionary(..)) => Ok(None),
        (from, _) if from.is_nested() || to.is_nested() => nested::cast(cast, values, to),
        _ => text::cast(cast, values, to),
    }
}

/// No rows of a type: nothing is on the device.
fn none_of(pass: &Pass, to: &DataType) -> Result<Array> {
    let mut parts = pass.parts(to.clone(), 0);
    let layout = layout(to);
    parts.buffers = layout.slots().map(|_| Buffer::empty()).collect();
    let below = |of: &DataType| none_of(pass, of);
    parts.children = crate::array::children(to).into_iter().map(below).collect::<Result<_>>()?;
    if let DataType::Dictionary(_, of) = to {
        parts.dictionary = Some(none_of(pass, of)?);
    }
    Array::try_new(parts)
}

/// The greatest offset of so many bytes.
fn most(width: usize) -> u64 {
    if width == 4 { i32::MAX as u64 } else { i64::MAX as u64 }
}

fn do_not_fit(elements: u64, to: &DataType) -> Error {
    Error::invalid("cast", format!("{elements} elements do not fit the offsets of {to}"))
}

/// Offsets that are to be written in another width.
struct Offsets {
    offsets: In<u8>,
    /// Bytes of one.
    width: usize,
    /// How many rows they belong to.
    rows: usize,
    /// How far they may point.
    reach: Reach,
    /// What is subtracted.
    base: u64,
}

/// Writes offsets in the width that `to` has. Bad ones, and those that do not fit, are errors when somebody waits for the
/// result.
fn convert_offsets(
    pass: &mut Pass,
    from: &Offsets,
    width: usize,
    values: &Array,
    to: &DataType,
) -> Result<Region> {
    let out = pass.rows(from.rows + 1, width)?;
    let faults = pass.upload(&[u64::MAX; 2])?;
    let entry = find(CONVERT, &[from.width as u32, width as u32]).ok_or_else(|| pass.unsupported(to))?;
    let rows = from.rows as u64;
    let args = Convert {
        offsets: from.offsets,
        rows,
        limit: from.reach.limit,
        end: from.reach.end,
        end_offset: from.reach.end_offset,
        base: from.base,
        most: most(width),
        out: out.out(),
        faults: faults.out(),
    };
    pass.launch(entry, &args)?;
    let (at, to) = (format!("offsets of {}", values.data_type()), to.clone());
    pass.report(&faults, move |words| match (words[0], words[1]) {
        (u64::MAX, u64::MAX) => Ok(()),
        (u64::MAX, row) => {
            let problem = format!("the elements of rows up to {row} do not fit the offsets of {to}");
            Err(Error::Invalid { operation: "cast", problem })
        }
        (row, _) => {
            let problem = format!("row {row} ends before it begins, or beyond what there is");
            Err(Error::OutOfSpec { at, problem })
        }
    })?;
    Ok(out)
}

/// The offsets of `rows` rows of `size` elements each, as `to` has them.
fn regular_offsets(pass: &mut Pass, rows: usize, size: usize, width: usize, to: &DataType) -> Result<Region> {
    let elements = (rows as u64).saturating_mul(size as u64);
    if elements > most(width) {
        return Err(do_not_fit(elements, to));
    }
    let out = pass.rows(rows + 1, width)?;
    let entry = find(REGULAR, &[width as u32]).ok_or_else(|| pass.unsupported(to))?;
    let args = Regular { rows: rows as u64, size: size as u64, out: out.out() };
    pass.launch(entry, &args)?;
    Ok(out)
}

/// Reads some of the offsets. Synchronises.
fn read_offsets(pass: &mut Pass, offsets: In<u8>, width: usize, rows: &[u64]) -> Result<Vec<u64>> {
    let (places, out) = (pass.upload(rows)?, pass.zeroed(8 * rows.len())?);
    let entry = find(OFFENDER, &[width as u32]).ok_or_else(|| pass.unsupported("offsets"))?;
    for i in 0..rows.len() {
        let (row, index) = (places.part(8 * i, 8 * i + 8), out.out().skip(i as u64));
        pass.launch(entry, &Offender { indices: offsets, row, index })?;
    }
    pass.read(&out)
}
