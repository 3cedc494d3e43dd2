//! Cuts sorted runs in host memory at the same rows.
//!
//! The one idea: rows have a total order, by their keys, then the number of their run, then their place in
//! it. A few of them are compared by sorting them alone.

use arrow_array::{UInt32Array, UInt64Array, cast::AsArray as _, types::UInt32Type};

use super::arrays::unnamed;
use super::sort::{SortColumn, SortOptions, lexsort_to_indices};
use super::{TakeOptions, concat, take};
use crate::exchange::{from_arrow, to_arrow};
use crate::{DeviceArray, DeviceBatch, Result, Stream};

/// A row of a run: the number of the run, and its place.
type Row = (usize, usize);

/// Cuts runs, of which there are the keys, in order, so that at most `rows` rows of all runs lie between two
/// cuts, or as many as there are runs twice. Returns the places in each run at which it is cut, the last of
/// which are the ends.
pub(super) async fn cuts(
    runs: &[Vec<DeviceArray>],
    options: &[SortOptions],
    rows: usize,
) -> Result<Vec<Vec<usize>>> {
    let lens: Vec<usize> = runs.iter().map(|run| run[0].len()).collect();
    // In each run, up to this many rows may lie between a cut and the last row known to be before it.
    let step = (rows / (2 * runs.len())).max(1);
    let known = |run: usize| (step - 1..lens[run]).step_by(step).map(move |place| (run, place));
    let known: Vec<Row> = (0..runs.len()).flat_map(known).collect();
    let Some(first) = known.first() else { return Ok(vec![lens]) };
    let mut ordered = vec![*first; known.len()];
    for (row, rank) in known.iter().zip(ranks(runs, options, &known).await?) {
        ordered[rank] = *row;
    }
    let at: Vec<Row> = ordered.chunks_exact(runs.len()).map(|chunk| chunk[chunk.len() - 1]).collect();
    let mut made = divided(runs, options, &lens, &at).await?;
    if made.last() != Some(&lens) {
        made.push(lens);
    }
    Ok(made)
}

/// The number of rows of each run that are not after some rows: all searched for together.
async fn divided(
    runs: &[Vec<DeviceArray>],
    options: &[SortOptions],
    lens: &[usize],
    at: &[Row],
) -> Result<Vec<Vec<usize>>> {
    let mut low = vec![vec![0; runs.len()]; at.len()];
    let mut high = vec![lens.to_vec(); at.len()];
    for (number, (run, place)) in at.iter().enumerate() {
        (low[number][*run], high[number][*run]) = (place + 1, place + 1);
    }
    loop {
        let open = |number: usize, run: usize| low[number][run] < high[number][run];
        let middle = |number: usize, run: usize| low[number][run].midpoint(high[number][run]);
        let mut asked: Vec<(usize, usize)> = vec![];
        for number in 0..at.len() {
            asked.extend((0..runs.len()).filter(|run| open(number, *run)).map(|run| (number, run)));
        }
        if asked.is_empty() {
            return Ok(low);
        }
        let middles: Vec<Row> = asked.iter().map(|(number, run)| (*run, middle(*number, *run))).collect();
        let ranks = ranks(runs, options, &[&middles[..], at].concat()).await?;
        let (of_middles, of_cuts) = ranks.split_at(middles.len());
        for (((number, run), (_, place)), rank) in asked.iter().zip(&middles).zip(of_middles) {
            match *rank < of_cuts[*number] {
                true => low[*number][*run] = place + 1,
                false => high[*number][*run] = *place,
            }
        }
    }
}

/// The place of each of some rows in their order. If a row is asked for twice, either is first.
async fn ranks(runs: &[Vec<DeviceArray>], options: &[SortOptions], rows: &[Row]) -> Result<Vec<usize>> {
    let here = Stream::cpu();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|number| rows[*number]);
    let mut parts: Vec<DeviceBatch> = vec![];
    for chunk in order.chunk_by(|a, b| rows[*a].0 == rows[*b].0) {
        let places = UInt64Array::from_iter_values(chunk.iter().map(|number| rows[*number].1 as u64));
        let keys = unnamed(runs[rows[chunk[0]].0].clone())?;
        parts.push(take(&keys, &from_arrow(&places)?, &TakeOptions::default(), &here).await?);
    }
    let keys = concat(&parts.iter().collect::<Vec<_>>(), &here).await?;
    let by = keys.columns().iter().zip(options).map(|(values, options)| SortColumn::new(values, *options));
    let sorted = lexsort_to_indices(&by.collect::<Vec<_>>(), None, &here);
    let sorted = to_arrow(&sorted.await?)?;
    let sorted: &UInt32Array = sorted.as_primitive::<UInt32Type>();
    let mut ranks = vec![0; sorted.len()];
    for (rank, place) in sorted.values().iter().enumerate() {
        ranks[order[*place as usize]] = rank;
    }
    Ok(ranks)
}
