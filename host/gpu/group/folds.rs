//! Folds of the values of groups.

use arrow_schema::DataType;
use bowstring_kernels::group::fold::{
    BITS, COUNT, FOLD, Fold as Args, LEAST, ROW, SUM, SUM_FLOATS, SUM_UNSIGNED, SUM_WRAPPING,
};
use bowstring_kernels::memory::In;
use bowstring_kernels::target::find;

use super::segments::{Level, placed, segments};
use super::tally::{is_tallied, tallied};
use crate::array::{Bitmap, DeviceArray};
use crate::engine::{GroupFold, Groups};
use crate::expr::{Bits, Fold, Reduction};
use crate::gpu::bitmap::aligned;
use crate::gpu::rows::rows_of;
use crate::pass::{BitPointer, Pass, Pending, Region, bits, input, validity};
use crate::rules::{folded_type, words};
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

/// The entry of a fold, its widths, and the bits that flip.
pub(super) struct Kind {
    /// The first level, and the levels above.
    pub keys: [[u32; 2]; 2],
    /// The bytes of a result.
    pub width: usize,
    pub flips: [u64; 2],
    pub descending: u64,
}

/// Chooses the kernels of a fold.
pub(super) fn kind(one: &GroupFold, of: &DataType) -> Option<Kind> {
    let same = |key: [u32; 2], width| Kind { keys: [key; 2], width, flips: [0; 2], descending: 0 };
    let fold = match one.fold {
        Reduction::Fold(fold) => fold,
        Reduction::Bits(bits) => {
            let width = of.primitive_width()?;
            // Bits of which both values have one, and of which one has.
            let flips = match bits {
                Bits::And => [u64::MAX, 0],
                Bits::Or => [u64::MAX; 2],
                Bits::Xor => [0, u64::MAX],
            };
            return Some(Kind { flips, ..same([BITS, width as u32], width) });
        }
        Reduction::First | Reduction::Last => {
            let flips = words(&DataType::UInt32)?.first()?.order.flips(4);
            let descending = if one.fold == Reduction::Last { u32::MAX.into() } else { 0 };
            let keys = [[ROW, 0], [LEAST, 4]];
            return Some(Kind { keys, flips, descending, ..same([ROW, 0], 4) });
        }
    };
    Some(match (fold, of) {
        // Counts of counts are their sums.
        (Fold::Count, _) => Kind { keys: [[COUNT, 0], [SUM_WRAPPING, 8]], ..same([COUNT, 0], 8) },
        (Fold::Sum, DataType::Int64 | DataType::UInt64) if one.wraps => same([SUM_WRAPPING, 8], 8),
        (Fold::Sum, DataType::Int64) => Kind { keys: [[SUM, 8], [SUM_WRAPPING, 16]], ..same([SUM, 8], 16) },
        (Fold::Sum, DataType::UInt64) => {
            Kind { keys: [[SUM_UNSIGNED, 8], [SUM_WRAPPING, 16]], ..same([SUM_UNSIGNED, 8], 16) }
        }
        (Fold::Sum, DataType::Decimal128(..)) => Kind { keys: [[SUM, 16], [SUM, 32]], ..same([SUM, 16], 32) },
        (Fold::Sum, DataType::Decimal256(..)) => same([SUM, 32], 32),
        (Fold::Sum, DataType::Float32) => same([SUM_FLOATS, 4], 4),
        (Fold::Sum, DataType::Float64) => same([SUM_FLOATS, 8], 8),
        (Fold::Sum, _) => return None,
        (Fold::Min | Fold::Max, _) => {
            let width = of.primitive_width()?;
            let all = if width < 8 { u64::MAX >> (64 - 8 * width) } else { u64::MAX };
            let flips = if width > 8 { [0; 2] } else { words(of)?.first()?.order.flips(width) };
            let descending = if fold == Fold::Max { all } else { 0 };
            Kind { flips, descending, ..same([LEAST, width as u32], width) }
        }
    })
}

/// The values that a fold reads, if it reads any.
pub(super) fn values_of(pass: &mut Pass, one: &GroupFold, kind: &Kind) -> Result<In<u8>> {
    match &one.values {
        Some(values) if kind.keys[0][1] > 0 => {
            let of = values.data_type();
            let width = of.primitive_width().ok_or_else(|| pass.unsupported(of))?;
            let rows = rows_of(values, &values.buffers()[0], width);
            aligned(pass, &rows, width.min(16))
        }
        _ => Ok(In::absent()),
    }
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
