//! Sums of integers and counts of groups, which need no order of rows.

use arrow_schema::DataType;
use bowstring_kernels::group::fold::COUNT;
use bowstring_kernels::group::tally::{TALLIED, TALLY, Tallied, Tally, words};
use bowstring_kernels::memory::In;
use bowstring_kernels::reduce::scan::TILE;
use bowstring_kernels::target::find;

use super::kinds::{kind, values_of};
use crate::array::{Bitmap, DeviceArray};
use crate::engine::GroupFold;
use crate::pass::{Pass, validity};
use crate::rules::folded_type;
use crate::{Error, Result};

/// The words over which waves spread their sums, in copies, if there are so few groups.
const SPREAD: usize = 1 << 14;

/// Whether a fold needs no order of rows.
pub(super) fn is_tallied(one: &GroupFold) -> bool {
    let of = one.values.as_ref().map_or(&DataType::Null, DeviceArray::data_type);
    kind(one, of).is_some_and(|kind| find(TALLY, &kind.keys[0]).is_some())
}

/// Folds the values of each group as they come.
pub(super) fn tallied(
    pass: &mut Pass,
    one: &GroupFold,
    ids: In<u32>,
    rows: usize,
    groups: usize,
) -> Result<DeviceArray> {
    let from = one.values.as_ref().map_or(&DataType::Null, DeviceArray::data_type);
    let unfit = || Error::invalid("aggregate", format!("{:?} of {from}", one.fold));
    let to = folded_type(one.fold, from, one.wraps).ok_or_else(unfit)?;
    let kind = kind(one, from).ok_or_else(unfit)?;
    let key = kind.keys[0];
    let (tally, join) = find(TALLY, &key).zip(find(TALLIED, &key)).ok_or_else(|| pass.unsupported(from))?;

    let each = words(key[0], key[1]) as usize;
    // Each wave has a tile of rows: more copies than waves would be left empty.
    let waves = rows.div_ceil(TILE as usize);
    let copies = (SPREAD / (groups * each).max(1)).min(waves).max(1);
    let copies = 1 << copies.ilog2();
    let sums = pass.zeroed(pass.times(groups * copies, 8 * each)?)?;
    let mut parts = pass.parts(to, groups);
    let nulls = one.values.as_ref().filter(|values| values.possible_nulls().is_some());
    let values = values_of(pass, one, &kind)?;
    let (valid, valid_offset) = nulls.map_or((In::absent(), 0), validity);
    let args = Tally {
        ids,
        values,
        valid,
        valid_offset,
        rows: rows as u64,
        groups: groups as u64,
        copies: copies as u64,
        sums: sums.out(),
    };
    pass.launch(tally, &args)?;
    let (out, out_valid) = (pass.rows(groups, kind.width)?, pass.output(groups.div_ceil(32) * 4)?);
    let args = Tallied {
        sums: sums.input(),
        groups: groups as u64,
        copies: copies as u64,
        out: out.out(),
        out_valid: out_valid.out(),
    };
    pass.launch(join, &args)?;
    parts.buffers = vec![out.buffer()];
    // A group of values without nulls has one, so its result is not null; a count never is.
    if key[0] != COUNT && nulls.is_some() {
        (parts.validity, parts.null_count) = (Some(Bitmap { buffer: out_valid.buffer(), offset: 0 }), None);
    }
    DeviceArray::try_new(parts)
}
