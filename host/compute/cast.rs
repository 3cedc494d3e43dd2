//! Casts with arrow-cast's semantics, for every pair of types that arrow-cast supports.
//!
//! A cast takes one of four ways. If the bits do not change, the result shares the input's buffers. If every
//! value is converted by itself, [`cast_rule`] selects the function and the device maps it. If one of the two
//! types is text, `cast_rule` selects a parser or formatter. The rest, mostly nested types, goes through
//! arrow-cast on the CPU; GPUs decompose it.

mod formats;
mod misfits;
mod rules;

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_cast::can_cast_types;
use arrow_schema::{ArrowError, DataType, Field, FieldRef};

pub use arrow_cast::CastOptions;
pub use arrow_cast::display::{DurationFormat, FormatOptions};

use super::{Columns, admit_all, nullability};
use crate::array::{children, forbids_nulls};
use crate::device::{HostPool, interrupt};
use crate::ffi::DeviceType;
use crate::gpu::map::Column;
use crate::{DeviceArray, Error, Pending, Result, Stream, cpu, exchange, gpu, pass};
use formats::Formats;
use rules::{CastRule, cast_rule, reading_words, writing_words, zoned_words};

/// The number of rows from which arrow-cast works on a separate thread.
const LONG: usize = 1 << 20;

/// Whether [`cast`] supports a cast between these types; single values may still not fit. A struct may lose
/// fields: the target's fields are selected by name, or, if a name is new, by position. arrow-cast performs
/// such casts, although its `can_cast_types` returns false.
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

/// Casts an array to another type, or each column of a batch to the type of the field at its position, with
/// arrow-cast's semantics. A batch takes the names of the target schema.
///
/// If the options are `safe` (the default), a value that does not fit the target type becomes null. Otherwise
/// it is [`Error::Cast`] with the first such row: at once on the CPU, and on a GPU for the first caller that
/// waits for the array. A list that is cast to text contains the error message instead, whatever the options,
/// because arrow displays lists this way. Buffers are shared if the bits do not change.
///
/// Nulls under a field of a schema that is not nullable are [`Error::Invalid`], whether they were in the
/// batch already or a safe cast made them. The error is returned at once if the number of nulls is known or
/// the array is in host memory, and otherwise to the first caller that waits for that column. Visible nulls
/// under such a field inside of a nested type are an error in the same way, [`Error::Arrow`].
///
/// GPUs do not support custom text formats ([`CastOptions::format_options`]), texts that name a time zone
/// themselves, or lists of unions as text.
///
/// Synchronises only if a device must compute a size that depends on the data:
///
/// - the number of bytes of values as text, of the data behind views, and of bytes that become text
/// - the items of lists, in a cast that may fail or to a type with an inner field that is not nullable (then
///   also for lists of fixed size that may be null)
/// - the items of list views that become lists, and of lists that become text (these become text first)
/// - the number of runs or values in an array that becomes run-end encoded or a dictionary
///
/// If the moved values are strings or lists, this takes one more synchronisation, as in
/// [`take`](super::take). A dictionary is built in rounds, nearly always few enough for one synchronisation;
/// each synchronisation resolves at least some values. The columns of a batch synchronise together. On a GPU
/// all numeric columns are cast together, with one launch for each column that changes, and one event for all
/// of them. So a value that does not fit is an error for the first caller that waits for any of these.
pub fn cast<C: Columns>(
    values: &C,
    to: &C::Target,
    options: &CastOptions<'_>,
    stream: &Stream,
) -> Pending<C> {
    Pending::begun(|| begin(values, to, options, stream))
}

fn begin<C: Columns>(
    values: &C,
    to: &C::Target,
    options: &CastOptions<'_>,
    stream: &Stream,
) -> Result<Pending<C>> {
    let _current = stream.enter()?;
    let (frame, types) = values.target(to)?;
    let Some(formats) = stream.as_gpu().and_then(|_| Formats::of(&options.format_options)) else {
        // On the CPU nothing waits for a device. A formatter of the caller's own is borrowed for this call.
        let columns: Vec<(&DeviceArray, &DataType)> = values.arrays().iter().zip(types).collect();
        let casted = pass::block_on(cast_columns(&columns, options, stream))?;
        return Ok(Pending::known(framed(frame, casted, values.rows(), stream)));
    };
    let (arrays, types) = (values.arrays().to_vec(), types.into_iter().cloned().collect::<Vec<_>>());
    let (safe, rows, on) = (options.safe, values.rows(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let options = CastOptions { safe, format_options: formats.options() };
        let columns: Vec<(&DeviceArray, &DataType)> = arrays.iter().zip(&types).collect();
        let casted = cast_columns(&columns, &options, &on).await?;
        framed(frame, casted, rows, &on)
    }))
}

fn framed<C: Columns>(
    frame: C::Frame,
    mut casted: Vec<DeviceArray>,
    rows: usize,
    stream: &Stream,
) -> Result<C> {
    if let Some(schema) = C::schema(&frame) {
        casted = nullability::held_to(schema, casted, stream)?;
    }
    C::framed(frame, casted, rows)
}

/// Casts part of an array.
async fn cast_part(
    values: &DeviceArray,
    to: &DataType,
    options: &CastOptions<'_>,
    stream: &Stream,
) -> Result<DeviceArray> {
    let casted = cast_columns(&[(values, to)], options, stream).await?;
    casted.into_iter().next().ok_or_else(|| Error::invalid("cast", "no array"))
}

/// Writes plain values as LargeUtf8. Values without a textual form have no bytes.
async fn write_part(values: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let unsupported = || unsupported(values, &DataType::LargeUtf8, stream.device().place().device_type);
    let CastRule::Write(writing) = cast_rule(values.data_type(), &DataType::LargeUtf8) else {
        return Err(unsupported());
    };
    let words = writing_words(values.data_type());
    let written = gpu::written::write((writing, &words), values, &DataType::LargeUtf8, false, stream);
    written.await?.map_err(|_| unsupported())
}

/// The public operations that casts of parts call.
const INSIDE: gpu::cast::Inside = gpu::cast::Inside {
    cast: |values, to, options, stream| Box::pin(cast_part(values, to, options, stream)),
    write: |values, stream| Box::pin(write_part(values, stream)),
    misfits: misfits::misfits,
};

async fn cast_columns(
    columns: &[(&DeviceArray, &DataType)],
    options: &CastOptions<'_>,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    let arrays = admit_all("cast", columns.iter().map(|(values, _)| *values), stream)?;
    let device = stream.device().place().device_type;
    // Checks all columns before any work is done.
    for (values, (_, to)) in arrays.iter().zip(columns) {
        if has_negative_size(to) {
            return Err(Error::invalid("cast", format!("{to} is not an Arrow type")));
        }
        if !can_cast(values.data_type(), to) {
            return Err(unsupported(values, to, device));
        }
    }
    if device == DeviceType::Cpu {
        let mut casted = vec![];
        for (values, (_, to)) in arrays.iter().zip(columns) {
            casted.push(cast_one(cast_rule(values.data_type(), to), values, to, options, stream).await?);
        }
        return Ok(casted);
    }
    let (mut together, mut apart, mut places) = (vec![], vec![], vec![]);
    for (values, (_, to)) in arrays.iter().zip(columns) {
        let call = match cast_rule(values.data_type(), to) {
            CastRule::Map(call) => Some(call),
            CastRule::Zero => None,
            rule => {
                apart.push(cast_one(rule, values, to, options, stream));
                places.push(Place::Apart);
                continue;
            }
        };
        together.push(Column { values, to, call });
        places.push(Place::Together);
    }
    let mut together = gpu::map::map("cast", &together, options.safe, stream)?.into_iter();
    let mut apart = pass::all(apart).await?.into_iter();
    let casted = places.into_iter().map(|place| match place {
        Place::Together => together.next(),
        Place::Apart => apart.next(),
    });
    Ok(casted.flatten().collect())
}

/// Whether a column is cast in the pass that all plain columns share.
enum Place {
    Together,
    Apart,
}

/// Whether any part of the type has a negative size. arrow-cast would calculate with it.
fn has_negative_size(to: &DataType) -> bool {
    match to {
        DataType::FixedSizeBinary(size) | DataType::FixedSizeList(_, size) if *size < 0 => true,
        DataType::Dictionary(_, values) => has_negative_size(values),
        to => children(to).into_iter().any(has_negative_size),
    }
}

/// Casts a column that is not part of the common pass.
async fn cast_one(
    rule: CastRule,
    values: &DeviceArray,
    to: &DataType,
    options: &CastOptions<'_>,
    stream: &Stream,
) -> Result<DeviceArray> {
    let device = stream.device().place().device_type;
    let pool = stream.device().host_pool();
    match (rule, device) {
        (CastRule::Same, _) => same_bits(values, to),
        (CastRule::Map(call), _) => {
            let casted = cpu::map::map(&call, values, to, options.safe, pool)?;
            casted.map_err(|row| does_not_fit(values, row, to))
        }
        (CastRule::Zero, _) => cpu::map::zeros(values, to, pool),
        (CastRule::Write(_), _) if options.format_options != FormatOptions::default() => match device {
            DeviceType::Cpu => by_arrow(values, to, options, pool),
            _ => Err(unsupported(values, to, device)),
        },
        (CastRule::Read(reading), DeviceType::Cpu) => {
            match cpu::written::read((reading, &reading_words(to)), values, to, options.safe, pool)? {
                cpu::written::Read::Values(values) => Ok(values),
                cpu::written::Read::Misfit(row) => {
                    Err(says_no_value(&values.slice(row, 1)?, row, to, options))
                }
                // Only arrow knows all zones by name.
                cpu::written::Read::Elsewhere => by_arrow(values, to, options, pool),
            }
        }
        (CastRule::Write(writing), DeviceType::Cpu) => {
            let written =
                cpu::written::write((writing, &writing_words(values.data_type())), values, to, pool)?;
            written.or_else(|row| Err(says_no_value(&values.slice(row, 1)?, row, to, options)))
        }
        (CastRule::Overflow | CastRule::InvalidTarget, _) => {
            let why = refused(values.data_type(), to, &CastOptions::default());
            Err(why.unwrap_or_else(|| unsupported(values, to, device)))
        }
        (CastRule::Read(reading), _) => {
            let (from, into) = (values.data_type().clone(), to.clone());
            let unread: Option<gpu::written::Unread> = match options.safe {
                true => None,
                false => Some(Box::new(move |row, text, len| unread(row, text, len, from, into))),
            };
            gpu::written::read((reading, &reading_words(to)), values, to, unread, stream).await
        }
        (CastRule::Write(writing), _) => {
            let words = writing_words(values.data_type());
            match gpu::written::write((writing, &words), values, to, true, stream).await? {
                Ok(written) => Ok(written),
                Err(row) => {
                    let one = stream.download_later(&values.slice(row, 1)?)?.await?;
                    pass::readable(std::slice::from_ref(&one)).await;
                    Err(says_no_value(&one, row, to, options))
                }
            }
        }
        (_, DeviceType::Cpu) => by_arrow(values, to, options, pool),
        (CastRule::NeedsZone, _) => {
            match zoned_words(values.data_type(), to) {
                Some(words) => gpu::written::cast_zoned(&words, values, to, options.safe, stream),
                None => Err(refused(values.data_type(), to, options)
                    .unwrap_or_else(|| unsupported(values, to, device))),
            }
        }
        _ => {
            // The cast fails regardless of the values, for example because a time zone is unknown.
            if let Some(why) = refused(values.data_type(), to, options) {
                return Err(why);
            }
            let casted = gpu::cast::cast(values, to, options, stream, INSIDE).await?;
            casted.ok_or_else(|| unsupported(values, to, device))
        }
    }
}

fn unsupported(values: &DeviceArray, to: &DataType, device: DeviceType) -> Error {
    let data_type = format!("{} to {to}", values.data_type());
    Error::Unsupported { operation: "cast", data_type, device }
}

/// Shares the buffers under another type.
fn same_bits(values: &DeviceArray, to: &DataType) -> Result<DeviceArray> {
    if values.data_type() == to {
        return Ok(values.clone());
    }
    let mut parts = values.clone().into_parts();
    parts.data_type = to.clone();
    // All text is valid as bytes, and values of fixed width may have any bits.
    DeviceArray::made(parts, values.known_valid())
}

/// The error of arrow-cast if it refuses the cast regardless of the values.
fn refused(from: &DataType, to: &DataType, options: &CastOptions<'_>) -> Option<Error> {
    let none = arrow_array::new_empty_array(from);
    arrows(&none, to, options).err()
}

/// Casts with arrow-cast on a thread that can be abandoned, unless the caller supplies its own formatter.
fn by_arrow(
    values: &DeviceArray,
    to: &DataType,
    options: &CastOptions<'_>,
    pool: &HostPool,
) -> Result<DeviceArray> {
    let Some(formats) = Formats::of(&options.format_options) else {
        return by_arrow_here(values, to, options, pool);
    };
    let (own, target, safe, pool) = (values.clone(), to.clone(), options.safe, pool.clone());
    interrupt::apart(is_long(values), move || {
        let options = CastOptions { safe, format_options: formats.options() };
        by_arrow_here(&own, &target, &options, &pool)
    })
}

/// Whether any part of an array has many rows: a few lists may have many items.
fn is_long(values: &DeviceArray) -> bool {
    values.len() >= LONG || values.children().iter().chain(values.dictionary()).any(is_long)
}

/// Casts with arrow-cast on this thread. arrow-cast allocates freely, so the memory that it may need is
/// reserved first.
fn by_arrow_here(
    values: &DeviceArray,
    to: &DataType,
    options: &CastOptions<'_>,
    pool: &HostPool,
) -> Result<DeviceArray> {
    if cpu::cast_bytes::describes_more(values) {
        // Reading all of it takes as long as writing it would.
        drop(pool.reserve(cpu::cast_bytes::of_cast(values, to, options)?)?);
    }
    let theirs = exchange::to_arrow(values)?;
    let reserved = pool.reserve(cpu::cast_bytes::of_cast(values, to, options)?)?;
    let refusal = match arrows(&theirs, to, options) {
        Ok(casted) => {
            let casted = exchange::from_arrow(&casted)?;
            if forbids_nulls(to) {
                held_inside(&casted)?;
            }
            return exchange::counted(casted, &[values], reserved);
        }
        Err(refusal) => refusal,
    };
    // arrow-cast does not report the row. If a row is at fault, the rows before it can be cast. If not, no
    // row is: arrow-cast casts all values of a dictionary, even those that no row refers to.
    let fails =
        |rows, safe| arrows(&theirs.slice(0, rows), to, &CastOptions { safe, ..options.clone() }).is_err();
    if let Error::Arrow { problem, .. } = &refusal
        && !options.safe
        && !fails(0, false)
        && !fails(theirs.len(), true)
    {
        let (mut good, mut bad) = (0, theirs.len());
        while good + 1 < bad {
            let middle = good + (bad - good) / 2;
            *if fails(middle, false) { &mut bad } else { &mut good } = middle;
        }
        let (from, to, problem) = (values.data_type().clone(), to.clone(), problem.clone());
        return Err(Error::Cast { row: good, from, to, problem });
    }
    Err(refusal)
}

/// Checks arrow-cast's result for nulls under inner fields that are not nullable. arrow-cast does not check
/// when it makes lists of lists of fixed size, whose null rows may have hidden some.
fn held_inside(casted: &DeviceArray) -> Result<()> {
    exchange::lacks_nulls(casted).map_err(|error| match error {
        Error::OutOfSpec { problem, .. } => Error::Arrow { operation: "cast", problem },
        other => other,
    })
}

/// Calls arrow-cast; a panic becomes an error.
fn arrows(values: &dyn arrow_array::Array, to: &DataType, options: &CastOptions<'_>) -> Result<ArrayRef> {
    exchange::guarded("cast", || {
        let refused = |error: ArrowError| Error::Arrow { operation: "cast", problem: error.to_string() };
        arrow_cast::cast_with_options(values, to, options).map_err(refused)
    })
}

/// Reproduces arrow-cast's error for a text on a device that cannot be parsed. `text` is the beginning of
/// that text.
fn unread(row: usize, text: &[u8], len: usize, from: DataType, to: DataType) -> Error {
    let whole = std::str::from_utf8(text).ok().filter(|_| text.len() == len);
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let said = whole.map(|text| arrows(&StringArray::from(vec![text]), &to, &strict));
    match said {
        Some(Err(Error::Arrow { problem, .. })) => Error::Cast { row, from, to, problem },
        _ => Error::Cast { row, from, to, problem: "the text says no value of the type".to_owned() },
    }
}

/// Reproduces arrow-cast's error for a row that cannot be parsed or formatted.
fn says_no_value(one: &DeviceArray, row: usize, to: &DataType, options: &CastOptions<'_>) -> Error {
    let theirs = exchange::to_arrow(one);
    let strict = CastOptions { safe: false, ..options.clone() };
    match theirs.and_then(|one| arrows(&one, to, &strict)) {
        Err(Error::Arrow { problem, .. }) => {
            Error::Cast { row, from: one.data_type().clone(), to: to.clone(), problem }
        }
        Err(other) => other,
        Ok(_) => {
            let problem = "the value does not fit".to_owned();
            Error::Cast { row, from: one.data_type().clone(), to: to.clone(), problem }
        }
    }
}

/// The error for a row whose value does not fit. Includes the value if it can be displayed.
fn does_not_fit(values: &DeviceArray, row: usize, to: &DataType) -> Error {
    let shown = values.slice(row, 1).and_then(|one| exchange::to_arrow(&one)).and_then(|one| {
        let options = FormatOptions::default();
        exchange::guarded("cast", || {
            let shown = arrow_cast::display::ArrayFormatter::try_new(&one, &options);
            Ok(shown.ok().and_then(|shown| shown.value(0).try_to_string().ok()))
        })
    });
    let problem = match shown.ok().flatten() {
        Some(value) => format!("{value} does not fit"),
        None => "the value does not fit".to_owned(),
    };
    Error::Cast { row, from: values.data_type().clone(), to: to.clone(), problem }
}
