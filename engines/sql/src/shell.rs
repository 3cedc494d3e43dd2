//! Runs statements in a session, and writes their answers.

use crate::output::{Form, Output};
use bowstring_sql::left_to_datafusion;
use bowstring_sql::progress::{Watch, rows_read};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{LogicalPlan, Statement as LogicalStatement};
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, dialect_from_str};
use futures::TryStreamExt;
use std::fmt::Display;
use std::io::{Write, stderr, stdout};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a running statement looks whether it was interrupted.
const STEP: Duration = Duration::from_millis(100);

/// The effect of a statement's plan.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// It answers, and can do so again.
    Query,
    /// It writes rows, as `INSERT` and `COPY` do, and counts them.
    Write,
    /// Nothing: it has been carried out when it was planned.
    Definition,
}

/// A session, and how its answers are shown.
pub struct Shell {
    pub context: SessionContext,
    pub form: Form,
    /// Whether plans are printed, and queries not run.
    pub explain: bool,
    /// Whether a plan is printed with what each operator did.
    pub analyze: bool,
    /// The number of times that each query runs. Definitions, settings and what writes rows run once.
    pub repeat: u32,
    /// Whether times are printed.
    pub timing: bool,
    /// Whether Ctrl-C was pressed since the statements that run were given.
    pub interrupted: Arc<AtomicBool>,
}

impl Shell {
    /// Runs all statements of a text, in order, up to the first that fails.
    pub async fn run(&self, text: &str) -> Result<()> {
        let limit = self.context.copied_config().options().sql_parser.recursion_limit;
        let dialect = self.dialect();
        let parser = DFParserBuilder::new(text).with_dialect(&*dialect).with_recursion_limit(limit.get());
        let statements = parser.build()?.parse_statements()?;
        if statements.is_empty() {
            return Err(DataFusionError::Configuration("no query".into()));
        }
        let mut answered = false;
        for statement in statements {
            self.statement(statement, &mut answered).await?;
        }
        Ok(())
    }

    /// The dialect of statements, which is a setting of the session.
    pub fn dialect(&self) -> Box<dyn Dialect> {
        let name = self.context.copied_config().options().sql_parser.dialect;
        dialect_from_str(name).unwrap_or_else(|| Box::new(GenericDialect))
    }

    /// Runs a statement. An earlier one may have `answered`, and then the file of answers is not free.
    async fn statement(&self, statement: Statement, answered: &mut bool) -> Result<()> {
        let start = Instant::now();
        let (mut plan, kind) = self.planned(&statement).await?;
        if self.timing {
            say(format_args!("planned in {}: {}", shown(start.elapsed()), operators(plan.as_ref())));
        }
        if self.explain {
            let shown = DisplayableExecutionPlan::new(plan.as_ref()).indent(false).to_string();
            writeln!(stdout(), "{shown}{}", self.left(&plan)?)?;
            return Ok(());
        }
        if let Some(file) = &self.form.file
            && kind == Kind::Query
            && !plan.schema().fields().is_empty()
            && std::mem::replace(answered, true)
        {
            let file = file.display();
            let problem = format!("{file} has the answer of an earlier query, and no room for another");
            return Err(DataFusionError::Configuration(problem));
        }
        let rounds = if kind == Kind::Query { self.repeat } else { 1 };
        for round in 1..=rounds {
            if round > 1 {
                // A plan keeps what it counted, and some what they have built.
                (plan, _) = self.planned(&statement).await?;
            }
            let start = Instant::now();
            let last = round == rounds;
            let (output, rows) = self.answer(&plan, kind, last).await?;
            let time = start.elapsed();
            if last {
                if self.analyze {
                    let shown =
                        DisplayableExecutionPlan::with_metrics(plan.as_ref()).indent(false).to_string();
                    writeln!(stdout(), "{shown}{}", self.left(&plan)?)?;
                }
                output.finish()?;
            }
            if self.timing {
                let read = rows_read(plan.as_ref());
                let read = read.map_or(String::new(), |rows| format!(", of {rows} rows read"));
                let written = if kind == Kind::Write { " written" } else { "" };
                say(format_args!("{rows} rows{written} in {}{read}", shown(time)));
            }
        }
        Ok(())
    }

    /// The operators that are left to DataFusion.
    fn left(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<String> {
        left_to_datafusion(plan, self.context.copied_config().options())
    }

    /// Plans a statement. Definitions, such as `CREATE TABLE`, and settings are carried out here.
    async fn planned(&self, statement: &Statement) -> Result<(Arc<dyn ExecutionPlan>, Kind)> {
        let planned = async {
            let plan = self.context.state().statement_to_plan(statement.clone()).await?;
            let defines = match &plan {
                LogicalPlan::Ddl(_) => true,
                LogicalPlan::Statement(statement) => !matches!(statement, LogicalStatement::Execute(_)),
                _ => false,
            };
            let frame = self.context.execute_logical_plan(plan).await?;
            let kind = match frame.logical_plan() {
                _ if defines => Kind::Definition,
                LogicalPlan::Dml(_) | LogicalPlan::Copy(_) => Kind::Write,
                _ => Kind::Query,
            };
            Ok((frame.create_physical_plan().await?, kind))
        };
        self.unless_interrupted(planned).await
    }

    /// Runs a plan to its end, or until it is interrupted. Returns the answer, if it is `wanted`, and the
    /// number of its rows, or of the rows that were written.
    async fn answer(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        kind: Kind,
        wanted: bool,
    ) -> Result<(Output, usize)> {
        let _watch = Watch::new(Arc::clone(plan));
        let mut stream = execute_stream(Arc::clone(plan), self.context.task_ctx())?;
        let Form { format, file, shown } = &self.form;
        let (mut output, mut rows) = match wanted && kind == Kind::Query {
            true => (Output::new(*format, file.as_deref(), &stream.schema(), *shown)?, 0),
            false => (Output::default(), 0),
        };
        while let Some(batch) = self.unless_interrupted(stream.try_next()).await? {
            output.write(&batch)?;
            rows += if kind == Kind::Write { counted(&batch) } else { batch.num_rows() };
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

/// The number that a batch of one count says.
fn counted(batch: &RecordBatch) -> usize {
    let counts = batch.columns().first().and_then(|column| column.as_primitive_opt::<UInt64Type>());
    counts.map_or(0, |counts| counts.iter().flatten().sum::<u64>() as usize)
}

/// Writes a line to standard error. A failure has nowhere to be reported.
pub fn say(line: impl Display) {
    drop(writeln!(stderr(), "{line}"));
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
