//! Windows, tables of joins, and rows in parts, in C.

use arrow_array::{Float64Array, Int64Array, UInt32Array, UInt64Array};

use super::relational::{read, rows};
use super::*;

fn numbers(numbers: &[u32]) -> ArrayRef {
    Arc::new(UInt32Array::from(numbers.to_vec()))
}

/// A device, a stream, and an array of each of some columns on it.
fn there(
    kind: i32,
    columns: &[&dyn arrow_array::Array],
) -> (*mut BowstringDevice, *mut BowstringStream, Vec<*mut BowstringArray>) {
    let device = device(kind);
    let (stream, cpu) = (stream(device), super::device(1));
    let upload = |column: &&dyn arrow_array::Array| {
        let (here, mut there) = (import(cpu, *column), null_mut());
        // SAFETY: live handles and a place for another.
        unsafe {
            assert_eq!(bowstring_array_to_device(here, stream, &mut there), Ok);
            bowstring_array_free(here);
        }
        there
    };
    let arrays = columns.iter().map(upload).collect();
    // SAFETY: a handle that is not used again.
    unsafe { bowstring_device_free(cpu) };
    (device, stream, arrays)
}

fn close(device: *mut BowstringDevice, stream: *mut BowstringStream, arrays: Vec<*mut BowstringArray>) {
    // SAFETY: live handles that are not used again.
    unsafe {
        arrays.into_iter().for_each(|array| bowstring_array_free(array));
        bowstring_stream_free(stream);
        bowstring_device_free(device);
    }
}

/// The array that a call gives out.
fn got(
    stream: *const BowstringStream,
    call: impl FnOnce(*mut *mut BowstringArray) -> BowstringStatus,
) -> ArrayRef {
    let mut out = null_mut();
    assert_eq!(call(&mut out), Ok, "{}", last_error());
    read(out, stream)
}

#[test]
fn windows_have_numbers_values_and_aggregates() {
    for kind in [1, EMULATED] {
        let keys = Int32Array::from(vec![1, 2, 1, 1]);
        let days = Int32Array::from(vec![5, 9, 3, 5]);
        let (device, stream, arrays) = there(kind, &[&keys, &days]);
        let by = [arrays[0].cast_const(), arrays[1].cast_const()];
        let n: ArrayRef = Arc::new(Int64Array::from(vec![10, 20, 30, 40]));
        let batch = rows(device, stream, RecordBatch::try_from_iter([("n", n)]).unwrap());
        // SAFETY: live handles, and places for others.
        unsafe {
            let (orders, mut windows) = ([0], null_mut());
            let (part, order) = (by.as_ptr(), by[1..].as_ptr());
            let make =
                |rows: u64, out| bowstring_windows_new(part, 1, order, orders.as_ptr(), 1, rows, stream, out);
            assert_eq!(make(3, &mut windows), Invalid);
            assert_eq!(make(4, &mut windows), Ok, "{}", last_error());
            let wide = |numbers: [u64; 4]| Arc::new(UInt64Array::from(numbers.to_vec())) as ArrayRef;
            assert_eq!(&got(stream, |out| bowstring_windows_row_number(windows, out)), &wide([2, 1, 1, 3]));
            assert_eq!(&got(stream, |out| bowstring_windows_rank(windows, out)), &wide([2, 1, 1, 2]));
            assert_eq!(&got(stream, |out| bowstring_windows_dense_rank(windows, out)), &wide([2, 1, 1, 2]));
            let lag = got(stream, |out| bowstring_windows_lag(windows, arrays[1], 1, out));
            assert_eq!(lag.as_ref(), &Int32Array::from(vec![Some(3), None, None, Some(5)]));
            let second = got(stream, |out| bowstring_windows_nth_value(windows, arrays[1], 2, out));
            assert_eq!(second.as_ref(), &Int32Array::from(vec![Some(5), None, Some(5), Some(5)]));

            let mut expr = null_mut();
            assert_eq!(bowstring_expr_column(c"n".as_ptr(), &mut expr), Ok);
            let one = |function: BowstringFunction| BowstringAggregate {
                function: function as i32,
                of: expr,
                filter: null(),
                parameter: 0.0,
                name: null(),
            };
            let size = size_of::<BowstringFrame>();
            let running = BowstringFrame { size, start: 0, end: 1, start_by: 0, end_by: 0 };
            let sum = one(BowstringFunction::Sum);
            let of = |one: &BowstringAggregate, frame: *const BowstringFrame, out| {
                bowstring_windows_aggregate(windows, batch, one, 1, frame, null(), out)
            };
            let sums = |frame: *const BowstringFrame| {
                let (mut made, mut column) = (null_mut(), null_mut());
                assert_eq!(of(&sum, frame, &mut made), Ok, "{}", last_error());
                assert_eq!(bowstring_batch_column(made, 0, &mut column), Ok);
                bowstring_batch_free(made);
                read(column, stream)
            };
            assert_eq!(sums(null()).as_ref(), &Int64Array::from(vec![80, 20, 80, 80]));
            // The fields that a smaller struct of an earlier version lacks are 0.
            let earlier = BowstringFrame { size: 16, start_by: 5, end_by: 5, ..running };
            assert_eq!(sums(&earlier).as_ref(), &Int64Array::from(vec![40, 20, 30, 80]));
            assert_eq!(sums(&running).as_ref(), &Int64Array::from(vec![40, 20, 30, 80]));
            let peers = BowstringFrame { start: 2, end: 2, ..running };
            assert_eq!(sums(&peers).as_ref(), &Int64Array::from(vec![50, 20, 30, 50]));
            let around = BowstringFrame { start: 1, start_by: -1, end_by: 1, ..running };
            assert_eq!(sums(&around).as_ref(), &Int64Array::from(vec![80, 20, 40, 50]));

            let mut none = null_mut();
            assert_eq!(of(&one(BowstringFunction::Median), &running, &mut none), Invalid);
            assert_eq!(of(&sum, &BowstringFrame { end: 3, ..running }, &mut none), Invalid);
            assert_eq!(of(&sum, &BowstringFrame { size: 7, ..running }, &mut none), Invalid);
            assert!(none.is_null());
            bowstring_expr_free(expr);
            bowstring_windows_free(windows);
            bowstring_batch_free(batch);
        }
        close(device, stream, arrays);
    }
}

#[test]
fn tables_are_probed_many_times() {
    for kind in [1, EMULATED] {
        let left = Int32Array::from(vec![Some(5), Some(7), Some(5), None]);
        let right = Int32Array::from(vec![Some(5), Some(6), None]);
        let (device, stream, arrays) = there(kind, &[&left, &right]);
        // SAFETY: live handles, and places for others.
        unsafe {
            let (left, right) = ([arrays[0].cast_const()], [arrays[1].cast_const()]);
            let mut table = null_mut();
            assert_eq!(bowstring_join_table_new(left.as_ptr(), 0, 0, stream, &mut table), Invalid);
            assert_eq!(bowstring_join_table_new(left.as_ptr(), 1, 0, stream, &mut table), Ok);
            let (mut lefts, mut rights) = (null_mut(), null_mut());
            for (outer, expected) in [
                (0, [vec![Some(0), Some(2)], vec![Some(0), Some(0)]]),
                (1, [vec![Some(0), Some(2), None, None], vec![Some(0), Some(0), Some(1), Some(2)]]),
            ] {
                let keys = right.as_ptr();
                let status =
                    bowstring_join_table_pairs(table, keys, 1, outer, stream, &mut lefts, &mut rights);
                assert_eq!(status, Ok, "{}", last_error());
                assert_eq!(read(lefts, stream).as_ref(), &UInt32Array::from(expected[0].clone()));
                assert_eq!(read(rights, stream).as_ref(), &UInt32Array::from(expected[1].clone()));
            }
            let found = got(stream, |out| bowstring_join_table_found(table, right.as_ptr(), 1, stream, out));
            assert_eq!(found.as_ref(), &BooleanArray::from(vec![true, false, false]));
            let (keys, mut none) = (right.as_ptr(), null_mut());
            assert_eq!(bowstring_join_table_found(table, keys, 0, stream, &mut none), Invalid);
            let status = bowstring_join_table_pairs(table, keys, 1, 0, stream, &mut none, null_mut());
            assert_eq!(status, Invalid);
            assert!(none.is_null());
            bowstring_join_table_free(table);
        }
        close(device, stream, arrays);
    }
}

#[test]
fn rows_are_parted_and_put_together() {
    for kind in [1, EMULATED] {
        let keys = Float64Array::from(vec![0.0, 0.0, 1.5, 1.5, -0.0]);
        let mask = BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(true)]);
        let others = Float64Array::from(vec![9.0; 5]);
        let (device, stream, arrays) = there(kind, &[&keys, &mask, &others]);
        // SAFETY: live handles, and places for others.
        unsafe {
            let columns = [arrays[0].cast_const(), arrays[2].cast_const()];
            let columns = columns.as_ptr();
            let starts = got(stream, |out| bowstring_partition(columns, 1, stream, out));
            assert_eq!(&starts, &numbers(&[0, 2, 4]));
            let mut parts = [u64::MAX; 4];
            let first = parts.as_mut_ptr();
            let order = got(stream, |out| bowstring_partition_by_hash(columns, 1, 3, stream, out, first));
            assert_eq!((parts[0], parts[3], order.len()), (0, 5, 5));
            let zipped = got(stream, |out| bowstring_zip(arrays[1], arrays[0], arrays[2], stream, out));
            assert_eq!(zipped.as_ref(), &Float64Array::from(vec![0.0, 9.0, 9.0, 1.5, -0.0]));
            let (which, rows) = ([1, 0, 0], [0, 2, 1]);
            let (which, rows) = (which.as_ptr(), rows.as_ptr());
            let woven = got(stream, |out| bowstring_interleave(columns, 2, which, rows, 3, stream, out));
            assert_eq!(woven.as_ref(), &Float64Array::from(vec![9.0, 1.5, 0.0]));
            let mut counts = null_mut();
            assert_eq!(bowstring_value_counts(arrays[0], stream, &mut counts), Ok);
            let (mut column, mut rows_of) = (null_mut(), 0);
            assert_eq!(bowstring_batch_length(counts, &mut rows_of), Ok);
            assert_eq!(bowstring_batch_column(counts, 1, &mut column), Ok);
            assert_eq!(read(column, stream).as_ref(), &Int64Array::from(vec![2, 2, 1]));
            assert_eq!(rows_of, 3);
            bowstring_batch_free(counts);

            let mut none = null_mut();
            assert_eq!(bowstring_partition(columns, 0, stream, &mut none), Invalid);
            assert_eq!(bowstring_partition_by_hash(columns, 1, 0, stream, &mut none, first), Invalid);
            assert_eq!(bowstring_partition_by_hash(columns, 1, 70_000, stream, &mut none, first), Invalid);
            assert_eq!(bowstring_partition_by_hash(columns, 1, 3, stream, &mut none, null_mut()), Invalid);
            assert_eq!(bowstring_zip(arrays[0], arrays[0], arrays[2], stream, &mut none), Invalid);
            let far = [0, 5, 1];
            assert_eq!(bowstring_interleave(columns, 2, which, far.as_ptr(), 3, stream, &mut none), Invalid);
            assert_eq!(bowstring_interleave(columns, 0, which, rows, 0, stream, &mut none), Invalid);
            assert!(none.is_null());
        }
        close(device, stream, arrays);
    }
}
