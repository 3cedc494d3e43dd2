//! NULL for every pointer of every function: which functions there are the header says, so a new one is called too.

use std::ffi::{CStr, c_char};
use std::path::PathBuf;

use libloading::Library;

/// `BOWSTRING_STATUS_INVALID`.
const INVALID: i32 = 1;

/// A function of the C ABI of pointers and integers: each is in a place of its own, those that it does not take unread. A double is
/// in another kind of register, where anything may be.
type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> i32;

/// The shared library that the tests are built beside.
fn library() -> Library {
    let folder = std::env::current_exe().unwrap();
    let name = format!("{}bowstring_c{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path: PathBuf = folder.parent().unwrap().join(name);
    // SAFETY: our own library, which runs nothing when it is loaded.
    unsafe { Library::new(&path) }.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The functions that return `result`, by name, with what is passed for each parameter: nothing for pointers, ones.
fn functions(result: &str) -> Vec<(String, Vec<usize>)> {
    let header = include_str!("../include/bowstring.h");
    let declarations = header.split(';').filter_map(|item| {
        let at = item.find(&format!("\n{result} bowstring_"))?;
        let (name, parameters) = item[at + 1 + result.len() + 1..].split_once('(')?;
        let parameters = parameters.trim_end_matches(')').split(',');
        let parameters = parameters.filter(|one| !one.trim().starts_with("double "));
        let passed = parameters.map(|one| usize::from(!one.contains('*')));
        Some((name.to_owned(), passed.collect()))
    });
    declarations.collect()
}

#[test]
fn null_is_an_error_wherever_a_pointer_is_needed() {
    let library = library();
    // SAFETY: the function is declared so in the header.
    let last_error =
        unsafe { library.get::<unsafe extern "C" fn() -> *const c_char>(b"bowstring_last_error") };
    let last_error = last_error.unwrap();
    let header = include_str!("../include/bowstring.h");
    let names = functions("BowstringStatus");
    let declared = header.lines().filter(|line| line.starts_with("BowstringStatus bowstring_")).count();
    assert!(names.len() == declared && declared > 50, "{} of {declared}", names.len());
    // NULL is what takes that back.
    let names = names.into_iter().filter(|(name, _)| name != "bowstring_set_interrupt");
    for (name, passed) in names.chain(functions("void")) {
        assert!(passed.len() <= 7, "{name} takes {} arguments", passed.len());
        // SAFETY: every function of these is one of pointers and integers, and survives NULL.
        let status = unsafe {
            let function = library.get::<Function>(name.as_bytes()).unwrap();
            let of = |i: usize| passed.get(i).copied().unwrap_or(0);
            function(of(0), of(1), of(2), of(3), of(4), of(5), of(6))
        };
        if name.ends_with("_free") {
            continue;
        }
        // SAFETY: never NULL, and valid until the next failure of this thread.
        let said = unsafe { CStr::from_ptr(last_error()) }.to_string_lossy().into_owned();
        assert_eq!(status, INVALID, "{name}: {said}");
        assert!(said.ends_with("is NULL"), "{name}: {said}");
    }
}
