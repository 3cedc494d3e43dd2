//! Folds of the values of frames.

use arrow_schema::DataType;
use bowstring_kernels::group::frames::{ENDS, Ends, FRAMES, Frames as Args, Nodes};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::target::find;

use super::kinds::{kind, values_of};
use crate::array::{Bitmap, DeviceArray};
use crate::engine::{Frames, GroupFold};
use crate::expr::{Fold, Reduction};
use crate::gpu::rows::rows_of;
use crate::pass::{BitPointer, Pass, Region, Table, bits, input, validity};
use crate::rules::{folded_type, levels};
use crate::{Error, Result, Stream};

/// Finds one end of the frame of each place. Does not look at the device.
pub(crate) fn frame_ends(
    [firsts, counts]: [&DeviceArray; 2],
    by: Option<i64>,
    after: bool,
    stream: &Stream,
) -> Result<DeviceArray> {
    let rows = firsts.len();
    let mut pass = Pass::begin("windows", stream)?;
    pass.input(firsts)?;
    pass.input(counts)?;
    let out = pass.rows(rows, 4)?;
    let args = Ends {
        firsts: input(&rows_of(firsts, &firsts.buffers()[0], 4)),
        counts: input(&rows_of(counts, &counts.buffers()[0], 8)),
        rows: rows as u64,
        moves: by.is_some().into(),
        by: by.unwrap_or(0) as u64,
        after: after.into(),
        out: out.out(),
    };
    pass.launch(&ENDS[0], &args)?;
    let ends = pass.array(DataType::UInt32, rows, &out)?;
    pass.finish()?;
    Ok(ends)
}

/// Folds the values of each frame. Does not look at the device.
pub(crate) fn fold_frames(folds: &[GroupFold], frames: &Frames, stream: &Stream) -> Result<Vec<DeviceArray>> {
    let mut pass = Pass::begin("windows", stream)?;
    pass.input(&frames.starts)?;
    pass.input(&frames.ends)?;
    let folded = folds.iter().map(|one| {
        one.values.as_ref().map_or(Ok(()), |values| pass.input(values))?;
        folded(&mut pass, one, frames)
    });
    let folded = folded.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(folded)
}

fn folded(pass: &mut Pass, one: &GroupFold, frames: &Frames) -> Result<DeviceArray> {
    let from = one.values.as_ref().map_or(&DataType::Null, DeviceArray::data_type);
    let unfit = || Error::invalid("windows", format!("{:?} of {from}", one.fold));
    let to = folded_type(one.fold, from, one.wraps).ok_or_else(unfit)?;
    let kind = kind(one, from).ok_or_else(unfit)?;
    let places = frames.starts.len();
    let nulls = one.values.as_ref().filter(|values| values.possible_nulls().is_some());
    let valid: BitPointer = nulls.map_or((In::absent(), 0), validity);
    let args = Args {
        values: values_of(pass, one, &kind)?,
        valid: valid.0,
        valid_offset: valid.1,
        rows: places as u64,
        levels: In::absent(),
        count: 0,
        starts: In::absent(),
        ends: In::absent(),
        frames: 0,
        always: kind.flips[0],
        negative: kind.flips[1],
        descending: kind.descending,
        out: Out::absent(),
        out_valid: Out::absent(),
    };
    let entry = |key| find(FRAMES, key).ok_or_else(|| pass.unsupported(from));
    let [first, above] = [entry(&kind.keys[0])?, entry(&kind.keys[1])?];

    // The nodes of each level are the frames of the level below.
    let (mut table, mut below) = (Table::default(), (args, places));
    let mut made: Vec<[Region; 2]> = vec![];
    for nodes in levels(places, frames.longest) {
        let (args, rows) = below;
        let states = pass.rows(nodes, kind.width)?;
        let marks = pass.output(nodes.div_ceil(32) * 4)?;
        let args = Args {
            rows: rows as u64,
            frames: nodes as u64,
            out: states.out(),
            out_valid: marks.out(),
            ..args
        };
        pass.launch(if made.is_empty() { first } else { above }, &args)?;
        let marked = Bitmap { buffer: marks.buffer(), offset: 0 };
        let valid = nulls.map_or((In::absent(), 0), |_| bits(&marked));
        table.push(&Nodes { states: states.input(), valid: valid.0 });
        below = (Args { values: states.input(), valid: valid.0, valid_offset: valid.1, ..args }, nodes);
        made.push([states, marks]);
    }
    let described = if made.is_empty() { None } else { Some(pass.upload(table.words())?) };
    let (out, marks) = (pass.rows(places, kind.width)?, pass.output(places.div_ceil(32) * 4)?);
    let numbers = |array: &DeviceArray| input(&rows_of(array, &array.buffers()[0], 4));
    let args = Args {
        levels: described.as_ref().map_or(In::absent(), Region::input),
        count: made.len() as u64,
        starts: numbers(&frames.starts),
        ends: numbers(&frames.ends),
        frames: places as u64,
        out: out.out(),
        out_valid: marks.out(),
        ..args
    };
    pass.launch(first, &args)?;
    let mut parts = pass.parts(to, places);
    parts.buffers = vec![out.buffer()];
    if one.fold != Reduction::Fold(Fold::Count) {
        parts.validity = Some(Bitmap { buffer: marks.buffer(), offset: 0 });
        parts.null_count = None;
    }
    DeviceArray::try_new(parts)
}
