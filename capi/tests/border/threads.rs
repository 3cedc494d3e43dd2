//! Several threads may use any handle at once. This tests a selection, the handle with the most state.

use std::ptr::null_mut;
use std::sync::Arc;

use BowstringStatus::Ok;
use arrow_array::{Array as _, ArrayRef, BooleanArray, Int32Array, StringArray};
use bowstring_c::*;

use super::{EMULATED, device, export, import, stream};

const THREADS: usize = 6;
const ROUNDS: usize = 40;

/// A handle as a number, the way a C program passes it to a thread.
fn number<T>(handle: *const T) -> usize {
    handle.expose_provenance()
}

fn handle<T>(number: usize) -> *const T {
    std::ptr::with_exposed_provenance(number)
}

#[test]
fn threads_share_a_selection_and_what_it_filters() {
    const ROWS: usize = 5000;
    let mask: BooleanArray = (0..ROWS).map(|row| (row % 11 != 0).then_some(row % 3 != 1)).collect();
    let numbers = Int32Array::from_iter((0..ROWS).map(|row| (row % 7 != 0).then_some(row as i32)));
    let texts = StringArray::from_iter((0..ROWS).map(|row| (row % 5 != 0).then(|| format!("row {row}"))));
    for kind in [1, EMULATED] {
        let device = device(kind);
        let stream = stream(device);
        let there = |array: &dyn arrow_array::Array| {
            let (host, mut there) = (import(device, array), null_mut());
            // SAFETY: live handles, a place for another; the first is not used again.
            unsafe {
                assert_eq!(bowstring_array_to_device(host, stream, &mut there), Ok);
                bowstring_array_free(host);
            }
            there
        };
        let (mask_there, values) = (there(&mask), [there(&numbers), there(&texts)]);
        let mut selection = null_mut();
        // SAFETY: live handles, a place for another.
        assert_eq!(unsafe { bowstring_selection_new(mask_there, stream, &mut selection) }, Ok);
        let kept = || (0..ROWS).filter(|row| mask.is_valid(*row) && mask.value(*row));
        let expected: [ArrayRef; 2] = [
            Arc::new(
                kept().map(|row| numbers.is_valid(row).then(|| numbers.value(row))).collect::<Int32Array>(),
            ),
            Arc::new(
                kept().map(|row| texts.is_valid(row).then(|| texts.value(row))).collect::<StringArray>(),
            ),
        ];
        let (shared, values_shared) =
            ([number(selection), number(stream)], values.map(|array| number(array)));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let expected = &expected;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let which = (thread + round) % 2;
                        let kept =
                            kept_by(handle(shared[0]), handle(values_shared[which]), handle(shared[1]));
                        assert_eq!(&kept, &expected[which]);
                    }
                });
            }
        });
        // SAFETY: handles that are not used again.
        unsafe {
            values.into_iter().chain([mask_there]).for_each(|array| bowstring_array_free(array));
            bowstring_selection_free(selection);
            bowstring_stream_free(stream);
            bowstring_device_free(device);
        }
    }
}

/// The rows of an array that a selection keeps, copied to host memory.
fn kept_by(
    selection: *const BowstringSelection,
    values: *const BowstringArray,
    stream: *const BowstringStream,
) -> ArrayRef {
    let (mut len, mut kept, mut back) = (0, null_mut(), null_mut());
    // SAFETY: live handles, places for results; handles of this thread's own are freed once.
    unsafe {
        assert_eq!(bowstring_selection_length(selection, &mut len), Ok);
        assert_eq!(bowstring_selection_filter(selection, values, &mut kept), Ok);
        assert_eq!(bowstring_array_to_host(kept, stream, &mut back), Ok);
        let array = export(back);
        assert_eq!(array.len() as u64, len);
        bowstring_array_free(kept);
        bowstring_array_free(back);
        array
    }
}

#[test]
fn every_handle_is_among_those_whose_promise_the_compiler_checks() {
    let header = include_str!("../../include/bowstring.h");
    let freed =
        header.lines().filter_map(|line| line.strip_prefix("void bowstring_")?.split_once("_free(struct "));
    let handles: Vec<&str> = freed.filter_map(|(_, handle)| Some(handle.split_once(" *")?.0)).collect();
    let checked = include_str!("../../src/lib.rs");
    assert!(handles.len() >= 8, "{handles:?}");
    for handle in handles {
        assert!(checked.contains(&format!("used_by_any_thread::<{handle}>();")), "{handle}");
    }
}
