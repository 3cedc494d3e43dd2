//! Logical validity of types that keep their nulls elsewhere than in a bitmap of their own, from arrow-rs.

use arrow_array::BooleanArray;

use super::cast_bytes::of_nulls;
use crate::array::DeviceArray;
use crate::device::{HostPool, interrupt};
use crate::engine::Valid;
use crate::{Result, exchange};

/// The number of rows from which arrow-rs computes logical nulls on a separate thread.
const LONG: usize = 1 << 20;

/// Finds out which rows are valid.
pub(crate) fn validity(operation: &'static str, values: &DeviceArray, pool: &HostPool) -> Result<Valid> {
    let theirs = exchange::to_arrow(values)?;
    let reserved = pool.reserve(of_nulls(values))?;
    let (nulls, reserved) = interrupt::apart(values.len() >= LONG, move || {
        Ok((exchange::guarded(operation, || Ok(theirs.logical_nulls()))?, reserved))
    })?;
    let Some(nulls) = nulls else { return Ok(Valid::All) };
    let bits = exchange::from_arrow(&BooleanArray::new(nulls.into_inner(), None))?;
    Ok(Valid::These(exchange::counted(bits, &[values], reserved)?))
}
