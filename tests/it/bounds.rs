//! Tests the limits of expressions, and their time and memory: text values, lists of any length, shared
//! parts, searches.

mod searches;

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field};
use bowstring::compute::{CastOptions, Query, aggregate, cast, filter_where};
use bowstring::expr::*;
use bowstring::{Device, Error, interruptible};

use crate::expressions::{batch, ints, of};
use crate::support::*;

fn texts() -> ArrayRef {
    Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]))
}

#[test]
fn texts_are_values() {
    use DataType::*;
    let null = |of: DataType| lit(Literal::null(of));
    let same = |text: Option<&str>| Arc::new(StringArray::from(vec![text; 3])) as ArrayRef;
    let numbers = |value: Option<i64>| Arc::new(Int64Array::from(vec![value; 3])) as ArrayRef;
    let truths = |values: [Option<bool>; 3]| Arc::new(BooleanArray::from(values.to_vec())) as ArrayRef;
    let days: ArrayRef = Arc::new(Date32Array::from(vec![366; 3]));
    let (yes, no) = (Some(true), Some(false));
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"\xff"[..]; 3]));
    let long = "longer than what a view holds itself";
    let view: ArrayRef = Arc::new(StringViewArray::from(vec![long; 3]));
    let cases: Vec<(Expr, ArrayRef)> = vec![
        (lit("x"), same(Some("x"))),
        (lit("x").alias("who"), same(Some("x"))),
        (lit(&b"\xff"[..]), bytes),
        (lit(Literal::text(Utf8View, long)), view),
        (null(Utf8), same(None)),
        (lit("12").cast(Int64), numbers(Some(12))),
        (lit("no number").cast(Int64), numbers(None)),
        (null(Utf8).cast(Int64), numbers(None)),
        (lit("1971-01-02").cast(Date32), days),
        (lit("12").cast(Int64) + lit(5).cast(Int64), numbers(Some(17))),
        (lit("x").is_null(), truths([no; 3])),
        (lit(&b"x"[..]).is_not_null(), truths([yes; 3])),
        (null(Utf8).is_null(), truths([yes; 3])),
        (lit("a").lt("b"), truths([yes; 3])),
        (null(Utf8).lt_eq(col("s")), truths([None; 3])),
        (col("s").eq(null(Utf8)), truths([None; 3])),
        (col("s").eq(null(Null)), truths([None; 3])),
        (col("s").distinct(null(Utf8)), truths([yes, no, yes])),
        (col("s").like(null(Null)), truths([None; 3])),
        (col("s").contains(null(Null)), truths([None; 3])),
        (col("s").in_list([Literal::null(Null)]), truths([None; 3])),
        (col("s").in_list(Vec::<Literal>::new()), truths([no, None, no])),
        (col("s").in_list([Literal::null(Null), Literal::from("a")]), truths([yes, None, None])),
        (col("t").eq("x"), truths([yes, yes, no])),
        (lit("x").coalesce(col("s")), same(Some("x"))),
        (if_else(col("s").eq("a"), "x", "x"), same(Some("x"))),
        (if_else(lit(true), null(Utf8), col("s")), same(None)),
        (lit("x").nullif("x"), same(None)),
    ];
    for target in devices() {
        let t: ArrayRef = Arc::new(StringArray::from(vec!["x", "x", "y"]));
        let rows = batch(&target, &[("s", texts()), ("t", t)]);
        for (expr, right) in &cases {
            let made = of(&target, &rows, expr.clone(), &Options::default()).unwrap();
            assert_eq!(made.as_ref(), right.as_ref(), "{expr} on {target:?}");
            let none = of(&target, &rows.slice(0, 0).unwrap(), expr.clone(), &Options::default()).unwrap();
            assert_eq!(none.as_ref(), right.slice(0, 0).as_ref(), "{expr} of no rows on {target:?}");
            if *right.data_type() == Boolean {
                let kept = filter_where(&rows, expr, &target.stream).wait().unwrap();
                assert_eq!(kept.len(), right.as_boolean().true_count(), "{expr} on {target:?}");
            }
        }
        let counts = [count(lit("x")), count(null(Utf8)), count(col("s"))];
        let counted = aggregate(&rows, &counts, None, &target.stream).wait().unwrap();
        let counted = RecordBatch::try_from(&counted).unwrap();
        let counted: Vec<i64> =
            counted.columns().iter().map(|one| one.as_primitive::<Int64Type>().value(0)).collect();
        assert_eq!(counted, [3, 0, 2], "{target:?}");
        // Binding reports types that cannot be computed with.
        for expr in [col("s").abs(), if_else(col("s"), "x", "y"), -lit("x")] {
            let refused = of(&target, &rows, expr, &Options::default());
            assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?} on {target:?}");
        }
    }
}

#[test]
fn lists_of_any_length_are_one_node() {
    let integers: Vec<Option<i64>> = (0..200).map(|i| (i % 7 != 0).then_some(i * 40 - 3000)).collect();
    let floats: Vec<Option<f32>> = (0..200).map(|i| (i % 5 != 0).then_some(i as f32 - 100.0)).collect();
    let wide: Vec<Option<i128>> = integers.iter().map(|x| x.map(|x| i128::from(x) << 40)).collect();
    let far = Decimal128Array::from(wide).with_precision_and_scale(38, 0).unwrap();
    // No ranges, some, and one.
    let lists: [Vec<i64>; 4] = [
        (-3000..3000).filter(|x| x % 3 == 0).collect(),
        (-3000..3000).rev().filter(|x| x % 1000 != 0).collect(),
        (-2000..2000).collect(),
        (0..300).map(|x| x * 40).collect(),
    ];
    for target in devices() {
        let columns: [(&str, ArrayRef); 3] = [
            ("i", Arc::new(Int64Array::from(integers.clone()))),
            ("f", Arc::new(Float32Array::from(floats.clone()))),
            ("d", Arc::new(far.clone())),
        ];
        let rows = batch(&target, &columns);
        for list in &lists {
            let is_in = |expr: Expr, literals: Vec<Literal>, options: Options| {
                let bound = Query::new()
                    .select(&[expr.clone().in_list(literals.clone())])
                    .bind(rows.schema(), &options);
                let nodes = bound.unwrap().explain().lines().count();
                assert!(nodes < 25, "{nodes} nodes");
                let made = of(&target, &rows, expr.in_list(literals), &options).unwrap();
                made.as_boolean().iter().collect::<Vec<_>>()
            };
            let total = Options::default();
            let found = is_in(col("i"), list.iter().map(|x| Literal::from(*x)).collect(), total);
            let right: Vec<_> = integers.iter().map(|x| x.map(|x| list.contains(&x))).collect();
            assert_eq!(found, right, "{target:?}");
            let literals = list.iter().map(|x| Literal::decimal(i128::from(*x) << 40, 38, 0)).collect();
            assert_eq!(is_in(col("d"), literals, total), right, "{target:?}");
            let right: Vec<_> = floats.iter().map(|x| x.map(|x| list.contains(&(x as i64)))).collect();
            for options in [total, total.floats(FloatOrder::Sql)] {
                let literals = list.iter().map(|x| Literal::from(*x as f64)).collect();
                assert_eq!(is_in(col("f"), literals, options), right, "{target:?}");
            }
        }
    }
}

#[test]
fn lists_of_floats_are_compared_as_floats_are() {
    for target in devices() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, 0.0, -f64::NAN, f64::NAN, 1.0]));
        let halves = arrow_cast::cast(&values, &DataType::Float16).unwrap();
        let rows = batch(&target, &[("x", values), ("h", halves)]);
        for name in ["x", "h"] {
            let found = |floats: FloatOrder, list: &[f64]| {
                let expr = col(name).in_list(list.to_vec());
                let made = of(&target, &rows, expr, &Options::default().floats(floats)).unwrap();
                made.as_boolean().values().iter().collect::<Vec<_>>()
            };
            assert_eq!(found(FloatOrder::Total, &[0.0, f64::NAN]), [false, true, false, true, false]);
            assert_eq!(found(FloatOrder::Sql, &[0.0, f64::NAN]), [true, true, true, true, false]);
            assert_eq!(found(FloatOrder::Sql, &[-0.0, -f64::NAN, 1.0]), [true; 5]);
        }
    }
}

#[test]
fn lists_of_truths_are_what_they_say() {
    let truths: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]));
    for target in devices() {
        let rows = batch(&target, &[("b", truths.clone())]);
        for (list, right) in [
            (vec![], [Some(false), Some(false), None]),
            (vec![Some(true)], [Some(true), Some(false), None]),
            (vec![Some(false)], [Some(false), Some(true), None]),
            (vec![Some(false), Some(true)], [Some(true), Some(true), None]),
            (vec![None], [None; 3]),
            (vec![Some(true), None], [Some(true), None, None]),
            (vec![None, Some(false)], [None, Some(true), None]),
            (vec![Some(true), None, Some(false)], [Some(true), Some(true), None]),
        ] {
            let literal = |one: &Option<bool>| one.map_or(Literal::null(DataType::Boolean), Literal::from);
            let expr = col("b").in_list(list.iter().map(literal));
            let made = of(&target, &rows, expr, &Options::default()).unwrap();
            assert_eq!(made.as_boolean().iter().collect::<Vec<_>>(), right, "{list:?} on {target:?}");
        }
    }
}

#[test]
fn parts_that_are_used_again_are_computed_once() {
    for target in devices() {
        let truths: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]));
        let rows = batch(&target, &[("b", truths), ("i", ints([1, 2, 3]))]);
        let mut truth = col("b");
        for _ in 0..60 {
            truth = truth.in_list([true, false].repeat(25));
        }
        let made = of(&target, &rows, truth, &Options::default()).unwrap();
        assert_eq!(made.as_boolean().iter().collect::<Vec<_>>(), [Some(true), Some(true), None]);
        // The value is both compared and returned.
        let mut number = col("i");
        for i in 0..60 {
            number = number.nullif(i + 3);
        }
        let made = of(&target, &rows, number, &Options::default()).unwrap();
        let made: Vec<_> = made.as_primitive::<Int32Type>().iter().collect();
        assert_eq!(made, [Some(1), Some(2), None], "{target:?}");
    }
}

#[test]
fn what_an_expression_takes_is_counted_before() {
    let schema = arrow_schema::Schema::new(vec![Field::new("s", DataType::Utf8, true)]);
    let refused = |expr: &Expr| match Query::new()
        .select(std::slice::from_ref(expr))
        .bind(&schema, &Options::default())
    {
        Err(Error::Invalid { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    let long = lit("x".repeat(1 << 20));
    let some = |doubled: usize| (0..doubled).fold(col("s").eq(long.clone()), |all, _| all.clone() | all);
    assert_eq!(refused(&some(8)), "more than 256 MiB of values");
    assert!(Query::new().select(&[some(3)]).bind(&schema, &Options::default()).is_ok());
    // Expressions that are bound together share one limit.
    let many = vec![some(7); 3];
    assert!(Query::new().select(&many[..1]).bind(&schema, &Options::default()).is_ok());
    let together = Query::new().select(&many).bind(&schema, &Options::default());
    assert!(together.unwrap_err().to_string().contains("more than 256 MiB of values"));
    // Errors quote only the start of a long value.
    let problem = refused(&long.clone().eq(5));
    assert!(problem.len() < 3000 && problem.contains("..."), "{} bytes", problem.len());
}

/// Views that describe a tebibyte of repeated bytes cannot become text with offsets; their total length
/// reveals that.
#[test]
fn what_views_describe_is_refused_by_its_length() {
    let len = 64 << 20;
    let bytes = arrow_buffer::Buffer::from(vec![b'a'; len]);
    let view = u128::from(len as u32) | u128::from(u32::from_le_bytes(*b"aaaa")) << 32;
    let views = arrow_buffer::ScalarBuffer::from(vec![view; 16 << 10]);
    let theirs = StringViewArray::try_new(views.slice(0, 1), vec![bytes.clone()], None).unwrap();
    // SAFETY: all views equal the first, which was validated.
    let theirs = unsafe { StringViewArray::new_unchecked(views, theirs.data_buffers().clone(), None) };
    let theirs: ArrayRef = Arc::new(theirs);
    for target in devices() {
        let ours = target.import(&theirs);
        for to in [DataType::Utf8, DataType::LargeUtf8] {
            let casted = cast(&ours, &to, &CastOptions::default(), &target.stream).wait();
            let refused = matches!(casted, Err(Error::OutOfMemory { .. } | Error::Invalid { .. }));
            assert!(refused, "{to} on {target:?}: {casted:?}");
        }
        // The same inside other arrays, and in dictionaries and runs, where one value stands for many rows.
        let field = |of: DataType| Arc::new(Field::new("item", of, true));
        let offsets = arrow_buffer::OffsetBuffer::from_lengths([theirs.len()]);
        let list: ArrayRef =
            Arc::new(ListArray::new(field(DataType::Utf8View), offsets, theirs.clone(), None));
        let keys = Int32Array::from_iter_values((0..1 << 14).map(|i| i % 7));
        let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, theirs.slice(0, 7)));
        let fields = |of: DataType| arrow_schema::Fields::from(vec![Field::new("item", of, true)]);
        let structure: ArrayRef =
            Arc::new(StructArray::new(fields(DataType::Utf8View), vec![theirs.clone()], None));
        for (nested, to) in [
            (list, DataType::List(field(DataType::Utf8))),
            (dictionary, DataType::LargeUtf8),
            (structure, DataType::Struct(fields(DataType::LargeUtf8))),
        ] {
            let casted = cast(&target.import(&nested), &to, &CastOptions::default(), &target.stream).wait();
            let refused = matches!(casted, Err(Error::OutOfMemory { .. } | Error::Invalid { .. }));
            assert!(refused, "{to} on {target:?}: {casted:?}");
        }
    }
}

/// Runs in a child process, which has its own memory limit.
#[test]
fn plans_and_scratch_count_against_the_limit() {
    const NAME: &str = "bounds::plans_and_scratch_count_against_the_limit";
    if children::case().is_none() {
        return children::run(NAME, "limits", None, 100, &[]);
    }
    let (device, cpu) = (Device::cpu(), devices().swap_remove(0));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let rows = batch(&cpu, &[("i", ints([1])), ("s", texts)]);
    let is_one = |expr: Expr| of(&cpu, &rows, expr, &Options::default()).map(|made| made.len() == 1);
    let list = || col("i").in_list((0..100_000).map(|i| i * 3));
    let sums = || (0..30).fold(col("i"), |all, i| (all + 1).nullif(i + 1_000_000));
    for expr in [list(), sums()] {
        assert!(is_one(expr).unwrap());
    }
    let pool = device.host_pool();
    pool.set_limit(pool.usage().in_use + (512 << 10));
    for expr in [list(), sums()] {
        let refused = is_one(expr);
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
    }
    assert!(is_one(col("i").in_list(0..1_000_000)).unwrap());
    assert!(is_one(col("i") + 1).unwrap());
    assert_eq!(pool.usage().in_use, 0);

    // A device's plans take host memory too, and so do the code and the lists made from them.
    let short = || (0..90).fold(col("i"), |all, i| all + (1000 + i));
    for target in devices() {
        let rows = batch(&target, &[("i", ints([1]))]);
        let made = |expr: Expr| of(&target, &rows, expr, &Options::default()).map(|made| made.len());
        for expr in [list(), short()] {
            pool.set_limit(pool.usage().in_use + (64 << 20));
            assert_eq!(made(expr.clone()).unwrap(), 1, "{target:?}");
            pool.set_limit(pool.usage().in_use + (8 << 10));
            let refused = made(expr);
            assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{target:?}: {refused:?}");
        }
    }
    pool.set_limit(usize::MAX);

    // An expression's text is not built until a row fails.
    let mut expr = col("s").eq("x".repeat(1 << 20));
    (0..40).for_each(|_| expr = !expr.clone());
    let predicate = || Query::new().filter(&expr).bind(rows.schema(), &Options::default()).unwrap();
    let peak = allocations::peak(|| drop(predicate()));
    assert!(peak < 8 << 20, "{peak} bytes");
    let list = list();
    let peak = allocations::peak(|| {
        drop(Query::new().filter(&list).bind(rows.schema(), &Options::default()).unwrap())
    });
    assert!(peak < 16 << 20, "{peak} bytes");
}

/// Keys of values that are all null have a type that nothing computes with.
#[test]
fn dictionaries_of_nulls_and_lists_are_refused_when_bound() {
    let nulls = |size| DataType::FixedSizeList(Arc::new(Field::new_list_field(DataType::Null, true)), size);
    let dictionary = |of| DataType::Dictionary(Box::new(DataType::Int8), Box::new(of));
    for of in [DataType::Null, nulls(1), dictionary(nulls(2)), DataType::Decimal256(40, 2)] {
        let of = dictionary(of);
        let schema = arrow_schema::Schema::new(vec![Field::new("d", of.clone(), true)]);
        let d = || col("d");
        let values = [d() + 1, d().eq(1), d().gt(d()), d().not_distinct(d()), -d(), d().in_list([1])];
        let others =
            [d().between(d(), d()), if_else(true, d(), d()), d().coalesce(d()), d().abs(), d() % d()];
        for expr in values.into_iter().chain(others) {
            let bound = Query::new().select(std::slice::from_ref(&expr)).bind(&schema, &Options::default());
            assert!(matches!(bound, Err(Error::Invalid { .. })), "{expr} of {of}");
        }
    }
}
