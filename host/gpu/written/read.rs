//! Parses columns of text into values.

use arrow_schema::DataType;
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::target::find;
use bowstring_kernels::text::parse::kernels::{QUOTE, QUOTED, Quote, READ, READ_HARD, Read, ReadHard};
use bowstring_kernels::text::parse::parsers::Reading;
use bowstring_kernels::text::rows::TextColumn;

use crate::array::{DeviceArray, Slot, layout, outside};
use crate::gpu::bitmap::nulls_or;
use crate::gpu::parts::none;
use crate::gpu::text::text_column;
use crate::pass::{Pass, Table};
use crate::{Error, Result, Stream};

/// Makes the error for a text that cannot be parsed, given its row, its first bytes, and its whole length.
pub(crate) type Unread = Box<dyn FnOnce(usize, &[u8], usize) -> Error + Send>;

/// Parses text into values. A text that cannot be parsed becomes null; with `unread` the first one is an
/// error when the result is waited for.
pub(crate) async fn read(
    (reading, words): (Reading, &[u64]),
    values: &DeviceArray,
    to: &DataType,
    unread: Option<Unread>,
    stream: &Stream,
) -> Result<DeviceArray> {
    let device = stream.device().place().device_type;
    let mut pass = Pass::begin("cast", stream)?;
    let len = values.len();
    if len == 0 {
        pass.input(values)?;
        return none(pass, to);
    }
    let described = text_column(&mut pass, values).await?;
    let column: Table<TextColumn> = [described].into_iter().collect();
    let column = pass.upload(column.words())?;
    let words = pass.upload(words)?;
    let slot = layout(to).slots().next().ok_or_else(|| pass.unsupported(to))?;
    let width = match slot {
        Slot::Fixed(width) => width,
        _ => 0,
    };
    let bits = len.div_ceil(32) * 4;
    let out = if width == 0 { pass.output(bits)? } else { pass.rows(len, width)? };
    // Validity is written only if rows may become null; otherwise such a row is an error.
    let good = unread.is_none().then(|| pass.output(bits)).transpose()?;
    let hard = reading.has_hard().then(|| pass.scratch::<u32>(bits / 4)).transpose()?;
    let mut first = vec![u64::MAX; 3];
    first.resize(3 + if unread.is_some() { 1 + QUOTED as usize / 8 } else { 0 }, 0);
    let faults = pass.upload(&first)?;
    let args = Read {
        column: column.input(),
        len: len as u64,
        words: words.input(),
        width: width as u64,
        values: out.out(),
        good: good.as_ref().map_or(Out::absent(), |good| good.out()),
        hard: hard.as_ref().map_or(Out::absent(), |hard| hard.out()),
        faults: faults.out(),
    };
    let entry = find(READ, &[reading as u32]).ok_or_else(|| pass.unsupported(to))?;
    pass.launch(entry, &args)?;
    if let Some(hard) = &hard {
        let entry = find(READ_HARD, &[reading as u32]).ok_or_else(|| pass.unsupported(to))?;
        let Read { column, len, words, width, values, good, faults, .. } = args;
        let hard = hard.input();
        pass.launch(entry, &ReadHard { column, len, words, width, values, good, hard, faults })?;
    }
    let parts = pass.parts(to.clone(), len);
    let mut parts = nulls_or(&mut pass, good.as_ref(), values, parts)?;
    parts.buffers = vec![out.buffer()];
    if unread.is_some() {
        let (column, words): (_, In<u64>) = (column.input(), faults.part(0, 24));
        pass.launch(&QUOTE[0], &Quote { column, faults: words, out: faults.out_from(24) })?;
    }
    let (from, into) = (values.data_type().clone(), to.clone());
    pass.report(&faults, move |words| {
        let [nowhere, misfit, elsewhere] = [words[0], words[1], words[2]];
        if nowhere != u64::MAX {
            return Err(outside(nowhere as usize));
        }
        if elsewhere != u64::MAX {
            let what = format!("{from} to {into}, of a text that names a time zone (row {elsewhere}),");
            return Err(Error::Unsupported { operation: "cast", what: what.into(), device });
        }
        let Some(unread) = unread.filter(|_| misfit != u64::MAX) else { return Ok(()) };
        let bytes: Vec<u8> = words[4..].iter().flat_map(|word| word.to_le_bytes()).collect();
        let len = words[3] as usize;
        Err(unread(misfit as usize, &bytes[..bytes.len().min(len)], len))
    })?;
    let read = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(read)
}
