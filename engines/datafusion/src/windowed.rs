//! Window functions over rows that are on a device anyway.

use std::fmt;
use std::sync::Arc;

use bowstring::compute::{SortColumn, Windows, concat};
use bowstring::{DeviceArray, DeviceBatch, Stream};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::OrderingRequirements;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};

use crate::device::stream_of;
use crate::downloads::{OnDevice, downloaded, left_there};
use crate::error::external;
use crate::inputs::Inputs;
use crate::made::options;
use crate::metrics::{Busy, Counters};
use crate::operator::{DeviceBatches, Open, Operator, Replaced, Source, Task, replaced};
use crate::streams::BatchSource;
use crate::uploads::Uploads;
use crate::window::{Function, Window, window_functions};

/// DataFusion's node of window functions, and what ours does in its place.
pub(crate) struct Windowed {
    /// DataFusion's node: a list of one.
    node: [Arc<dyn ExecutionPlan>; 1],
    window: Arc<Window>,
    steps: String,
}

impl Windowed {
    /// Translates a node; `None` if it has no window functions, or if any of them has no counterpart.
    pub fn of(node: &Arc<dyn ExecutionPlan>) -> Option<Windowed> {
        let window = Arc::new(Window::translate(node)?);
        let names: Vec<_> = window_functions(node)?.iter().map(|one| one.name()).collect();
        let steps = format!("window=[{}]", names.join(", "));
        Some(Windowed { node: [node.clone()], window, steps })
    }

    fn placing(&self, task: &Task<'_>, source: Source) -> Result<Placing> {
        let stream = stream_of(task.device)?;
        let counters = Counters::new(task.metrics, task.partition, true);
        let all = Inputs::all_of(&self.inputs()[0].schema());
        let columns = (all.used().to_vec(), all.schema());
        Ok(Placing {
            window: self.window.clone(),
            uploads: Some(Uploads::new(source, columns, task.options, &counters)),
            reservation: task.reservation(),
            busy: Busy::new(&stream, &counters),
            stream,
            counters,
        })
    }
}

impl fmt::Debug for Windowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Windowed({})", self.steps)
    }
}

impl Operator for Windowed {
    fn nodes(&self) -> &[Arc<dyn ExecutionPlan>] {
        &self.node
    }

    fn steps(&self) -> &str {
        &self.steps
    }

    fn translated(&self, nodes: Vec<Arc<dyn ExecutionPlan>>) -> Result<Replaced> {
        let ours = Windowed::of(&nodes[0]);
        Ok(replaced(nodes[0].clone(), ours))
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.node[0].required_input_ordering()
    }

    fn stays_on_device(&self) -> bool {
        true
    }

    fn execute(&self, task: Task<'_>, open: Open<'_>) -> Result<SendableRecordBatchStream> {
        let placing = self.placing(&task, open(0, task.partition)?)?;
        Ok(downloaded(placing, task.schema.clone(), task.batch_rows()))
    }

    fn execute_on_device(&self, task: Task<'_>, open: Open<'_>) -> Result<DeviceBatches> {
        Ok(left_there(self.placing(&task, open(0, task.partition)?)?))
    }
}

/// The window functions of a partition.
struct Placing {
    window: Arc<Window>,
    /// The rows, which are needed together; `None` afterwards.
    uploads: Option<Uploads>,
    /// The session's memory that uploads hold.
    reservation: MemoryReservation,
    stream: Stream,
    busy: Busy,
    counters: Counters,
}

impl BatchSource<DeviceBatch> for Placing {
    async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        let Some(mut uploads) = self.uploads.take() else { return Ok(None) };
        let from = self.stream.mark().map_err(external)?;
        let mut batches = vec![];
        while let Some(taken) = uploads.gathered().await? {
            let Some(taken) = uploads.granted(taken, &self.reservation, false)? else { break };
            batches.push(uploads.upload(taken, &self.stream)?);
        }
        let all = match &batches[..] {
            [] => return Ok(None),
            [one] => one.clone(),
            several => {
                let several: Vec<_> = several.iter().collect();
                concat(&several, &self.stream).await.map_err(external)?
            }
        };
        let made = self.window.of(&all, &self.stream).await.map_err(external)?;
        self.busy.queued(from).map_err(external)?;
        Ok(Some(made))
    }
}

impl Window {
    /// The rows of a batch, in their order, with the results of the functions.
    async fn of(&self, batch: &DeviceBatch, stream: &Stream) -> bowstring::Result<DeviceBatch> {
        let parts: Vec<_> = self.parts.iter().map(|column| batch.columns()[*column].clone()).collect();
        let order = self.order.iter().map(|(column, by)| SortColumn::new(&batch.columns()[*column], *by));
        let order: Vec<_> = order.collect();
        let windows = Windows::new(&parts, &order, batch.len(), stream).await?;
        let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
        let mut columns = batch.columns().to_vec();
        for function in &self.functions {
            let column = function.of(batch, &windows, stream).await?;
            fields.push(Arc::new(arrow_schema::Field::new("", column.data_type().clone(), true)));
            columns.push(column);
        }
        DeviceBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), columns, batch.len())
    }
}

impl Function {
    /// The results of a function for the rows of a batch.
    async fn of(
        &self,
        batch: &DeviceBatch,
        windows: &Windows,
        stream: &Stream,
    ) -> bowstring::Result<DeviceArray> {
        match self {
            Function::RowNumber => windows.row_number().await,
            Function::Rank => windows.rank().await,
            Function::DenseRank => windows.dense_rank().await,
            Function::Shift { values, by, or } => {
                let shifted = windows.lag(&values.run(batch, stream).await?.columns()[0], *by).await?;
                let Some((schema, or)) = or else { return Ok(shifted) };
                let number = windows.lag(&windows.row_number().await?, *by).await?;
                let both = DeviceBatch::try_new(schema.clone(), vec![shifted, number], batch.len())?;
                Ok(or.run(&both, stream).await?.columns()[0].clone())
            }
            Function::Nth { values, number } => {
                windows.nth_value(&values.run(batch, stream).await?.columns()[0], *number).await
            }
            Function::Framed { frame, aggregation, finished } => {
                let made = windows.aggregate_frames(batch, *frame, [aggregation.clone()], &options()).await?;
                match finished {
                    None => Ok(made.columns()[0].clone()),
                    Some(finished) => Ok(finished.run(&made, stream).await?.columns()[0].clone()),
                }
            }
        }
    }
}

impl OnDevice for Placing {
    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn stream(&mut self) -> (&Stream, &mut Busy) {
        (&self.stream, &mut self.busy)
    }
}
