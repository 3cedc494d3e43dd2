//! Means of decimals: sums divided by counts.

use arrow_schema::DataType;
use bowstring_kernels::group::divide::{DIVIDE, Divide};

use crate::array::{Bitmap, DeviceArray};
use crate::gpu::bitmap::aligned;
use crate::gpu::rows::rows_of;
use crate::pass::{Pass, validity};
use crate::rules::too_large_a_mean;
use crate::{Result, Stream};

/// Divides sums by counts, after moving the point by `up` digits.
pub(crate) fn divide_sums(
    sums: &DeviceArray,
    counts: &DeviceArray,
    up: u32,
    scale: i8,
    safe: bool,
    stream: &Stream,
) -> Result<DeviceArray> {
    let mut pass = Pass::begin("group", stream)?;
    let rows = sums.len();
    let factor = 10u64.checked_pow(up).filter(|factor| *factor <= u64::from(u32::MAX));
    let factor = factor.ok_or_else(|| pass.unsupported(format!("means of {up} more digits")))?;
    pass.input(sums)?;
    pass.input(counts)?;
    let (valid, valid_offset) = validity(sums);
    let (out, fault) = (pass.rows(rows, 16)?, pass.first_rows(1, rows)?);
    let out_valid = pass.output(rows.div_ceil(32) * 4)?;
    let args = Divide {
        sums: aligned(&mut pass, &rows_of(sums, &sums.buffers()[0], 32), 16)?.cast(),
        valid,
        valid_offset,
        counts: aligned(&mut pass, &rows_of(counts, &counts.buffers()[0], 8), 8)?.cast(),
        factor,
        rows: rows as u64,
        out: out.out(),
        out_valid: out_valid.out(),
        fault: fault.out(),
    };
    pass.launch(&DIVIDE[0], &args)?;
    if !safe {
        pass.report(&fault, move |words| match words[0] {
            u64::MAX => Ok(()),
            _ => Err(too_large_a_mean(scale)),
        })?;
    }
    let mut parts = pass.parts(DataType::Decimal128(38, scale), rows);
    parts.buffers = vec![out.buffer()];
    parts.validity = Some(Bitmap { buffer: out_valid.buffer(), offset: 0 });
    parts.null_count = None;
    let means = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(means)
}
