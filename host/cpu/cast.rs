//! Casts on the host. Values that a function maps, and text, take our own loops; arrow-cast has the rest,
//! mostly nested types.

use std::sync::Arc;

use arrow_cast::CastOptions;
use arrow_cast::display::FormatOptions;
use arrow_schema::DataType;

use super::formats::Formats;
use super::{cast_bytes, cast_names, cast_views, map, written};
use crate::array::{DeviceArray, forbids_nulls};
use crate::device::{HostPool, interrupt};
use crate::ffi::DeviceType;
use crate::rules::{
    CastRule, cast_by_arrow, cast_rule, does_not_fit, no_value, of_any_length, reading_words, refusal,
    unsupported, with_arrow_fields, writing_words,
};
use crate::{Error, Result, exchange};

/// The number of rows from which arrow-cast works on a separate thread.
const LONG: usize = 1 << 20;

/// Casts an array to a type. The types are known to be castable.
pub(crate) fn cast(
    values: &DeviceArray,
    to: &DataType,
    options: &CastOptions<'_>,
    pool: &HostPool,
) -> Result<DeviceArray> {
    let from = values.data_type();
    if let Some(views) = runs_of_views(from, to).filter(|_| !values.is_empty()) {
        return by_arrow(&by_arrow(values, &views, options, pool)?, to, options, pool);
    }
    match cast_rule(from, to) {
        CastRule::Same => values.reinterpreted(to),
        CastRule::Map(call) => {
            let casted = map::map(&call, values, to, options.safe, pool)?;
            casted.map_err(|row| does_not_fit(values, row, to))
        }
        CastRule::Zero => map::zeros(values, to, pool),
        CastRule::Write(_) if options.format_options != FormatOptions::default() => {
            by_arrow(values, to, options, pool)
        }
        CastRule::Read(reading) => {
            match written::read((reading, &reading_words(to)), values, to, options.safe, pool)? {
                written::Read::Values(values) => Ok(values),
                written::Read::Misfit(row) => Err(no_value(&values.slice(row, 1)?, row, to, options)),
                // Only arrow knows all zones by name.
                written::Read::Elsewhere => by_arrow(values, to, options, pool),
            }
        }
        CastRule::Write(writing) => {
            let written = written::write((writing, &writing_words(from)), values, to, pool)?;
            written.or_else(|row| Err(no_value(&values.slice(row, 1)?, row, to, options)))
        }
        CastRule::Overflow | CastRule::InvalidTarget => {
            let why = refusal(from, to, &CastOptions::default());
            Err(why.unwrap_or_else(|| unsupported(values, to, DeviceType::Cpu)))
        }
        CastRule::NeedsZone | CastRule::Never => by_arrow(values, to, options, pool),
    }
}

/// The type of runs with views in the place of their text, if they are to become views: rows share these,
/// while arrow-cast would write the text of each row before it makes views.
fn runs_of_views(from: &DataType, to: &DataType) -> Option<DataType> {
    let DataType::RunEndEncoded(ends, of) = from else { return None };
    let is_text = of.data_type() != to && of_any_length(of.data_type()) == to;
    let views = || Arc::new((**of).clone().with_data_type(to.clone()));
    is_text.then(|| DataType::RunEndEncoded(ends.clone(), views()))
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
    let (shown, plain) = (cast_views::without_null_text(values, to, pool)?, with_arrow_fields(to));
    let shown = cast_names::renamed(&shown, &with_arrow_fields(shown.data_type()))?;
    if cast_bytes::describes_more(&shown) {
        // Reading all of it takes as long as writing it would.
        drop(pool.reserve(cast_bytes::of_cast(&shown, &plain, options)?)?);
    }
    let theirs = exchange::to_arrow(&shown)?;
    let reserved = pool.reserve(cast_bytes::of_cast(&shown, &plain, options)?)?;
    let refusal = match cast_by_arrow(&theirs, &plain, options) {
        Ok(casted) => {
            let casted = cast_names::renamed(&exchange::from_arrow(&casted)?, to)?;
            cast_names::lacks_nulls(&casted)?;
            if forbids_nulls(to) {
                held_inside(&casted)?;
            }
            return exchange::counted(casted, &[values], reserved);
        }
        Err(refusal) => refusal,
    };
    // arrow-cast does not report the row. If a row is at fault, the rows before it can be cast. If not, no
    // row is: arrow-cast casts all values of a dictionary, even those that no row refers to.
    let fails = |rows, safe| {
        cast_by_arrow(&theirs.slice(0, rows), &plain, &CastOptions { safe, ..options.clone() }).is_err()
    };
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
