//! Queries that group by sets of their keys: every device gives what a plain evaluator gives.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::*;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use arrow_select::take::take;
use bowstring::array::Batches;
use bowstring::compute::Query;
use bowstring::expr::{Options, col, count_all, count_distinct, last_value, sum};
use bowstring::{DeviceBatch, Error};

use crate::groups::{batch_on, batch_place, grouped, in_batches};
use crate::support::*;

/// The columns of the result, by definition: keys, the number of the set, and [`aggregated`] of `x` and `s`.
fn expected(columns: &[(&str, ArrayRef)], keys: usize, sets: &[Vec<usize>]) -> Vec<ArrayRef> {
    let column = |name: &str| &columns.iter().find(|(own, _)| *own == name).unwrap().1;
    let (x, s) = (column("x").as_primitive::<Int64Type>(), column("s"));
    let mut parts: Vec<Vec<ArrayRef>> = vec![];
    for set in sets {
        let own: Vec<ArrayRef> = set.iter().map(|key| columns[*key].1.clone()).collect();
        let groups = if set.is_empty() { vec![(0..x.len()).collect()] } else { grouped(&own) };
        let first: UInt32Array = groups.iter().map(|rows| rows.first().map(|row| *row as u32)).collect();
        let last: UInt32Array = groups.iter().map(|rows| rows.last().map(|row| *row as u32)).collect();
        let key = |key: usize| match set.contains(&key) {
            true => take(&columns[key].1, &first, None).unwrap(),
            false => new_null_array(columns[key].1.data_type(), groups.len()),
        };
        let mut made: Vec<ArrayRef> = (0..keys).map(key).collect();
        let bits = (0..keys).map(|key| u64::from(!set.contains(&key)) << (keys - 1 - key));
        made.push(Arc::new(UInt64Array::from(vec![bits.sum::<u64>(); groups.len()])));
        let valid =
            |rows: &[usize]| rows.iter().filter(|row| x.is_valid(**row)).map(|row| x.value(*row)).collect();
        let valid: Vec<Vec<i64>> = groups.iter().map(|rows| valid(rows)).collect();
        let sums = valid.iter().map(|values| (!values.is_empty()).then(|| values.iter().sum::<i64>()));
        made.push(Arc::new(Int64Array::from_iter(sums)));
        made.push(Arc::new(Int64Array::from_iter_values(groups.iter().map(|rows| rows.len() as i64))));
        made.push(take(s, &last, None).unwrap());
        let distinct = valid.iter().map(|values| values.iter().collect::<HashSet<_>>().len() as i64);
        made.push(Arc::new(Int64Array::from_iter_values(distinct)));
        parts.push(made);
    }
    let column = |i: usize| parts.iter().map(|part| part[i].as_ref()).collect::<Vec<_>>();
    (0..parts[0].len()).map(|i| concat(&column(i)).unwrap()).collect()
}

/// The query of [`expected`], of the first so many columns.
fn aggregated(columns: &[(&str, ArrayRef)], keys: usize) -> Query {
    let keys: Vec<_> = columns[..keys].iter().map(|(name, _)| col(*name)).collect();
    let x = || col("x");
    Query::new().group_by(keys).aggregate([sum(x()), count_all(), last_value(col("s")), count_distinct(x())])
}

/// Runs a query on every device, in one batch and in several, and compares all columns of all sets.
fn assert_sets(columns: &[(&str, ArrayRef)], query: &Query, expected: &[ArrayRef]) {
    for target in &devices() {
        let batch = batch_on(target, columns);
        let query = query.bind(batch.schema(), &Options::default()).unwrap();
        query.check(&target.stream).unwrap();
        let schema = query.schema();
        let check = |made: Vec<DeviceBatch>, context: &str| {
            for (i, expected) in expected.iter().enumerate() {
                let parts: Vec<_> = made.iter().map(|batch| target.export(&batch.columns()[i])).collect();
                let all = concat(&parts.iter().map(|part| part.as_ref()).collect::<Vec<_>>()).unwrap();
                assert_eq!(all.data_type(), schema.field(i).data_type());
                assert!(schema.field(i).is_nullable() || all.logical_null_count() == 0);
                let context = format!("{context}, column {i} on {target:?}");
                assert_same_rows(&rows(&all), &rows(expected), &context);
            }
        };
        check(vec![query.run(&batch, &target.stream).wait().unwrap()], "one batch");
        let made = query.run_batches(in_batches(&batch, target), &target.stream);
        check(made.collect::<Result<_, _>>().unwrap(), "several batches");
    }
}

/// Rows with three keys.
fn three_keys(types: [&DataType; 3], len: usize, random: &mut Random) -> Vec<(&'static str, ArrayRef)> {
    let mut key = |of: &DataType| {
        let nulls = if has_nulls(of) { Nulls::Some } else { Nulls::None };
        let few = array(of, 4, nulls, random);
        some_of(&few, len, random)
    };
    let [a, b, c] = types.map(&mut key);
    let x = Int64Array::from_iter(
        (0..len).map(|_| [None, Some(random.below(50) as i64)][random.below(7).min(1)]),
    );
    let s = array(&DataType::Utf8, len, Nulls::Some, random);
    vec![("a", a), ("b", b), ("c", c), ("x", Arc::new(x)), ("s", s)]
}

#[test]
fn rows_are_grouped_by_each_set() {
    let mut random = Random::new(90);
    let all_sets: Vec<Vec<usize>> = vec![vec![2, 0], vec![], vec![1], vec![0, 1, 2], vec![1], vec![]];
    for len in [0, 1, 500] {
        let types = [&DataType::Utf8, &DataType::Int32, &DataType::Boolean];
        let columns = three_keys(types, len, &mut random);
        assert_sets(
            &columns,
            &aggregated(&columns, 3).grouping_sets(all_sets.clone()),
            &expected(&columns, 3, &all_sets),
        );
        let rollup = [vec![0, 1, 2], vec![0, 1], vec![0], vec![]];
        assert_sets(&columns, &aggregated(&columns, 3).rollup(), &expected(&columns, 3, &rollup));
        let cube = [vec![0, 1, 2], vec![0, 1], vec![0, 2], vec![0], vec![1, 2], vec![1], vec![2], vec![]];
        assert_sets(&columns, &aggregated(&columns, 3).cube(), &expected(&columns, 3, &cube));
        let none: [Vec<usize>; 1] = [vec![]];
        assert_sets(
            &columns,
            &aggregated(&columns, 1).grouping_sets(none.clone()),
            &expected(&columns, 1, &none),
        );
        // No other set than that of all keys: nothing becomes nullable but what is.
        let all = [vec![0, 1]];
        assert_sets(
            &columns,
            &aggregated(&columns, 2).grouping_sets(all.clone()),
            &expected(&columns, 2, &all),
        );
    }
}

#[test]
fn keys_of_every_type_are_null_outside_their_set() {
    let mut random = Random::new(91);
    for of in types_to_launch() {
        // A union's rows have no null of their own, and arrow-rs makes none of them.
        if matches!(of, DataType::Union(..)) {
            continue;
        }
        let columns = three_keys([&of, &DataType::Int8, &DataType::Int8], 40, &mut random);
        assert_sets(
            &columns,
            &aggregated(&columns, 2).rollup(),
            &expected(&columns, 2, &[vec![0, 1], vec![0], vec![]]),
        );
    }
}

#[test]
fn sets_without_aggregates_are_the_distinct_keys() {
    let mut random = Random::new(92);
    let columns = three_keys([&DataType::Utf8View, &DataType::Int64, &DataType::Int8], 90, &mut random);
    let query = Query::new().group_by([col("a"), col("b")]).cube();
    let expected = expected(&columns, 2, &[vec![0, 1], vec![0], vec![1], vec![]]);
    assert_sets(&columns, &query, &expected[..3]);
}

#[test]
fn filters_and_limits_hold_for_all_sets() {
    let mut random = Random::new(93);
    let columns = three_keys([&DataType::Int64, &DataType::Int32, &DataType::Int8], 3000, &mut random);
    let wide: ArrayRef = Arc::new(Int64Array::from_iter_values((0..3000).map(|i| i % 1500)));
    let columns = [&[("a", wide)], &columns[1..]].concat();
    for target in &devices() {
        let batch = batch_on(target, &columns);
        let query = aggregated(&columns, 2).filter(col("c").is_not_null()).rollup();
        let all = query.bind(batch.schema(), &Options::default()).unwrap();
        let limited = query.group_limit(30_000).bind(batch.schema(), &Options::default()).unwrap();
        let sums = |made: &[DeviceBatch]| {
            let mut sums = vec![];
            for batch in made {
                let column = |i: usize| target.export(&batch.columns()[i]);
                let (a, b, ids, counts) = (column(0), column(1), column(2), column(4));
                for row in 0..batch.len() {
                    let key = |of: &ArrayRef| rows(&of.slice(row, 1));
                    sums.push(format!("{:?}", (key(&ids), key(&a), key(&b), key(&counts))));
                }
            }
            sums.sort();
            sums
        };
        let at_once = sums(&[all.run(&batch, &target.stream).wait().unwrap()]);
        let parts: Vec<_> = (0..6).map(|part| batch.slice(part * 500, 500)).collect();
        let batches = Batches::new(batch.schema().clone(), batch_place(target), parts.into_iter());
        let made: Vec<_> = limited.run_batches(batches, &target.stream).collect::<Result<_, _>>().unwrap();
        assert!(made.len() > 3, "{} batches: nothing was spilled", made.len());
        assert_eq!(sums(&made), at_once);
    }
}

#[test]
fn sets_that_do_not_fit_the_keys_are_errors() {
    let batch = DeviceBatch::try_from(&record_batch!(("a", Int32, [1]), ("b", Int32, [2])).unwrap()).unwrap();
    let keys = || Query::new().group_by([col("a"), col("b")]).aggregate([sum(col("a"))]);
    let problem = |query: Query| match query.bind(batch.schema(), &Options::default()) {
        Err(error @ Error::Invalid { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    for (query, expected) in [
        (keys().grouping_sets([vec![0], vec![2]]), "a set of keys has key 2, but there are 2 keys"),
        (keys().grouping_sets([vec![1, 0, 1]]), "a set of keys has key 1 twice"),
        (keys().grouping_sets(Vec::<Vec<usize>>::new()), "0 sets of keys"),
        (keys().grouping_sets(vec![vec![]; 4097]), "4097 sets of keys"),
        (Query::new().rollup().aggregate([sum(col("a"))]), "sets of keys, but no keys"),
        (Query::new().cube(), "sets of keys, but no keys"),
        (Query::new().group_by(vec![col("a"); 13]).cube(), "a cube of 13 keys"),
        (Query::new().group_by(vec![col("a"); 65]).rollup(), "65 keys"),
    ] {
        let problem = problem(query);
        assert!(problem.contains(expected), "{problem}");
    }
}
