//! The computed columns of a query, bound to a schema.

use std::future::Future;
use std::sync::Arc;

use arrow_schema::{Field, FieldRef, Schema, SchemaRef};

use super::computed;
use super::settled::settled;
use crate::expr::bind::bind;
use crate::expr::plan::{Op, Plan};
use crate::expr::print::name;
use crate::expr::{Expr, Options};
use crate::{DeviceArray, DeviceBatch, Error, Pending, Result, Stream, pass};

/// Columns computed from the kept rows of some columns.
#[derive(Clone, Debug)]
pub(super) struct Evaluated {
    pub plan: Arc<Plan>,
    /// The columns of the input that the plan reads, in its order, and their schema.
    read: Vec<usize>,
    pub schema: SchemaRef,
    /// The schema of the results.
    pub results: SchemaRef,
}

impl Evaluated {
    pub fn bind(exprs: &[Expr], schema: &Schema, options: &Options) -> Result<Evaluated> {
        let names = exprs.iter().map(|expr| name(expr, schema)).collect();
        Evaluated::of(bind(None, exprs, schema, options)?, names, schema)
    }

    /// Names the outputs of a plan.
    pub fn of(mut plan: Plan, names: Vec<String>, schema: &Schema) -> Result<Evaluated> {
        let nullable = plan.nullable(|index| schema.field(index).is_nullable());
        let field = |(name, output): (String, &usize)| {
            let node = &plan.nodes[*output];
            match node.op {
                Op::Column(index) => schema.field(index).clone().with_name(name),
                _ => Field::new(name, node.data_type.clone(), nullable[*output]),
            }
        };
        let fields: Vec<Field> = names.into_iter().zip(&plan.outputs).map(field).collect();
        let read = plan.renumber_columns();
        let schema =
            Arc::new(schema.project(&read).map_err(|error| Error::invalid("query", error.to_string()))?);
        Ok(Evaluated { plan: Arc::new(plan), read, schema, results: Arc::new(Schema::new(fields)) })
    }

    /// The columns of a batch that the plan reads.
    pub fn read(&self, batch: &DeviceBatch) -> Result<DeviceBatch> {
        let columns = self.read.iter().map(|column| batch.columns()[*column].clone()).collect();
        DeviceBatch::with(self.schema.clone(), columns, batch.len(), batch.metadata().clone())
    }

    /// Evaluates the columns. `columns` are those that the plan reads.
    pub async fn evaluate(&self, columns: DeviceBatch, stream: Stream) -> Result<DeviceBatch> {
        let rows = columns.len();
        let (plan, arrays) = settled("evaluate", &self.plan, &columns, &stream).await?;
        let is_column = |output: &usize| matches!(plan.nodes[*output].op, Op::Column(_));
        let made = if plan.outputs.iter().any(is_column) {
            let computed: Vec<usize> =
                plan.outputs.iter().copied().filter(|output| !is_column(output)).collect();
            computed::outputs(&plan.only(&computed), &arrays, rows, &stream)?
        } else {
            computed::outputs(&plan, &arrays, rows, &stream)?
        };
        let (mut made, mut results) = (made.into_iter(), vec![]);
        for output in &plan.outputs[..self.results.fields().len()] {
            results.push(match plan.nodes[*output].op {
                Op::Column(index) => arrays[index].clone(),
                _ => made.next().expect("one for each that is computed"),
            });
        }
        // The remaining arrays only report which rows failed.
        let failing: Vec<DeviceArray> = made.collect();
        pass::readable(&failing).await;
        failing.iter().try_for_each(DeviceArray::wait)?;
        let schema = with_nulls(&self.results, &results);
        DeviceBatch::with(schema, results, rows, columns.metadata().clone())
    }
}

/// A schema whose fields are nullable where columns may have nulls: data may contain nulls even if the schema
/// says otherwise.
fn with_nulls(schema: &SchemaRef, columns: &[DeviceArray]) -> SchemaRef {
    let hides = |(field, column): (&FieldRef, &DeviceArray)| {
        !field.is_nullable() && column.possible_nulls().is_some()
    };
    if !schema.fields().iter().zip(columns).any(hides) {
        return schema.clone();
    }
    let nullable = |(field, column): (&FieldRef, &DeviceArray)| {
        let field = Field::clone(field);
        if column.possible_nulls().is_some() { field.with_nullable(true) } else { field }
    };
    let fields: Vec<Field> = schema.fields().iter().zip(columns).map(nullable).collect();
    Arc::new(Schema::new(fields))
}

/// Checks that a batch has the types of the schema that the plan was bound to.
pub(super) fn check(operation: &'static str, schema: &Schema, batch: &DeviceBatch) -> Result<()> {
    let (bound, there) = (schema.fields().len(), batch.columns().len());
    if bound != there {
        return Err(Error::invalid(operation, format!("{there} columns, bound to {bound}")));
    }
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if field.data_type() != column.data_type() {
            let problem =
                format!("{} is {}, bound as {}", field.name(), column.data_type(), field.data_type());
            return Err(Error::invalid(operation, problem));
        }
    }
    Ok(())
}

/// Begins an operation on a stream.
pub(super) fn begin<T>(
    stream: &Stream,
    operation: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<Pending<T>> {
    let _current = stream.enter()?;
    Ok(Pending::begin(stream, operation))
}
