//! Functions of each row's value. This file divides the rows into parts and assembles the result;
//! [`super::map_rows`] handles the rows of a part.
//!
//! The one idea: the function and its types are known at run time only. They become compile-time types inside
//! of each part. So this file, and the rayon code that it needs, is compiled once rather than for each of
//! some hundred pairs of types.

use arrow_schema::DataType;
use bowstring_kernels::map::function::Number;
use bowstring_kernels::map::functions::FunctionCall;

use super::bitmap::Bits;
use super::map_narrow::Narrow;
use super::map_rows::{Outcome, Part, Source};
use super::memory;
use crate::array::{Bitmap, Buffer, Parts, layout};
use crate::device::HostPool;
use crate::threads::{among_threads, each_part};
use crate::{DeviceArray, Result};

/// The bytes read and written below which one thread is faster than two.
const PARALLEL: usize = 2 << 20;
/// The bytes that a part reads and writes: well within a core's cache, and well above the cost of handing it
/// over.
const PART: usize = 512 << 10;

/// The new array, or the first row whose value does not fit if that is an error.
pub(crate) type Mapped = std::result::Result<DeviceArray, usize>;

/// Applies a function to every row of an array on the host. If `safe`, values that do not fit become null.
pub(crate) fn map(
    call: &FunctionCall,
    values: &DeviceArray,
    to: &DataType,
    safe: bool,
    pool: &HostPool,
) -> Result<Mapped> {
    let (len, first) = (values.len(), values.offset());
    let (bits_from, bits_to) = (call.from.bits(), call.to.bits());

    let held;
    let source = if call.from == Number::Bit {
        Source::Bits(Bits::new(memory::bytes(&values.buffers()[0]), first, len))
    } else {
        let width = call.from.width();
        let rows = values.buffers()[0].slice(first * width, Some(len * width));
        held = memory::aligned(&rows, width.min(16), pool)?;
        Source::Bytes(memory::bytes(&held), width)
    };
    // If every value fits and nulls stay nulls, the validity of rows makes no difference.
    let asked = call.fallible || call.fills_nulls;
    let valid = values.validity().filter(|_| asked).map(|bitmap| Bits::of(bitmap, len));

    let bytes = (len * bits_to).div_ceil(8);
    // The size is rounded up because the last word is written whole.
    let mut result = pool.alloc(bytes.next_multiple_of(8))?;
    let mut new_validity = (call.fallible && safe).then(|| pool.alloc(len.div_ceil(64) * 8)).transpose()?;
    let narrow = Narrow::of(call);
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
                None => call.visit(part).expect("a call of a function in the list"),
            };
            Outcome { misfit: outcome.misfit.map(|row| start + row), ..outcome }
        },
    )?;

    debug_assert!(call.fallible || outcome.misfit.is_none(), "the call said that everything fits");

    let result = result.freeze(bytes);
    match (outcome.misfit, new_validity) {
        (None, _) if call.fills_nulls => {
            let mut parts = Parts::new(to.clone(), len);
            parts.buffers = vec![result];
            parts.null_count = Some(0);
            DeviceArray::made(parts, true).map(Ok)
        }
        (None, _) => with_nulls_of(values, to, result).map(Ok),
        (Some(_), Some(validity)) => {
            let mut parts = Parts::new(to.clone(), len);
            parts.buffers = vec![result];
            parts.validity = Some(Bitmap { buffer: validity.freeze(len.div_ceil(8)), offset: 0 });
            parts.null_count = Some(outcome.nulls);
            DeviceArray::made(parts, true).map(Ok)
        }
        (Some(row), None) => Ok(Err(row)),
    }
}

/// Makes as many zeros as there are values, with the values' nulls.
pub(crate) fn zeros(values: &DeviceArray, to: &DataType, pool: &HostPool) -> Result<DeviceArray> {
    let width = layout(to).slots().next().and_then(|slot| slot.bytes_for(1)).expect("numbers have a width");
    // Null arrays take no memory, so zeros in their place may exceed the available memory.
    let bytes = values.len().saturating_mul(width);
    with_nulls_of(values, to, memory::zeroed(bytes, pool)?.freeze(bytes))
}

/// Returns these numbers with the validity of another array, which is shared.
pub(super) fn with_nulls_of(
    others: &DeviceArray,
    data_type: &DataType,
    values: Buffer,
) -> Result<DeviceArray> {
    let mut parts = Parts::new(data_type.clone(), others.len());
    parts.buffers = vec![values];
    parts.validity = others.validity().cloned();
    parts.null_count = others.known_null_count();
    DeviceArray::made(parts, true)
}

/// Handles some rows: gets the first row, their number, the memory for their results and for their new
/// validity.
pub(super) type Work<'a> = &'a (dyn Fn(usize, usize, &mut [u8], Option<&mut [u64]>) -> Outcome + Sync);

/// Runs `work` on all rows, in parts on several threads if that pays off. `moved` and `written` are bits for
/// each row.
pub(super) fn in_parts(
    rows: usize,
    moved: usize,
    written: usize,
    to: &mut [u8],
    good: Option<&mut [u64]>,
    work: Work<'_>,
) -> Result<Outcome> {
    among_threads(rows * moved / 8 >= PARALLEL, |large| {
        if !large {
            return Ok(work(0, rows, to, good));
        }
        // A part has whole words of bits, and whole words of values of any width.
        let part = (PART * 8 / moved).next_multiple_of(512);
        let there = |i: usize| part.min(rows - i * part);
        let mut good = good.map(|good| good.chunks_mut(part / 64));
        let parts = to.chunks_mut(part * written / 8).enumerate();
        let parts = parts.map(|(i, to)| (i, to, good.as_mut().and_then(Iterator::next)));
        let outcomes = each_part(parts, |(i, to, good)| work(i * part, there(i), to, good))?;
        Ok(outcomes.into_iter().fold(Outcome::default(), Outcome::and))
    })
}
