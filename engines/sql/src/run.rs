//! Plans one query, runs it and prints the answer.

use crate::arguments::Arguments;
use crate::tables;
use bowstring_sql::progress::{Watch, rows_read};
use bowstring_sql::set;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub async fn run(arguments: Arguments) -> Result<()> {
    let text = arguments.text()?;
    let mut config = SessionConfig::new();
    if let Some(partitions) = arguments.partitions {
        config = config.with_target_partitions(partitions.into());
    }
    let partitions = config.target_partitions();
    let context = bowstring_datafusion::session(config);
    set(&context, "bowstring.device", &arguments.device)?;
    for (key, value) in &arguments.settings {
        set(&context, key, value)?;
    }

    let made = tables::register(&context, &arguments, partitions).await?;
    if let Some(time) = made {
        eprintln!("tables made in {}", shown(time));
    }

    let start = Instant::now();
    let mut plan = planned(&context, &text).await?;
    let planning = start.elapsed();
    eprintln!("planned in {}: {}", shown(planning), operators(plan.as_ref()));
    if arguments.explain {
        println!("{}", DisplayableExecutionPlan::new(plan.as_ref()).indent(false));
        return Ok(());
    }

    for round in 1..=arguments.repeat {
        if round > 1 {
            plan = planned(&context, &text).await?; // a plan keeps what it counted, and some what they have built
        }
        let start = Instant::now();
        let answer = answer(&context, &plan, arguments.rows).await?;
        let time = start.elapsed();
        if round == arguments.repeat {
            if arguments.analyze {
                println!("{}", DisplayableExecutionPlan::with_metrics(plan.as_ref()).indent(false));
            }
            println!("{}", pretty_format_batches(&answer.batches)?);
            if answer.rows > arguments.rows {
                println!("{} rows, of which {} are shown", answer.rows, arguments.rows);
            }
        }
        let read = rows_read(plan.as_ref()).map_or(String::new(), |rows| format!(", of {rows} rows read"));
        eprintln!("{} rows in {}{read}", answer.rows, shown(time));
    }
    Ok(())
}

async fn planned(context: &SessionContext, text: &str) -> Result<Arc<dyn ExecutionPlan>> {
    context.sql(text).await?.create_physical_plan().await
}

struct Answer {
    /// The first rows, as many as are printed.
    batches: Vec<RecordBatch>,
    rows: usize,
}

/// Runs a plan to its end, and keeps only the rows that are printed.
async fn answer(context: &SessionContext, plan: &Arc<dyn ExecutionPlan>, shown: usize) -> Result<Answer> {
    let _watch = Watch::new(Arc::clone(plan));
    let mut stream = execute_stream(Arc::clone(plan), context.task_ctx())?;
    let mut answer = Answer { batches: vec![RecordBatch::new_empty(stream.schema())], rows: 0 };
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let kept = shown.saturating_sub(answer.rows).min(batch.num_rows());
        if kept > 0 {
            answer.batches.push(batch.slice(0, kept));
        }
        answer.rows += batch.num_rows();
    }
    Ok(answer)
}

/// The number of operators in the plan, and the number of ours among them.
fn operators(plan: &dyn ExecutionPlan) -> String {
    fn count(plan: &dyn ExecutionPlan, all: &mut usize, ours: &mut usize) {
        *all += 1;
        *ours += usize::from(plan.name() == "DeviceExec");
        plan.children().into_iter().for_each(|child| count(child.as_ref(), all, ours));
    }
    let (mut all, mut ours) = (0, 0);
    count(plan, &mut all, &mut ours);
    format!("{all} operators, {ours} of them bowstring's")
}

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
