//! Strings and binaries: conversions between offsets and views. Bytes are shared if the result can point into
//! them; only from views to offsets are they copied, end to end.
//!
//! A cast from bytes to text validates each row by itself. A strict cast reports the first row that is not
//! UTF-8, null or not, as arrow-cast does. In a safe cast such a row becomes null, and text must not contain
//! its bytes: views can leave them out, offsets cannot. So if the host finds such rows, the cast continues by
//! way of views.

use arrow_schema::DataType;
use bowstring_kernels::gather::copy::{COPY_VIEWS, CopyViews};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::ranges::views::{BUILD, BufferRow, Build, MEASURE, Measure};
use bowstring_kernels::reduce::scan::{SCAN, Scan};
use bowstring_kernels::target::find;
use bowstring_kernels::text::utf8::{VALIDATE, Validate, validate_waves};

use super::inside::Cast;
use super::offsets::{Offsets, convert_offsets, do_not_fit, most, regular_offsets};
use crate::array::{Buffer, DeviceArray, Slot, layout};
use crate::gpu::bitmap::{aligned, and, not, nulls_of, nulls_or};
use crate::gpu::parts::none;
use crate::gpu::rows::{fixed_width, offsets_of, rows_of};
use crate::gpu::scan::{scan_sums, tiles};
use crate::gpu::text::view_buffers;
use crate::pass::{BitPointer, Pass, Reach, Region, Requests, Table, bytes, validity};
use crate::transfer::sized_buffers;
use crate::{Error, Result};

/// The representation of bytes in a type.
#[derive(Clone, Copy, PartialEq)]
struct ByteLayout {
    /// The bytes of an offset; 0 for views.
    width: usize,
    text: bool,
}

fn byte_layout(data_type: &DataType) -> Option<ByteLayout> {
    use DataType::*;
    let (width, text) = match data_type {
        Utf8 => (4, true),
        LargeUtf8 => (8, true),
        Utf8View => (0, true),
        Binary => (4, false),
        LargeBinary => (8, false),
        BinaryView => (0, false),
        _ => return None,
    };
    Some(ByteLayout { width, text })
}

/// Casts between types of text and bytes, and rows of fixed width to bytes; `None` for others.
pub(super) async fn cast(cast: Cast<'_>, values: &DeviceArray, to: &DataType) -> Result<Option<DeviceArray>> {
    let Some(into) = byte_layout(to) else { return Ok(None) };
    let from = match byte_layout(values.data_type()) {
        Some(from) => from,
        None if into.text => return Ok(None),
        None => return of_fixed_width(cast, values, to, into),
    };
    if values.is_empty() {
        let pass = cast.begin(&[values])?;
        return none(pass, to).map(Some);
    }
    let safe = cast.options.safe && into.text && !from.text;
    match (from.width, into.width) {
        // The views on the way leave bad rows out.
        (0, 4 | 8) if safe => by_views(cast, values, to).await,
        (0, _) => of_views(cast, values, to, into, into.text && !from.text).await,
        _ => of_offsets(cast, values, to, (from, into), safe).await,
    }
    .map(Some)
}

async fn by_views(cast: Cast<'_>, values: &DeviceArray, to: &DataType) -> Result<DeviceArray> {
    let views = cast.cast(values, &DataType::Utf8View).await?;
    cast.cast(&views, to).await
}

/// Casts numbers and fixed-size binaries to bytes: their rows are bytes already.
fn of_fixed_width(
    cast: Cast,
    values: &DeviceArray,
    to: &DataType,
    into: ByteLayout,
) -> Result<Option<DeviceArray>> {
    let from = values.data_type();
    let width = values.layout().slots().next().and_then(fixed_width);
    let (known, Some(size)) = (from.is_integer() || matches!(from, DataType::FixedSizeBinary(_)), width)
    else {
        return Ok(None);
    };
    if !known || into.width == 0 && from.is_integer() {
        return Ok(None);
    }
    let mut pass = cast.begin(&[values])?;
    let parts = pass.parts(to.clone(), values.len());
    let mut parts = nulls_of(&mut pass, values, parts)?;
    let rows = rows_of(values, &values.buffers()[0], size);
    if into.width > 0 {
        parts.buffers = vec![regular_offsets(&mut pass, values.len(), size, into.width, to)?.buffer(), rows];
    } else if values.is_empty() {
        parts.buffers = vec![Buffer::empty()];
    } else {
        let offsets = regular_offsets(&mut pass, values.len(), size, 8, to)?;
        let edges = Edges { offsets: offsets.input(), width: 8, bytes: rows };
        let nulls = validity(values);
        parts.buffers = build_views(&mut pass, values, &edges, nulls)?;
    }
    let casted = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(Some(casted))
}

/// Rows described by offsets, with the bytes that those point into.
pub(super) struct Edges {
    pub offsets: In<u8>,
    pub width: usize,
    pub bytes: Buffer,
}

/// Casts rows that offsets describe.
async fn of_offsets(
    cast: Cast<'_>,
    values: &DeviceArray,
    target: &DataType,
    (from, mut into): (ByteLayout, ByteLayout),
    safe: bool,
) -> Result<DeviceArray> {
    let mut to = target;
    let mut pass = cast.begin(&[values])?;
    let offsets = aligned(&mut pass, &offsets_of(values, from.width), from.width)?;
    let mut edges = Edges { offsets, width: from.width, bytes: values.buffers()[1].clone() };
    let mut good = None;
    if safe {
        let bad = pass.zeroed(values.len().div_ceil(32) * 4)?;
        let fault = pass.upload(&[u64::MAX])?;
        // If the bytes are shared, those of null rows must be valid text too.
        let looked_at = if into.width == 0 { validity(values) } else { (In::absent(), 0) };
        validate(&mut pass, &edges, values.len(), looked_at, bad.out(), &fault)?;
        if into.width > 0 && pass.read(&[&fault]).await?[0] != u64::MAX {
            (to, into) = (&DataType::Utf8View, ByteLayout { width: 0, text: true });
        }
        if into.width == 0 {
            good = Some(without(&mut pass, values, &bad)?);
        }
    } else if into.text && !from.text {
        report_bad_text(&mut pass, &edges, values, to)?;
    }
    let mut parts = pass.parts(to.clone(), values.len());
    if into.width == 0 {
        // Finds the size of the bytes: it decides the number of data buffers.
        if let Some(known) = sized_buffers(&mut pass, std::slice::from_ref(&edges.bytes)).await?.pop() {
            edges.bytes = known;
        }
        let nulls = good.as_ref().map_or_else(|| validity(values), |good| (good.input(), 0));
        parts.buffers = build_views(&mut pass, values, &edges, nulls)?;
        parts = nulls_or(&mut pass, good.as_ref(), values, parts)?;
    } else if into.width == from.width {
        parts.offset = values.offset();
        parts.buffers = values.buffers().to_vec();
        (parts.validity, parts.null_count) = (values.validity().cloned(), values.known_null_count());
    } else {
        let reach = Reach::bytes(&edges.bytes);
        let from = Offsets { offsets, width: from.width, rows: values.len(), reach, base: 0 };
        let offsets = convert_offsets(&mut pass, &from, into.width, values, to)?;
        parts = nulls_of(&mut pass, values, parts)?;
        parts.buffers = vec![offsets.buffer(), edges.bytes];
    }
    let casted = DeviceArray::try_new(parts)?;
    pass.finish()?;
    // The cast went through views on the way to offsets.
    if to == target { Ok(casted) } else { cast.cast(&casted, target).await }
}

/// Copies the bytes of views end to end, and reads their total.
async fn of_views(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    into: ByteLayout,
    unsure: bool,
) -> Result<DeviceArray> {
    let mut pass = cast.begin(&[values])?;
    let rows = values.len();
    let views: In<u8> = aligned(&mut pass, &rows_of(values, &values.buffers()[0], 16), 16)?;
    // Views are untrusted data: they must point inside the buffers, whose sizes are therefore needed.
    let buffers = sized_buffers(&mut pass, &values.buffers()[1..]).await?;
    let table: Table<BufferRow> = buffers
        .iter()
        .map(|buffer| {
            let (bytes, offset) = bytes(buffer);
            let limit = buffer.bytes().map_or(u64::MAX, |bytes| bytes as u64);
            BufferRow { bytes, offset, limit }
        })
        .collect();
    // arrow-cast validates the bytes of null views if the target is text views, and ignores them otherwise.
    let strict = unsure && !cast.options.safe;
    let (valid, valid_offset) = if strict && into.width == 0 { (In::absent(), 0) } else { validity(values) };
    let tiles = tiles(rows);
    let mut requests = Requests::default();
    let (total, fault) = (requests.sum(), requests.first_row());
    let (lens, sums) = (requests.scratch(pass.times(rows, 4)?), requests.scratch(8 * tiles));
    let granted = requests.grant(&mut pass, table.bytes())?;
    let table = pass.upload(table.words())?;
    let (lens, sums) = (&granted[lens], &granted[sums]);
    let args = Measure {
        views: views.cast(),
        valid,
        valid_offset,
        rows: rows as u64,
        buffers: table.input(),
        count: buffers.len() as u64,
        lens: lens.out(),
        sums: sums.out(),
        fault: granted.counter(fault),
    };
    pass.launch(&MEASURE[0], &args)?;
    let bases = scan_sums(&mut pass, sums, tiles, granted.counter(total))?;
    let words = pass.read(&[granted.counters()]).await?;
    let (total, fault) = (total.of(&words), fault.of(&words));
    if fault != u64::MAX {
        let problem = format!("row {fault} points beyond what there is");
        return Err(Error::out_of_spec(format!("views of {}", values.data_type()), problem));
    }
    let width = if into.width == 0 { 8 } else { into.width };
    if total > most(width) {
        return Err(do_not_fit(total, to));
    }
    let offsets = pass.rows(rows + 1, width)?;
    let args = Scan {
        values: lens.input(),
        count: In::absent(),
        len: rows as u64,
        bases: bases.input(),
        out: offsets.out(),
        total: Out::absent(),
    };
    let entry = find(SCAN, &[4, width as u32]).ok_or_else(|| pass.unsupported(to))?;
    pass.launch(entry, &args)?;
    let bytes = pass.output(total as usize)?;
    if total > 0 {
        let args = CopyViews {
            to: offsets.input(),
            views: views.cast(),
            rows: rows as u64,
            buffers: table.input(),
            out: bytes.out(),
            len: total,
        };
        let entry = find(COPY_VIEWS, &[width as u32]).ok_or_else(|| pass.unsupported(to))?;
        pass.launch(entry, &args)?;
    }
    let edges = Edges { offsets: offsets.input(), width, bytes: bytes.buffer() };
    let mut good = None;
    if strict {
        report_bad_text(&mut pass, &edges, values, to)?;
    } else if unsure {
        let bad = pass.zeroed(rows.div_ceil(32) * 4)?;
        let fault = pass.upload(&[u64::MAX])?;
        validate(&mut pass, &edges, rows, validity(values), bad.out(), &fault)?;
        good = Some(without(&mut pass, values, &bad)?);
    }
    let parts = pass.parts(to.clone(), rows);
    let mut parts = nulls_or(&mut pass, good.as_ref(), values, parts)?;
    parts.buffers = match layout(to).slots().next() {
        Some(Slot::Views) => {
            let nulls = good.as_ref().map_or_else(|| validity(values), |good| (good.input(), 0));
            build_views(&mut pass, values, &edges, nulls)?
        }
        _ => vec![offsets.buffer(), edges.bytes],
    };
    let casted = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(casted)
}

/// Sets the bits of rows that are valid but not UTF-8, and lowers `fault` to the first of them.
fn validate(
    pass: &mut Pass,
    edges: &Edges,
    rows: usize,
    (valid, valid_offset): BitPointer,
    bad: Out<u32>,
    fault: &Region,
) -> Result<()> {
    let (bytes, offset) = bytes(&edges.bytes);
    let waves = validate_waves(edges.bytes.bytes().map(|bytes| bytes as u64), pass.width());
    let entry = find(VALIDATE, &[edges.width as u32]).ok_or_else(|| pass.unsupported("text"))?;
    let reach = Reach::bytes(&edges.bytes);
    let args = Validate {
        offsets: edges.offsets,
        valid,
        valid_offset,
        rows: rows as u64,
        bytes,
        offset,
        limit: reach.limit,
        end: reach.end,
        end_offset: reach.end_offset,
        waves,
        bad,
        fault: fault.out(),
    };
    pass.launch(entry, &args)
}

/// Reports the first row that is not UTF-8, null or not, when the result is waited for.
fn report_bad_text(pass: &mut Pass, edges: &Edges, values: &DeviceArray, to: &DataType) -> Result<()> {
    let fault = pass.first_rows(1, values.len())?;
    validate(pass, edges, values.len(), (In::absent(), 0), Out::absent(), &fault)?;
    let (from, to) = (values.data_type().clone(), to.clone());
    pass.report(&fault, move |words| match words[0] {
        u64::MAX => Ok(()),
        row => {
            let problem = "the bytes are not UTF-8".to_owned();
            Err(Error::Cast { row: row as usize, from, to, problem })
        }
    })
}

/// Returns the validity of the rows without the bad ones.
fn without(pass: &mut Pass, values: &DeviceArray, bad: &Region) -> Result<Region> {
    let bytes = values.len().div_ceil(32) * 4;
    let (good, both) = (pass.zeroed(bytes)?, pass.zeroed(bytes)?);
    not(pass, (bad.input(), 0), values.len(), &good)?;
    if values.validity().is_none() {
        return Ok(good);
    }
    and(pass, (good.input(), 0), validity(values), values.len(), &both)?;
    Ok(both)
}

/// Builds the buffers of views: the views, and the shared bytes, in pieces small enough for 32-bit offsets.
pub(super) fn build_views(
    pass: &mut Pass,
    values: &DeviceArray,
    edges: &Edges,
    (valid, valid_offset): BitPointer,
) -> Result<Vec<Buffer>> {
    let rows = values.len();
    let (shift, buffers) = view_buffers(&edges.bytes);
    let views = pass.rows(rows, 16)?;
    let faults = pass.first_rows(2, rows)?;
    let (bytes, offset) = bytes(&edges.bytes);
    let reach = Reach::bytes(&edges.bytes);
    let args = Build {
        offsets: edges.offsets,
        valid,
        valid_offset,
        rows: rows as u64,
        bytes,
        offset,
        limit: reach.limit,
        end: reach.end,
        end_offset: reach.end_offset,
        shift,
        views: views.out(),
        faults: faults.out(),
    };
    let entry = find(BUILD, &[edges.width as u32]).ok_or_else(|| pass.unsupported("views"))?;
    pass.launch(entry, &args)?;
    let from = values.data_type().to_string();
    pass.report(&faults, move |words| match (words[0], words[1]) {
        (u64::MAX, u64::MAX) => Ok(()),
        (u64::MAX, row) => Err(Error::invalid("cast", format!("row {row} is too long for a view"))),
        (row, _) => {
            let problem = format!("row {row} ends before it begins, or beyond what there is");
            Err(Error::out_of_spec(format!("offsets of {from}"), problem))
        }
    })?;
    Ok([views.buffer()].into_iter().chain(buffers).collect())
}
