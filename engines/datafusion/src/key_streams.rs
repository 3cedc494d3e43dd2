//! The streams of the two nodes that a join's keys put into plans.

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, BooleanBufferBuilder, RecordBatch};
use datafusion::arrow::compute::{BatchCoalescer, filter_record_batch};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, RecordOutput as _};
use datafusion::physical_plan::{PhysicalExpr, SendableRecordBatchStream};
use futures::StreamExt;

use crate::join_keys::{Collector, Execution};
use crate::key_bits::KeyBits;
use crate::masked::truth_of;
use crate::streams::BatchSource;

/// After so many rows, a filter that keeps most of them ends.
const TRIED: usize = 1 << 16;

/// Passes batches on, and collects their keys.
pub(crate) struct Collecting {
    input: SendableRecordBatchStream,
    /// The collector of each column; none once all has been read.
    collectors: Vec<(usize, Collector)>,
}

impl Collecting {
    pub fn new(input: SendableRecordBatchStream, collectors: Vec<(usize, Collector)>) -> Collecting {
        Collecting { input, collectors }
    }
}

impl BatchSource<RecordBatch> for Collecting {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.collectors.iter_mut().for_each(|(_, collector)| collector.start());
        let batch = self.input.next().await.transpose()?;
        match &batch {
            Some(batch) => {
                self.collectors
                    .iter_mut()
                    .for_each(|(column, collector)| collector.add(batch.column(*column)));
            }
            None => self.collectors.drain(..).for_each(|(_, collector)| collector.end()),
        }
        Ok(batch)
    }
}

/// A filter by the keys of a join, as long as that drops many rows.
pub(crate) struct Filter {
    column: usize,
    /// `None` if rows are not dropped any more.
    execution: Option<Arc<Execution>>,
    rows: usize,
    kept: usize,
}

impl Filter {
    pub fn new(column: usize, execution: Arc<Execution>) -> Filter {
        Filter { column, execution: Some(execution), rows: 0, kept: 0 }
    }

    /// The keys, if they are known.
    async fn keys(&mut self) -> Option<Arc<KeyBits>> {
        let execution = self.execution.as_ref()?;
        let known = execution.known().await;
        if known.is_none() && execution.is_lost() {
            self.execution = None;
        }
        known
    }

    /// The rows of a batch that have a key, of those that are left.
    fn kept(&mut self, batch: &RecordBatch, left: Option<BooleanArray>, keys: &KeyBits) -> BooleanArray {
        let found = keys.contain(batch.column(self.column));
        let before = left.as_ref().map_or(batch.num_rows(), BooleanArray::true_count);
        let found = match left {
            Some(left) => BooleanArray::new(left.values() & found.values(), None),
            None => found,
        };
        self.rows += before;
        self.kept += found.true_count();
        if self.rows >= TRIED && self.kept > self.rows / 2 {
            self.execution = None;
        }
        found
    }
}

/// The condition of the filter above, as long as it drops many rows.
pub(crate) struct Condition {
    /// The columns that it reads, and the test over these.
    columns: Vec<usize>,
    test: Arc<dyn PhysicalExpr>,
    rows: usize,
    kept: usize,
}

impl Condition {
    pub fn new(condition: &Arc<dyn PhysicalExpr>) -> Result<Condition> {
        let mut columns: Vec<_> = collect_columns(condition).iter().map(Column::index).collect();
        columns.sort_unstable();
        columns.dedup();
        let test = condition.clone().transform_up(|part| {
            let place = |column: &Column| columns.binary_search(&column.index()).ok();
            Ok(match part.downcast_ref::<Column>().and_then(|column| Some((column, place(column)?))) {
                Some((column, place)) => Transformed::yes(Arc::new(Column::new(column.name(), place))),
                None => Transformed::no(part),
            })
        })?;
        Ok(Condition { columns, test: test.data, rows: 0, kept: 0 })
    }

    /// The rows of a batch that pass, of those that are left.
    fn kept(&mut self, batch: &RecordBatch, left: &BooleanArray) -> Result<BooleanArray> {
        let few = filter_record_batch(&batch.project(&self.columns)?, left)?;
        let truth = truth_of(&self.test, &few)?;
        let mut kept = BooleanBufferBuilder::new(left.len());
        kept.append_buffer(left.values());
        for (row, passes) in left.values().set_indices().zip(truth.values()) {
            if !passes {
                kept.set_bit(row, false);
            }
        }
        self.rows += few.num_rows();
        self.kept += truth.true_count();
        Ok(BooleanArray::new(kept.finish(), None))
    }

    fn pays(&self) -> bool {
        self.rows < TRIED || self.kept <= self.rows / 2
    }
}

/// Drops rows without a key, once the keys are known.
pub(crate) struct Filtering {
    /// `None` once all has been read.
    input: Option<SendableRecordBatchStream>,
    filters: Vec<Filter>,
    condition: Option<Condition>,
    /// The rows that are kept, until there are enough for a batch.
    kept: BatchCoalescer,
    /// The number of batches whose rows are in `kept`, and the number after which these rows leave. It
    /// doubles each time: a `LIMIT` above gets its rows at once, and long inputs get full batches.
    gathered: usize,
    most_gathered: usize,
    /// Whether the input may pause forever, so that each batch's rows leave at once.
    endless: bool,
    /// The input's error, which follows the rows that came before it.
    failed: Option<DataFusionError>,
    /// A batch that follows those in `kept`.
    ready: Option<RecordBatch>,
    counters: FilterCounters,
}

/// The counters of a filter.
pub(crate) struct FilterCounters {
    pub baseline: BaselineMetrics,
    pub rows_in: Count,
}

impl Filtering {
    /// Filters an input, which may be endless, and returns batches of so many rows.
    pub fn new(
        input: SendableRecordBatchStream,
        filters: Vec<Filter>,
        condition: Option<Condition>,
        (batch_rows, endless): (usize, bool),
        counters: FilterCounters,
    ) -> Filtering {
        let kept = BatchCoalescer::new(input.schema(), batch_rows);
        Filtering {
            input: Some(input),
            filters,
            condition,
            kept: kept.with_biggest_coalesce_batch_size(Some(batch_rows / 2)),
            gathered: 0,
            most_gathered: 1,
            endless,
            failed: None,
            ready: None,
            counters,
        }
    }

    async fn filter(&mut self, batch: RecordBatch) -> Result<()> {
        let mut known = vec![];
        for filter in &mut self.filters {
            known.push(filter.keys().await);
        }
        let timed = self.counters.baseline.elapsed_compute().clone();
        let _timer = timed.timer();
        let mut kept = None;
        for (filter, keys) in self.filters.iter_mut().zip(known) {
            if let Some(keys) = keys {
                kept = Some(filter.kept(&batch, kept.take(), &keys));
            }
        }
        self.filters.retain(|filter| filter.execution.is_some());
        if let (Some(condition), Some(left)) = (&mut self.condition, &kept)
            && left.true_count() <= batch.num_rows() / 2
            && left.true_count() > 0
        {
            kept = Some(condition.kept(&batch, left)?);
            self.condition.take_if(|condition| !condition.pays());
        }
        match kept.map(|kept| (kept.true_count(), kept)) {
            Some((0, _)) => {}
            Some((rows, kept)) if rows < batch.num_rows() => {
                self.kept.push_batch_with_filter(batch, &kept)?;
                self.gathered += 1;
                if self.gathered >= self.most_gathered {
                    self.kept.finish_buffered_batch()?;
                    self.gathered = 0;
                    self.most_gathered = if self.endless { 1 } else { self.most_gathered.saturating_mul(2) };
                }
            }
            _ => {
                // As it is, behind those before it.
                self.kept.finish_buffered_batch()?;
                self.ready = Some(batch);
            }
        }
        Ok(())
    }
}

impl BatchSource<RecordBatch> for Filtering {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.kept.next_completed_batch().or_else(|| self.ready.take()) {
                return Ok(Some(batch.record_output(&self.counters.baseline)));
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            match input.next().await {
                Some(Ok(batch)) => {
                    self.counters.rows_in.add(batch.num_rows());
                    self.filter(batch).await?;
                }
                ended => {
                    self.input = None;
                    self.failed = ended.and_then(Result::err);
                    self.kept.finish_buffered_batch()?;
                }
            }
        }
    }
}
