//! Lists as text, in the form of arrow's display: `[1, , [2, 3]]`. A null inside prints as nothing, bytes
//! print as hexadecimal, and a value without a textual form prints as the error about it, whether the cast is
//! strict or not.
//!
//! The one idea: the items become text first, by any route, and only those that rows reference. A list in a
//! list recurses into this cast. Reads the items' extent and the number of bytes, and what the items' casts
//! read.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::reduce::scan::{SCAN, Scan};
use bowstring_kernels::target::find;
use bowstring_kernels::text::print::{ITEM_LENS, ItemLens, PRINT, Print, ROW_LENS, RowLens};

use super::inside::Cast;
use super::laid::{Lengths, lay_out, offset_width};
use super::views::Described;
use crate::array::{DeviceArray, any_part};
use crate::gpu::bitmap::aligned;
use crate::gpu::parts::none;
use crate::gpu::rows::{offsets_of, rows_of};
use crate::gpu::scan::{scan_sums, tiles};
use crate::gpu::written::write;
use crate::pass::{BitPointer, Pass, Reach, Region, Requests, bytes, validity};
use crate::rules::{CastRule, Misfits, cast_rule, misfits, unsupported, writing_words};
use crate::{Error, Result, Stream};

/// Casts lists to text; `None` if devices cannot print something in them.
pub(super) async fn cast(cast: Cast<'_>, values: &DeviceArray, to: &DataType) -> Result<Option<DeviceArray>> {
    if cast.options.formatted || any_part(values.data_type(), |part| matches!(part, DataType::Union(..))) {
        return Ok(None);
    }
    let mut pass = cast.begin(&[values])?;
    if values.is_empty() {
        return none(pass, to).map(Some);
    }
    let (described, rows) = (Described::of(&mut pass, values)?, values.len());
    let (starts, counts) = (pass.rows(rows, 8)?, pass.rows(rows, 8)?);
    let (first, last) = described.look(&mut pass, values, (starts.out(), counts.out(), 8)).await?;
    pass.finish()?;
    let seen = values.children()[0].slice(first as usize, (last - first) as usize)?;
    let lists = Lists { starts, counts, base: first };
    print(cast, values, to, &lists, &printable(cast, seen).await?).await.map(Some)
}

/// The items of each row.
struct Lists {
    starts: Region,
    counts: Region,
    /// The first item that any row references; `starts` count from the first item of the array.
    base: u64,
}

/// Items as rows of bytes that offsets describe.
struct Printable {
    bytes: DeviceArray,
    /// The printed characters of each byte: 2 if bytes print as hexadecimal.
    scale: u64,
    /// The values and their error texts, if values without bytes must be printed as errors.
    misfits: Option<(DeviceArray, Misfits)>,
}

async fn printable(cast: Cast<'_>, items: DeviceArray) -> Result<Printable> {
    use DataType::*;
    let plain = |bytes: DeviceArray, scale: u64| Ok(Printable { bytes, scale, misfits: None });
    match items.data_type() {
        Utf8 | LargeUtf8 => plain(items, 1),
        Binary | LargeBinary => plain(items, 2),
        BinaryView => plain(cast.cast(&items, &LargeBinary).await?, 2),
        Dictionary(_, of) => Box::pin(printable(cast, cast.cast(&items, of).await?)).await,
        RunEndEncoded(_, of) => {
            let plain = cast.cast(&items, without_runs(of.data_type())).await?;
            Box::pin(printable(cast, plain)).await
        }
        FixedSizeList(item, _) => {
            let item = Field::new_list_field(item.data_type().clone(), true);
            let lists = cast.cast(&items, &LargeList(Arc::new(item))).await?;
            Box::pin(printable(cast, lists)).await
        }
        Null | Utf8View | List(_) | LargeList(_) | ListView(_) | LargeListView(_) => {
            plain(cast.cast(&items, &LargeUtf8).await?, 1)
        }
        other => {
            let misfits = misfits(other);
            let bytes = written(&items, cast.stream).await?;
            Ok(Printable { bytes, scale: 1, misfits: misfits.map(|misfits| (items, misfits)) })
        }
    }
}

/// Writes plain values as LargeUtf8. Values without a textual form have no bytes.
async fn written(values: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let (from, device) = (values.data_type(), stream.device().place().device_type);
    let unsupported = || unsupported(values, &DataType::LargeUtf8, device);
    let CastRule::Write(writing) = cast_rule(from, &DataType::LargeUtf8) else { return Err(unsupported()) };
    let words = writing_words(from);
    let written = write((writing, &words), values, &DataType::LargeUtf8, false, stream);
    written.await?.map_err(|_| unsupported())
}

/// Returns the type of the values under any levels of runs: a cast from runs to runs casts the values.
fn without_runs(of: &DataType) -> &DataType {
    match of {
        DataType::RunEndEncoded(_, of) => without_runs(of.data_type()),
        other => other,
    }
}

/// The items as kernel arguments. Their arrays are inputs of the pass.
struct Told {
    offsets: In<u8>,
    /// The bytes of an offset.
    width: usize,
    bytes: BitPointer,
    values: In<u8>,
    value_width: usize,
    /// The text around the number of a value without textual form: the first `before` bytes precede the
    /// number, the rest follow it.
    said: In<u8>,
    before: usize,
    behind: usize,
    unsaid: [i64; 2],
}

impl Told {
    fn of(pass: &mut Pass, items: &Printable) -> Result<Told> {
        let (of, none) = (&items.bytes, (In::absent(), 0));
        let width = offset_width(of.data_type());
        let mut told = Told {
            offsets: In::absent(),
            width,
            bytes: none,
            values: In::absent(),
            value_width: 8,
            said: In::absent(),
            before: 0,
            behind: 0,
            unsaid: [1, 0],
        };
        if of.is_empty() {
            return Ok(told);
        }
        (told.offsets, told.bytes) = (aligned(pass, &offsets_of(of, width), width)?, bytes(&of.buffers()[1]));
        if let Some((values, Misfits { said, unsaid })) = &items.misfits {
            let width = values.data_type().primitive_width().unwrap_or(8);
            (told.value_width, told.unsaid) = (width, *unsaid);
            told.values = aligned(pass, &rows_of(values, &values.buffers()[0], width), width)?;
            (told.before, told.behind) = (said[0].len(), said[1].len());
            let letters = said.concat().into_bytes();
            let words: Vec<u64> = letters.chunks(8).map(word).collect();
            told.said = pass.upload(&words)?.input();
        }
        Ok(told)
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Prints lists of printable items.
async fn print(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    lists: &Lists,
    items: &Printable,
) -> Result<DeviceArray> {
    let mut pass = cast.begin(&[values, &items.bytes])?;
    items.misfits.as_ref().map_or(Ok(()), |(values, _)| pass.input(values))?;
    for region in [&lists.starts, &lists.counts] {
        pass.reuse(region);
    }
    let told = Told::of(&mut pass, items)?;
    let (rows, count, width) = (values.len(), items.bytes.len(), offset_width(to));
    let mut requests = Requests::default();
    let (total, outside, unsaid) = (requests.sum(), requests.first_row(), requests.first_row());
    let ends = requests.scratch(pass.times(count + 1, 8)?);
    let (lens, sums) = (requests.scratch(pass.times(rows, width)?), requests.scratch(8 * tiles(rows)));
    let granted = requests.grant(&mut pass, 0)?;
    if count > 0 {
        let faults = [granted.counter(outside), granted.counter(unsaid)];
        find_ends(&mut pass, items, &told, &granted[ends], faults)?;
    }
    let (valid, valid_offset) = validity(values);
    let args = RowLens {
        starts: lists.starts.input(),
        counts: lists.counts.input(),
        base: lists.base,
        ends: granted[ends].input(),
        valid,
        valid_offset,
        rows: rows as u64,
        lens: granted[lens].out(),
        width: width as u64,
        sums: granted[sums].out(),
    };
    pass.launch(&ROW_LENS[0], &args)?;
    let bases = scan_sums(&mut pass, &granted[sums], tiles(rows), granted.counter(total))?;
    let words = pass.read(&[granted.counters()]).await?;
    let (total, outside, unsaid) = (total.of(&words), outside.of(&words), unsaid.of(&words));
    if outside != u64::MAX {
        let problem = format!("row {outside} ends before it begins, or beyond what there is");
        return Err(Error::out_of_spec(format!("offsets of {}", items.bytes.data_type()), problem));
    }
    if unsaid != u64::MAX {
        let problem = format!("the clock of item {unsaid} is one that no date is known for");
        return Err(Error::Arrow { operation: "cast", problem });
    }
    let lengths = Lengths { lens: &granted[lens], width, bases: &bases, total };
    let printed = lay_out(&mut pass, values, to, lengths, |pass, offsets, out| {
        let args = Print {
            to: offsets.input(),
            rows: rows as u64,
            starts: lists.starts.input(),
            counts: lists.counts.input(),
            base: lists.base,
            ends: granted[ends].input(),
            offsets: told.offsets,
            width: told.width as u64,
            bytes: told.bytes.0,
            bytes_offset: told.bytes.1,
            scale: items.scale,
            before: told.before as u64,
            told: told.said,
            values: told.values,
            value_width: told.value_width as u64,
            out: out.out(),
            len: total,
        };
        let entry = find(PRINT, &[width as u32]).ok_or_else(|| pass.unsupported(to))?;
        pass.launch(entry, &args)
    })?;
    pass.finish()?;
    Ok(printed)
}

/// Computes the end of each item's printed text, with all texts end to end. Needs at least one item.
fn find_ends(
    pass: &mut Pass,
    items: &Printable,
    told: &Told,
    ends: &Region,
    [outside, unsaid]: [Out<u64>; 2],
) -> Result<()> {
    let count = items.bytes.len();
    let (lens, sums) = (pass.rows(count, 8)?, pass.scratch::<u64>(tiles(count))?);
    let (valid, valid_offset) = validity(&items.bytes);
    let reach = Reach::bytes(&items.bytes.buffers()[1]);
    let args = ItemLens {
        offsets: told.offsets,
        width: told.width as u64,
        valid,
        valid_offset,
        items: count as u64,
        limit: reach.limit,
        end: reach.end,
        end_offset: reach.end_offset,
        scale: items.scale,
        told: (told.before + told.behind) as u64,
        values: told.values,
        value_width: told.value_width as u64,
        least: told.unsaid[0] as u64,
        most: told.unsaid[1] as u64,
        lens: lens.out(),
        sums: sums.out(),
        outside,
        unsaid,
    };
    pass.launch(&ITEM_LENS[0], &args)?;
    let bases = scan_sums(pass, &sums, tiles(count), Out::absent())?;
    let args = Scan {
        values: lens.input(),
        count: In::absent(),
        len: count as u64,
        bases: bases.input(),
        out: ends.out(),
        total: Out::absent(),
    };
    let entry = find(SCAN, &[8, 8]).ok_or_else(|| pass.unsupported("lengths"))?;
    pass.launch(entry, &args)
}
