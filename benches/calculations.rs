//! Benches projections that only calculate or compare, on every available device: a column and a constant,
//! two columns, and up to five operators. On the CPU also the equivalent chain of arrow-rs' kernels. All
//! columns have nulls.

mod support;

use std::hint::black_box;
use std::sync::Arc;

use arrow_arith::numeric::{add, add_wrapping, mul, sub};
use arrow_array::*;
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bowstring::DeviceBatch;
use bowstring::compute::Query;
use bowstring::expr::{Expr, Options, Overflow, col, lit};
use criterion::{Criterion, criterion_group, criterion_main};

use support::data::numbers;
use support::{Moved, Where, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A projection of one column of Booleans or of the type of its input.
struct Calculation {
    name: &'static str,
    of: DataType,
    /// The fifth part of the bench's id.
    shape: &'static str,
    expr: Expr,
    overflow: Overflow,
    theirs: fn(&[ArrayRef]) -> Result<ArrayRef, ArrowError>,
}

fn calculations() -> Vec<Calculation> {
    let comparison = |of| Calculation {
        name: "less_than_column",
        of,
        shape: "50%",
        expr: col("x").lt(col("y")),
        overflow: Overflow::Error,
        theirs: |of| Ok(Arc::new(cmp::lt(&of[0], &of[1])?)),
    };
    let sum = |shape, overflow, theirs| Calculation {
        name: "add_itself",
        of: DataType::Int64,
        shape,
        expr: col("x") + col("x"),
        overflow,
        theirs,
    };
    let floats = |name, expr, theirs| Calculation {
        name,
        of: DataType::Float64,
        shape: "-",
        expr,
        overflow: Overflow::Error,
        theirs,
    };
    let x = || col("x");
    vec![
        comparison(DataType::Int64),
        comparison(DataType::Float64),
        comparison(DataType::Date32),
        sum("wrapping", Overflow::Wrap, |of| add_wrapping(&of[0], &of[0])),
        sum("checked", Overflow::Error, |of| add(&of[0], &of[0])),
        Calculation {
            name: "add_constant",
            of: DataType::Int32,
            shape: "checked",
            expr: x() + 7,
            overflow: Overflow::Error,
            theirs: |of| add(&of[0], &Int32Array::new_scalar(7)),
        },
        floats("two_operators", x() * (lit(1.0) - x()), |of| {
            mul(&of[0], &sub(&Float64Array::new_scalar(1.0), &of[0])?)
        }),
        floats("five_operators", (x() + 1.0) * (x() - 2.0) * 3.0 + x(), |of| {
            let scalar = Float64Array::new_scalar;
            let product = mul(&add(&of[0], &scalar(1.0))?, &sub(&of[0], &scalar(2.0))?)?;
            add(&mul(&product, &scalar(3.0))?, &of[0])
        }),
    ]
}

fn all(criterion: &mut Criterion) {
    Where::each(|place| {
        place.copy(criterion);
        for rows in [place.large(), place.batch()] {
            for calculation in calculations() {
                one(criterion, place, &calculation, rows);
            }
        }
    });
}

fn one(criterion: &mut Criterion, place: &Where, calculation: &Calculation, rows: usize) {
    let Calculation { name, of, shape, expr, overflow, theirs } = calculation;
    let compares = *name == "less_than_column";
    let columns = if compares { 2 } else { 1 };
    let written = of.to_string().to_lowercase();
    let id = format!("{name}/{}/{written}/{rows}/{shape}/10%-null/{columns}", place.name);
    if !wanted(&id) {
        return;
    }
    // No sum of two such integers overflows.
    let arrays: Vec<ArrayRef> = (0..columns)
        .map(|column| {
            let array = match of {
                DataType::Int32 => arrow_cast::cast(&numbers(&DataType::Int8, rows, true, true), of),
                _ => Ok(numbers(of, rows, true, true)),
            };
            let array = array.expect("a wider type");
            // The rows of the second column in another order, or all were equal.
            if column == 0 { array } else { turned(&array, rows) }
        })
        .collect();
    let fields = ["x", "y"].map(|name| Field::new(name, of.clone(), true));
    let schema = Arc::new(Schema::new(fields[..columns].to_vec()));
    let Some(there) = arrays.iter().map(|array| place.import(array)).collect() else { return };
    let ours = DeviceBatch::try_new(schema, there, rows).expect("columns of one length");
    let options = Options::default().overflow(*overflow);
    let bound =
        Query::new().select(std::slice::from_ref(expr)).bind(ours.schema(), &options).expect("it fits");
    let width = of.primitive_width().expect("numbers") as u64 * 8;
    let bits = columns as u64 * (width + 1) + 1 + if compares { 1 } else { width };
    let mut group = place.group(criterion, id, Moved::bytes(rows as u64 * bits / 8));
    group.ours(|| bound.run(black_box(&ours), &place.stream).wait().expect("no row fails"));
    group.theirs("arrow-rs", || theirs(black_box(&arrays)).expect("no row fails"));
}

/// An array whose second half comes first.
fn turned(array: &ArrayRef, rows: usize) -> ArrayRef {
    let (first, second) = (array.slice(0, rows / 2), array.slice(rows / 2, rows - rows / 2));
    arrow_select::concat::concat(&[&second, &first]).expect("of one type")
}

criterion_group!(benches, all);
criterion_main!(benches);
