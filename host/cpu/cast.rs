//! Casts that convert value by value. This file cuts the rows into parts and puts the result together; what happens
//! to the rows of a part is in [`super::cast_rows`].
//!
//! The types of a cast are known at run time only. They become compile-time types once a part, inside of it: so this
//! file, and all that rayon needs, is compiled once and not for each of some hundred pairs of types.

use arrow_schema::DataType;
use bowstring_kernels::numeric::{Operation, Recipe};
use rayon::prelude::*;

use super::bitmap::Bits;
use super::cast_narrow::Narrow;
use super::cast_rows::{Outcome, Part, Source};
use super::memory;
use super::threads::among_threads;
use crate::array::{Bitmap, Buffer, Parts, layout};
use crate::device::HostPool;
use crate::{Array, Result};

/// Bytes read and written below which one thread is faster than two.
const PARALLEL: usize = 1 << 20;
/// Bytes read and written by a part: well inside a core's cache, well above the cost of handing it over.
const PART: usize = 512 << 10;

/// A cast array, or the first row whose value does not fit where the cast was strict.
pub(crate) type Casted = std::result::Result<Array, usize>;

/// Converts every row of an array on the host. What does not fit becomes null where the cast is `safe`.
pub(crate) fn convert(
    recipe: &Recipe,
    values: &Array,
    to: &DataType,
    safe: bool,
    pool: &HostPool,
) -> Result<Casted> {
    let (len, first) = (values.len(), values.offset());
    let from_bits = recipe.operation == Operation::FromBits;
    let to_bits = recipe.operation == Operation::ToBits;
    let bits_from = if from_bits { 1 } else { 8 * recipe.from.width() };
    let bits_to = if to_bits { 1 } else { 8 * recipe.to.width() };

    let held;
    let source = if from_bits {
        Source::Bits(Bits::new(memory::bytes(&values.buffers()[0]), first, len))
    } else {
        let width = recipe.from.width();
        let rows = values.buffers()[0].slice(first * width, Some(len * width));
        held = memory::aligned(&rows, width.min(16), pool)?;
        Source::Bytes(memory::bytes(&held), width)
    };
    // Where everything fits, nobody asks which rows are valid.
    let valid = values.validity().filter(|_| recipe.fallible).map(|bitmap| Bits::of(bitmap, len));

    let bytes = (len * bits_to).div_ceil(8);
    // Words, for the last of them is written whole.
    let mut result = pool.alloc(bytes.next_multiple_of(8))?;
    let mut new_validity = (recipe.fallible && safe).then(|| pool.alloc(len.div_ceil(64) * 8)).transpose()?;
    let narrow = Narrow::of(recipe);
    let outcome = in_parts(
        len,
        bits_from + bits_to,
        bits_to,
        &mut result.bytes_mut()[..bytes.next_multiple_of(8)],
        new_validity.as_mut().map(|memory| &mut memory::values_mut(memory)[..len.div_ceil(64)]),
        &|start, rows, to, good| {
            let valid = valid.map(|bits| bits.slice(start, rows));
            let part = Part { from: source.slice(start, rows), rows, to, valid, good };
            let outcome = match &narrow {
                Some(narrow) => narrow.convert(part),
                None => recipe.visit(part).expect("a recipe that a plan made"),
            };
            Outcome { misfit: outcome.misfit.map(|row| start + row), ..outcome }
        },
    );

    debug_assert!(recipe.fallible || outcome.misfit.is_none(), "a plan said that everything fits");

    let result = result.freeze(bytes);
    match (outcome.misfit, new_validity) {
        (None, _) => with_nulls_of(values, to, result).map(Ok),
        (Some(_), Some(validity)) => {
            let mut parts = Parts::new(to.clone(), len);
            parts.buffers = vec![result];
            parts.validity = Some(Bitmap { buffer: validity.freeze(len.div_ceil(8)), offset: 0 });
            parts.null_count = Some(outcome.nulls);
            Array::made(parts, true).map(Ok)
        }
        (Some(row), None) => Ok(Err(row)),
    }
}

/// As many zeros as there are values, null where they are.
pub(crate) fn zeros(values: &Array, to: &DataType, pool: &HostPool) -> Result<Array> {
    let width = layout(to).slots().next().and_then(|slot| slot.bytes_for(1)).expect("numbers have a width");
    let bytes = values.len() * width;
    with_nulls_of(values, to, pool.alloc_zeroed(bytes)?.freeze(bytes))
}

/// These numbers under the validity of others, which is shared.
fn with_nulls_of(others: &Array, data_type: &DataType, values: Buffer) -> Result<Array> {
    let mut parts = Parts::new(data_type.clone(), others.len());
    parts.buffers = vec![values];
    parts.validity = others.validity().cloned();
    parts.null_count = others.known_null_count();
    Array::made(parts, true)
}

/// What handles rows: the first and how many, their results, their new validity.
type Work<'a> = &'a (dyn Fn(usize, usize, &mut [u8], Option<&mut [u64]>) -> Outcome + Sync);

/// Runs `work` on all rows: where it pays, in parts on several threads. `moved` and `written` are bits a row.
fn in_parts(
    rows: usize,
    moved: usize,
    written: usize,
    to: &mut [u8],
    good: Option<&mut [u64]>,
    work: Work<'_>,
) -> Outcome {
    among_threads(rows * moved / 8 >= PARALLEL, |parallel| {
        if !parallel {
            return work(0, rows, to, good);
        }
        // Whole words of bits, and of values of any width.
        let part = (PART * 8 / moved).next_multiple_of(512);
        let there = |i: usize| part.min(rows - i * part);
        let parts = to.par_chunks_mut(part * written / 8).enumerate();
        match good {
            Some(good) => parts
                .zip(good.par_chunks_mut(part / 64))
                .map(|((i, to), good)| work(i * part, there(i), to, Some(good)))
                .reduce(Outcome::default, Outcome::and),
            None => {
                parts.map(|(i, to)| work(i * part, there(i), to, None)).reduce(Outcome::default, Outcome::and)
            }
        }
    })
}
