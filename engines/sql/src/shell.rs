//! Runs statements in a session, and writes their answers.

use crate::output::{Form, Output};
use bowstring_sql::left_to_datafusion;
use bowstring_sql::progress::{Watch, rows_read};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{LogicalPlan, Statement as LogicalStatement};
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParser, Statement};
use futures::TryStreamExt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a running statement looks whether it was interrupted.
const STEP: Duration = Duration::from_millis(100);

/// A session, and how its answers are shown.
pub struct Shell {
    pub context: SessionContext,
    pub form: Form,
    /// Whether plans are printed, and queries not run.
    pub explain: bool,
    /// Whether a plan is printed with what each operator did.
    pub analyze: bool,
    /// The number of times that each query runs. Definitions and settings run once.
    pub repeat: u32,
    /// Whether times are printed.
    pub timing: bool,
    /// Whether Ctrl-C was pressed since the statements that run were given.
    pub interrupted: Arc<AtomicBool>,
}

impl Shell {
    /// Runs all statements of a text, in order, up to the first that fails.
    pub async fn run(&self, text: &str) -> Result<()> {
        let statements = DFParser::parse_sql(text)?;
        if statements.is_empty() {
            return Err(DataFusionError::Configuration("no query".into()));
        }
        let mut answered = false;
        for statement in statements {
            self.statement(statement, &mut answered).await?;
        }
        Ok(())
    }

    /// Runs a statement. An earlier one may have `answered`, and then the file of answers is not free.
    async fn statement(&self, statement: Statement, answered: &mut bool) -> Result<()> {
        let start = Instant::now();
        let (mut plan, repeats) = self.planned(&statement).await?;
        if self.timing {
            eprintln!("planned in {}: {}", shown(start.elapsed()), operators(plan.as_ref()));
        }
        if self.explain {
            let shown = DisplayableExecutionPlan::new(plan.as_ref()).indent(false).to_string();
            println!("{shown}{}", self.left(&plan)?);
            return Ok(());
        }
        if let Some(file) = &self.form.file
            && !plan.schema().fields().is_empty()
            && std::mem::replace(answered, true)
        {
            let file = file.display();
            let problem = format!("{file} has the answer of an earlier query, and no room for another");
            return Err(DataFusionError::Configuration(problem));
        }
        let rounds = if repeats { self.repeat } else { 1 };
        for round in 1..=rounds {
            if round > 1 {
                // A plan keeps what it counted, and some what they have built.
                (plan, _) = self.planned(&statement).await?;
            }
            let start = Instant::now();
            let last = round == rounds;
            let (output, rows) = self.answer(&plan, last).await?;
            let time = start.elapsed();
            if last {
                if self.analyze {
                    let shown =
                        DisplayableExecutionPlan::with_metrics(plan.as_ref()).indent(false).to_string();
                    println!("{shown}{}", self.left(&plan)?);
                }
                output.finish()?;
            }
            if self.timing {
                let read = rows_read(plan.as_ref());
                let read = read.map_or(String::new(), |rows| format!(", of {rows} rows read"));
                eprintln!("{rows} rows in {}{read}", shown(time));
            }
        }
        Ok(())
    }

    /// The operators that are left to DataFusion.
    fn left(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<String> {
        left_to_datafusion(plan, self.context.copied_config().options())
    }

    /// Plans a statement, and says whether it can be repeated. Definitions, such as `CREATE TABLE`, and
    /// settings run here, and cannot.
    async fn planned(&self, statement: &Statement) -> Result<(Arc<dyn ExecutionPlan>, bool)> {
        let planned = async {
            let plan = self.context.state().statement_to_plan(statement.clone()).await?;
            let repeats = match &plan {
                LogicalPlan::Ddl(_) => false,
                LogicalPlan::Statement(statement) => matches!(statement, LogicalStatement::Execute(_)),
                _ => true,
            };
            let frame = self.context.execute_logical_plan(plan).await?;
            Ok((frame.create_physical_plan().await?, repeats))
        };
        self.unless_interrupted(planned).await
    }

    /// Runs a plan to its end, or until it is interrupted. Returns the answer, if it is `wanted`, and the
    /// number of its rows.
    async fn answer(&self, plan: &Arc<dyn ExecutionPlan>, wanted: bool) -> Result<(Output, usize)> {
        let _watch = Watch::new(Arc::clone(plan));
        let mut stream = execute_stream(Arc::clone(plan), self.context.task_ctx())?;
        let Form { format, file, shown } = &self.form;
        let (mut output, mut rows) = match wanted {
            true => (Output::new(*format, file.as_deref(), &stream.schema(), *shown)?, 0),
            false => (Output::Nothing, 0),
        };
        while let Some(batch) = self.unless_interrupted(stream.try_next()).await? {
            output.write(&batch)?;
            rows += batch.num_rows();
        }
        Ok((output, rows))
    }

    /// Waits for a part of a statement's work, or until it is interrupted.
    async fn unless_interrupted<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut work = pin!(work);
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(DataFusionError::Execution("interrupted".into()));
            }
            if let Ok(done) = tokio::time::timeout(STEP, work.as_mut()).await {
                return done;
            }
        }
    }
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

/// A time in milliseconds.
pub fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
