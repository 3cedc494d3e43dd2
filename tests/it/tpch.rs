//! Queries 1, 3 and 18 of TPC-H, written by hand, over small tables: each runs whole on a device, from filter
//! to sorted result, and gives what a plain evaluator gives.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{Field, Schema};
use bowstring::compute::{JoinKind, JoinOptions, Query, SortColumn, SortOptions, join, sort_by};
use bowstring::expr::{Expr, Literal, Options, col, count_all, lit, mean, sum};
use bowstring::{DeviceArray, DeviceBatch};

use crate::support::*;

/// The date that the queries ask about, in days since 1970.
const CUT: i32 = 10_000;

struct Line {
    order: i64,
    quantity: i128,
    price: i128,
    discount: i128,
    tax: i128,
    flag: &'static str,
    status: &'static str,
    shipped: i32,
}

struct Order {
    key: i64,
    customer: i64,
    date: i32,
    total: i128,
}

struct Customer {
    key: i64,
    name: String,
    segment: &'static str,
}

struct Tables {
    lines: Vec<Line>,
    orders: Vec<Order>,
    customers: Vec<Customer>,
}

fn tables(customers: usize) -> Tables {
    let mut rng = Random::new(18);
    let segment = |rng: &mut Random| rng.pick(&["BUILDING", "MACHINERY", "AUTOMOBILE"]);
    let customers: Vec<Customer> = (0..customers as i64)
        .map(|key| Customer { key, name: format!("Customer#{key:09}"), segment: segment(&mut rng) })
        .collect();
    let (mut orders, mut lines): (Vec<Order>, Vec<Line>) = (vec![], vec![]);
    for key in 0..8 * customers.len() as i64 {
        let date = CUT - 400 + rng.below(800) as i32;
        let customer = rng.below(customers.len()) as i64;
        orders.push(Order { key: 4 * key + 1, customer, date, total: rng.below(40_000_000) as i128 });
        for _ in 0..1 + rng.below(7) {
            lines.push(Line {
                order: 4 * key + 1,
                quantity: 100 * (1 + rng.below(50) as i128),
                price: rng.below(10_000_000) as i128,
                discount: rng.below(11) as i128,
                tax: rng.below(9) as i128,
                flag: rng.pick(&["A", "N", "R"]),
                status: rng.pick(&["F", "O"]),
                shipped: date + 1 + rng.below(120) as i32,
            });
        }
    }
    Tables { lines, orders, customers }
}

fn decimals(values: impl Iterator<Item = i128>) -> ArrayRef {
    Arc::new(Decimal128Array::from_iter_values(values).with_precision_and_scale(15, 2).unwrap())
}

/// A table on a device.
fn table(target: &Target, columns: &[(&str, ArrayRef)]) -> DeviceBatch {
    let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), false);
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let there: Vec<DeviceArray> = columns.iter().map(|(_, column)| target.import(column)).collect();
    DeviceBatch::try_new(Arc::new(Schema::new(fields)), there, columns[0].1.len()).unwrap()
}

fn lineitem(target: &Target, lines: &[Line]) -> DeviceBatch {
    let text = |of: fn(&Line) -> &'static str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(lines.iter().map(of)))
    };
    table(
        target,
        &[
            ("l_orderkey", Arc::new(Int64Array::from_iter_values(lines.iter().map(|line| line.order)))),
            ("l_quantity", decimals(lines.iter().map(|line| line.quantity))),
            ("l_extendedprice", decimals(lines.iter().map(|line| line.price))),
            ("l_discount", decimals(lines.iter().map(|line| line.discount))),
            ("l_tax", decimals(lines.iter().map(|line| line.tax))),
            ("l_returnflag", text(|line| line.flag)),
            ("l_linestatus", text(|line| line.status)),
            ("l_shipdate", Arc::new(Date32Array::from_iter_values(lines.iter().map(|line| line.shipped)))),
        ],
    )
}

fn orders(target: &Target, orders: &[Order]) -> DeviceBatch {
    table(
        target,
        &[
            ("o_orderkey", Arc::new(Int64Array::from_iter_values(orders.iter().map(|order| order.key)))),
            ("o_custkey", Arc::new(Int64Array::from_iter_values(orders.iter().map(|order| order.customer)))),
            ("o_orderdate", Arc::new(Date32Array::from_iter_values(orders.iter().map(|order| order.date)))),
            ("o_totalprice", decimals(orders.iter().map(|order| order.total))),
        ],
    )
}

fn customer(target: &Target, customers: &[Customer]) -> DeviceBatch {
    let text = |of: fn(&Customer) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(customers.iter().map(of)))
    };
    table(
        target,
        &[
            ("c_custkey", Arc::new(Int64Array::from_iter_values(customers.iter().map(|one| one.key)))),
            ("c_name", text(|one| &one.name)),
            ("c_mktsegment", text(|one| one.segment)),
        ],
    )
}

fn run(query: Query, on: &DeviceBatch, target: &Target) -> DeviceBatch {
    let query = query.bind(on.schema(), &Options::default()).unwrap();
    query.check(&target.stream).unwrap();
    query.run(on, &target.stream).wait().unwrap()
}

fn column(batch: &DeviceBatch, name: &str) -> DeviceArray {
    batch.columns()[batch.schema().index_of(name).unwrap()].clone()
}

fn joined(
    left: &DeviceBatch,
    right: &DeviceBatch,
    on: (&str, &str),
    kind: JoinKind,
    target: &Target,
) -> DeviceBatch {
    let keys = ([column(left, on.0)], [column(right, on.1)]);
    let options = JoinOptions { kind, ..JoinOptions::default() };
    join(left, right, (&keys.0, &keys.1), &options, &target.stream).wait().unwrap()
}

fn sorted(batch: &DeviceBatch, by: &[(&str, bool)], limit: Option<usize>, target: &Target) -> RecordBatch {
    let columns: Vec<DeviceArray> = by.iter().map(|(name, _)| column(batch, name)).collect();
    let options = |descending| SortOptions { descending, nulls_first: false };
    let by: Vec<SortColumn<'_>> =
        columns.iter().zip(by).map(|(column, (_, down))| SortColumn::new(column, options(*down))).collect();
    let sorted = sort_by(batch, &by, limit, &target.stream).wait().unwrap();
    let columns = sorted.columns().iter().map(|column| target.export(column)).collect();
    RecordBatch::try_new(sorted.schema().clone(), columns).unwrap()
}

fn hundredths(of: i128) -> Expr {
    lit(Literal::decimal(of, 15, 2))
}

/// The price after the discount.
fn revenue() -> Expr {
    col("l_extendedprice") * (hundredths(100) - col("l_discount"))
}

fn of(batch: &RecordBatch, name: &str) -> Vec<i128> {
    batch.column_by_name(name).unwrap().as_primitive::<Decimal128Type>().values().to_vec()
}

#[test]
fn the_first_query() {
    let tables = tables(40);
    let mut expected: BTreeMap<(&str, &str), [i128; 6]> = BTreeMap::new();
    for line in tables.lines.iter().filter(|line| line.shipped <= CUT + 90) {
        let sums = expected.entry((line.flag, line.status)).or_default();
        let discounted = line.price * (100 - line.discount);
        let values = [line.quantity, line.price, discounted, discounted * (100 + line.tax), line.discount, 1];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    for target in &devices() {
        let lines = lineitem(target, &tables.lines);
        let query = Query::new()
            .filter(col("l_shipdate").lt_eq(Literal::date(CUT + 90)))
            .group_by([col("l_returnflag"), col("l_linestatus")])
            .aggregate([
                sum(col("l_quantity")).alias("sum_qty"),
                sum(col("l_extendedprice")).alias("sum_base_price"),
                sum(revenue()).alias("sum_disc_price"),
                sum(revenue() * (hundredths(100) + col("l_tax"))).alias("sum_charge"),
                mean(col("l_discount")).alias("avg_disc"),
                count_all().alias("count_order"),
            ]);
        let made = run(query, &lines, target);
        let made = sorted(&made, &[("l_returnflag", false), ("l_linestatus", false)], None, target);
        let keys = |name: &str| -> Vec<String> {
            made.column_by_name(name).unwrap().as_string::<i32>().iter().map(|x| x.unwrap().into()).collect()
        };
        let flags: Vec<(String, String)> =
            keys("l_returnflag").into_iter().zip(keys("l_linestatus")).collect();
        let wanted: Vec<(String, String)> =
            expected.keys().map(|(flag, status)| ((*flag).into(), (*status).into())).collect();
        assert_eq!(flags, wanted, "{target:?}");
        for (i, name) in ["sum_qty", "sum_base_price", "sum_disc_price", "sum_charge"].into_iter().enumerate()
        {
            let wanted: Vec<i128> = expected.values().map(|sums| sums[i]).collect();
            assert_eq!(of(&made, name), wanted, "{name} on {target:?}");
        }
        let means: Vec<i128> = expected.values().map(|sums| sums[4] * 10_000 / sums[5]).collect();
        assert_eq!(of(&made, "avg_disc"), means, "{target:?}");
        let counts =
            made.column_by_name("count_order").unwrap().as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(counts, expected.values().map(|sums| sums[5] as i64).collect::<Vec<_>>(), "{target:?}");
    }
}

#[test]
fn the_third_query() {
    let tables = tables(40);
    let building: Vec<bool> = tables.customers.iter().map(|one| one.segment == "BUILDING").collect();
    let early: HashMap<i64, &Order> = tables
        .orders
        .iter()
        .filter(|order| order.date < CUT && building[order.customer as usize])
        .map(|order| (order.key, order))
        .collect();
    let mut sums: BTreeMap<i64, i128> = BTreeMap::new();
    for line in tables.lines.iter().filter(|line| line.shipped > CUT && early.contains_key(&line.order)) {
        *sums.entry(line.order).or_default() += line.price * (100 - line.discount);
    }
    let mut expected: Vec<(i128, i32, i64)> =
        sums.into_iter().map(|(key, sum)| (-sum, early[&key].date, key)).collect();
    expected.sort_unstable();
    expected.truncate(10);
    assert_eq!(expected.len(), 10);
    for target in &devices() {
        let customers = run(
            Query::new().filter(col("c_mktsegment").eq("BUILDING")).select([col("c_custkey")]),
            &customer(target, &tables.customers),
            target,
        );
        let early = Query::new().filter(col("o_orderdate").lt(Literal::date(CUT)));
        let early = run(early, &orders(target, &tables.orders), target);
        let theirs = joined(&customers, &early, ("c_custkey", "o_custkey"), JoinKind::RightSemi, target);
        let late = Query::new().filter(col("l_shipdate").gt(Literal::date(CUT)));
        let late = run(late, &lineitem(target, &tables.lines), target);
        let both = joined(&theirs, &late, ("o_orderkey", "l_orderkey"), JoinKind::Inner, target);
        let query = Query::new()
            .group_by([col("l_orderkey"), col("o_orderdate")])
            .aggregate([sum(revenue()).alias("revenue")]);
        let made = run(query, &both, target);
        let by = [("revenue", true), ("o_orderdate", false), ("l_orderkey", false)];
        let made = sorted(&made, &by, Some(10), target);
        let keys = made.column(0).as_primitive::<Int64Type>().values();
        let dates = made.column(1).as_primitive::<Date32Type>().values();
        let found: Vec<(i128, i32, i64)> = of(&made, "revenue")
            .iter()
            .zip(dates)
            .zip(keys)
            .map(|((sum, date), key)| (-sum, *date, *key))
            .collect();
        assert_eq!(found, expected, "{target:?}");
    }
}

#[test]
fn the_eighteenth_query() {
    let tables = tables(40);
    let large = 20_000;
    let mut quantities: HashMap<i64, i128> = HashMap::new();
    for line in &tables.lines {
        *quantities.entry(line.order).or_default() += line.quantity;
    }
    let mut expected: Vec<(i128, i32, i64, String, i128)> = tables
        .orders
        .iter()
        .filter(|order| quantities[&order.key] > large)
        .map(|order| {
            let name = tables.customers[order.customer as usize].name.clone();
            (-order.total, order.date, order.key, name, quantities[&order.key])
        })
        .collect();
    expected.sort_unstable();
    expected.truncate(100);
    assert!(expected.len() > 5);
    for target in &devices() {
        let lines = lineitem(target, &tables.lines);
        let of_orders =
            Query::new().group_by([col("l_orderkey")]).aggregate([sum(col("l_quantity")).alias("quantity")]);
        let of_orders = run(of_orders, &lines, target);
        let of_large = Query::new().filter(col("quantity").gt(lit(Literal::decimal(large, 38, 2))));
        let of_large = run(of_large, &of_orders, target);
        let orders = orders(target, &tables.orders);
        let chosen = joined(&of_large, &orders, ("l_orderkey", "o_orderkey"), JoinKind::RightSemi, target);
        let customers = customer(target, &tables.customers);
        let chosen = joined(&customers, &chosen, ("c_custkey", "o_custkey"), JoinKind::Inner, target);
        let both = joined(&chosen, &lines, ("o_orderkey", "l_orderkey"), JoinKind::Inner, target);
        let keys = ["c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice"];
        let query =
            Query::new().group_by(keys.map(col)).aggregate([sum(col("l_quantity")).alias("quantity")]);
        let made = run(query, &both, target);
        let by = [("o_totalprice", true), ("o_orderdate", false), ("o_orderkey", false)];
        let made = sorted(&made, &by, Some(100), target);
        let names = made.column(0).as_string::<i32>();
        let keys = made.column(2).as_primitive::<Int64Type>().values();
        let dates = made.column(3).as_primitive::<Date32Type>().values();
        let (totals, sums) = (of(&made, "o_totalprice"), of(&made, "quantity"));
        let row = |i: usize| (-totals[i], dates[i], keys[i], names.value(i).to_owned(), sums[i]);
        assert_eq!((0..made.num_rows()).map(row).collect::<Vec<_>>(), expected, "{target:?}");
    }
}
