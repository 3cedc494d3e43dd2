//! Tests of text on a GPU, in one launch. Columns are read as they are; a constant operand is uploaded.

use arrow_schema::DataType;
use bowstring_kernels::memory::In;
use bowstring_kernels::ranges::views::BufferRow;
use bowstring_kernels::target::find;
use bowstring_kernels::text::rows::{TextColumn, VIEWS};
use bowstring_kernels::text::search::folds::FOLDS;
use bowstring_kernels::text::search::head::Head;
use bowstring_kernels::text::search::kernels::{TEXT, Text};
use bowstring_kernels::text::search::pieces::{wild_words, words};
use bowstring_kernels::text::search::test::Test;

use crate::array::{Bitmap, Buffer, DeviceArray, Parts, Side, Slot, all_inside};
use crate::gpu::bitmap::{aligned, and, nulls_of};
use crate::gpu::parts::none;
use crate::gpu::rows::{offsets_of, rows_of};
use crate::pass::{Pass, Reach, Table, bytes, validity};
use crate::rules::{pieces_of, wild_pieces_of};
use crate::transfer::sized_buffers;
use crate::{Result, Stream};

/// Tests each row. Returns booleans, null if either side is.
pub(crate) async fn test(
    test: Test,
    left: Side<'_>,
    right: Side<'_>,
    rows: usize,
    stream: &Stream,
) -> Result<DeviceArray> {
    let mut pass = Pass::begin("text", stream)?;
    if rows == 0 {
        return none(pass, &DataType::Boolean);
    }
    let pieces = match (test, right) {
        (Test::Like, Side::Same(pattern)) => pieces_of(pattern),
        (Test::Contains, Side::Same(needle)) if !needle.is_empty() => {
            Some(vec![vec![], needle.to_vec(), vec![]])
        }
        _ => None,
    };
    let pieces: Vec<&[u8]> = pieces.iter().flatten().map(Vec::as_slice).collect();
    let words = pieces.iter().map(|piece| words(piece)).collect::<Option<Vec<_>>>();
    let wild = match (test, right) {
        (Test::Like, Side::Same(pattern)) if pieces.is_empty() => {
            wild_pieces_of(pattern).iter().map(|piece| wild_words(piece)).collect::<Option<Vec<_>>>()
        }
        _ => None,
    };
    let (test, right) = match (&pieces[..], &words) {
        ([], _) => (if wild.is_some() { Test::Wild } else { test }, right),
        ([whole], _) => (Test::Compare(2), Side::Same(whole)),
        ([start, []], _) => (Test::StartsWith, Side::Same(start)),
        ([[], end], _) => (Test::EndsWith, Side::Same(end)),
        (_, Some(_)) => (Test::Pieces, right),
        (_, None) => (test, right),
    };
    let mut columns: Table<TextColumn> = Table::default();
    for side in [left, right] {
        columns.push(&described(&mut pass, side).await?);
    }
    let columns = pass.upload(columns.words())?;
    let counted = |count: usize, words: &[u64]| [&[count as u64], words].concat();
    let table = match (test, words, wild) {
        (Test::ILike, ..) => Some(FOLDS.iter().map(|fold| fold.word()).collect::<Vec<_>>()),
        (Test::Pieces, Some(words), _) => Some(counted(words.len(), words.as_flattened())),
        (Test::Wild, _, Some(wild)) => Some(counted(wild.len(), wild.as_flattened())),
        _ => None,
    };
    let table = table.map(|words| pass.upload(&words)).transpose()?;
    let head = match (left, right) {
        (Side::Column(column), Side::Same(needle)) if column.layout().slots().next() == Some(Slot::Views) => {
            Head::of(test, needle)
        }
        _ => Head::NONE,
    };
    let [head_want, head_mask, head_rest] = head.words();
    let fault = pass.first_rows(1, rows)?;
    let bits = rows.div_ceil(32) * 4;
    let out = pass.output(bits)?;
    let args = Text {
        columns: columns.input(),
        len: rows as u64,
        test: test.code(),
        head_want,
        head_mask,
        head_rest,
        table: table.map_or(In::absent(), |table| table.input()),
        out: out.out(),
        fault: fault.out(),
    };
    let entry = find(TEXT, &[test.kind()]).ok_or_else(|| pass.unsupported("text"))?;
    pass.launch(entry, &args)?;
    pass.report(&fault, all_inside)?;
    let parts = pass.parts(DataType::Boolean, rows);
    let mut parts = match (left, right) {
        (Side::Column(left), Side::Column(right))
            if left.validity().is_some() && right.validity().is_some() =>
        {
            let both = pass.zeroed(bits)?;
            and(&mut pass, validity(left), validity(right), rows, &both)?;
            let validity = Some(Bitmap { buffer: both.buffer(), offset: 0 });
            Parts { validity, null_count: None, ..parts }
        }
        (Side::Column(one), Side::Column(other)) => {
            nulls_of(&mut pass, if one.validity().is_some() { one } else { other }, parts)?
        }
        (Side::Column(one), _) | (_, Side::Column(one)) => nulls_of(&mut pass, one, parts)?,
        _ => parts,
    };
    parts.buffers = vec![out.buffer()];
    let tested = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(tested)
}

/// Returns a side as the kernel reads it.
async fn described(pass: &mut Pass, side: Side<'_>) -> Result<TextColumn> {
    match side {
        Side::Column(column) => text_column(pass, column).await,
        Side::Same(text) => uploaded(pass, &[text], 0),
        Side::List(list) => uploaded(pass, list, u64::MAX),
    }
}

/// Returns a column of text or bytes as kernels read it, in any layout.
pub(crate) async fn text_column(pass: &mut Pass, column: &DeviceArray) -> Result<TextColumn> {
    pass.input(column)?;
    let (valid, valid_offset) = validity(column);
    let (width, rows, buffers) = match column.layout().slots().next() {
        Some(Slot::Offsets(width)) => {
            (width as u64, aligned(pass, &offsets_of(column, width), width)?, &column.buffers()[1..2])
        }
        _ => {
            let views = rows_of(column, &column.buffers()[0], 16);
            (VIEWS, aligned(pass, &views, 16)?, &column.buffers()[1..])
        }
    };
    let mut reach = Reach { limit: 0, end: In::absent(), end_offset: 0 };
    let table: Table<BufferRow> = if width == VIEWS {
        // Views are untrusted data: they must point inside the buffers, whose sizes are therefore needed.
        let sized = sized_buffers(pass, buffers).await?;
        sized
            .iter()
            .map(|buffer| row(buffer, buffer.bytes().map_or(u64::MAX, |bytes| bytes as u64)))
            .collect()
    } else {
        reach = Reach::bytes(&buffers[0]);
        [row(&buffers[0], reach.limit)].into_iter().collect()
    };
    let count = table.len() as u64;
    let table = (count > 0).then(|| pass.upload(table.words())).transpose()?;
    Ok(TextColumn {
        rows: rows.described(),
        width,
        which: u64::MAX,
        len: column.len() as u64,
        buffers: table.map_or(In::<u64>::absent(), |table| table.input()).described(),
        count,
        end: reach.end.described(),
        end_offset: reach.end_offset,
        valid: valid.described(),
        valid_offset,
    })
}

/// Divides bytes into the data buffers of views, whose places have 32 bits. Returns the binary logarithm of
/// the distance at which they begin.
pub(crate) fn view_buffers(bytes: &Buffer) -> (u64, Vec<Buffer>) {
    let len = bytes.bytes().unwrap_or(0);
    let shift = if len <= i32::MAX as usize { 31 } else { 30 };
    // A piece overlaps the next, because its last row may reach beyond it.
    let piece = |from: usize| bytes.slice(from, Some((len - from).min((1 << shift) + i32::MAX as usize)));
    (shift, (0..len).step_by(1 << shift).map(piece).collect())
}

fn row(buffer: &Buffer, limit: u64) -> BufferRow {
    let (bytes, offset) = bytes(buffer);
    BufferRow { bytes, offset, limit }
}

/// Uploads texts of the host: offsets of eight bytes, followed by the bytes.
fn uploaded(pass: &mut Pass, texts: &[&[u8]], which: u64) -> Result<TextColumn> {
    let mut words = vec![0];
    let mut all: Vec<u8> = vec![];
    for text in texts {
        all.extend_from_slice(text);
        words.push(all.len() as u64);
    }
    let (offsets, len) = (words.len() * 8, all.len());
    all.resize(len.next_multiple_of(8), 0);
    words.extend(all.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))));
    let region = pass.upload(&words)?;
    let table: Table<BufferRow> =
        [row(&region.buffer().slice(offsets, Some(len)), len as u64)].into_iter().collect();
    let table = pass.upload(table.words())?;
    Ok(TextColumn {
        rows: region.input::<u8>().described(),
        width: 8,
        which,
        len: texts.len() as u64,
        buffers: table.input::<u64>().described(),
        count: 1,
        end: In::<u32>::absent().described(),
        end_offset: 0,
        valid: In::<u32>::absent().described(),
        valid_offset: 0,
    })
}
