//! Passes NULL for every pointer of every function. The functions come from the header, so new ones are
//! included.

use std::ffi::{CStr, c_char};
use std::path::PathBuf;

use libloading::Library;

/// The number of `BOWSTRING_STATUS_INVALID`.
const INVALID: i32 = 1;

/// A C function of pointers and integers. Each argument has its own register or stack slot, and the function
/// does not read those beyond its parameters. A double is in another kind of register, whose contents do not
/// matter.
type Function =
    unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize, usize, usize) -> i32;

/// The shared library in the folder of the test's executable.
fn library() -> Library {
    let folder = std::env::current_exe().unwrap();
    let name = format!("{}bowstring_c{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path: PathBuf = folder.parent().unwrap().join(name);
    // SAFETY: it is our own library, which runs no code when it is loaded.
    unsafe { Library::new(&path) }.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The functions that return `result`, by name, with the argument for each parameter: NULL for pointers,
/// else 1.
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
    // That function accepts NULL, which removes the callback.
    let names = names.into_iter().filter(|(name, _)| name != "bowstring_set_interrupt");
    for (name, passed) in names.chain(functions("void")) {
        assert!(passed.len() <= 10, "{name} takes {} arguments", passed.len());
        // SAFETY: each of these functions takes pointers and integers, and accepts NULL.
        let status = unsafe {
            let function = library.get::<Function>(name.as_bytes()).unwrap();
            let of = |i: usize| passed.get(i).copied().unwrap_or(0);
            function(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9))
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
