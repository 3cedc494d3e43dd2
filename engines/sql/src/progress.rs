//! The progress of a query: the rows that its scans have read, out of all rows.

use datafusion::common::stats::Precision;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Queries that end sooner draw nothing.
const PATIENCE: Duration = Duration::from_millis(500);
const BETWEEN: Duration = Duration::from_millis(100);

/// The style of a bar.
pub fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg} [{wide_bar}] {human_pos}/{human_len} ({eta})")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn style_without_an_end() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {msg} ({elapsed})")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Draws until it is dropped; on a terminal only.
pub struct Watch {
    task: JoinHandle<()>,
    bar: ProgressBar,
}

impl Watch {
    /// Begins to watch a plan that runs; the caller is on a thread of a runtime.
    pub fn new(plan: Arc<dyn ExecutionPlan>) -> Self {
        let total = rows_to_read(plan.as_ref());
        let bar = ProgressBar::with_draw_target(total.map(|rows| rows as u64), ProgressDrawTarget::hidden());
        bar.set_style(if total.is_some() { style() } else { style_without_an_end() });
        bar.set_message("query");
        let drawn = bar.clone();
        let task = tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            drawn.set_draw_target(ProgressDrawTarget::stderr());
            loop {
                drawn.set_position(rows_read(plan.as_ref()).unwrap_or(0) as u64);
                drawn.tick();
                tokio::time::sleep(BETWEEN).await;
            }
        });
        Self { task, bar }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
        self.bar.finish_and_clear();
    }
}

/// The rows that scans have read so far, if each of them is counted: scans of memory do not count, but
/// operators of ours above them do.
pub fn rows_read(plan: &dyn ExecutionPlan) -> Option<usize> {
    let metrics = plan.metrics();
    let children = plan.children();
    if children.is_empty() {
        return metrics?.output_rows();
    }
    let below: Option<usize> = children.into_iter().map(|child| rows_read(child.as_ref())).sum();
    below.or_else(|| Some(metrics?.sum_by_name("input_rows")?.as_usize()))
}

/// Rows that all scans will give, if each of them knows and counts them.
fn rows_to_read(plan: &dyn ExecutionPlan) -> Option<usize> {
    let children = plan.children();
    if !children.is_empty() {
        return children.into_iter().map(|child| rows_to_read(child.as_ref())).sum();
    }
    plan.downcast_ref::<datafusion::datasource::source::DataSourceExec>().filter(|scan| {
        scan.downcast_to_file_source::<datafusion::datasource::physical_plan::ParquetSource>().is_some()
    })?;
    match StatisticsContext::new().compute(plan, &StatisticsArgs::new()).ok()?.num_rows {
        Precision::Exact(rows) | Precision::Inexact(rows) => Some(rows),
        Precision::Absent => None,
    }
}
