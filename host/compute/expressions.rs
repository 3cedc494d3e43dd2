//! Expressions over the rows of batches, bound to a schema once and then run on any number of batches.

use std::future::Future;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};

use super::aggregates::{self, Folded};
use super::settled::{check, settled};
use super::{Selection, computed, selection};
use crate::cpu::selection::PARALLEL;
use crate::cpu::threads::among_threads;
use crate::expr::bind::{bind, name};
use crate::expr::plan::{Op, Plan};
use crate::expr::print::short;
use crate::expr::{Aggregation, Expr, Options};
use crate::{DeviceArray, DeviceBatch, Error, Pending, Result, Stream, cpu, gpu, pass};

/// Expressions bound to a schema, to be evaluated for the rows of batches. See [`evaluate`].
///
/// ```
/// use arrow_schema::{DataType, Field, Schema};
/// use bowstring::{compute::Projection, expr::{Options, col}};
/// # fn main() -> bowstring::Result<()> {
/// let schema = Schema::new(vec![Field::new("a", DataType::Int32, true)]);
/// let twice = Projection::bind(&[col("a") + col("a")], &schema, &Options::default())?;
/// assert_eq!(twice.explain(), "%0 = Column(0)(): Int32\n%1 = Arithmetic(Add, Fails)(%0, %0): Int32\nreturn %1");
/// let no_number = Projection::bind(&[col("a") + "?".len() as f64 * 0.3], &schema, &Options::default());
/// assert!(no_number.is_err()); // known before there are any rows
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Projection {
    plan: Arc<Plan>,
    schema: SchemaRef,
    fields: Vec<Field>,
}

/// A condition on the rows of batches, bound to a schema. See [`filter_where`].
#[derive(Clone, Debug)]
pub struct Predicate {
    plan: Arc<Plan>,
    schema: SchemaRef,
}

/// Aggregates over the rows of batches, bound to a schema. See [`aggregate`].
#[derive(Clone, Debug)]
pub struct Aggregates {
    /// The first root is the condition, if `conditional` is set.
    plan: Arc<Plan>,
    conditional: bool,
    schema: SchemaRef,
    aggregations: Vec<Aggregation>,
    options: Options,
}

/// Keeps the rows of a batch for which `predicate` is true; null is not true.
///
/// The predicate is evaluated and counted in one launch, and never becomes an array. On a GPU the first
/// [`wait`](Pending::wait) synchronises, once for all columns, as [`filter`](super::filter) does. Binds the
/// predicate to the batch's schema; to bind it once for many batches, create a [`Predicate`].
///
/// ```
/// use arrow_array::{ArrayRef, Int32Array, RecordBatch};
/// use bowstring::{DeviceBatch, Stream, compute::filter_where, expr::col};
/// # use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(30)]));
/// let rows = DeviceBatch::try_from(&RecordBatch::try_from_iter([("n", values)])?)?;
/// let few = filter_where(&rows, &col("n").lt(24), &Stream::cpu()).wait()?;
/// assert_eq!(few.len(), 1);
/// # Ok(())
/// # }
/// ```
pub fn filter_where(batch: &DeviceBatch, predicate: &Expr, stream: &Stream) -> Pending<DeviceBatch> {
    Pending::begun(|| {
        Ok(Predicate::bind(predicate, batch.schema(), &Options::default())?.filter(batch, stream))
    })
}

/// Evaluates expressions for each row of a batch in one launch, and returns the results as the columns of a
/// batch. Does not synchronise, unless a cast in an expression does. An expression that is just a column
/// shares that column.
///
/// ```
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use bowstring::{DeviceBatch, Stream, compute::evaluate, expr::{col, lit}};
/// # use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
/// let rows = DeviceBatch::try_from(&RecordBatch::try_from_iter([("n", values)])?)?;
/// let made = evaluate(&rows, &[(col("n") * 10 + 1).alias("m"), col("n").gt(1)], &Stream::cpu()).wait()?;
/// assert_eq!(made.schema().field(0).name(), "m");
/// assert_eq!(made.schema().field(1).name(), "n > 1");
/// # Ok(())
/// # }
/// ```
pub fn evaluate(batch: &DeviceBatch, exprs: &[Expr], stream: &Stream) -> Pending<DeviceBatch> {
    Pending::begun(|| {
        Ok(Projection::bind(exprs, batch.schema(), &Options::default())?.evaluate(batch, stream))
    })
}

/// Aggregates the rows of a batch for which the predicate is true, or all rows, into one row. Reads the rows
/// once, and writes only partial aggregates; the host merges them when the result is waited for. The
/// resulting row is in host memory.
///
/// ```
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use bowstring::{DeviceBatch, Stream, compute::aggregate, expr::{col, count_all, sum}};
/// # use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
/// let rows = DeviceBatch::try_from(&RecordBatch::try_from_iter([("n", values)])?)?;
/// let of_large = aggregate(&rows, &[sum(col("n")), count_all()], Some(&col("n").gt(1)), &Stream::cpu()).wait()?;
/// let of_large = RecordBatch::try_from(&of_large)?;
/// assert_eq!(of_large.column(0).as_ref(), &Int64Array::from(vec![5]));
/// # Ok(())
/// # }
/// ```
pub fn aggregate(
    batch: &DeviceBatch,
    aggregations: &[Aggregation],
    predicate: Option<&Expr>,
    stream: &Stream,
) -> Pending<DeviceBatch> {
    Pending::begun(|| {
        let bound = Aggregates::bind(aggregations, predicate, batch.schema(), &Options::default())?;
        Ok(bound.aggregate(batch, stream))
    })
}

impl Projection {
    /// Binds expressions to a schema. Returns an error if they do not fit it.
    pub fn bind(exprs: &[Expr], schema: &Schema, options: &Options) -> Result<Projection> {
        let plan = bind(exprs, schema, options)?;
        let nullable = plan.nullable(|index| schema.field(index).is_nullable());
        let field = |(expr, root): (&Expr, &usize)| {
            let node = &plan.nodes[*root];
            match node.op {
                Op::Column(index) => schema.field(index).clone().with_name(name(expr, schema)),
                _ => Field::new(name(expr, schema), node.data_type.clone(), nullable[*root]),
            }
        };
        let fields = exprs.iter().zip(&plan.roots).map(field).collect();
        Ok(Projection { plan: Arc::new(plan), schema: Arc::new(schema.clone()), fields })
    }

    /// The schema of the results.
    pub fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.fields.clone()))
    }

    /// Describes the bound plan as text: one line per node, then the roots.
    pub fn explain(&self) -> String {
        self.plan.to_string()
    }

    /// Evaluates the expressions for each row of a batch, which must have the bound types.
    pub fn evaluate(&self, batch: &DeviceBatch, stream: &Stream) -> Pending<DeviceBatch> {
        begun(stream, self.clone().evaluated(batch.clone(), stream.clone()))
    }

    async fn evaluated(self, batch: DeviceBatch, stream: Stream) -> Result<DeviceBatch> {
        let Projection { plan, schema, mut fields } = self;
        let (plan, columns) = settled("evaluate", &plan, &schema, &batch, &stream).await?;
        let is_column = |root: &usize| matches!(plan.nodes[*root].op, Op::Column(_));
        let computed: Vec<usize> = plan.roots.iter().copied().filter(|root| !is_column(root)).collect();
        let arrays = computed::roots(&plan.only(&computed), &columns, batch.len(), &stream)?;
        let mut arrays = arrays.into_iter();
        let mut results = vec![];
        for (root, field) in plan.roots.iter().zip(&mut fields) {
            let array = match plan.nodes[*root].op {
                Op::Column(index) => columns[index].clone(),
                _ => arrays.next().expect("one for each that is computed"),
            };
            // Data may contain nulls even if the schema says otherwise.
            if !field.is_nullable() && array.possible_nulls().is_some() {
                *field = field.clone().with_nullable(true);
            }
            results.push(array);
        }
        // The remaining arrays only report which rows failed.
        let failing: Vec<DeviceArray> = arrays.collect();
        pass::readable(&failing).await;
        failing.iter().try_for_each(DeviceArray::wait)?;
        let made = DeviceBatch::try_new(Arc::new(Schema::new(fields)), results, batch.len())?;
        Ok(made.with_metadata(batch.metadata().clone()))
    }
}

impl Predicate {
    /// Binds a condition to a schema. Returns an error if it does not fit it.
    pub fn bind(expr: &Expr, schema: &Schema, options: &Options) -> Result<Predicate> {
        let plan = bind(std::slice::from_ref(expr), schema, options)?;
        boolean(expr, &plan, 0)?;
        Ok(Predicate { plan: Arc::new(plan), schema: Arc::new(schema.clone()) })
    }

    /// Describes the bound plan as text: one line per node, then the roots.
    pub fn explain(&self) -> String {
        self.plan.to_string()
    }

    /// Keeps the rows of a batch for which the condition is true.
    pub fn filter(&self, batch: &DeviceBatch, stream: &Stream) -> Pending<DeviceBatch> {
        Pending::begun(|| self.begin(batch, stream))
    }

    /// Selects the rows for which the condition is true, to filter any number of arrays of that many rows.
    /// Synchronises once, because the number of rows depends on the data.
    pub fn select(&self, batch: &DeviceBatch, stream: &Stream) -> Result<Selection> {
        let _current = stream.enter()?;
        let settling = settled("filter_where", &self.plan, &self.schema, batch, stream);
        let ((plan, columns), rows) = (pass::block_on(settling)?, batch.len());
        let way = match stream.as_gpu() {
            None => {
                let selected = cpu::program::select(&plan, &columns, rows, stream.device().host_pool())?;
                selection::Way::Cpu(selected)
            }
            Some(_) => {
                let program = gpu::program::Loaded::selection(&plan, &columns, rows, stream)?;
                selection::Way::Gpu(gpu::Selection::new(gpu::Source::Program(&program), stream)?)
            }
        };
        Ok(Selection::of(way, rows, stream))
    }

    fn begin(&self, batch: &DeviceBatch, stream: &Stream) -> Result<Pending<DeviceBatch>> {
        let _current = stream.enter()?;
        let rows = batch.len();
        if rows == 0 {
            return Ok(Pending::known(Ok(batch.clone())));
        }
        if stream.as_gpu().is_none() {
            // The evaluation and the filter run on the same threads, as one operation.
            return Ok(Pending::known(among_threads(rows >= PARALLEL, |_| {
                self.select(batch, stream)?.filter(batch).wait()
            })));
        }
        super::reach_all("filter_where", batch.columns(), stream)?;
        Ok(Pending::begin(stream, self.clone().filtered(batch.clone(), stream.clone())))
    }

    /// As [`filter`](Predicate::filter), on a GPU.
    async fn filtered(self, batch: DeviceBatch, stream: Stream) -> Result<DeviceBatch> {
        let (plan, columns) = settled("filter_where", &self.plan, &self.schema, &batch, &stream).await?;
        let program = gpu::program::Loaded::selection(&plan, &columns, batch.len(), &stream)?;
        let all: Vec<&DeviceArray> = batch.columns().iter().collect();
        let filtered = gpu::filter(&all, gpu::Source::Program(&program), &stream)?.await?;
        let made = DeviceBatch::try_new(batch.schema().clone(), filtered.columns, filtered.rows)?;
        Ok(made.with_metadata(batch.metadata().clone()))
    }
}

impl Aggregates {
    /// Binds aggregates to a schema. Returns an error if they do not fit it.
    pub fn bind(
        aggregations: &[Aggregation],
        predicate: Option<&Expr>,
        schema: &Schema,
        options: &Options,
    ) -> Result<Aggregates> {
        let exprs: Vec<Expr> =
            predicate.into_iter().chain(aggregations.iter().map(|one| &one.of)).cloned().collect();
        let mut plan = bind(&exprs, schema, options)?;
        let conditional = predicate.is_some();
        if let Some(predicate) = predicate {
            boolean(predicate, &plan, 0)?;
        }
        for (i, one) in aggregations.iter().enumerate() {
            let root = usize::from(conditional) + i;
            plan.roots[root] = aggregates::prepared(one, &mut plan, root)?;
        }
        let (plan, schema) = (Arc::new(plan), Arc::new(schema.clone()));
        Ok(Aggregates { plan, conditional, schema, aggregations: aggregations.to_vec(), options: *options })
    }

    /// Describes the bound plan as text: one line per node, then the roots.
    pub fn explain(&self) -> String {
        self.plan.to_string()
    }

    /// Aggregates the rows of a batch into one row.
    pub fn aggregate(&self, batch: &DeviceBatch, stream: &Stream) -> Pending<DeviceBatch> {
        let folded = self.folded();
        self.words(batch, stream).map(move |words| folded.row(&words))
    }

    /// Aggregates the rows of many batches into one row. The next batch is begun while one is waited for.
    pub(super) fn of_all(
        &self,
        batches: impl Iterator<Item = Result<DeviceBatch>>,
        stream: &Stream,
    ) -> Result<DeviceBatch> {
        let mut all: Vec<Vec<u64>> = vec![];
        let mut add = |words: Option<Pending<Vec<Vec<u64>>>>| -> Result<()> {
            for (i, words) in words.map_or(Ok(vec![]), Pending::wait)?.into_iter().enumerate() {
                all.resize_with(all.len().max(i + 1), Vec::new);
                all[i].extend(words);
            }
            Ok(())
        };
        let mut before = None;
        for batch in batches {
            let batch = batch?;
            // An empty batch contributes nothing.
            if batch.is_empty() {
                check("aggregate", &self.schema, &batch)?;
                continue;
            }
            add(before.replace(self.words(&batch, stream)))?;
        }
        add(before)?;
        self.folded().row(&if all.is_empty() { vec![vec![]] } else { all })
    }

    fn folded(&self) -> Folded {
        let types = self.plan.roots[usize::from(self.conditional)..].iter();
        let types = types.map(|root| self.plan.nodes[*root].data_type.clone()).collect();
        Folded { aggregations: self.aggregations.clone(), types, options: self.options }
    }

    /// The partial aggregates that each launch produces.
    fn words(&self, batch: &DeviceBatch, stream: &Stream) -> Pending<Vec<Vec<u64>>> {
        let (plan, schema, conditional) = (self.plan.clone(), self.schema.clone(), self.conditional);
        let kinds: Vec<_> = self.aggregations.iter().map(|one| one.fold).collect();
        let (batch, on) = (batch.clone(), stream.clone());
        begun(stream, async move {
            let rows = batch.len();
            let (plan, columns) = settled("aggregate", &plan, &schema, &batch, &on).await?;
            // Constant rows take no memory, so there can be arbitrarily many of them.
            if on.as_gpu().is_none() || rows == 0 || kinds.is_empty() || plan.is_constant() {
                let pool = on.device().host_pool();
                return Ok(vec![cpu::program::aggregate(&plan, conditional, &kinds, &columns, rows, pool)?]);
            }
            // Each launch computes as many aggregates as lanes have room for.
            let (condition, values) = plan.roots.split_at(usize::from(conditional));
            let mut launched = vec![];
            let most = bowstring_kernels::program::code::AGGREGATES;
            for (kinds, values) in kinds.chunks(most).zip(values.chunks(most)) {
                let part = plan.only(&[condition, values].concat());
                launched.push(gpu::program::aggregate(&part, conditional, kinds, &columns, rows, &on)?);
            }
            pass::all(launched).await
        })
    }
}

/// Begins an operation on a stream.
fn begun<T>(stream: &Stream, operation: impl Future<Output = Result<T>> + Send + 'static) -> Pending<T> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        Ok(Pending::begin(stream, operation))
    })
}

/// Checks that a root is a boolean condition.
fn boolean(expr: &Expr, plan: &Plan, root: usize) -> Result<()> {
    match &plan.nodes[plan.roots[root]].data_type {
        arrow_schema::DataType::Boolean => Ok(()),
        other => Err(Error::invalid("expression", format!("{}: {other}, not Boolean", short(expr)))),
    }
}
