//! Tests computed texts, compared with arrow-rs: parts of every layout by every kind of bounds, in conditions
//! and keys; and choices among texts.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use arrow_string::substring::substring_by_char;
use bowstring::compute::Query;
use bowstring::expr::{Expr, Literal, Options, col, count_all, if_else, lit, max};
use bowstring::{DeviceBatch, Error};

use crate::expressions::{batch, of};
use crate::support::*;

fn types() -> Vec<DataType> {
    use DataType::*;
    let dictionary = |values| Dictionary(Box::new(Int16), Box::new(values));
    vec![Utf8, LargeUtf8, Utf8View, dictionary(Utf8), dictionary(Utf8View)]
}

/// A text of characters that have one to four bytes each, often longer than a view holds.
fn text(rng: &mut Random) -> String {
    let letters = if rng.percent(50.0) { 2 } else { 6 };
    let most = if rng.percent(10.0) { 80 } else { 20 };
    let letter =
        |rng: &mut Random| ['a', 'z', '\u{e9}', '\u{7ff}', '\u{65e5}', '\u{1f600}'][rng.below(letters)];
    (0..rng.below(most)).map(|_| letter(rng)).collect()
}

fn column(of: &DataType, rows: usize, rng: &mut Random) -> ArrayRef {
    let few: Vec<String> = (0..9).map(|_| text(rng)).collect();
    let one = |rng: &mut Random| match rng.below(10) {
        0 => None,
        1..4 => Some(few[rng.below(few.len())].clone()),
        _ => Some(text(rng)),
    };
    let texts: StringArray = (0..rows).map(|_| one(rng)).collect();
    arrow_cast::cast(&texts, of).unwrap()
}

fn bounds(rng: &mut Random) -> (i64, Option<u64>) {
    let start = [0, 1, 2, 5, 13, 79, 1000, i64::MAX, -1, -2, -5, -14, -90, i64::MIN];
    let length = [0, 1, 2, 3, 7, 12, 13, 40, u64::MAX];
    (start[rng.below(start.len())], rng.percent(70.0).then(|| length[rng.below(length.len())]))
}

/// The substrings that arrow-string makes. It has no function for views.
fn theirs(array: &ArrayRef, start: i64, length: Option<u64>) -> ArrayRef {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        return dictionary.with_values(theirs(dictionary.values(), start, length));
    }
    let texts = arrow_cast::cast(array, &DataType::Utf8).unwrap();
    let made = substring_by_char(texts.as_string::<i32>(), start, length).unwrap();
    arrow_cast::cast(&made, array.data_type()).unwrap()
}

#[test]
fn parts_are_those_of_arrow() {
    let targets = devices();
    for seed in 0..cases(12) {
        let mut rng = Random::new(seed);
        let rows = [0, 1, 31, 65, 300, 3000][rng.below(6)];
        let offset = OFFSETS[rng.below(OFFSETS.len())];
        let form = Form::ALL[rng.below(Form::ALL.len())];
        for of in types() {
            let whole = column(&of, offset + rows, &mut rng);
            let schema = Arc::new(Schema::new(vec![Field::new("a", of.clone(), true)]));
            let all: Vec<_> = (0..6).map(|_| bounds(&mut rng)).collect();
            let exprs: Vec<Expr> =
                all.iter().map(|(start, length)| col("a").substring(*start, *length)).collect();
            let query = Query::new().select(&exprs).bind(&schema, &Options::default()).unwrap();
            for target in &targets {
                let columns = vec![target.import_as(form, &whole, offset, rows)];
                let batch = DeviceBatch::try_new(schema.clone(), columns, rows).unwrap();
                let made = query.run(&batch, &target.stream).wait().unwrap();
                for ((start, length), ours) in all.iter().zip(made.columns()) {
                    let theirs = theirs(&whole.slice(offset, rows), *start, *length);
                    target.assert_same(ours, &theirs, &format!("seed {seed}, {of}: {start}, {length:?}"));
                }
            }
        }
    }
}

/// More rows than one thread of the CPU takes.
#[test]
fn parts_of_many_texts() {
    let mut rng = Random::new(1);
    let targets = devices();
    let target = targets.iter().find(|target| target.name == "cpu").unwrap();
    for of in &types()[..3] {
        let whole = column(of, 200_000, &mut rng);
        let rows = batch(target, &[("a", whole.clone())]);
        for (start, length) in [(1, Some(2)), (-15, None)] {
            let ours =
                crate::expressions::of(target, &rows, col("a").substring(start, length), &Options::default());
            assert_eq!(&ours.unwrap(), &theirs(&whole, start, length), "{of}: {start}, {length:?}");
        }
    }
}

/// A part may be compared, searched, cut again, and aggregated, and may be of a computed text.
#[test]
fn parts_are_texts_like_others() {
    let mut rng = Random::new(2);
    for target in devices() {
        for data_type in types() {
            let (a, b) = (column(&data_type, 400, &mut rng), column(&data_type, 400, &mut rng));
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..400).map(|i| i * 7919 % 1000)));
            let rows = batch(&target, &[("a", a.clone()), ("b", b.clone()), ("n", numbers.clone())]);
            let expr = |expr: Expr| of(&target, &rows, expr, &Options::default()).unwrap();
            let (head, tail) = (theirs(&a, 0, Some(2)), theirs(&b, -2, None));
            let ours = expr(col("a").substring(0, Some(2)).eq(col("b").substring(-2, None)));
            assert_eq!(ours.as_boolean(), &arrow_ord::cmp::eq(&head, &tail).unwrap());
            let ours = expr(col("a").substring(1, Some(9)).substring(-3, Some(2)));
            assert_eq!(&ours, &theirs(&theirs(&a, 1, Some(9)), -3, Some(2)));
            let digits = arrow_cast::cast(&numbers, &DataType::Utf8).unwrap();
            let ours = expr(col("n").cast(DataType::Utf8).substring(-1, None).in_list(["3", "9"]));
            let last = theirs(&digits, -1, None);
            let listed = last.as_string::<i32>().iter().map(|one| one.map(|one| one == "3" || one == "9"));
            assert_eq!(ours.as_boolean(), &listed.collect::<BooleanArray>());
            let query = Query::new().filter(col("a").substring(0, Some(1)).eq("z"));
            let key = col("b").substring(0, Some(1)).alias("k");
            let query = query.group_by(&[key]).aggregate(&[count_all(), max(col("a").substring(-1, None))]);
            let groups = query.bind(rows.schema(), &Options::default()).unwrap();
            let groups = groups.run(&rows, &target.stream).wait().unwrap();
            let plain = |array: &ArrayRef| -> Vec<Option<String>> {
                let texts = arrow_cast::cast(array, &DataType::Utf8).unwrap();
                texts.as_string::<i32>().iter().map(|one| one.map(str::to_owned)).collect()
            };
            let (first, keys) = (plain(&theirs(&a, 0, Some(1))), plain(&theirs(&b, 0, Some(1))));
            let mut counts: Vec<(Option<String>, i64)> = vec![];
            for (key, _) in keys.iter().zip(&first).filter(|(_, first)| first.as_deref() == Some("z")) {
                match counts.iter_mut().find(|(one, _)| one == key) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((key.clone(), 1)),
                }
            }
            let groups = target.stream.download(&groups).unwrap();
            let columns: Vec<ArrayRef> =
                groups.columns().iter().map(|column| target.export(column)).collect();
            let made =
                plain(&columns[0]).into_iter().zip(columns[1].as_primitive::<types::Int64Type>().values());
            assert_eq!(made.map(|(key, count)| (key, *count)).collect::<Vec<_>>(), counts, "{data_type}");
        }
    }
}

/// A condition, nulls and equal texts choose among texts, computed or constant, as arrow's kernels do.
#[test]
fn texts_are_chosen() {
    let mut rng = Random::new(3);
    for target in devices() {
        for data_type in types() {
            let (a, b) = (column(&data_type, 500, &mut rng), column(&data_type, 500, &mut rng));
            let truths: BooleanArray =
                (0..500).map(|_| [None, Some(false), Some(true)][rng.below(3)]).collect();
            let mask: ArrayRef = Arc::new(truths.clone());
            let rows = batch(&target, &[("a", a.clone()), ("b", b.clone()), ("t", mask)]);
            let expr = |expr: Expr| of(&target, &rows, expr, &Options::default()).unwrap();
            let plain = match &data_type {
                DataType::Dictionary(_, values) => (**values).clone(),
                other => other.clone(),
            };
            let cast = |array: &ArrayRef| arrow_cast::cast(array, &plain).unwrap();
            let one = |text: Option<&str>| {
                Scalar::new(cast(&(Arc::new(StringArray::from(vec![text])) as ArrayRef)))
            };
            let (plain_a, plain_b) = (cast(&a), cast(&b));
            let head = theirs(&plain_a, 0, Some(1));
            let is_z = arrow_ord::cmp::eq(&head, &one(Some("z"))).unwrap();
            let zip = arrow_select::zip::zip;
            let chosen = zip(&truths, &plain_a, &theirs(&plain_b, 1, None)).unwrap();
            assert_eq!(
                &expr(if_else(col("t"), col("a"), col("b").substring(1, None))),
                &chosen,
                "{data_type}"
            );
            let known = zip(&is_z, &one(Some("last letter")), &plain_b).unwrap();
            let first = || col("a").substring(0, Some(1));
            assert_eq!(&expr(if_else(first().eq("z"), "last letter", col("b"))), &known, "{data_type}");
            let valid = arrow_arith::boolean::is_not_null(&plain_a).unwrap();
            let present = zip(&valid, &plain_a, &one(Some("none"))).unwrap();
            assert_eq!(&expr(col("a").coalesce("none")), &present, "{data_type}");
            assert_eq!(
                &expr(col("a").coalesce(col("b"))),
                &zip(&valid, &plain_a, &plain_b).unwrap(),
                "{data_type}"
            );
            let without = zip(&is_z, &one(None), &head).unwrap();
            assert_eq!(&expr(first().nullif("z")), &without, "{data_type}");
            let equal = arrow_ord::cmp::eq(&plain_a, &plain_b).unwrap();
            assert_eq!(
                &expr(col("a").nullif(col("b"))),
                &zip(&equal, &one(None), &plain_a).unwrap(),
                "{data_type}"
            );
            let is_long =
                expr(if_else(col("t"), col("a"), Literal::null(plain.clone())).coalesce("").neq(""));
            let long = zip(&truths, &plain_a, &one(None)).unwrap();
            let long = arrow_cast::cast(&long, &DataType::Utf8).unwrap();
            let long = long.as_string::<i32>().iter().map(|text| text.is_some_and(|text| !text.is_empty()));
            assert_eq!(is_long.as_boolean(), &long.collect::<BooleanArray>(), "{data_type}");
        }
    }
}

#[test]
fn parts_of_constants_are_known() {
    let target = &devices()[0];
    let rows = batch(target, &[("n", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef)]);
    let expr = |expr: Expr| of(target, &rows, expr, &Options::default());
    let typed = |text: &str| -> Expr { Literal::text(DataType::Utf8, text).into() };
    let part = expr(typed("h\u{e9}llo").substring(1, Some(2))).unwrap();
    assert_eq!(part.as_string::<i32>(), &StringArray::from(vec!["\u{e9}l"; 2]));
    let none: Expr = Literal::null(DataType::Utf8).into();
    assert_eq!(expr(none.substring(1, None)).unwrap().null_count(), 2);
    let problem = |expr_: Expr| match expr(expr_) {
        Err(Error::Invalid { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    assert_eq!(problem(col("n").substring(1, None)), "substring(n, 1): Int32 has no characters");
    assert_eq!(problem(lit(7).substring(-1, Some(3))), "substring(7, -1, 3): Int64 has no characters");
}
