//! Benches predicates, projections and aggregates on every available device; on the CPU also the equivalent
//! chain of arrow-rs' kernels. TPC-H's sixth query is among them, on rows like its own. The other peers are
//! in `peers/`.

mod support;

use std::hint::black_box;
use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, or_kleene};
use arrow_arith::{aggregate as sums, numeric};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_ord::cmp;
use arrow_schema::{DataType, Field, Schema};
use arrow_string::like;
use bowstring::DeviceBatch;
use bowstring::compute::Query;
use bowstring::expr::{Expr, Literal, Options, col, sum};
use criterion::{Criterion, criterion_group, criterion_main};

use support::data::{below, numbers};
use support::{Moved, Scale, Where, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn batch(place: &Where, columns: &[(&str, ArrayRef)]) -> Option<DeviceBatch> {
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.iter().map(|(_, array)| place.import(array)).collect::<Option<Vec<_>>>()?;
    Some(DeviceBatch::try_new(schema, arrays, columns[0].1.len()).expect("columns of one length"))
}

fn expressions(criterion: &mut Criterion) {
    Where::each(|place| {
        place.copy(criterion);
        for rows in [place.large(), place.batch()] {
            let types = [DataType::Int32, DataType::Int64, DataType::Float64, DataType::Decimal128(15, 2)];
            for data_type in types {
                for nulls in [false, true] {
                    comparison(criterion, place, &data_type, rows, nulls);
                }
            }
            kleene(criterion, place, rows);
            for data_type in [DataType::Utf8, DataType::Utf8View] {
                texts(criterion, place, &data_type, rows);
                long_needles(criterion, place, &data_type, (rows / 1024).min(1 << 17));
            }
        }
        let lineitems = match place.scale {
            Scale::Tiny => 20_000,
            _ if place.on_gpu() => 1 << 28,
            _ => 6_001_215,
        };
        for rows in [lineitems, place.batch()] {
            sixth_query(criterion, place, rows);
        }
    });
}

/// The comparison `a < k`, true for about half of the rows.
fn comparison(criterion: &mut Criterion, place: &Where, data_type: &DataType, rows: usize, nulls: bool) {
    let name = data_type.to_string().to_lowercase().replace(['(', ')', ',', ' '], "");
    let name = if name.starts_with("decimal") { "decimal128".to_owned() } else { name };
    let id = format!("less_than/{}/{name}/{rows}/50%/{}/1", place.name, support::data::validity_name(nulls));
    if !wanted(&id) {
        return;
    }
    let theirs = numbers(data_type, rows, true, nulls);
    let Some(ours) = batch(place, &[("a", theirs.clone())]) else { return };
    let zero = Literal::of(data_type.clone(), 0);
    let bound =
        Query::new().select(&[col("a").lt(zero)]).bind(ours.schema(), &Options::default()).expect("it fits");
    let width = data_type.primitive_width().expect("numbers") as u64 * 8 + 1 + 2 * u64::from(nulls);
    let mut group = place.group(criterion, id, Moved::bytes(rows as u64 * width / 8));
    group.ours(|| bound.run(black_box(&ours), &place.stream).wait().expect("no row fails"));
    let scalar = Scalar::new(arrow_cast::cast(&Int32Array::from(vec![0]), data_type).expect("a zero"));
    group.theirs("arrow-rs", || cmp::lt(black_box(&theirs), &scalar).expect("of one type"));
}

/// Three terms over columns with nulls.
fn kleene(criterion: &mut Criterion, place: &Where, rows: usize) {
    let id = format!("three_terms/{}/int32-int64-float64/{rows}/-/10%-null/3", place.name);
    if !wanted(&id) {
        return;
    }
    let columns =
        [DataType::Int32, DataType::Int64, DataType::Float64].map(|of| numbers(&of, rows, true, true));
    let named = [("a", columns[0].clone()), ("b", columns[1].clone()), ("c", columns[2].clone())];
    let Some(ours) = batch(place, &named) else { return };
    let expr = col("a").gt(0) & (col("b").lt(1_000_000) | col("c").gt_eq(0.5));
    let bound = Query::new().select(&[expr]).bind(ours.schema(), &Options::default()).expect("it fits");
    let mut group = place.group(criterion, id, Moved::bytes(rows as u64 * 20 + rows as u64 * 5 / 8));
    group.ours(|| bound.run(black_box(&ours), &place.stream).wait().expect("no row fails"));
    let (zero, million, half) =
        (Int32Array::new_scalar(0), Int64Array::new_scalar(1_000_000), Float64Array::new_scalar(0.5));
    group.theirs("arrow-rs", || {
        let a = cmp::gt(black_box(&columns[0]), &zero).expect("of one type");
        let b = cmp::lt(&columns[1], &million).expect("of one type");
        let c = cmp::gt_eq(&columns[2], &half).expect("of one type");
        and_kleene(&a, &or_kleene(&b, &c).expect("as long")).expect("as long")
    });
}

/// Tests of text against the same bytes for all rows; some rows start with them, and one in 64 equals them.
fn texts(criterion: &mut Criterion, place: &Where, data_type: &DataType, rows: usize) {
    type Theirs = fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, arrow_schema::ArrowError>;
    let tests: [(&str, Expr, &str, Theirs); 5] = [
        ("text_equal", col("a").eq("ship 07"), "ship 07", cmp::eq),
        ("text_starts_with", col("a").starts_with("ship"), "ship", like::starts_with),
        ("text_ends_with", col("a").ends_with("mode 1"), "mode 1", like::ends_with),
        ("text_contains", col("a").contains("mode"), "mode", like::contains),
        ("text_like", col("a").like("%5%mode _"), "%5%mode _", like::like),
    ];
    let text = |i: usize| match below(31, i, 64) {
        few @ 0..32 => format!("ship {few:02}"),
        more => format!("rail {more} in the mode {}", more % 10),
    };
    let mut made: Option<(ArrayRef, DeviceBatch)> = None;
    for (name, expr, needle, arrow) in tests {
        let of = data_type.to_string().to_lowercase();
        let id = format!("{name}/{}/{of}/{rows}/-/no-nulls/1", place.name);
        if !wanted(&id) {
            continue;
        }
        if made.is_none() {
            let theirs = StringArray::from_iter_values((0..rows).map(text));
            let theirs = arrow_cast::cast(&theirs, data_type).expect("text");
            let Some(ours) = batch(place, &[("a", theirs.clone())]) else { return };
            made = Some((theirs, ours));
        }
        let Some((theirs, ours)) = &made else { return };
        let bound = Query::new().select(&[expr]).bind(ours.schema(), &Options::default()).expect("it fits");
        let bytes: usize = theirs.to_data().buffers().iter().map(|buffer| buffer.len()).sum();
        let mut group = place.group(criterion, id, Moved::bytes(bytes as u64 + rows as u64 / 8));
        group.ours(|| bound.run(black_box(ours), &place.stream).wait().expect("no row fails"));
        let needle =
            Scalar::new(arrow_cast::cast(&StringArray::from(vec![needle]), data_type).expect("text"));
        group.theirs("arrow-rs", || arrow(black_box(theirs), &needle).expect("of one type"));
    }
}

/// Rows of nothing but one letter, and needles of little else: a search that begins anew at each place takes
/// as long as both multiplied. One needle is a byte longer than the rows: a search of all rows as one text
/// finds it across their ends. The others are nearly everywhere.
fn long_needles(criterion: &mut Criterion, place: &Where, data_type: &DataType, rows: usize) {
    const LEN: usize = 4096;
    type Ours = fn(&str) -> Expr;
    type Theirs = fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, arrow_schema::ArrowError>;
    let (row, half) = ("a".repeat(LEN - 1), "a".repeat(LEN / 2));
    let tests: [(&str, Ours, String, Theirs); 5] = [
        ("text_contains_long", |text| col("a").contains(text), "a".repeat(LEN), like::contains),
        ("text_contains_nearly", |text| col("a").contains(text), format!("{half}b"), like::contains),
        ("text_like_nearly", |text| col("a").like(text), format!("%{half}b%"), like::like),
        ("text_like_escaped", |text| col("a").like(text), format!("%{half}\\b%"), like::like),
        ("text_ilike_nearly", |text| col("a").ilike(text), format!("%{half}B%"), like::ilike),
    ];
    let of = data_type.to_string().to_lowercase();
    for (name, test, needle, arrow) in tests {
        let id = format!("{name}/{}/{of}/{rows}/-/no-nulls/1", place.name);
        if rows == 0 || !wanted(&id) {
            continue;
        }
        let theirs = StringArray::from_iter_values((0..rows).map(|_| &row));
        let theirs = arrow_cast::cast(&theirs, data_type).expect("text");
        let Some(ours) = batch(place, &[("a", theirs.clone())]) else { return };
        let bound =
            Query::new().select(&[test(&needle)]).bind(ours.schema(), &Options::default()).expect("it fits");
        let mut group = place.group(criterion, id, Moved::bytes((rows * (LEN - 1)) as u64));
        group.ours(|| bound.run(black_box(&ours), &place.stream).wait().expect("no row fails"));
        let needle =
            Scalar::new(arrow_cast::cast(&StringArray::from(vec![needle]), data_type).expect("text"));
        group.theirs("arrow-rs", || arrow(black_box(&theirs), &needle).expect("of one type"));
    }
}

/// The sum `sum(price * discount)` over a year, some discounts and quantities: one row in fifty.
fn sixth_query(criterion: &mut Criterion, place: &Where, rows: usize) {
    let id = format!("tpch_q6/{}/decimal128-date32/{rows}/2%/no-nulls/4", place.name);
    if !wanted(&id) {
        return;
    }
    let decimals = |sequence: u64, first: i128, count: usize| -> ArrayRef {
        let values: Vec<i128> = (0..rows).map(|i| first + below(sequence, i, count) as i128).collect();
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(15, 2).expect("small"))
    };
    let days: Vec<i32> = (0..rows).map(|i| 8036 + below(23, i, 2526) as i32).collect();
    let quantity = Arc::new(
        Decimal128Array::from_iter_values((0..rows).map(|i| 100 * (1 + below(20, i, 50)) as i128))
            .with_precision_and_scale(15, 2)
            .expect("small"),
    ) as ArrayRef;
    let (price, discount) = (decimals(21, 90_000, 10_405_000), decimals(22, 0, 11));
    let shipped: ArrayRef = Arc::new(Date32Array::from(days));
    let named = [
        ("quantity", quantity.clone()),
        ("price", price.clone()),
        ("discount", discount.clone()),
        ("shipped", shipped.clone()),
    ];
    let Some(ours) = batch(place, &named) else { return };
    let year = col("shipped").gt_eq(Literal::date(8766)) & col("shipped").lt(Literal::date(9131));
    let condition: Expr = year & col("discount").between(0.05, 0.07) & col("quantity").lt(24);
    let revenue = [sum(col("price") * col("discount"))];
    let bound = Query::new()
        .filter(&condition)
        .aggregate(&revenue)
        .bind(ours.schema(), &Options::default())
        .expect("it fits");
    let mut group = place.group(criterion, id, Moved::bytes(rows as u64 * 52));
    group.ours(|| bound.run(black_box(&ours), &place.stream).wait().expect("no row fails"));
    let decimal = |unscaled: i128| {
        Scalar::new(Decimal128Array::from(vec![unscaled]).with_precision_and_scale(15, 2).expect("small"))
    };
    let (five, seven, pieces) = (decimal(5), decimal(7), decimal(2400));
    let (from, to) = (Date32Array::new_scalar(8766), Date32Array::new_scalar(9131));
    group.theirs("arrow-rs", || {
        let terms = [
            cmp::gt_eq(black_box(&shipped), &from),
            cmp::lt(&shipped, &to),
            cmp::gt_eq(&discount, &five),
            cmp::lt_eq(&discount, &seven),
            cmp::lt(&quantity, &pieces),
        ];
        let mut terms = terms.into_iter().map(|term| term.expect("of one type"));
        let first = terms.next().expect("five");
        let mask = terms.fold(first, |all, term| and_kleene(&all, &term).expect("as long"));
        // As engines do it: filter the rows, then multiply.
        let kept = |array: &ArrayRef| arrow_select::filter::filter(array, &mask).expect("as long");
        let product = numeric::mul(&kept(&price), &kept(&discount)).expect("small");
        sums::sum(product.as_primitive::<Decimal128Type>())
    });
}

criterion_group!(benches, expressions);
criterion_main!(benches);
