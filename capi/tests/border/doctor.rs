//! Tests the doctor through the C interface.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

use BowstringStatus::{Invalid, Ok};
use bowstring_c::*;

unsafe extern "C" fn note(what: *const c_char, done: usize, of: usize, data: *mut c_void) {
    // SAFETY: text for the call, and the list that `bowstring_doctor` was given.
    let (what, said) = unsafe { (CStr::from_ptr(what), &mut *data.cast::<Vec<String>>()) };
    assert!(done <= of);
    said.push(what.to_str().unwrap().to_owned());
}

#[test]
fn the_cpu_is_examined_and_said_to_be_well() {
    let (mut said, mut report) = (Vec::<String>::new(), null_mut());
    // SAFETY: the list outlives the call; places for results; the report is freed once.
    unsafe {
        assert_eq!(bowstring_doctor(1.0, Some(note), (&raw mut said).cast(), &mut report), Ok);
        let (mut page, mut json, mut is_well) = (null(), null(), -1);
        assert_eq!(bowstring_report_page(report, &mut page), Ok);
        assert_eq!(bowstring_report_json(report, &mut json), Ok);
        assert_eq!(bowstring_report_is_well(report, &mut is_well), Ok);
        let (page, json) = (CStr::from_ptr(page).to_str().unwrap(), CStr::from_ptr(json).to_str().unwrap());
        assert!(page.contains("\nCPU\n") && json.starts_with("{\"bowstring\": "), "{page}{json}");
        // The doctor may find faults on machines with a GPU.
        assert_eq!(is_well, i32::from(page.contains("\nAll is well")));
        bowstring_report_free(report);
    }
    assert!(said.iter().any(|what| what.starts_with("CPU: self-tests, ")), "{said:?}");
    for seconds in [-1.0, f64::NAN, f64::INFINITY] {
        // SAFETY: as above, without a function.
        assert_eq!(unsafe { bowstring_doctor(seconds, None, null_mut(), &mut report) }, Invalid);
    }
}
