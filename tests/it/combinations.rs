//! Features that are right by themselves, used together on small inputs that once had wrong answers.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type, UInt32Type};
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, UnionFields};
use bowstring::array::Batches;
use bowstring::compute::batches::sort_batches;
use bowstring::compute::{JoinTable, Query, SortColumn, SortOptions, evaluate, group, lexsort_to_indices};
use bowstring::expr::{Expr, Options, array_agg, col, count, count_distinct, first, if_else, lit, min};
use bowstring::{DeviceArray, DeviceBatch, Error};

use crate::support::*;

fn batch(target: &Target, columns: &[(&str, ArrayRef)]) -> DeviceBatch {
    let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns: Vec<_> = columns.iter().map(|(_, column)| target.import(column)).collect();
    let rows = columns[0].len();
    DeviceBatch::try_new(schema, columns, rows).unwrap()
}

/// A constant that is tested against a dictionary, which has other rows than the batch, and that is a value
/// of the same query.
#[test]
fn a_constant_is_compared_with_a_dictionary_and_is_a_value() {
    let texts = StringArray::from(vec!["a", "b", "x"]);
    let keys = Int32Array::from(vec![Some(0), Some(2), None]);
    let codes = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(texts)).unwrap();
    for target in devices() {
        for len in [3, 1, 0] {
            let codes: ArrayRef = Arc::new(codes.slice(0, len));
            let others: ArrayRef = Arc::new(StringArray::from(vec!["p", "q", "r"]).slice(0, len));
            let batch = batch(&target, &[("d", codes), ("s", others)]);
            let is = || col("d").eq("x");
            let exprs: [Expr; 5] = [
                if_else(is(), lit("x"), col("s")),
                lit("x").eq(col("d")),
                lit("x"),
                lit("x").cast(DataType::LargeUtf8),
                col("d").starts_with("x"),
            ];
            let made = evaluate(&batch, &exprs, &target.stream).wait().unwrap();
            let expected: [ArrayRef; 5] = [
                Arc::new(StringArray::from(vec!["p", "x", "r"])),
                Arc::new(BooleanArray::from(vec![Some(false), Some(true), None])),
                Arc::new(StringArray::from(vec!["x"; 3])),
                Arc::new(LargeStringArray::from(vec!["x"; 3])),
                Arc::new(BooleanArray::from(vec![Some(false), Some(true), None])),
            ];
            for ((made, expected), expr) in made.columns().iter().zip(expected).zip(&exprs) {
                let expected = expected.slice(0, len);
                assert_same_rows(
                    &rows(&target.export(made)),
                    &rows(&expected),
                    &format!("{target:?}: {expr}"),
                );
            }
        }
    }
}

/// Columns that have nothing but nulls.
#[test]
fn structs_without_values_order_by_their_nulls() {
    let without = |valid: &[bool]| -> ArrayRef {
        let field = Field::new("n", DataType::Null, true);
        let nothing: ArrayRef = Arc::new(NullArray::new(valid.len()));
        let nulls = Some(NullBuffer::from(valid.to_vec()));
        Arc::new(StructArray::new(Fields::from(vec![field]), vec![nothing], nulls))
    };
    for target in devices() {
        let (a, b) = (without(&[false, false, true]), without(&[true, false, true]));
        let (a, b) = (target.import(&a), target.import(&b));
        let by = [&a, &b].map(|column| SortColumn::new(column, SortOptions::default()));
        let order = lexsort_to_indices(&by, None, &target.stream).wait().unwrap();
        let order = target.export(&order);
        assert_eq!(order.as_ref(), &UInt32Array::from(vec![1, 0, 2]), "{target:?}");
    }
}

/// Text that only decides ties is checked before it is followed.
#[test]
fn ties_are_not_decided_by_text_outside_of_its_buffer() {
    for target in devices().iter().filter(|target| target.name == "cpu") {
        let same: ArrayRef = Arc::new(StringArray::from(vec!["x", "x"]));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["ab", "c"]));
        let offsets: Vec<u8> = [0i32, 5, 3].iter().flat_map(|offset| offset.to_ne_bytes()).collect();
        let (first, second) = (target.import(&same), target.forged(&text, &offsets));
        let wide = target.import(&(Arc::new(Int64Array::from(vec![1, 1])) as ArrayRef));
        for by in [vec![&first, &second], vec![&wide, &wide, &second], vec![&second]] {
            let by: Vec<_> =
                by.into_iter().map(|column| SortColumn::new(column, SortOptions::default())).collect();
            let order = lexsort_to_indices(&by, None, &target.stream).wait();
            assert!(matches!(order, Err(Error::OutOfSpec { .. })), "{order:?}");
        }
    }
}

/// A null has a hash that no value has.
#[test]
fn a_value_that_looks_like_a_null_is_another_group() {
    let values = Int64Array::from(vec![Some(0x6e75_6c6c_6e75_6c6c), None, Some(0x6e75_6c6c_6e75_6c6c), None]);
    let bytes =
        values.iter().map(|value| value.map(|value| [value.to_ne_bytes(), value.to_ne_bytes()].concat()));
    let wide = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 16).unwrap();
    let columns: [ArrayRef; 2] = [Arc::new(values), Arc::new(wide)];
    for target in devices() {
        for column in &columns {
            let groups = group(&[target.import(column)], &target.stream).wait().unwrap();
            let ids = target.export(groups.ids());
            assert_eq!(ids.as_ref(), &UInt32Array::from(vec![0, 1, 0, 1]), "{target:?}");
        }
    }
}

/// Texts of which each batch has other ones, longer than views hold.
fn views(first: usize, rows: usize, len: usize) -> ArrayRef {
    let mut views = StringViewBuilder::new();
    for row in 0..rows {
        views.append_value(format!("{:0len$}", (first + row) % 3));
    }
    Arc::new(views.finish())
}

/// The rows that are kept of many batches do not keep all text of these.
#[test]
fn few_rows_of_many_batches_keep_only_their_own_text() {
    const LEN: usize = 4096;
    let bytes =
        |array: &DeviceArray| array.buffers().iter().filter_map(|buffer| buffer.bytes()).sum::<usize>();
    for target in devices() {
        let part = |i: usize| batch(&target, &[("s", views(i, 300, LEN))]);
        let parts: Vec<_> = (0..6).map(|i| Ok(part(i))).collect();
        let schema = part(0).schema().clone();
        let query = Query::new().group_by([col("s")]).aggregate([count(col("s")), min(col("s"))]);
        let query = query.bind(&schema, &Options::default()).unwrap();
        let place = target.stream.device().place();
        let batches = Batches::new(schema.clone(), place, parts.clone().into_iter());
        let groups: Vec<_> = query.run_batches(batches, &target.stream).map(|batch| batch.unwrap()).collect();
        let [groups] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!(groups.len(), 3);
        let counts = target.export(&groups.columns()[1]);
        assert_eq!(counts.as_primitive::<Int64Type>().values(), &[600, 600, 600], "{target:?}");
        for column in [&groups.columns()[0], &groups.columns()[2]] {
            assert!(bytes(column) < 1 << 20, "{target:?}: {} bytes of {}", bytes(column), 3 * LEN);
            let expected = rows(&views(0, 3, LEN));
            assert_same_rows(&rows(&target.export(column)), &expected, &target.name);
        }

        // First rows are kept by the same code; to sort so much text takes an emulator a minute.
        if target.name != "cpu" {
            continue;
        }
        let many: Vec<_> = parts.iter().cycle().take(250).cloned().collect();
        let batches = Batches::new(schema, place, many.into_iter());
        let by = [(0, SortOptions::default())];
        let first = sort_batches(batches, &by, Some(2), None, &target.stream).next().unwrap().unwrap();
        assert_eq!(first.len(), 2);
        assert!(bytes(&first.columns()[0]) < 2 << 20, "{target:?}: {} bytes", bytes(&first.columns()[0]));
    }
}

/// A batch of which no row is left holds on to the text of all.
#[test]
fn no_rows_of_much_text_are_grouped_kept_and_sorted() {
    for target in devices() {
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..300));
        let all = batch(&target, &[("s", views(0, 300, 4096)), ("n", numbers)]);
        let (schema, place) = (all.schema().clone(), target.stream.device().place());
        let batches =
            |of: &DeviceBatch| Batches::new(schema.clone(), place, vec![Ok(of.clone()); 2].into_iter());
        let kept =
            [count(col("s")), min(col("s")), first(col("s")), count_distinct(col("s")), array_agg(col("s"))];
        let query = Query::new().group_by([col("s")]).aggregate(kept);
        let none = all.slice(0, 0).unwrap();
        for (query, rows) in [(query.clone().filter(col("n").lt(0)), &all), (query, &none)] {
            let query = query.bind(&schema, &Options::default()).unwrap();
            assert_eq!(query.run(rows, &target.stream).wait().unwrap().len(), 0, "{target:?}");
            let groups: Vec<_> =
                query.run_batches(batches(rows), &target.stream).map(Result::unwrap).collect();
            assert_eq!(groups.iter().map(DeviceBatch::len).sum::<usize>(), 0, "{target:?}");
        }
        let by = [(1, SortOptions::default())];
        let sorted = sort_batches(batches(&all), &by, Some(0), None, &target.stream);
        assert_eq!(sorted.map(|batch| batch.unwrap().len()).sum::<usize>(), 0, "{target:?}");
    }
}

/// A key of which all rows are equal adds nothing to the words of the others.
#[test]
fn keys_without_bits_are_joined_beside_others() {
    let nothing = |rows: usize| -> ArrayRef {
        Arc::new(FixedSizeBinaryArray::try_new_with_len(0, Default::default(), None, rows).unwrap())
    };
    let nulls = |rows: usize| -> ArrayRef { Arc::new(NullArray::new(rows)) };
    let numbers = |of: [i64; 3]| -> ArrayRef { Arc::new(Int64Array::from(of.to_vec())) };
    for target in devices() {
        let side = |first: &ArrayRef, second: &ArrayRef| [first, second].map(|key| target.import(key));
        for (other, nulls_equal) in [(nothing(3), false), (nothing(3), true), (nulls(3), true)] {
            let [own, others] = [[0, 1 << 40, 7], [1 << 40, 5, 0]].map(numbers);
            for [left, right] in
                [[side(&other, &own), side(&other, &others)], [side(&own, &other), side(&others, &other)]]
            {
                let table = JoinTable::new(&left, nulls_equal, &target.stream).wait().unwrap();
                let found = table.find(&right, &target.stream).wait().unwrap();
                let pairs = found.pairs(&target.stream).wait().unwrap();
                let [left, right] = [&pairs.left, &pairs.right].map(|rows| target.export(rows));
                assert_eq!(left.as_ref(), &UInt32Array::from(vec![1, 0]), "{target:?}");
                assert_eq!(right.as_ref(), &UInt32Array::from(vec![0, 2]), "{target:?}");
            }
        }
    }
}

/// Keys of few bits number the values of each side or batch, but not those of both.
#[test]
fn dictionaries_of_two_sides_or_batches_may_have_more_values_than_keys() {
    let texts = |first: usize| StringArray::from_iter_values((first..first + 100).map(|i| i.to_string()));
    let codes = |values: ArrayRef| -> ArrayRef {
        let keys = Int8Array::from_iter_values(0..100);
        Arc::new(DictionaryArray::<Int8Type>::try_new(keys, values).unwrap())
    };
    let within = |values: ArrayRef| -> ArrayRef {
        let field = Field::new("x", values.data_type().clone(), true);
        Arc::new(StructArray::new(Fields::from(vec![field]), vec![values], None))
    };
    let kinds: [&dyn Fn(usize) -> ArrayRef; 2] =
        [&|first| within(codes(Arc::new(texts(first)))), &|first| codes(within(Arc::new(texts(first))))];
    for target in devices() {
        for (kind, keys) in kinds.iter().enumerate() {
            let (left, right) = (target.import(&keys(0)), target.import(&keys(50)));
            let table = match JoinTable::new(&[left], false, &target.stream).wait() {
                Err(Error::Unsupported { .. }) => continue,
                table => table.unwrap(),
            };
            let pairs =
                table.find(&[right], &target.stream).wait().unwrap().pairs(&target.stream).wait().unwrap();
            let left = target.export(&pairs.left);
            assert_eq!(left.as_ref(), &UInt32Array::from_iter_values(50..100), "{target:?}: kind {kind}");
        }
        let parts: Vec<_> =
            [0, 100].map(|first| Ok(batch(&target, &[("d", codes(Arc::new(texts(first))))]))).into();
        let schema = parts[0].as_ref().unwrap().schema().clone();
        let query = Query::new().aggregate([count_distinct(col("d"))]);
        let query = query.bind(&schema, &Options::default()).unwrap();
        let batches = Batches::new(schema, target.stream.device().place(), parts.into_iter());
        let made: Vec<_> = query.run_batches(batches, &target.stream).map(|batch| batch.unwrap()).collect();
        let distinct = target.export(&made[0].columns()[0]);
        assert_eq!(rows(&distinct), rows(&(Arc::new(Int64Array::from(vec![200])) as ArrayRef)), "{target:?}");
    }
}

/// Rows of small batches wait on the CPU, but those of dictionaries may not fit into one batch.
#[test]
fn batches_of_dictionaries_are_grouped_though_they_have_more_values_than_keys() {
    let part = |target: &Target, first: usize| {
        let values = StringArray::from_iter_values((first..first + 100).map(|i| i.to_string()));
        let codes =
            DictionaryArray::<Int8Type>::try_new(Int8Array::from_iter_values(0..100), Arc::new(values));
        let keys: ArrayRef = Arc::new(Int32Array::from(vec![1; 100]));
        batch(target, &[("k", keys), ("d", Arc::new(codes.unwrap()))])
    };
    for target in devices() {
        let parts: Vec<_> = [0, 100, 200].map(|at| Ok(part(&target, at))).into();
        let schema = part(&target, 0).schema().clone();
        let query = Query::new().group_by([col("k")]).aggregate([first(col("d")), count(col("d"))]);
        let query = query.bind(&schema, &Options::default()).unwrap();
        let batches = Batches::new(schema, target.stream.device().place(), parts.into_iter());
        let made: Vec<_> = query.run_batches(batches, &target.stream).map(|batch| batch.unwrap()).collect();
        let [made] = &made[..] else { panic!("{made:?}") };
        let first: ArrayRef = Arc::new(StringArray::from(vec!["0"]));
        assert_same_rows(&rows(&target.export(&made.columns()[1])), &rows(&first), &target.name);
        assert_eq!(target.export(&made.columns()[2]).as_primitive::<Int64Type>().values(), &[300]);
    }
}

/// Nulls of two members of a union differ, in groups and in joins.
#[test]
fn nulls_of_two_members_of_a_union_are_no_partners() {
    let fields = UnionFields::try_new(
        [0, 1],
        [("n", DataType::Int32), ("t", DataType::Utf8)].map(|(name, of)| Field::new(name, of, true)),
    )
    .unwrap();
    let union = |types: Vec<i8>| -> ArrayRef {
        let rows = types.len();
        let (numbers, texts) = (Int32Array::new_null(rows), StringArray::new_null(rows));
        let members: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(texts)];
        Arc::new(UnionArray::try_new(fields.clone(), types.into(), None, members).unwrap())
    };
    for target in devices() {
        let (left, right) = (target.import(&union(vec![0, 1, 1])), target.import(&union(vec![1, 0])));
        let table = match JoinTable::new(&[left], true, &target.stream).wait() {
            Err(Error::Unsupported { .. }) => continue,
            table => table.unwrap(),
        };
        let found = table.find(&[right], &target.stream).wait().unwrap();
        let pairs = found.pairs(&target.stream).wait().unwrap();
        let [left, right] = [&pairs.left, &pairs.right].map(|rows| target.export(rows));
        let pair = |(left, right): (Option<u32>, Option<u32>)| (left.unwrap(), right.unwrap());
        let of = |rows: &ArrayRef| rows.as_primitive::<UInt32Type>().iter().collect::<Vec<_>>();
        let mut all: Vec<_> = of(&left).into_iter().zip(of(&right)).map(pair).collect();
        all.sort_unstable();
        assert_eq!(all, [(0, 1), (1, 0), (2, 0)], "{target:?}");
    }
}

/// Binaries of fixed width are compared as long ones, also with plain ones, and choices among them are plain.
#[test]
fn binaries_of_fixed_width_meet_plain_ones() {
    let fixed = FixedSizeBinaryArray::try_from_iter([b"ab", b"cd", b"ef"].into_iter()).unwrap();
    let plain = BinaryArray::from_iter_values([&b"ab"[..], b"x", b"ef"]);
    for target in devices() {
        let batch = batch(&target, &[("f", Arc::new(fixed.clone())), ("b", Arc::new(plain.clone()))]);
        let same = || col("f").eq(col("b"));
        let exprs = [
            same(),
            col("b").lt(col("f")),
            if_else(same(), col("f"), col("f")),
            if_else(same(), col("b"), col("f")),
            col("f").nullif(col("b")),
            col("f").coalesce(lit(&b"zz"[..])),
        ];
        let made = evaluate(&batch, &exprs, &target.stream).wait().unwrap();
        let binaries = |rows: [Option<&[u8]>; 3]| Arc::new(BinaryArray::from_iter(rows)) as ArrayRef;
        let [ab, cd, ef] = [&b"ab"[..], b"cd", b"ef"].map(Some);
        let expected: [ArrayRef; 6] = [
            Arc::new(BooleanArray::from(vec![true, false, true])),
            Arc::new(BooleanArray::from(vec![false, false, false])),
            binaries([ab, cd, ef]),
            binaries([ab, cd, ef]),
            binaries([None, cd, None]),
            binaries([ab, cd, ef]),
        ];
        for ((made, expected), expr) in made.columns().iter().zip(expected).zip(&exprs) {
            assert_eq!(&target.export(made), &expected, "{target:?}: {expr}");
        }
    }
}

/// A cast that a program wrote decides the type of a choice.
#[test]
fn choices_keep_the_types_that_casts_name() {
    let fixed: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([b"ab", b"cd"].into_iter()).unwrap());
    let long: ArrayRef = Arc::new(LargeBinaryArray::from_iter_values([&b"ab"[..], b"x"]));
    let views: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([&b"ab"[..], b"x"]));
    let plain: ArrayRef = Arc::new(BinaryArray::from_iter_values([&b"ab"[..], b"x"]));
    for target in devices() {
        let columns = [("f", fixed.clone()), ("l", long.clone()), ("v", views.clone()), ("p", plain.clone())];
        let batch = batch(&target, &columns);
        let cast = |to: DataType| col("f").cast(to);
        let is = || col("f").is_not_null();
        use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
        for (expr, of) in [
            (if_else(is(), cast(LargeBinary), col("l")), LargeBinary),
            (if_else(is(), col("l"), cast(LargeBinary)), LargeBinary),
            (if_else(is(), cast(LargeBinary), cast(LargeBinary).alias("c")), LargeBinary),
            (cast(BinaryView).coalesce(col("v")), BinaryView),
            (col("v").coalesce(cast(BinaryView)), BinaryView),
            (cast(LargeBinary).nullif(col("l")), LargeBinary),
            (cast(LargeBinary).coalesce(lit(&b"zz"[..])), LargeBinary),
            (col("l").coalesce(col("f")), LargeBinary),
            (cast(FixedSizeBinary(2)).coalesce(col("p")), Binary),
            (col("f").coalesce(col("f")).coalesce(col("f")), Binary),
        ] {
            let made = evaluate(&batch, std::slice::from_ref(&expr), &target.stream).wait().unwrap();
            assert_eq!(made.columns()[0].data_type(), &of, "{target:?}: {expr}");
        }
    }
}
