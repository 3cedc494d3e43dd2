//! Tests text in expressions: every test of every layout, against one text for all rows and against another
//! column, compared with arrow-string and arrow-ord.

use std::sync::Arc;

use arrow_array::*;
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use arrow_string::like;
use bowstring::compute::{Query, filter_where};
use bowstring::expr::{Expr, Literal, Options, col, lit};
use bowstring::{DeviceArray as Ours, DeviceBatch, Error};

use crate::expressions::{batch, of};
use crate::support::*;

type Written = fn(Expr, Expr) -> Expr;
type Theirs = fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError>;

/// Every test of two texts: our expression, and arrow-rs's function.
const TESTS: &[(Written, Theirs)] = &[
    (|a, b| a.eq(b), cmp::eq),
    (|a, b| a.neq(b), cmp::neq),
    (|a, b| a.lt(b), cmp::lt),
    (|a, b| a.lt_eq(b), cmp::lt_eq),
    (|a, b| a.gt(b), cmp::gt),
    (|a, b| a.gt_eq(b), cmp::gt_eq),
    (|a, b| a.distinct(b), cmp::distinct),
    (|a, b| a.not_distinct(b), cmp::not_distinct),
    (|a, b| a.starts_with(b), like::starts_with),
    (|a, b| a.ends_with(b), like::ends_with),
    (|a, b| a.contains(b), like::contains),
];

/// The tests with patterns, which only text has.
const PATTERNS: &[(Written, Theirs)] = &[
    (|a, b| a.like(b), like::like),
    (|a, b| a.ilike(b), like::ilike),
    (|a, b| !a.like(b), like::nlike),
    (|a, b| !a.ilike(b), like::nilike),
];

fn types() -> Vec<DataType> {
    use DataType::*;
    let dictionary = |values| Dictionary(Box::new(Int16), Box::new(values));
    vec![Utf8, LargeUtf8, Utf8View, Binary, LargeBinary, BinaryView, dictionary(Utf8), dictionary(Utf8View)]
}

/// The parts of texts: ends of encodings, characters that fold to others of another length, characters that
/// mean something in patterns.
const PARTS: &[&str] = &[
    "",
    "a",
    "A",
    "b",
    "ab",
    "k",
    "K",
    "\u{212a}",
    "s",
    "\u{17f}",
    "\u{df}",
    "\u{1e9e}",
    "\u{e9}",
    "\u{c9}",
    "\u{3c3}",
    "\u{3c2}",
    "\u{3a3}",
    "\u{65e5}",
    "\u{1f600}",
    "\u{1d11e}",
    "\u{10400}",
    "\u{10428}",
    "%",
    "_",
    "\\",
    "\n",
    "\0",
    ".*",
    "abcdefghijkl",
    "abcdefghijklm",
    "\u{7ff}\u{800}\u{ffff}\u{10000}",
];

fn text(rng: &mut Random) -> String {
    let parts = match rng.below(10) {
        0 => rng.below(60),
        1..5 => 2,
        _ => 1 + rng.below(5),
    };
    (0..parts).map(|_| PARTS[rng.below(PARTS.len())]).collect()
}

/// A pattern that some texts match: a text with parts replaced.
fn pattern(rng: &mut Random) -> String {
    let of = text(rng);
    of.chars()
        .map(
            |c| {
                if rng.percent(25.0) {
                    ["%", "_", "%%", "\\"][rng.below(4)].to_owned()
                } else {
                    c.to_string()
                }
            },
        )
        .collect()
}

fn column(of: &DataType, rows: usize, rng: &mut Random, make: fn(&mut Random) -> String) -> ArrayRef {
    let few: Vec<String> = (0..7).map(|_| make(rng)).collect();
    let one = |rng: &mut Random| match rng.below(10) {
        0 => None,
        1..6 => Some(few[rng.below(few.len())].clone()),
        _ => Some(make(rng)),
    };
    let texts: StringArray = (0..rows).map(|_| one(rng)).collect();
    arrow_cast::cast(&texts, of).unwrap()
}

fn scalar(of: &DataType, text: Option<&str>) -> ArrayRef {
    let of = if let DataType::Dictionary(_, values) = of { values } else { of };
    arrow_cast::cast(&StringArray::from(vec![text]), of).unwrap()
}

fn patterns_of(of: &DataType) -> &'static [(Written, Theirs)] {
    let plain = if let DataType::Dictionary(_, values) = of { values } else { of };
    if matches!(plain, DataType::Binary | DataType::LargeBinary | DataType::BinaryView) {
        &[]
    } else {
        PATTERNS
    }
}

#[test]
fn every_test_of_text() {
    let targets = devices();
    for seed in 0..cases(10) {
        let mut rng = Random::new(seed);
        let rows = [0, 1, 31, 65, 300, 3000][rng.below(6)];
        let offset = OFFSETS[rng.below(OFFSETS.len())];
        let form = Form::ALL[rng.below(Form::ALL.len())];
        for of in types() {
            let (a, b) =
                (column(&of, offset + rows, &mut rng, text), column(&of, offset + rows, &mut rng, text));
            let p = column(&of, offset + rows, &mut rng, pattern);
            let needle =
                rng.percent(95.0).then(|| if rng.percent(30.0) { String::new() } else { text(&mut rng) });
            let like = rng.percent(95.0).then(|| pattern(&mut rng));
            let fields = ["a", "b", "p"].map(|name| Field::new(name, of.clone(), true));
            let schema = Arc::new(Schema::new(fields.to_vec()));
            let literal = |text: &Option<String>| match text {
                Some(text) => lit(text),
                None => Literal::null(DataType::Null).into(),
            };
            let theirs = [&a, &b, &p].map(|column| column.slice(offset, rows));
            let mut tests: Vec<(Expr, Result<BooleanArray, ArrowError>)> = vec![];
            for (ours, arrow) in TESTS {
                let one = Scalar::new(scalar(&of, needle.as_deref()));
                tests.push((ours(col("a"), literal(&needle)), arrow(&theirs[0], &one)));
                tests.push((ours(col("a"), col("b")), arrow(&theirs[0], &theirs[1])));
                tests.push((ours(literal(&needle), col("b")), arrow(&one, &theirs[1])));
            }
            for (ours, arrow) in patterns_of(&of) {
                let one = Scalar::new(scalar(&of, like.as_deref()));
                tests.push((ours(col("a"), literal(&like)), arrow(&theirs[0], &one)));
                tests.push((ours(col("a"), col("p")), arrow(&theirs[0], &theirs[2])));
            }
            let list: Vec<Option<String>> =
                (0..rng.below(6)).map(|_| rng.percent(90.0).then(|| text(&mut rng))).collect();
            let known = logical(&theirs[0]);
            let mut found: BooleanArray = known.iter().map(|is| is.unwrap().then_some(false)).collect();
            for one in &list {
                let equal = cmp::eq(&theirs[0], &Scalar::new(scalar(&of, one.as_deref()))).unwrap();
                found = arrow_arith::boolean::or_kleene(&found, &equal).unwrap();
            }
            let list = list.iter().map(|one| match one {
                Some(one) => one.into(),
                None => Literal::null(DataType::Null),
            });
            tests.push((col("a").in_list(list.collect::<Vec<_>>()), Ok(found)));
            for target in &targets {
                let columns = [&a, &b, &p].map(|column| target.import_as(form, column, offset, rows));
                let batch = DeviceBatch::try_new(schema.clone(), columns.to_vec(), rows).unwrap();
                let exprs: Vec<Expr> = tests.iter().map(|(expr, _)| expr.clone()).collect();
                let made = Query::new().select(&exprs).bind(&schema, &Options::default()).unwrap();
                let made = made.run(&batch, &target.stream).wait().unwrap();
                for ((expr, theirs), ours) in tests.iter().zip(made.columns()) {
                    let theirs: ArrayRef = Arc::new(theirs.as_ref().unwrap().clone());
                    target.assert_same(ours, &theirs, &format!("seed {seed}, {of}: {expr}"));
                }
            }
        }
    }
}

/// Texts of two letters, which contain most needles: often more than once, at all places, and across rows. A
/// few have a third letter, of two bytes.
#[test]
fn texts_that_are_found_often() {
    let mut rng = Random::new(7);
    let letters = |rng: &mut Random, most: usize| -> String {
        let letters = if rng.percent(10.0) { 3 } else { 2 };
        (0..rng.below(most + 1)).map(|_| ['a', 'b', 'é'][rng.below(letters)]).collect()
    };
    for target in devices() {
        // The CPU gets more rows than one thread takes.
        let (rows, lens): (usize, &[usize]) = match target.name == "cpu" {
            true => (131_100, &[0, 1, 4, 5, 8, 9, 12, 13]),
            false => (200, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20]),
        };
        let texts: StringArray = (0..rows + 3)
            .map(|_| {
                let most = if rng.percent(50.0) { 20 } else { 70 };
                rng.percent(95.0).then(|| letters(&mut rng, most))
            })
            .collect();
        for of in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
            let column = arrow_cast::cast(&texts, &of).unwrap();
            let ours = [target.import(&column).slice(3, rows).unwrap()].to_vec();
            let batch = DeviceBatch::try_new(Arc::new(schema_of(&of)), ours, rows).unwrap();
            let theirs = column.slice(3, rows);
            for len in lens {
                // Some needles are in a text.
                let ascii = texts.iter().take(200).flatten().filter(|text| text.is_ascii());
                let longest = ascii.max_by_key(|text| text.len()).unwrap();
                let needle: String = match rng.percent(50.0) {
                    true => longest[rng.below(longest.len() - len)..][..*len].to_owned(),
                    false => (0..*len).map(|_| ['a', 'b'][rng.below(2)]).collect(),
                };
                let mut wild = |text: &str| -> String {
                    text.chars().map(|c| if rng.percent(30.0) { '_' } else { c }).collect()
                };
                let (half, rest) = needle.split_at(len / 2);
                let patterns = [
                    format!("%{needle}%"),
                    format!("{needle}%"),
                    format!("%{needle}"),
                    format!("{half}%{rest}"),
                    format!("%{half}%{rest}%"),
                    wild(&needle),
                    format!("%{}%", wild(&needle)),
                    format!("{}%", wild(&needle)),
                    format!("%_{}", wild(&needle)),
                    format!("{}%{}%", wild(half), wild(rest)),
                    format!("%{half}%{}%_", wild(rest)),
                ];
                let mut tests: Vec<(Expr, BooleanArray)> = vec![];
                for (ours, arrow) in TESTS {
                    let one = Scalar::new(scalar(&of, Some(&needle)));
                    tests.push((ours(col("a"), lit(&needle)), arrow(&theirs, &one).unwrap()));
                }
                for pattern in patterns {
                    let one = Scalar::new(scalar(&of, Some(&pattern)));
                    tests.push((col("a").like(lit(&pattern)), like::like(&theirs, &one).unwrap()));
                }
                let exprs: Vec<Expr> = tests.iter().map(|(expr, _)| expr.clone()).collect();
                let made = Query::new().select(&exprs).bind(batch.schema(), &Options::default()).unwrap();
                let made = made.run(&batch, &target.stream).wait().unwrap();
                for ((expr, theirs), ours) in tests.into_iter().zip(made.columns()) {
                    let theirs: ArrayRef = Arc::new(theirs);
                    target.assert_same(ours, &theirs, &format!("{of}: {expr}"));
                }
            }
        }
    }
}

fn schema_of(of: &DataType) -> Schema {
    Schema::new(vec![Field::new("a", of.clone(), true)])
}

/// Whether each row has a value, directly or in its dictionary.
fn logical(array: &ArrayRef) -> BooleanArray {
    match array.logical_nulls() {
        Some(nulls) => BooleanArray::new(nulls.into_inner(), None),
        None => BooleanArray::from(vec![true; array.len()]),
    }
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn truths(array: &ArrayRef) -> Vec<Option<bool>> {
    cast::AsArray::as_boolean(array).iter().collect()
}

#[test]
fn text_stands_beside_numbers_in_one_predicate() {
    for target in devices() {
        let (n, s) =
            (Int32Array::from_iter_values(0..5000), (0..5000).map(|i| Some(format!("row {}", i % 97))));
        let s = StringViewArray::from_iter(s);
        let rows = batch(&target, &[("n", Arc::new(n)), ("s", Arc::new(s))]);
        let both =
            col("n").gt_eq(1000) & (col("s").ends_with("7") | col("s").in_list(["row 3", "row 4", "no row"]));
        let kept = filter_where(&rows, &both, &target.stream).wait().unwrap();
        let wanted = |i: &i32| *i >= 1000 && (i % 97 % 10 == 7 || [3, 4].contains(&(i % 97)));
        let wanted: ArrayRef = Arc::new(Int32Array::from_iter_values((0..5000).filter(wanted)));
        target.assert_same(&kept.columns()[0], &wanted, &"numbers");
        // Casts to and from text, and values that are compared as bytes although they are not text.
        let bytes = FixedSizeBinaryArray::try_from_iter([[1u8, 2], [0, 9], [1, 3]].iter()).unwrap();
        let words = arrow_cast::cast(
            &StringArray::from(vec!["a", "b", "a"]),
            &DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8)),
        );
        let numbers = DictionaryArray::<types::Int8Type>::try_new(
            Int8Array::from(vec![Some(1), None, Some(0)]),
            Arc::new(Int64Array::from(vec![7, -7])),
        );
        let columns: [(&str, ArrayRef); 3] =
            [("b", Arc::new(bytes)), ("w", words.unwrap()), ("d", Arc::new(numbers.unwrap()))];
        let rows = batch(&target, &columns);
        let made = |expr: Expr| truths(&of(&target, &rows, expr, &Options::default()).unwrap());
        assert_eq!(made(col("b").lt(&[1u8, 3][..])), [Some(true), Some(true), Some(false)], "{target:?}");
        assert_eq!(made(col("w").eq(col("w"))), [Some(true); 3], "{target:?}");
        assert_eq!(made(col("d").lt(0)), [Some(true), None, Some(false)], "{target:?}");
        assert_eq!(made((col("d") + 1).eq(8)), [Some(false), None, Some(true)], "{target:?}");
        assert_eq!(
            made(lit("abc").like("a%") & col("d").is_not_null()),
            [Some(true), Some(false), Some(true)]
        );
        assert_eq!(made(col("w").distinct(Literal::null(DataType::Utf8))), [Some(true); 3], "{target:?}");
    }
}

#[test]
fn what_is_no_test_of_text_is_known_when_it_is_bound() {
    let fields =
        [("s", DataType::Utf8), ("v", DataType::Utf8View), ("b", DataType::Binary), ("n", DataType::Int32)];
    let schema = Schema::new(fields.map(|(name, of)| Field::new(name, of, true)).to_vec());
    let problem = |expr: Expr| match Query::new().select(&[expr]).bind(&schema, &Options::default()) {
        Err(Error::Invalid { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    assert_eq!(problem(col("s").eq(col("v"))), "s = v: Utf8 and Utf8View; cast one");
    assert_eq!(problem(col("b").like(&b"a%"[..])), "b like x'6125': like of Binary");
    assert_eq!(problem(col("n").starts_with("a")), "n starts with 'a': 'a' is no value of Int32");
    assert_eq!(problem(col("n").contains(1)), "n contains 1: contains of Int32");
    assert_eq!(problem(col("s").eq(1)), "s = 1: 1 is no value of Utf8");
    assert_eq!(problem(col("s").eq(&b"\xff"[..])), "s = x'ff': x'ff' is no value of Utf8");
    assert_eq!(problem(col("s").in_list([1])), "s in (1): 1 is no value of Utf8");
    assert_eq!(problem(col("s") + "a"), "s + 'a': no arithmetic of Utf8");
    assert_eq!(
        problem(col("s").coalesce(col("v"))),
        "coalesce(s, v): Utf8 and Utf8View; cast one"
    );
}

/// An array whose first buffer holds other words, without validation.
fn forged(target: &Target, like: &ArrayRef, words: &[i32]) -> Ours {
    target.forged(like, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
}

#[test]
fn rows_that_lie_outside_of_their_buffers_are_errors_unless_they_are_null() {
    let strings = texts(&["abc", "defgh", "ij"]);
    let views = arrow_cast::cast(&strings, &DataType::Utf8View).unwrap();
    let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let words = arrow_cast::cast(&strings, &words).unwrap();
    let tests = [
        col("s").gt("ab"),
        col("s").starts_with(""),
        col("s").like("%x_"),
        col("s").contains("x"),
        col("s").in_list(["abc"]),
        col("s").lt(col("s")),
    ];
    for target in devices() {
        let answer = |array: &Ours, expr: &Expr| {
            let schema = Schema::new(vec![Field::new("s", array.data_type().clone(), true)]);
            let batch = DeviceBatch::try_new(Arc::new(schema), vec![array.clone()], array.len()).unwrap();
            of(&target, &batch, expr.clone(), &Options::default())
        };
        for expr in &tests {
            let lies = [[0, 3, 2, 10], [0, 3, 8, 4000], [9, 3, 8, 10], [0, -1, 8, 10]];
            let forgeries = lies.map(|offsets| forged(&target, &strings, &offsets)).into_iter();
            let lies = [[13, 0x6161_6161, 0, 0], [20, 0x7878_7878, 7, 0], [-1, 0x7878_7878, 0, 0]];
            let forgeries =
                forgeries.chain(lies.map(|view| forged(&target, &views, &[&view[..], &[0; 8]].concat())));
            for array in forgeries.chain([3, -1, i32::MAX].map(|key| forged(&target, &words, &[0, key, 1]))) {
                let error = answer(&array, expr);
                assert!(
                    matches!(error, Err(Error::OutOfSpec { .. })),
                    "{expr} of {array:?}: {error:?} on {target:?}"
                );
            }
            // The same view is in a null row here.
            let null: ArrayRef =
                arrow_cast::cast(&StringArray::from(vec![None, Some("abc")]), &DataType::Utf8View).unwrap();
            let view = [20, 0x7878_7878, 7, 9, 3, 0x0063_6261, 0, 0];
            let ours = answer(&forged(&target, &null, &view), expr).unwrap();
            let right = truths(&answer(&target.import(&null), expr).unwrap());
            assert_eq!(truths(&ours), right, "{expr} on {target:?}");
        }
    }
}
