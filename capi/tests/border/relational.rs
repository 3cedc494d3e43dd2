//! Sorts, groups and joins in C.

use arrow_array::UInt32Array;

use super::*;

pub fn read(array: *mut BowstringArray, stream: *const BowstringStream) -> ArrayRef {
    let (mut exported, mut schema) = (ArrowDeviceArray::empty(), FFI_ArrowSchema::empty());
    let mut here = null_mut();
    // SAFETY: live handles that are not used again, released structs, and then what they were exported as.
    unsafe {
        assert_eq!(bowstring_array_to_host(array, stream, &mut here), Ok);
        assert_eq!(bowstring_array_export(here, &mut exported, &mut schema), Ok);
        bowstring_array_free(here);
        bowstring_array_free(array);
        let (_, array) = exchange::import_array(&mut exported, &schema, &bowstring::Device::cpu()).unwrap();
        exchange::to_arrow(&array).unwrap()
    }
}

pub fn rows(
    device: *const BowstringDevice,
    stream: *const BowstringStream,
    of: RecordBatch,
) -> *mut BowstringBatch {
    let (mut array, schema) = exchange::export_batch(&exchange::batch_from_arrow(&of).unwrap()).unwrap();
    let (mut here, mut there) = (null_mut(), null_mut());
    // SAFETY: structs that were just exported, and live handles.
    unsafe {
        assert_eq!(bowstring_batch_import(device, &mut array, &schema, &mut here), Ok);
        assert_eq!(bowstring_batch_to_device(here, stream, &mut there), Ok);
        bowstring_batch_free(here);
    }
    there
}

pub fn length(batch: *mut BowstringBatch) -> u64 {
    let mut rows = 0;
    // SAFETY: a live handle that is not used again.
    unsafe {
        assert_eq!(bowstring_batch_length(batch, &mut rows), Ok);
        bowstring_batch_free(batch);
    }
    rows
}

#[test]
fn rows_are_sorted_ranked_and_grouped() {
    for kind in [1, EMULATED] {
        let device = device(kind);
        let stream = stream(device);
        let (cpu, mut values) = (super::device(1), null_mut());
        let here = import(cpu, &Int32Array::from(vec![Some(3), None, Some(1), Some(3)]));
        // SAFETY: live handles, and places for others.
        unsafe {
            assert_eq!(bowstring_array_to_device(here, stream, &mut values), Ok);
            let got = |call: &dyn Fn(*mut *mut BowstringArray) -> BowstringStatus| {
                let mut out = null_mut();
                assert_eq!(call(&mut out), Ok, "{}", last_error());
                read(out, stream)
            };
            let numbers = |numbers: &[u32]| Arc::new(UInt32Array::from(numbers.to_vec())) as ArrayRef;
            let all = BOWSTRING_ALL_ROWS;
            assert_eq!(
                &got(&|out| bowstring_sort_to_indices(values, 0, all, stream, out)),
                &numbers(&[1, 2, 0, 3])
            );
            let down = BOWSTRING_SORT_DESCENDING | BOWSTRING_SORT_NULLS_LAST;
            assert_eq!(
                &got(&|out| bowstring_sort_to_indices(values, down, 3, stream, out)),
                &numbers(&[0, 3, 2])
            );
            let (columns, orders) = ([values.cast_const(); 2], [down, 0]);
            let (columns, orders) = (columns.as_ptr(), orders.as_ptr());
            let lexed = got(&|out| bowstring_lexsort_to_indices(columns, orders, 2, all, stream, out));
            assert_eq!(&lexed, &numbers(&[0, 3, 2, 1]));
            let sorted = got(&|out| bowstring_sort(values, 0, 2, stream, out));
            assert_eq!(sorted.as_ref(), &Int32Array::from(vec![None, Some(1)]));
            assert_eq!(&got(&|out| bowstring_rank(values, 0, 1, stream, out)), &numbers(&[3, 1, 2, 3]));
            let distinct = got(&|out| bowstring_distinct(values, stream, out));
            assert_eq!(distinct.as_ref(), &Int32Array::from(vec![Some(3), None, Some(1)]));
            let (mut ids, mut firsts) = (null_mut(), null_mut());
            assert_eq!(bowstring_group(columns, 2, stream, &mut ids, &mut firsts), Ok);
            assert_eq!(&read(ids, stream), &numbers(&[0, 1, 2, 0]));
            assert_eq!(&read(firsts, stream), &numbers(&[0, 1, 2]));

            let mut none = null_mut();
            assert_eq!(bowstring_sort(values, 4, all, stream, &mut none), Invalid);
            assert_eq!(bowstring_rank(values, 0, 3, stream, &mut none), Invalid);
            assert_eq!(bowstring_rank(null(), 0, 0, stream, &mut none), Invalid);
            assert_eq!(bowstring_lexsort_to_indices(columns, orders, 0, all, stream, &mut none), Invalid);
            assert_eq!(bowstring_lexsort_to_indices(columns, null(), 2, all, stream, &mut none), Invalid);
            assert_eq!(bowstring_group(null(), 1, stream, &mut ids, &mut firsts), Invalid);
            assert_eq!(bowstring_group(columns, 1, stream, null_mut(), &mut firsts), Invalid);
            assert!(none.is_null());
            bowstring_array_free(values);
            bowstring_array_free(here);
            bowstring_stream_free(stream);
            bowstring_device_free(device);
            bowstring_device_free(cpu);
        }
    }
}

#[test]
fn batches_are_sorted_grouped_and_joined() {
    for kind in [1, EMULATED] {
        let device = device(kind);
        let stream = stream(device);
        let keys: ArrayRef = Arc::new(Int32Array::from(vec![Some(2), None, Some(2), Some(7)]));
        let batch = RecordBatch::try_from_iter_with_nullable([("k", keys, true)]).unwrap();
        let batch = rows(device, stream, batch);
        // SAFETY: live handles, and places for others.
        unsafe {
            let mut key = null_mut();
            assert_eq!(bowstring_batch_column(batch, 0, &mut key), Ok);
            let (keys, orders) = ([key.cast_const()], [0]);
            let keys = keys.as_ptr();
            let got = |call: &dyn Fn(*mut *mut BowstringBatch) -> BowstringStatus| {
                let mut out = null_mut();
                assert_eq!(call(&mut out), Ok, "{}", last_error());
                length(out)
            };
            let all = BOWSTRING_ALL_ROWS;
            let orders = orders.as_ptr();
            assert_eq!(got(&|out| bowstring_sort_batch(batch, keys, orders, 1, all, stream, out)), 4);
            let mut sorted = null_mut();
            assert_eq!(bowstring_sort_batch(batch, keys, orders, 1, all, stream, &mut sorted), Ok);
            let mut first = null_mut();
            assert_eq!(bowstring_batch_column(sorted, 0, &mut first), Ok);
            let expected = Int32Array::from(vec![None, Some(2), Some(2), Some(7)]);
            assert_eq!(read(first, stream).as_ref(), &expected);
            bowstring_batch_free(sorted);
            assert_eq!(got(&|out| bowstring_distinct_batch(batch, stream, out)), 3);
            let join = |options: *const BowstringJoinOptions, out| {
                bowstring_join(batch, batch, keys, keys, 1, options, stream, out)
            };
            assert_eq!(got(&|out| join(null(), out)), 5);
            let mut options = BowstringJoinOptions {
                size: size_of::<BowstringJoinOptions>(),
                kind: BowstringJoinKind::LeftAnti as i32,
                nulls_equal: 0,
                null_aware: 0,
                floats_as_sql: 0,
                filter: null(),
            };
            assert_eq!(got(&|out| join(&options, out)), 1);
            options.null_aware = 1;
            assert_eq!(got(&|out| join(&options, out)), 0);
            options.null_aware = 0;
            options.nulls_equal = 1;
            assert_eq!(got(&|out| join(&options, out)), 0);
            let mut none = null_mut();
            assert_eq!(bowstring_sort_batch(batch, keys, null(), 1, all, stream, &mut none), Invalid);
            assert_eq!(bowstring_sort_batch(null(), keys, orders, 1, all, stream, &mut none), Invalid);
            options.kind = 10;
            assert_eq!(join(&options, &mut none), Invalid);
            assert_eq!(bowstring_join(batch, batch, keys, null(), 1, null(), stream, &mut none), Invalid);
            assert_eq!(bowstring_join(batch, batch, keys, keys, 0, null(), stream, &mut none), Invalid);
            assert_eq!(bowstring_join(null(), batch, keys, keys, 1, null(), stream, &mut none), Invalid);

            let mut expr = null_mut();
            assert_eq!(bowstring_expr_column(c"k".as_ptr(), &mut expr), Ok);
            let exprs = [expr.cast_const()];
            let count = BowstringAggregate {
                function: BowstringFunction::CountAll as i32,
                of: null(),
                filter: null(),
                parameter: 0.0,
                name: null(),
            };
            let by = |keys: u64, out| {
                bowstring_group_by(batch, exprs.as_ptr(), keys, &count, 1, null(), null(), stream, out)
            };
            assert_eq!(got(&|out| by(1, out)), 3);
            let mut options = BowstringExprOptions {
                size: size_of::<BowstringExprOptions>(),
                overflow: 0,
                division_by_zero_is_null: 0,
                floats_as_sql: 0,
                key_sets: [1u64, 0, 1].as_ptr(),
                key_set_count: 3,
            };
            let by_sets = |options: &BowstringExprOptions, out| {
                bowstring_group_by(batch, exprs.as_ptr(), 1, &count, 1, null(), options, stream, out)
            };
            // The groups twice, and all rows once.
            assert_eq!(got(&|out| by_sets(&options, out)), 7);
            options.key_set_count = 0;
            assert_eq!(by_sets(&options, &mut none), Invalid);
            (options.key_sets, options.key_set_count) = (&2, 1);
            assert_eq!(by_sets(&options, &mut none), Invalid);
            options.key_set_count = u64::MAX;
            assert_eq!(by_sets(&options, &mut none), Invalid);
            // All other functions of numbers, of rows of which none count.
            let mut nothing = null_mut();
            assert_eq!(bowstring_expr_unary(BowstringUnary::IsNull as i32, expr, &mut nothing), Ok);
            let numbers = |function: &i32| !(6..8).contains(function);
            let all = (1..21).filter(numbers).map(|function| BowstringAggregate {
                function,
                of: expr,
                filter: nothing,
                parameter: 1.0,
                name: null(),
            });
            let all: Vec<BowstringAggregate> = all.collect();
            let of = |all: &[BowstringAggregate], out| {
                let (exprs, first, len) = (exprs.as_ptr(), all.as_ptr(), all.len() as u64);
                bowstring_group_by(batch, exprs, 1, first, len, null(), null(), stream, out)
            };
            assert_eq!(got(&|out| of(&all, out)), 3);
            for (function, parameter) in [(16, 0.5), (15, -1.0), (15, f64::NAN), (19, 1.5), (19, f64::NAN)] {
                let wrong = BowstringAggregate { function, parameter, ..all[0] };
                assert_eq!(of(&[wrong], &mut none), Invalid);
            }
            bowstring_expr_free(nothing);
            assert_eq!(
                bowstring_group_by(batch, null(), 1, &count, 1, null(), null(), stream, &mut none),
                Invalid
            );
            assert!(none.is_null());
            bowstring_expr_free(expr);
            bowstring_array_free(key);
            bowstring_batch_free(batch);
            bowstring_stream_free(stream);
            bowstring_device_free(device);
        }
    }
}
