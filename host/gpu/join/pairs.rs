//! Pairs of rows, and marks of rows.

use arrow_schema::DataType::{Boolean, UInt32};
use bowstring_kernels::join::pairs::{COUNT, Count, MARK, Mark, WRITE, Write};
use bowstring_kernels::memory::Out;

use crate::array::{Bitmap, DeviceArray};
use crate::gpu::filter::filter;
use crate::gpu::mask::Source;
use crate::gpu::scan::sums_before;
use crate::gpu::structure::{booleans, counted};
use crate::pass::{Pass, Pending, Region, input, validity};
use crate::{Error, Result, Stream};

/// Rows in the order of their groups.
#[derive(Clone)]
pub(super) struct Ordered {
    /// The places of each group: the first, and the end.
    pub spans: DeviceArray,
    pub order: DeviceArray,
}

/// Returns pairs: for each row that was found, the rows of its group, of which each has one if there is no
/// order; with `outer`, one without a row for each that was not found. Rows are numbered from `first` on.
/// More than `most` pairs of a table with an order are an error.
pub(super) fn pairs(
    ordered: Option<&Ordered>,
    found: &DeviceArray,
    first: usize,
    (outer, most): (bool, u64),
    stream: &Stream,
) -> Result<Pending<[DeviceArray; 2]>> {
    let (ordered, found, on) = (ordered.cloned(), found.clone(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let mut pass = Pass::begin("join", &on)?;
        let rows = found.len();
        if rows == 0 {
            let none = pass.output(0)?;
            let none = [pass.array(UInt32, 0, &none)?, pass.array(UInt32, 0, &none)?];
            pass.finish()?;
            return Ok(none);
        }
        pass.input(&found)?;
        let Some(Ordered { spans, order }) = ordered else {
            let numbers = counted(&mut pass, first, rows, 4)?;
            let numbers = pass.array(UInt32, rows, &numbers)?;
            pass.finish()?;
            return of_unique_keys(found, numbers, outer, &on).await;
        };
        pass.input(&order)?;
        pass.input(&spans)?;
        let spans = input(&spans.buffers()[0]);
        let (valid, valid_offset) = validity(&found);
        let groups = input(&found.buffers()[0].slice(found.offset() * 4, Some(rows * 4)));
        let counts = pass.rows(rows, 4)?;
        let before = pass.rows(rows.saturating_add(1), 8)?;
        let args = Count {
            found: groups,
            valid,
            valid_offset,
            rows: rows as u64,
            spans,
            outer: outer.into(),
            counts: counts.out(),
        };
        pass.launch(&COUNT[0], &args)?;
        sums_before(&mut pass, &counts, rows, 8, &before)?;
        let total = pass.read(&[&before.piece(rows * 8, 8)]).await?[0];
        let device = on.device().place().device_type;
        let pairs = usize::try_from(total).ok().filter(|_| total <= most);
        let pairs = pairs.ok_or(Error::TooManyPairs { pairs: total, device })?;
        let room = |pass: &mut Pass| pass.rows(pairs, 4).map_err(|error| error.of_pairs(total));
        let (out, out_rows) = (room(&mut pass)?, room(&mut pass)?);
        let marks = if outer { Some(pass.output(pairs.div_ceil(32) * 4)?) } else { None };
        if pairs > 0 {
            let args = Write {
                found: groups,
                valid,
                valid_offset,
                rows: rows as u64,
                first: first as u64,
                spans,
                order: input(&order.buffers()[0]),
                before: before.input(),
                pairs: total,
                out: out.out(),
                out_valid: marks.as_ref().map_or(Out::absent(), Region::out),
                out_rows: out_rows.out(),
            };
            pass.launch(&WRITE[0], &args)?;
        }
        let mut parts = pass.array(UInt32, pairs, &out)?.into_parts();
        if let Some(marks) = marks {
            parts.validity = Some(Bitmap { buffer: marks.buffer(), offset: 0 });
            parts.null_count = None;
        }
        let made = [DeviceArray::try_new(parts)?, pass.array(UInt32, pairs, &out_rows)?];
        pass.finish()?;
        Ok(made)
    }))
}

/// Returns the pairs of rows in a table whose rows are groups of their own: each that was found has one.
async fn of_unique_keys(
    found: DeviceArray,
    numbers: DeviceArray,
    outer: bool,
    stream: &Stream,
) -> Result<[DeviceArray; 2]> {
    let Some(valid) = found.possible_nulls().filter(|_| !outer) else {
        return Ok([found, numbers]);
    };
    let mask = booleans(&found, valid)?;
    let mut parts = found.into_parts();
    (parts.validity, parts.null_count) = (None, Some(0));
    let rows = DeviceArray::try_new(parts)?;
    let kept = filter(&[&rows, &numbers], Source::Array(&mask), stream)?.await?;
    kept.columns.try_into().map_err(|_| Error::invalid("join", "columns"))
}

/// Marks the rows, of so many, that are among some.
pub(crate) fn mark(of: &DeviceArray, rows: usize, stream: &Stream) -> Result<DeviceArray> {
    let mut pass = Pass::begin("join", stream)?;
    pass.input(of)?;
    let marks = pass.zeroed(rows.div_ceil(32) * 4)?;
    if !of.is_empty() {
        let (valid, valid_offset) = validity(of);
        let args = Mark {
            of: input(&of.buffers()[0].slice(of.offset() * 4, Some(of.len() * 4))),
            valid,
            valid_offset,
            rows: of.len() as u64,
            marks: marks.out(),
        };
        pass.launch(&MARK[0], &args)?;
    }
    let marked = pass.array(Boolean, rows, &marks)?;
    pass.finish()?;
    Ok(marked)
}
