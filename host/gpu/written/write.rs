//! Formats values as columns of text. Reads the number of bytes.

use arrow_schema::DataType;
use bowstring_kernels::target::find;
use bowstring_kernels::text::format::formatters::Writing;
use bowstring_kernels::text::format::kernels::{MEASURE, Measure, WRITE, Write};

use crate::array::{Bitmap, DeviceArray, Slot};
use crate::gpu::bitmap::aligned;
use crate::gpu::cast::{Lengths, lay_out, offset_width};
use crate::gpu::parts::none;
use crate::gpu::rows::rows_of;
use crate::gpu::scan::{scan_sums, tiles};
use crate::pass::{Pass, Requests, bits, validity};
use crate::{Result, Stream};

/// Formats values. A value without a textual form gets no bytes. If `all` must have one, the result is the
/// row of the first that has none.
pub(crate) async fn write(
    (writing, words): (Writing, &[u64]),
    values: &DeviceArray,
    to: &DataType,
    all: bool,
    stream: &Stream,
) -> Result<std::result::Result<DeviceArray, usize>> {
    let mut pass = Pass::begin("cast", stream)?;
    pass.input(values)?;
    let rows = values.len();
    if rows == 0 {
        return none(pass, to).map(Ok);
    }
    let buffer = &values.buffers()[0];
    let (numbers, offset, width) = match values.layout().slots().next() {
        Some(Slot::Fixed(width)) => {
            (aligned(&mut pass, &rows_of(values, buffer, width), width.min(16))?, 0, width)
        }
        _ => {
            let (words, offset) = bits(&Bitmap { buffer: buffer.clone(), offset: values.offset() });
            (words.cast(), offset, 0)
        }
    };
    let (valid, valid_offset) = validity(values);
    let tiles = tiles(rows);
    let mut requests = Requests::default();
    let (total, fault) = (requests.sum(), requests.first_row());
    let (lens, sums) = (requests.scratch(pass.times(rows, 4)?), requests.scratch(8 * tiles));
    let granted = requests.grant(&mut pass, size_of_val(words))?;
    let words = pass.upload(words)?;
    let (lens, sums) = (&granted[lens], &granted[sums]);
    let args = Measure {
        values: numbers,
        offset,
        width: width as u64,
        words: words.input(),
        valid,
        valid_offset,
        rows: rows as u64,
        lens: lens.out(),
        sums: sums.out(),
        fault: granted.counter(fault),
    };
    let entry = find(MEASURE, &[writing as u32]).ok_or_else(|| pass.unsupported(to))?;
    pass.launch(entry, &args)?;
    let bases = scan_sums(&mut pass, sums, tiles, granted.counter(total))?;
    let counted = pass.read(&[granted.counters()]).await?;
    let (total, fault) = (total.of(&counted), fault.of(&counted));
    if all && fault != u64::MAX {
        return Ok(Err(fault as usize));
    }
    let lengths = Lengths { lens, width: 4, bases: &bases, total };
    let written = lay_out(&mut pass, values, to, lengths, |pass, offsets, bytes| {
        let args = Write {
            values: numbers,
            offset,
            width: width as u64,
            words: words.input(),
            rows: rows as u64,
            to: offsets.input(),
            to_width: offset_width(to) as u64,
            out: bytes.out(),
        };
        let entry = find(WRITE, &[writing as u32]).ok_or_else(|| pass.unsupported(to))?;
        pass.launch(entry, &args)
    })?;
    pass.finish()?;
    Ok(Ok(written))
}
