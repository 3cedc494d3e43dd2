//! Parts whose fields are not nullable. A cast that leaves nulls in them is an error, as on the CPU. If the
//! number of nulls is data, the error surfaces when the result is first waited for.
//!
//! The one idea: only visible nulls count. A struct or a fixed-size list has rows of its parts for its null
//! rows too, and hides nulls there; items of other lists are never hidden.

use std::sync::Arc;

use arrow_schema::{DataType, Field};

use super::inside::Cast;
use crate::array::{Bitmap, DeviceArray, Parts};
use crate::gpu::bitmap::{and, not};
use crate::gpu::nulls::report_unset;
use crate::gpu::structure::booleans;
use crate::gpu::{Source, filter};
use crate::pass::{Pass, bits};
use crate::{Error, Result};

/// The rows of a parent, each of which has `each` rows of the part.
#[derive(Clone, Copy)]
pub(super) struct Above<'a> {
    pub rows: &'a DeviceArray,
    pub each: usize,
}

/// Checks that a part of what the pass makes has no nulls if its field is not nullable. Nulls under null rows
/// of `above` do not count. Reads only for fixed-size lists that may be null, with items that may be
/// null too.
pub(super) async fn hold(
    cast: Cast<'_>,
    pass: &mut Pass,
    part: &DeviceArray,
    field: &Field,
    above: Option<Above<'_>>,
) -> Result<()> {
    if field.is_nullable() || part.is_empty() {
        return Ok(());
    }
    if has_nulls_inside(part) {
        return Err(pass.unsupported(format!("{} without nulls", part.data_type())));
    }
    let (len, name) = (part.len(), field.name().clone());
    let hidden = above.and_then(|above| Some((above, above.rows.possible_nulls()?)));
    if *part.data_type() == DataType::Null {
        let Some((Above { rows, each }, valid)) = hidden else { return refuse(len, &name) };
        let shown = move |nulls| refuse(len.saturating_sub(each.saturating_mul(nulls)), &name);
        return report_unset(pass, bits(valid), rows.len(), shown);
    }
    let Some(own) = part.possible_nulls() else { return Ok(()) };
    match (hidden, part.known_null_count()) {
        (None, Some(nulls)) => refuse(nulls, &name),
        (None, None) => report_unset(pass, bits(own), len, move |nulls| refuse(nulls, &name)),
        (Some((Above { each: 1, .. }, valid)), _) => {
            let (nulls, shown) = (pass.zeroed(len.div_ceil(8))?, pass.zeroed(len.div_ceil(8))?);
            not(pass, bits(own), len, &nulls)?;
            and(pass, bits(valid), (nulls.input(), 0), len, &shown)?;
            report_unset(pass, (shown.input(), 0), len, move |others| refuse(len - others, &name))
        }
        (Some((above, valid)), _) => {
            let seen = of_valid_rows(cast, part, own, above, valid).await?;
            pass.input(&seen)?;
            let valid = Bitmap { buffer: seen.buffers()[0].clone(), offset: seen.offset() };
            report_unset(pass, bits(&valid), seen.len(), move |nulls| refuse(nulls, &name))
        }
    }
}

/// Returns the validity of a part as booleans, for valid rows of `above` only. Reads as a filter does.
async fn of_valid_rows(
    cast: Cast<'_>,
    part: &DeviceArray,
    own: &Bitmap,
    above: Above<'_>,
    valid: &Bitmap,
) -> Result<DeviceArray> {
    let item = Arc::new(Field::new_list_field(DataType::Boolean, false));
    let parts = Parts::new(DataType::FixedSizeList(item, above.each as i32), above.rows.len());
    let (place, ready) = (part.place(), part.ready().cloned());
    let lists = DeviceArray::try_new(Parts { place, ready, children: vec![booleans(part, own)?], ..parts })?;
    let seen = filter(&[&lists], Source::Array(&booleans(above.rows, valid)?), cast.stream)?.await?;
    seen.columns[0].child_rows(0)
}

/// Returns whether rows of an array may be null although its own bitmap does not say so. Devices do not look
/// into its parts.
fn has_nulls_inside(array: &DeviceArray) -> bool {
    let mut parts = array.children().iter().chain(array.dictionary());
    match array.data_type() {
        DataType::Dictionary(..) | DataType::Union(..) | DataType::RunEndEncoded(..) => parts.any(|part| {
            part.possible_nulls().is_some() || *part.data_type() == DataType::Null || has_nulls_inside(part)
        }),
        _ => false,
    }
}

/// Makes the error of arrow-rs, which refuses the same on the CPU.
fn refuse(nulls: usize, name: &str) -> Result<()> {
    match nulls {
        0 => Ok(()),
        _ => {
            let problem = format!("{nulls} nulls in {name:?}, which is not nullable");
            Err(Error::Arrow { operation: "cast", problem })
        }
    }
}
