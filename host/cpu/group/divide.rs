//! Means of decimals: sums divided by counts.

use arrow_buffer::i256;
use arrow_schema::DataType;

use crate::array::{Bitmap, DeviceArray, Parts};
use crate::cpu::{admitted, memory, rows};
use crate::rules::mean_of_decimals;
use crate::{Result, Stream};

/// Divides sums by counts, after moving the point by `up` digits.
pub(in crate::cpu) fn divide_sums(
    sums: &DeviceArray,
    counts: &DeviceArray,
    up: u32,
    scale: i8,
    safe: bool,
    stream: &Stream,
) -> Result<DeviceArray> {
    let (sums, counts) = (admitted(sums)?, admitted(counts)?);
    let (len, pool) = (sums.len(), stream.device().host_pool());
    let totals = rows::values::<32>(&sums.buffers()[0], sums.offset(), len);
    let counted = rows::values::<8>(&counts.buffers()[0], counts.offset(), len);
    let valid = rows::validity(&sums);
    let mut means = pool.alloc(len * 16)?;
    let mut bits = memory::zeroed(len.div_ceil(64) * 8, pool)?;
    let out = memory::values_mut::<i128>(&mut means);
    let words = memory::values_mut::<u64>(&mut bits);
    let mut nulls = 0;
    for row in 0..len {
        let count = i64::from_le_bytes(counted[row]);
        let mean = match valid.is_none_or(|valid| valid.get(row)) && count > 0 {
            true => mean_of_decimals(i256::from_le_bytes(totals[row]), count, up, scale, safe)?,
            false => None,
        };
        out[row] = mean.unwrap_or(0);
        words[row / 64] |= u64::from(mean.is_some()) << (row % 64);
        nulls += usize::from(mean.is_none());
    }
    let mut parts = Parts::new(DataType::Decimal128(38, scale), len);
    if nulls > 0 {
        parts.validity = Some(Bitmap { buffer: bits.freeze(len.div_ceil(8)), offset: 0 });
    }
    (parts.buffers, parts.null_count) = (vec![means.freeze(len * 16)], Some(nulls));
    DeviceArray::made(parts, true)
}
