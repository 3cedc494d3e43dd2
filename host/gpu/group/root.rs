//! Square roots, for standard deviations.

use arrow_schema::DataType;
use bowstring_kernels::group::root::{ROOT, Root};

use crate::array::{DeviceArray, Parts};
use crate::gpu::bitmap::aligned;
use crate::gpu::rows::rows_of;
use crate::pass::Pass;
use crate::{Result, Stream};

/// Returns the square roots of Float64 numbers.
pub(crate) fn roots(of: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let mut pass = Pass::begin("group", stream)?;
    let rows = of.len();
    pass.input(of)?;
    let out = pass.rows(rows, 8)?;
    let values = aligned(&mut pass, &rows_of(of, &of.buffers()[0], 8), 8)?.cast();
    pass.launch(&ROOT[0], &Root { values, rows: rows as u64, out: out.out() })?;
    let parts = Parts { buffers: vec![out.buffer()], ..pass.parts(DataType::Float64, rows) };
    let (validity, null_count) = (of.validity().cloned(), None);
    let roots = DeviceArray::try_new(Parts { validity, null_count, ..parts })?;
    pass.finish()?;
    Ok(roots)
}
