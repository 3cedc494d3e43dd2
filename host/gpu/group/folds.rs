//! Folds of the values of groups.

use arrow_schema::DataType;
use bowstring_kernels::group::fold::{FOLD, Fold as Args};
use bowstring_kernels::memory::In;
use bowstring_kernels::target::find;

use super::kinds::{kind, values_of};
use super::segments::{Level, placed, segments};
use super::tally::{is_tallied, tallied};
use crate::array::{Bitmap, DeviceArray};
use crate::engine::{GroupFold, Groups};
use crate::pass::{BitPointer, Pass, Pending, Region, bits, input, validity};
use crate::rules::folded_type;
use crate::{Error, Result, Stream};

/// Folds the values of each group. Does not look at the device.
pub(crate) fn fold_groups(
    folds: &[GroupFold],
    groups: &Groups,
    stream: &Stream,
) -> Result<Pending<Vec<DeviceArray>>> {
    let mut pass = Pass::begin("group", stream)?;
    let (rows, count) = (groups.ids.len(), groups.firsts.len());
    pass.input(&groups.ids)?;
    let ids = input(&groups.ids.buffers()[0]);
    let in_order = match folds.iter().all(is_tallied) {
        true => None,
        false => {
            let order = placed(&mut pass, ids, rows, count.saturating_sub(1))?;
            let segments = segments(&mut pass, ids, &order, rows, count)?;
            Some((order, segments.levels(&mut pass, rows)?))
        }
    };
    let folded = folds.iter().map(|one| {
        let values = one.values.as_ref();
        values.map_or(Ok(()), |values| pass.input(values))?;
        match &in_order {
            Some((order, levels)) if !is_tallied(one) => folded(&mut pass, one, order, levels),
            _ => tallied(&mut pass, one, ids, rows, count),
        }
    });
    let folded = folded.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(Pending::known(Ok(folded)))
}

/// Folds values, a level after the other.
fn folded(pass: &mut Pass, one: &GroupFold, order: &Region, levels: &[Level]) -> Result<DeviceArray> {
    let from = one.values.as_ref().map_or(&DataType::Null, DeviceArray::data_type);
    let unfit = || Error::invalid("aggregate", format!("{:?} of {from}", one.fold));
    let to = folded_type(one.fold, from, one.wraps).ok_or_else(unfit)?;
    let kind = kind(one, from).ok_or_else(unfit)?;
    let groups = levels[0].segments.groups;
    let mut parts = pass.parts(to, groups);
    let nulls = one.values.as_ref().filter(|values| values.possible_nulls().is_some());
    let mut values = values_of(pass, one, &kind)?;
    let mut valid: BitPointer = nulls.map_or((In::absent(), 0), validity);
    let (mut rows, mut made) = (one.values.as_ref().map_or(0, DeviceArray::len), None);
    for (i, level) in levels.iter().enumerate() {
        let out = pass.rows(level.bound, kind.width)?;
        let out_valid = pass.output(level.bound.div_ceil(32) * 4)?;
        let args = Args {
            values,
            valid: valid.0,
            valid_offset: valid.1,
            rows: rows as u64,
            order: if i == 0 { order.input() } else { In::absent() },
            spans: level.segments.spans.input(),
            stride: level.segments.stride,
            groups: groups as u64,
            pieces: level.pieces.as_ref().map_or(In::absent(), Region::input),
            bound: level.bound as u64,
            always: kind.flips[0],
            negative: kind.flips[1],
            descending: kind.descending,
            out: out.out(),
            out_valid: out_valid.out(),
        };
        let fold = find(FOLD, &kind.keys[usize::from(i > 0)]).ok_or_else(|| pass.unsupported(from))?;
        pass.launch(fold, &args)?;
        values = out.input();
        let marks = Bitmap { buffer: out_valid.buffer(), offset: 0 };
        (valid, rows) = (bits(&marks), level.bound);
        made = Some((out, marks));
    }
    let (out, marks) = made.ok_or_else(unfit)?;
    parts.buffers = vec![out.buffer()];
    // A group of values without nulls has one, so its result is not null.
    if nulls.is_some() {
        (parts.validity, parts.null_count) = (Some(marks), None);
    }
    DeviceArray::try_new(parts)
}
