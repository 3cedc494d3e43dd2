//! Sorts, groups and joins of streams in C.

use super::*;

const ALL: u64 = BOWSTRING_ALL_ROWS;

fn numbers(keys: &[Option<i32>], first: i32) -> RecordBatch {
    let values = Int32Array::from_iter_values(first..first + keys.len() as i32);
    let columns: [ArrayRef; 2] = [Arc::new(Int32Array::from(keys.to_vec())), Arc::new(values)];
    let columns = ["k", "v"].into_iter().zip(columns).map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Two batches on a device, as a stream.
fn source(device: *const BowstringDevice, stream: *const BowstringStream) -> *mut BowstringBatches {
    let batches = [numbers(&[Some(3), None, Some(1)], 0), numbers(&[Some(1), Some(3), Some(2)], 3)];
    let ours: Vec<_> = batches.iter().map(exchange::batch_from_arrow).collect();
    let mut source =
        exchange::export_batches(Batches::new(batches[0].schema(), Place::CPU, ours.into_iter()));
    let (mut host, mut there) = (null_mut(), null_mut());
    // SAFETY: live handles, places for more.
    unsafe {
        assert_eq!(bowstring_batches_import(device, &mut source, &mut host), Ok);
        assert_eq!(bowstring_batches_to_device(host, stream, &mut there), Ok);
        bowstring_batches_free(host);
    }
    there
}

/// The numbers of a column, of all batches. The handle is not used again.
fn column(batches: *mut BowstringBatches, stream: *const BowstringStream, i: usize) -> Vec<Option<i64>> {
    let (mut back, mut result) = (null_mut(), ArrowDeviceArrayStream::empty());
    // SAFETY: a live handle, places for others.
    let reader = unsafe {
        assert_eq!(bowstring_batches_to_host(batches, stream, &mut back), Ok);
        assert_eq!(bowstring_batches_export(back, &mut result), Ok);
        bowstring_batches_free(batches);
        bowstring_batches_free(back);
        exchange::import_batches(&mut result, &bowstring::Device::cpu()).unwrap()
    };
    let batches = reader.map(|batch| exchange::batch_to_arrow(&batch.unwrap()).unwrap());
    let numbers = batches.flat_map(|batch| {
        let column = batch.column(i).as_any();
        match column.downcast_ref::<Int32Array>() {
            Some(narrow) => narrow.iter().map(|number| number.map(i64::from)).collect::<Vec<_>>(),
            None => column.downcast_ref::<arrow_array::Int64Array>().unwrap().iter().collect(),
        }
    });
    numbers.collect()
}

#[test]
fn streams_are_sorted_grouped_and_joined() {
    for kind in [1, EMULATED] {
        let device = device(kind);
        let stream = stream(device);
        // With a byte of memory, all rows wait in host memory.
        for memory in [0, 1] {
            let call =
                |call: &dyn Fn(*mut BowstringBatches, *mut *mut BowstringBatches) -> BowstringStatus| {
                    let (source, mut out) = (source(device, stream), null_mut());
                    assert_eq!(call(source, &mut out), Ok, "{}", last_error());
                    // SAFETY: a handle that is not used again.
                    unsafe { bowstring_batches_free(source) };
                    out
                };
            // SAFETY: live handles, and places for others.
            unsafe {
                let sorted = call(&|batches, out| {
                    let (columns, orders) = ([0, 1], [BOWSTRING_SORT_NULLS_LAST, BOWSTRING_SORT_DESCENDING]);
                    let (columns, orders) = (columns.as_ptr(), orders.as_ptr());
                    bowstring_batches_sort(batches, columns, orders, 2, ALL, memory, stream, out)
                });
                assert_eq!(column(sorted, stream, 1), [3, 2, 5, 4, 0, 1].map(Some));
                let first =
                    call(&|batches, out| bowstring_batches_sort(batches, &0, &0, 1, 2, memory, stream, out));
                assert_eq!(column(first, stream, 1), [1, 2].map(Some));
                let mut expr = null_mut();
                assert_eq!(bowstring_expr_column(c"k".as_ptr(), &mut expr), Ok);
                let counted = BowstringAggregate {
                    function: BowstringFunction::CountAll as i32,
                    of: null(),
                    filter: null(),
                    parameter: 0.0,
                    name: null(),
                };
                let grouped = call(&|batches, out| {
                    let (keys, none) = ([expr.cast_const()], null());
                    let keys = keys.as_ptr();
                    bowstring_batches_group_by(
                        batches,
                        keys,
                        1,
                        &counted,
                        1,
                        none,
                        null(),
                        memory,
                        stream,
                        out,
                    )
                });
                let mut counts = column(grouped, stream, 1);
                counts.sort_unstable();
                assert_eq!(counts, [1, 1, 2, 2].map(Some));
                bowstring_expr_free(expr);
                let joined = call(&|left, out| {
                    let right = source(device, stream);
                    let (status, on) = (
                        bowstring_batches_join(left, right, &0, &0, 1, null(), memory, stream, out),
                        bowstring_batches_join(right, left, &0, &0, 1, null(), memory, stream, out),
                    );
                    assert_eq!(
                        (on, last_error().as_str()),
                        (Invalid, "C interface: the stream was given away already")
                    );
                    bowstring_batches_free(right);
                    status
                });
                let mut values = column(joined, stream, 3);
                values.sort_unstable();
                assert_eq!(values, [0, 0, 2, 2, 3, 3, 4, 4, 5].map(Some));
            }
        }
        // SAFETY: live handles, places for others; handles are not used again.
        unsafe {
            let (batches, mut none) = (source(device, stream), null_mut());
            let options = BowstringJoinOptions {
                size: size_of::<BowstringJoinOptions>(),
                kind: 10,
                nulls_equal: 0,
                null_aware: 0,
                floats_as_sql: 0,
                filter: null(),
            };
            let right = source(device, stream);
            for refused in [
                bowstring_batches_sort(batches, &2, &0, 1, ALL, 0, stream, &mut none),
                bowstring_batches_sort(batches, &0, &4, 1, ALL, 0, stream, &mut none),
                bowstring_batches_sort(batches, null(), &0, 1, ALL, 0, stream, &mut none),
                bowstring_batches_sort(batches, &0, &0, 0, ALL, 0, stream, &mut none),
                bowstring_batches_sort(batches, &0, &0, 1, ALL, 0, stream, null_mut()),
                bowstring_batches_group_by(
                    batches,
                    null(),
                    1,
                    null(),
                    0,
                    null(),
                    null(),
                    0,
                    stream,
                    &mut none,
                ),
                bowstring_batches_join(batches, batches, &0, &0, 1, null(), 0, stream, &mut none),
                bowstring_batches_join(batches, right, &0, &9, 1, null(), 0, stream, &mut none),
                bowstring_batches_join(batches, right, &0, &0, 0, null(), 0, stream, &mut none),
                bowstring_batches_join(batches, right, &0, &0, 1, &options, 0, stream, &mut none),
                bowstring_batches_join(null(), right, &0, &0, 1, null(), 0, stream, &mut none),
            ] {
                assert_eq!(refused, Invalid);
            }
            assert!(none.is_null());
            // Refused streams are still whole.
            assert_eq!(column(right, stream, 1).len(), 6);
            assert_eq!(column(batches, stream, 1).len(), 6);
            bowstring_stream_free(stream);
            bowstring_device_free(device);
        }
    }
}
