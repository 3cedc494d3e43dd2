//! A batch under construction in host memory.
//!
//! The one idea: rows that can be written to their final place are filtered straight into the batch. For all
//! other columns, the pieces are kept until the batch is complete, and then concatenated.

use arrow_schema::SchemaRef;

use super::building::Building;
use super::selection::{PARALLEL, Selection};
use super::{admitted, concat, filter};
use crate::array::{DeviceArray, DeviceBatch};
use crate::device::HostPool;
use crate::engine;
use crate::threads::among_threads;
use crate::{Result, Stream};

/// A column of the batch.
enum Column {
    Straight(Building),
    Pieces(Vec<DeviceArray>),
}

/// The columns, and the rows that all of them have.
pub(crate) struct InPlace {
    target: usize,
    columns: Vec<Column>,
    rows: usize,
    /// The number of pieces that the rows consist of.
    pieces: usize,
}

impl InPlace {
    pub(crate) fn new(schema: &SchemaRef, target: usize) -> InPlace {
        let column =
            |data_type| Building::new(data_type, target).map_or(Column::Pieces(vec![]), Column::Straight);
        let columns = schema.fields().iter().map(|field| column(field.data_type())).collect();
        InPlace { target, columns, rows: 0, pieces: 0 }
    }

    /// Adds selected rows of a batch, which fit.
    fn add(&mut self, batch: &DeviceBatch, selection: &Selection, pool: &HostPool) -> Result<()> {
        for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
            let array = &*admitted(array)?;
            match column {
                Column::Straight(building) => building.append(array, selection, self.rows, pool)?,
                Column::Pieces(all) => {
                    all.truncate(self.pieces);
                    all.push(filter::filter(array, selection, pool)?);
                }
            }
        }
        self.rows += selection.len();
        self.pieces += 1;
        Ok(())
    }

    fn finish(&mut self, pool: &HostPool) -> Result<Vec<DeviceArray>> {
        let (rows, pieces) = (self.rows, self.pieces);
        let finished = self.columns.iter_mut().map(|column| match column {
            Column::Straight(building) => building.finish(rows),
            Column::Pieces(all) => {
                all.truncate(pieces);
                joined(std::mem::take(all), pool)
            }
        });
        let finished: Vec<Result<DeviceArray>> = finished.collect();
        (self.rows, self.pieces) = (0, 0);
        finished.into_iter().collect()
    }
}

/// Concatenates pieces. A single one is returned as it is.
fn joined(mut pieces: Vec<DeviceArray>, pool: &HostPool) -> Result<DeviceArray> {
    match pieces.len() {
        1 => Ok(pieces.remove(0)),
        _ => concat::concat(&pieces, pool),
    }
}

impl engine::Assembly for InPlace {
    fn rows(&self) -> usize {
        self.rows
    }

    fn push(&mut self, batch: &DeviceBatch, stream: &Stream) -> Result<()> {
        let pool = stream.device().host_pool();
        self.add(batch, &Selection::all(batch.len(), pool)?, pool)
    }

    fn push_filtered(
        &mut self,
        batch: &DeviceBatch,
        mask: &DeviceArray,
        completed: &mut (dyn FnMut(Vec<DeviceArray>) -> Result<()> + Send),
        stream: &Stream,
    ) -> Result<()> {
        let (mask, pool) = (&*admitted(mask)?, stream.device().host_pool());
        batch.columns().iter().try_for_each(DeviceArray::wait)?;
        among_threads(mask.len() >= PARALLEL, |_| {
            // Splitting a selection searches it from its beginning each time, so large batches are processed
            // in parts.
            let part = self.target.max(PARALLEL);
            for first in (0..batch.len()).step_by(part) {
                let rows = part.min(batch.len() - first);
                let kept = Selection::of_mask(&mask.slice(first, rows)?, pool)?;
                let (batch, mut left) = (batch.slice(first, rows)?, Some(kept).filter(|kept| kept.len() > 0));
                while let Some(selection) = left {
                    let room = self.target - self.rows;
                    let (now, later) = match selection.len() > room {
                        true => selection.split(room, pool).map(|(now, later)| (now, Some(later)))?,
                        false => (selection, None),
                    };
                    self.add(&batch, &now, pool)?;
                    if self.rows == self.target {
                        completed(self.finish(pool)?)?;
                    }
                    left = later;
                }
            }
            Ok(())
        })
    }

    fn finish(&mut self, stream: &Stream) -> Result<Vec<DeviceArray>> {
        InPlace::finish(self, stream.device().host_pool())
    }
}
