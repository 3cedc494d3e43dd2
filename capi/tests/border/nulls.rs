//! The operations about nulls, and concat, on batches.

use super::*;

/// Imports a batch of two columns, `a` and `b`, and copies it to the device of a stream.
fn rows(
    device: *const BowstringDevice,
    stream: *const BowstringStream,
    a: [Option<i32>; 3],
) -> *mut BowstringBatch {
    let columns: [ArrayRef; 2] =
        [Arc::new(Int32Array::from(a.to_vec())), Arc::new(Int32Array::from(vec![Some(1), Some(2), None]))];
    let columns = ["a", "b"].into_iter().zip(columns).map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let (mut array, schema) = exchange::export_batch(&exchange::batch_from_arrow(&batch).unwrap()).unwrap();
    let (mut here, mut there) = (null_mut(), null_mut());
    // SAFETY: structs that were just exported, and live handles.
    unsafe {
        assert_eq!(bowstring_batch_import(device, &mut array, &schema, &mut here), Ok);
        assert_eq!(bowstring_batch_to_device(here, stream, &mut there), Ok);
        bowstring_batch_free(here);
    }
    there
}

/// Reads a batch, and frees its handle.
fn read(batch: *mut BowstringBatch, stream: *const BowstringStream) -> RecordBatch {
    let (mut array, mut schema) = (ArrowDeviceArray::empty(), FFI_ArrowSchema::empty());
    let mut here = null_mut();
    // SAFETY: live handles that are not used again, released structs, and then what they were exported as.
    unsafe {
        assert_eq!(bowstring_batch_to_host(batch, stream, &mut here), Ok);
        assert_eq!(bowstring_batch_export(here, &mut array, &mut schema), Ok);
        bowstring_batch_free(here);
        bowstring_batch_free(batch);
        let batch = exchange::import_batch(&mut array, &schema, &bowstring::Device::cpu()).unwrap();
        exchange::batch_to_arrow(&batch).unwrap()
    }
}

/// Columns of a batch, as what they were made of.
fn numbers(batch: &RecordBatch) -> Vec<Vec<Option<i32>>> {
    let column = |column: &ArrayRef| column.as_any().downcast_ref::<Int32Array>().unwrap().iter().collect();
    batch.columns().iter().map(column).collect()
}

#[test]
fn batches_are_tested_counted_filled_dropped_and_joined() {
    for kind in [1, EMULATED] {
        let device = device(kind);
        let stream = stream(device);
        let cpu = super::device(1);
        let batch = rows(device, stream, [Some(7), None, None]);
        let got = |call: &dyn Fn(*mut *mut BowstringBatch) -> BowstringStatus| {
            let mut out = null_mut();
            assert_eq!(call(&mut out), Ok, "{}", last_error());
            read(out, stream)
        };
        let scalar = import(cpu, &Int32Array::from(vec![0]));
        let (scalars, both) = ([scalar.cast_const(), null()], [batch.cast_const(); 2]);
        // SAFETY: live handles, as many as is said, and places for results.
        unsafe {
            let nulls = got(&|out| bowstring_is_null_batch(batch, stream, out));
            let bits = |column: usize| {
                let column = nulls.column(column).as_any().downcast_ref::<BooleanArray>().unwrap();
                column.iter().flatten().collect::<Vec<_>>()
            };
            assert_eq!((bits(0), bits(1)), (vec![false, true, true], vec![false, false, true]));
            assert_eq!(nulls.schema().field(1).name(), "b");
            let valid = got(&|out| bowstring_is_not_null_batch(batch, stream, out));
            assert_eq!(valid.column(0).as_ref(), &BooleanArray::from(vec![true, false, false]));

            let mut counts = [9u64; 2];
            let counted = bowstring_logical_null_count_batch(batch, stream, 2, counts.as_mut_ptr());
            assert_eq!((counted, counts), (Ok, [2, 1]));
            let counted = bowstring_logical_null_count_batch(batch, stream, 1, counts.as_mut_ptr());
            assert_eq!(counted, Invalid);

            let filled = got(&|out| bowstring_fill_null_batch(batch, scalars.as_ptr(), 2, stream, out));
            assert_eq!(numbers(&filled), [[Some(7), Some(0), Some(0)], [Some(1), Some(2), None]]);
            let mut none = null_mut();
            let status = bowstring_fill_null_batch(batch, scalars.as_ptr(), 1, stream, &mut none);
            assert_eq!((status, none), (Invalid, null_mut()));

            let kept = got(&|out| bowstring_drop_nulls_batch(batch, null(), stream, out));
            assert_eq!(numbers(&kept), [[Some(7)], [Some(1)]]);
            let mut options = BowstringDropOptions {
                size: size_of::<BowstringDropOptions>(),
                only_if_all: 1,
                columns: null(),
                count: 0,
            };
            let kept = got(&|out| bowstring_drop_nulls_batch(batch, &options, stream, out));
            assert_eq!(numbers(&kept), [[Some(7), None], [Some(1), Some(2)]]);
            let positions = [1u64, u64::MAX];
            (options.columns, options.count) = (positions.as_ptr(), 1);
            let kept = got(&|out| bowstring_drop_nulls_batch(batch, &options, stream, out));
            assert_eq!(kept.num_rows(), 2);
            options.count = 2;
            assert_eq!(bowstring_drop_nulls_batch(batch, &options, stream, &mut none), Invalid);

            let joined = got(&|out| bowstring_concat_batch(both.as_ptr(), 2, stream, out));
            assert_eq!(numbers(&joined)[0], [Some(7), None, None, Some(7), None, None]);
            assert_eq!(bowstring_concat_batch(both.as_ptr(), 0, stream, &mut none), Invalid);
            assert_eq!(last_error(), "concat: no parts");
            bowstring_batch_free(batch);
            bowstring_array_free(scalar);
            bowstring_stream_free(stream);
            bowstring_device_free(device);
            bowstring_device_free(cpu);
        }
    }
}

#[test]
fn arrays_are_joined() {
    let device = device(1);
    let stream = stream(device);
    let parts = [vec![1, 2], vec![3]].map(|part| import(device, &Int32Array::from(part)).cast_const());
    let mut whole = null_mut();
    // SAFETY: live handles, as many as is said, and a place for another.
    unsafe {
        assert_eq!(bowstring_concat(parts.as_ptr(), 0, stream, &mut whole), Invalid);
        assert_eq!(bowstring_concat(parts.as_ptr(), 2, stream, &mut whole), Ok);
        assert_eq!(export(whole).as_ref(), &Int32Array::from(vec![1, 2, 3]));
        bowstring_array_free(whole);
        parts.into_iter().for_each(|part| bowstring_array_free(part.cast_mut()));
        bowstring_stream_free(stream);
        bowstring_device_free(device);
    }
}
