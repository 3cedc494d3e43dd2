//! Casts that depend on a time zone, in one launch.

use arrow_schema::DataType;
use bowstring_kernels::memory::Out;
use bowstring_kernels::text::zone::kernels::{CAST_ZONED, CastZoned};

use crate::array::{DeviceArray, layout};
use crate::gpu::bitmap::{aligned, nulls_or};
use crate::gpu::parts::none;
use crate::gpu::rows::{fixed_width, rows_of};
use crate::pass::{Pass, validity};
use crate::{Error, Result, Stream};

/// Casts values. `words` are a [`Zoning`](bowstring_kernels::text::zone::kernels::Zoning), the units, and the
/// zone.
pub(crate) fn cast_zoned(
    words: &[u64],
    values: &DeviceArray,
    to: &DataType,
    safe: bool,
    stream: &Stream,
) -> Result<DeviceArray> {
    let mut pass = Pass::begin("cast", stream)?;
    pass.input(values)?;
    let rows = values.len();
    if rows == 0 {
        return none(pass, to);
    }
    let width = |of: &DataType| layout(of).slots().next().and_then(fixed_width);
    let (Some(width), Some(out_width)) = (width(values.data_type()), width(to)) else {
        return Err(pass.unsupported(to));
    };
    let numbers = aligned(&mut pass, &rows_of(values, &values.buffers()[0], width), width)?;
    let (valid, valid_offset) = validity(values);
    let words = pass.upload(words)?;
    let out = pass.rows(rows, out_width)?;
    let good = safe.then(|| pass.output(rows.div_ceil(32) * 4)).transpose()?;
    let fault = pass.first_rows(1, rows)?;
    let args = CastZoned {
        values: numbers,
        width: width as u64,
        valid,
        valid_offset,
        rows: rows as u64,
        words: words.input(),
        out: out.out(),
        out_width: out_width as u64,
        good: good.as_ref().map_or(Out::absent(), |good| good.out()),
        fault: fault.out(),
    };
    pass.launch(&CAST_ZONED[0], &args)?;
    let parts = pass.parts(to.clone(), rows);
    let mut parts = nulls_or(&mut pass, good.as_ref(), values, parts)?;
    parts.buffers = vec![out.buffer()];
    if !safe {
        let (from, to) = (values.data_type().clone(), to.clone());
        pass.report(&fault, move |words| match words[0] {
            u64::MAX => Ok(()),
            row => {
                let problem = "the value does not fit".to_owned();
                Err(Error::Cast { row: row as usize, from, to, problem })
            }
        })?;
    }
    let cast = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(cast)
}
