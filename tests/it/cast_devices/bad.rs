//! Tests bad input of casts on devices: offsets, views, bytes and keys.

use super::*;

#[test]
fn what_lies_is_an_error() {
    use DataType::*;
    let bytes = |words: &[i32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let strings: ArrayRef = Arc::new(StringArray::from(vec!["abc", "defgh", "ij"]));
    let views = arrow_cast::cast(&strings, &Utf8View).unwrap();
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<types::Int32Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        None,
        Some(vec![Some(3)]),
    ]));
    let keys: ArrayRef = Arc::new(
        DictionaryArray::<types::Int32Type>::try_new(Int32Array::from(vec![0, 1, 0]), strings.clone())
            .unwrap(),
    );
    for target in gpus() {
        for offsets in [[0, 3, 2, 10], [0, 3, 8, 4000], [9, 3, 8, 10], [0, -1, 8, 10]] {
            for to in [LargeUtf8, Utf8View, LargeBinary, BinaryView, list(Utf8View)] {
                let ours = target.forged(&strings, &bytes(&offsets));
                let error = problem(&target, &ours, &to, true);
                assert!(matches!(error, Some(Error::OutOfSpec { .. })), "{offsets:?} to {to}: {error:?}");
            }
        }
        for offsets in [[0, 2, 1, 3], [0, 2, 2, 4000], [3, 2, 2, 3], [0, -7, 2, 3]] {
            for (to, safe) in [(large_list(Int32), true), (large_list(Int8), true), (large_list(Int8), false)]
            {
                let ours = target.forged(&lists, &bytes(&offsets));
                let error = problem(&target, &ours, &to, safe);
                assert!(matches!(error, Some(Error::OutOfSpec { .. })), "{offsets:?} to {to}: {error:?}");
            }
        }
        for bad in [[13, 0x6161_6161, 0, 0], [20, 0, 7, 0], [-1, 0, 0, 0]] {
            for to in [Utf8, LargeBinary] {
                let ours = target.forged(&views, &bytes(&[&bad[..], &[0; 8]].concat()));
                let error = problem(&target, &ours, &to, true);
                assert!(matches!(error, Some(Error::OutOfSpec { .. })), "{bad:?} to {to}: {error:?}");
            }
        }
        for key in [2, -1, i32::MAX] {
            // The array has two values; the third key is out of range.
            let mut parts = target.forged(&keys, &bytes(&[0, key, 1])).into_parts();
            parts.dictionary = parts.dictionary.map(|values| values.slice(0, 2).unwrap());
            let error = problem(&target, &DeviceArray::try_new(parts).unwrap(), &Utf8, true);
            // The error blames the producer, as on the CPU: no caller has passed these keys.
            let problem = format!("key {key} in row 1, of 2 values");
            assert_eq!(error, Some(Error::OutOfSpec { at: "array.buffers[0]".into(), problem }));
        }
    }
}

#[test]
fn bytes_of_unknown_extent_are_views_too() {
    let strings: ArrayRef =
        Arc::new(StringArray::from_iter((0..500).map(|i| Some("thirteen bytes and more".repeat(i % 3)))));
    for target in gpus() {
        let mut parts = target.import(&strings).into_parts();
        let known = parts.buffers[1].clone();
        // SAFETY: the same memory and owner as the original buffer.
        #[allow(unsafe_code)]
        let unknown = unsafe { Buffer::new(known.address(), None, known.owner().clone()) };
        parts.buffers[1] = unknown;
        let ours = DeviceArray::try_new(parts).unwrap().slice(3, 400).unwrap();
        for to in [DataType::Utf8View, DataType::BinaryView, DataType::LargeUtf8] {
            let casted = cast(&ours, &to, &options(false), &target.stream).wait().unwrap();
            target.assert_same(
                &casted,
                &cast_with_options(&sliced(&strings, 3, 400), &to, &options(false)).unwrap(),
                &to,
            );
        }
    }
}

/// A key that does not fit is an error even in a safe cast, because a null would lose a value.
#[test]
fn keys_that_do_not_fit_are_errors() {
    let keys = Int32Array::from_iter((0..400).map(|i| (i % 3 > 0).then_some(i % 300)));
    let values = StringArray::from_iter_values((0..300).map(|i| i.to_string()));
    let array: ArrayRef = Arc::new(DictionaryArray::try_new(keys, Arc::new(values)).unwrap());
    let (narrow, wide) =
        (dictionary(DataType::Int8, DataType::Utf8), dictionary(DataType::Int16, DataType::Utf8));
    for target in gpus() {
        let error = problem(&target, &target.import(&array), &narrow, true);
        assert!(matches!(error, Some(Error::Cast { row: 128, .. })), "{error:?}");
        assert!(problem(&target, &target.import(&array), &wide, true).is_none());
    }
}
