//! Run-end encoded arrays: the run of each row, the runs that a filter keeps, and runs built from rows.
//!
//! Run ends are not trusted: a row that no run covers is an error, and so are decreasing ends if they are
//! noticed.

use arrow_schema::DataType;
use bowstring_kernels::encoded::distinct::{STRETCHES, Stretches};
use bowstring_kernels::encoded::runs::{ENDS, Ends, FIND, Find, KEPT, Kept};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::target::find;

use super::{Marked, written};
use crate::array::DeviceArray;
use crate::gpu::bitmap::aligned;
use crate::gpu::draft::Pick;
use crate::gpu::indices::{IndexArguments, Indices, Outside};
use crate::gpu::mask::Mask;
use crate::gpu::nulls::null_counts;
use crate::gpu::parts::{check_end, part_of};
use crate::gpu::rows::rows_of;
use crate::pass::{BitPointer, Looks, Pass, Region, Requests};
use crate::{Error, Result, Stream};

/// Returns the width of a run end in bytes.
fn end_width(ends: &DataType) -> usize {
    ends.primitive_width().unwrap_or(8)
}

/// Makes the error for a row that no run covers.
pub(crate) fn uncovered(row: u64) -> Error {
    Error::out_of_spec("array.children[0]", format!("no run for row {row}"))
}

/// Returns an array's run ends as kernels take them, with their width.
fn ends_of(pass: &mut Pass, array: &DeviceArray) -> Result<(In<u8>, usize)> {
    let ends = &array.children()[0];
    let width = end_width(ends.data_type());
    if ends.is_empty() {
        return Err(uncovered(0));
    }
    Ok((aligned(pass, &rows_of(ends, &ends.buffers()[0], width), width)?, width))
}

/// Writes the run of each row of an array, or of the rows at some indices.
fn find_runs(
    pass: &mut Pass,
    array: &DeviceArray,
    by: Option<&IndexArguments>,
    rows: usize,
    out: &Region,
    fault: Out<u64>,
) -> Result<()> {
    let (ends, width) = ends_of(pass, array)?;
    let args = Find {
        ends,
        runs: array.children()[0].len() as u64,
        offset: array.offset() as u64,
        indices: by.map_or(In::absent(), |by| by.indices),
        width: by.map_or(0, |by| by.width.into()),
        valid: by.map_or(In::absent(), |by| by.valid.0),
        valid_offset: by.map_or(0, |by| by.valid.1),
        rows: rows as u64,
        limit: by.map_or(array.len() as u64, |by| by.limit),
        out: out.out(),
        index_fault: by.map_or(Out::absent(), |by| by.fault),
        fault,
    };
    let entry = find(FIND, &[width as u32]).ok_or_else(|| pass.unsupported(array.data_type()))?;
    pass.launch(entry, &args)
}

/// Returns the run of each row, as indices into the values. A row that no run covers is an error when the
/// result is waited for. Does not synchronise.
pub(crate) fn of_rows(operation: &'static str, array: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let mut pass = Pass::begin(operation, stream)?;
    pass.input(array)?;
    let out = pass.rows(array.len(), 8)?;
    if !array.is_empty() {
        let fault = pass.first_rows(1, array.len())?;
        find_runs(&mut pass, array, None, array.len(), &out, fault.out())?;
        pass.report(&fault, |words| if words[0] == u64::MAX { Ok(()) } else { Err(uncovered(words[0])) })?;
    }
    let mut parts = pass.parts(DataType::UInt64, array.len());
    parts.buffers = vec![out.buffer()];
    let runs = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(runs)
}

/// Returns the runs that an array's own rows cover: their ends, counted from the array's first row, and their
/// values. Needs at least one row. Reads once.
pub(crate) async fn of_slice(pass: &mut Pass, array: &DeviceArray) -> Result<(DeviceArray, DeviceArray)> {
    let runs = SliceRuns::new(pass, array)?;
    let words = pass.read(&runs.counters()).await?;
    runs.found(pass, &words)
}

/// The runs that an array's own rows cover, before the host has read which they are.
pub(crate) struct SliceRuns {
    kept: KeptRuns,
    /// The runs of the first and the last row.
    ends: Region,
}

impl SliceRuns {
    /// Launches the search. Needs at least one row.
    pub fn new(pass: &mut Pass, array: &DeviceArray) -> Result<SliceRuns> {
        let mut requests = Requests::default();
        let ends = pass.upload(&[0, array.len() as u64 - 1])?;
        let ends = written(pass, DataType::UInt64, 2, &ends)?;
        let by = Indices::new(&mut requests, &ends, array.len(), Outside::Refused)?;
        let fault = requests.first_row();
        let granted = requests.grant(pass, 0)?;
        let (arguments, out) = (by.arguments(pass, &granted)?, pass.zeroed(16)?);
        find_runs(pass, array, Some(&arguments), 2, &out, granted.counter(fault))?;
        let kept = KeptRuns::new(pass, array)?;
        kept.find_all(pass)?;
        Ok(SliceRuns { kept, ends: out })
    }

    /// Returns what the host must read.
    pub fn counters(&self) -> [&Region; 2] {
        [self.kept.faults(), &self.ends]
    }

    /// Returns the ends of the runs, counted from the array's first row, and their values, given the words
    /// that were read.
    pub fn found(&self, pass: &Pass, words: &[u64]) -> Result<(DeviceArray, DeviceArray)> {
        KeptRuns::check(words)?;
        // If ends do not decrease, the first row's run does not come after the last row's.
        let (first, last) = (words[2] as usize, words[3] as usize);
        let runs = (last + 1).saturating_sub(first);
        Ok((self.kept.ends(pass)?.slice(first, runs)?, self.kept.array.children()[1].slice(first, runs)?))
    }
}

/// The runs of taken rows, without their values.
pub(crate) struct TakenRuns {
    pass: Pass,
    data_type: DataType,
    rows: usize,
    ends: DeviceArray,
    pub values: Pick,
    /// Whether the values may be null, although their field says otherwise.
    wrong_nulls: bool,
}

/// Finds the runs of rows: neighbouring rows of one run stay one run. Needs at least one row and one index.
/// Reads the number of runs.
pub(crate) async fn taken(Pick { array, indices, outside }: &Pick, stream: &Stream) -> Result<TakenRuns> {
    let (DataType::RunEndEncoded(_, field), [ends, values]) = (array.data_type(), array.children()) else {
        return Err(Error::invalid("take", "an array without runs"));
    };
    check_end("take", indices.len(), ends.data_type())?;
    let mut pass = Pass::begin("take", stream)?;
    pass.input(array)?;
    pass.input(indices)?;
    let mut requests = Requests::default();
    let by = Indices::new(&mut requests, indices, array.len(), *outside)?;
    let fault = requests.first_row();
    let granted = requests.grant(&mut pass, 0)?;
    let (rows, arguments) = (indices.len(), by.arguments(&mut pass, &granted)?);
    let of = pass.rows(rows, 8)?;
    find_runs(&mut pass, array, Some(&arguments), rows, &of, granted.counter(fault))?;
    let bits = pass.output(rows.div_ceil(32) * 4)?;
    let args = Stretches {
        values: of.input(),
        pieces: 1,
        valid: In::absent(),
        valid_offset: 0,
        column: In::absent(),
        rows: rows as u64,
        out: bits.out(),
        fault: Out::absent(),
    };
    let entry = find(STRETCHES, &[8]).ok_or_else(|| pass.unsupported(array.data_type()))?;
    pass.launch(entry, &args)?;
    let marked = Marked::new(&mut pass, rows, &bits)?;
    let mut looks = Looks::default();
    let (own, of_marked) = (looks.at([granted.counters()]), looks.at([marked.counters()]));
    let words = looks.read(&mut pass).await?;
    let own = &words[&own];
    by.check(pass.gpu(), own)?;
    if fault.of(own) != u64::MAX {
        return Err(uncovered(fault.of(own)));
    }
    let runs = marked.total(&words[&of_marked]);
    let (ends, picked) = ends_and_rows(&mut pass, &marked.mask, runs, Some(&of), ends.data_type())?;
    // A null or out-of-bounds index yields a run number that no value has.
    let may_be_null = indices.possible_nulls().is_some() || outside.is_null();
    let outside = if may_be_null { outside.made_null() } else { *outside };
    Ok(TakenRuns {
        pass,
        data_type: array.data_type().clone(),
        rows,
        ends,
        values: Pick { array: values.clone(), indices: picked, outside },
        wrong_nulls: may_be_null && !field.is_nullable(),
    })
}

impl TakenRuns {
    /// Adds the taken values. Reads the number of their nulls if there must be none.
    pub async fn build(self, values: DeviceArray, stream: &Stream) -> Result<DeviceArray> {
        if self.wrong_nulls {
            refuse_nulls(&values, stream).await?;
        }
        built(self.pass, &self.data_type, self.rows, self.ends, values)
    }
}

async fn refuse_nulls(values: &DeviceArray, stream: &Stream) -> Result<()> {
    let Some(bits) = values.possible_nulls() else { return Ok(()) };
    match null_counts(&[(values, bits)], stream)?.await?[..] {
        [0] => Ok(()),
        _ => Err(Error::invalid("take", "null indices into runs of values that may not be null")),
    }
}

/// Returns the ends of `runs` runs whose last rows a mask selects, and a number for each: its last row's
/// entry in `of`, or without `of` that row's number.
pub(crate) fn ends_and_rows(
    pass: &mut Pass,
    mask: &Mask,
    runs: usize,
    of: Option<&Region>,
    ends: &DataType,
) -> Result<(DeviceArray, DeviceArray)> {
    let width = end_width(ends);
    let (out, picked) = (pass.rows(runs, width)?, pass.rows(runs, 8)?);
    launch_ends(pass, mask, of, Some((&out, width)), &picked)?;
    Ok((written(pass, ends.clone(), runs, &out)?, written(pass, DataType::UInt64, runs, &picked)?))
}

/// Returns the numbers of the `rows` rows that a mask selects.
pub(crate) fn rows_of_mask(pass: &mut Pass, mask: &Mask, rows: usize) -> Result<DeviceArray> {
    let picked = pass.rows(rows, 8)?;
    launch_ends(pass, mask, None, None, &picked)?;
    written(pass, DataType::UInt64, rows, &picked)
}

fn launch_ends(
    pass: &mut Pass,
    mask: &Mask,
    of: Option<&Region>,
    ends: Option<(&Region, usize)>,
    picked: &Region,
) -> Result<()> {
    let (words, words_offset) = mask.words();
    let args = Ends {
        words,
        words_offset,
        tile_offsets: mask.offsets(),
        rows: mask.rows as u64,
        of: of.map_or(In::absent(), Region::input),
        ends: ends.map_or(Out::absent(), |(ends, _)| ends.out()),
        picked: picked.out(),
    };
    let width = ends.map_or(8, |(_, width)| width as u32);
    pass.launch(find(ENDS, &[width]).ok_or_else(|| pass.unsupported("run ends"))?, &args)
}

/// Builds an array of runs from ends that this pass has written and values that another has made.
pub(crate) fn built(
    mut pass: Pass,
    data_type: &DataType,
    rows: usize,
    ends: DeviceArray,
    values: DeviceArray,
) -> Result<DeviceArray> {
    pass.input(&values)?;
    let mut parts = pass.parts(data_type.clone(), rows);
    parts.children = vec![part_of(&pass, ends)?, part_of(&pass, values)?];
    let array = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(array)
}

/// The runs that a filter keeps, before the number of rows is known.
pub(crate) struct KeptRuns {
    array: DeviceArray,
    ends: Region,
    bits: Region,
    faults: Region,
}

impl KeptRuns {
    pub fn new(pass: &mut Pass, array: &DeviceArray) -> Result<KeptRuns> {
        let ends = &array.children()[0];
        if ends.is_empty() {
            return Err(uncovered(0));
        }
        let width = end_width(ends.data_type());
        Ok(KeptRuns {
            array: array.clone(),
            ends: pass.rows(ends.len(), width)?,
            bits: pass.output(ends.len().div_ceil(32) * 4)?,
            faults: pass.first_rows(2, array.len())?,
        })
    }

    /// Returns the number of runs before the filter.
    pub fn runs(&self) -> usize {
        self.array.children()[0].len()
    }

    /// Returns the new ends of all runs, once they are found.
    pub fn ends(&self, pass: &Pass) -> Result<DeviceArray> {
        written(pass, self.array.children()[0].data_type().clone(), self.runs(), &self.ends)
    }

    /// Launches the search for the new ends, and for the runs that keep a row.
    pub fn find(&self, pass: &mut Pass, mask: &Mask) -> Result<Marked> {
        self.launch(pass, mask.words(), mask.offsets(), mask.rows)?;
        Marked::new(pass, self.runs(), &self.bits)
    }

    fn launch(
        &self,
        pass: &mut Pass,
        (words, words_offset): BitPointer,
        tile_offsets: In<u64>,
        rows: usize,
    ) -> Result<()> {
        let (ends, width) = ends_of(pass, &self.array)?;
        let args = Kept {
            ends,
            runs: self.runs() as u64,
            offset: self.array.offset() as u64,
            words,
            words_offset,
            tile_offsets,
            rows: rows as u64,
            out: self.ends.out(),
            left: self.bits.out(),
            faults: self.faults.out(),
        };
        let entry = find(KEPT, &[width as u32]).ok_or_else(|| pass.unsupported(self.array.data_type()))?;
        pass.launch(entry, &args)
    }

    /// Launches the search for the ends in the array's own rows, without a filter.
    pub fn find_all(&self, pass: &mut Pass) -> Result<()> {
        self.launch(pass, (In::absent(), 0), In::absent(), self.array.len())
    }

    /// Returns the memory that receives the first bad run and the first uncovered row.
    pub fn faults(&self) -> &Region {
        &self.faults
    }

    /// Returns the error that the fault words report, if they do.
    pub fn check(words: &[u64]) -> Result<()> {
        match (words[0], words[1]) {
            (u64::MAX, u64::MAX) => Ok(()),
            (u64::MAX, row) => Err(uncovered(row)),
            (run, _) => {
                let problem = format!("run {run} ends before the one before it");
                Err(Error::out_of_spec("array.children[0]", problem))
            }
        }
    }
}
