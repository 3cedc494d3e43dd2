//! The place of rows that a device has no room for: the session's memory, and then its temporary files.
//!
//! The one idea: a file is mapped to memory, so the library reads rows there as it reads those in memory, and
//! the system decides which pages are. They are written as DataFusion's own, so its limits hold.

#![allow(unsafe_code)]

use std::fmt;
use std::fs::File;
use std::io::{Error as IoError, Write as _};
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use bowstring::compute::Spill;
use bowstring::exchange::{from_arrow_data, to_arrow_data};
use bowstring::ffi::DeviceType;
use bowstring::{DeviceArray, Error};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::disk_manager::DiskManager;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::spill_file::{SpillFile, SpillWriter};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder};
use memmap2::{Mmap, MmapOptions};

use crate::error::external;

/// Buffers begin at multiples of this in a file, as in memory.
const ALIGN: usize = 64;

/// The spilled rows of one partition of an operator.
pub(crate) struct SpilledRows {
    disk: Arc<DiskManager>,
    state: Mutex<State>,
    bytes_spilled_to_host: Gauge,
    spilled_bytes: Count,
}

struct State {
    /// The session's memory for rows that are not in a file.
    memory: MemoryReservation,
    file: Option<TempFile>,
    /// Why rows could not be spilled.
    failed: Option<DataFusionError>,
}

/// A temporary file of the session.
struct TempFile {
    file: Arc<dyn SpillFile>,
    writer: Box<dyn SpillWriter>,
    len: usize,
}

/// A part of a file in memory.
struct Mapped {
    bytes: Mmap,
    /// The file is removed when nothing maps it any more.
    _file: AssertUnwindSafe<Arc<dyn SpillFile>>,
}

impl SpilledRows {
    /// Begins with no rows, and a reservation of no memory.
    pub fn new(
        disk: Arc<DiskManager>,
        memory: MemoryReservation,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> SpilledRows {
        SpilledRows {
            disk,
            state: Mutex::new(State { memory, file: None, failed: None }),
            bytes_spilled_to_host: MetricBuilder::new(metrics).gauge("bytes_spilled_to_host", partition),
            spilled_bytes: MetricBuilder::new(metrics).spilled_bytes(partition),
        }
    }

    /// The error of an operation that spills rows: DataFusion's own, if it had no place for them.
    pub fn why(&self, error: Error) -> DataFusionError {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.take().unwrap_or_else(|| external(error))
    }
}

impl Spill for SpilledRows {
    fn spill(&self, columns: Vec<DeviceArray>, bytes: usize) -> bowstring::Result<Vec<DeviceArray>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.memory.try_grow(bytes).is_ok() {
            self.bytes_spilled_to_host.add(bytes);
            return Ok(columns);
        }
        let spilled = state.spill(&columns, &self.disk);
        match spilled {
            Ok((columns, written)) => {
                self.spilled_bytes.add(written);
                Ok(columns)
            }
            Err(error) => {
                // After a failed write, the end of the file is unknown, so later rows go to another file.
                state.file = None;
                state.failed = Some(error);
                Err(Error::OutOfMemory { bytes, device: DeviceType::Cpu })
            }
        }
    }
}

impl State {
    /// Moves columns to the file. Returns them there, and the bytes that were written.
    fn spill(
        &mut self,
        columns: &[DeviceArray],
        disk: &Arc<DiskManager>,
    ) -> Result<(Vec<DeviceArray>, usize)> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = disk.create_tmp_file("rows that wait for a device")?;
                let writer = file.open_writer()?;
                none.insert(TempFile { file, writer, len: 0 })
            }
        };
        let columns = columns.iter().map(|column| to_arrow_data(column).map_err(external));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let start = file.len;
        let mut places = vec![];
        columns.iter().try_for_each(|column| file.write(column, &mut places))?;
        file.writer.flush()?;
        let mapped = Arc::new(file.mapped(start)?);
        let mut places = places.into_iter().map(|at| at - start);
        let columns = columns.iter().map(|column| {
            let there = moved(column, &mut |buffer| mapped.buffer(places.next(), buffer.len()));
            from_arrow_data(&there).map_err(external)
        });
        Ok((columns.collect::<Result<_>>()?, file.len - start))
    }
}

impl TempFile {
    /// Appends the buffers of an array, in the order in which [`moved`] asks for them. Adds the place of each.
    fn write(&mut self, data: &ArrayData, places: &mut Vec<usize>) -> Result<()> {
        let mut all = vec![];
        moved(data, &mut |buffer| {
            all.push(buffer.clone());
            buffer.clone()
        });
        for buffer in all {
            places.push(self.len);
            self.writer.write_all(&buffer)?;
            let padding = buffer.len().next_multiple_of(ALIGN) - buffer.len();
            self.writer.write_all(&[0; ALIGN][..padding])?;
            self.len += buffer.len() + padding;
        }
        Ok(())
    }

    /// Maps what was written from a place on.
    fn mapped(&self, start: usize) -> Result<Mapped> {
        let path = self.file.path().ok_or_else(|| {
            DataFusionError::ResourcesExhausted("temporary files are elsewhere than on a disk".to_owned())
        })?;
        let file = File::open(path)?;
        if (file.metadata()?.len() as u128) < self.len as u128 {
            return Err(IoError::other("a temporary file is shorter than what was written").into());
        }
        // SAFETY: the session's file, which is only appended to. A process that cuts off what another one has
        // written there can do as much to its memory.
        let bytes = unsafe { MmapOptions::new().offset(start as u64).len(self.len - start).map(&file)? };
        Ok(Mapped { bytes, _file: AssertUnwindSafe(self.file.clone()) })
    }
}

impl Mapped {
    /// A buffer at a place, of so many bytes.
    fn buffer(self: &Arc<Mapped>, at: Option<usize>, len: usize) -> Buffer {
        let bytes = at.and_then(|at| self.bytes.get(at..)?.get(..len)).unwrap_or(&[]);
        let start = NonNull::from(bytes).cast();
        // SAFETY: the owner keeps these bytes mapped, and nothing writes them.
        unsafe { Buffer::from_custom_allocation(start, bytes.len(), self.clone()) }
    }
}

/// The same array with other buffers, which have the same bytes.
fn moved(data: &ArrayData, buffer: &mut dyn FnMut(&Buffer) -> Buffer) -> ArrayData {
    let nulls = data.nulls().map(|nulls| {
        let bits = BooleanBuffer::new(buffer(nulls.buffer()), nulls.offset(), nulls.len());
        // SAFETY: the same bits have been counted.
        unsafe { NullBuffer::new_unchecked(bits, nulls.null_count()) }
    });
    let buffers = data.buffers().iter().map(&mut *buffer).collect();
    let children = data.child_data().iter().map(|child| moved(child, buffer)).collect();
    let builder = ArrayDataBuilder::new(data.data_type().clone())
        .len(data.len())
        .offset(data.offset())
        .nulls(nulls)
        .buffers(buffers)
        .child_data(children);
    // SAFETY: the parts of a valid array.
    unsafe { builder.build_unchecked() }
}

impl fmt::Debug for SpilledRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpilledRows")
            .field("spilled_bytes", &self.spilled_bytes.value())
            .finish_non_exhaustive()
    }
}
