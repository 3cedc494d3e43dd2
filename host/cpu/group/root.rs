//! Square roots, for standard deviations.

use arrow_schema::DataType;
use bowstring_kernels::program::word::plain_nan_f64;

use crate::array::{DeviceArray, Parts};
use crate::cpu::{admitted, memory, rows};
use crate::{Result, Stream};

/// Returns the square roots of Float64 numbers.
pub(in crate::cpu) fn roots(of: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let of = admitted(of)?;
    let len = of.len();
    let mut roots = stream.device().host_pool().alloc(len * 8)?;
    let numbers = rows::values::<8>(&of.buffers()[0], of.offset(), len);
    for (root, number) in memory::values_mut::<f64>(&mut roots).iter_mut().zip(numbers) {
        *root = plain_nan_f64(f64::from_le_bytes(*number).sqrt());
    }
    let (validity, null_count) = (of.validity().cloned(), of.known_null_count());
    let buffers = vec![roots.freeze(len * 8)];
    let parts = Parts { validity, null_count, buffers, ..Parts::new(DataType::Float64, len) };
    DeviceArray::made(parts, true)
}
