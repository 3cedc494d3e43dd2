//! Checks a foreign `ArrowSchema` before arrow-schema parses it. The parser believes counts and pointers, and
//! panics over strings that are not UTF-8.

use std::ffi::{CStr, c_char, c_void};

use arrow_schema::DataType;

use super::FFI_ArrowSchema;
use crate::{Error, Result};

/// The deepest nesting of a type: deeper than any sensible type, shallow enough for the stack.
const MAX_DEPTH: usize = 64;
/// The most fields of a type in total: a schema whose children are its own ancestors would never end.
const MAX_FIELDS: usize = 1 << 20;

/// The fields of `FFI_ArrowSchema`, which are private there.
#[repr(C)]
struct Raw {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut FFI_ArrowSchema,
    dictionary: *mut FFI_ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut FFI_ArrowSchema)>,
    private_data: *mut c_void,
}

const _: () = assert!(size_of::<Raw>() == size_of::<FFI_ArrowSchema>());

/// Checks a schema and its descendants.
///
/// # Safety
///
/// Pointers that are not null point to what the interface says is there.
pub(crate) unsafe fn check_schema(schema: &FFI_ArrowSchema) -> Result<()> {
    let mut fields = 0;
    // SAFETY: the caller's promise, passed on.
    unsafe { check(schema, "schema", 0, &mut fields) }
}

unsafe fn check(schema: &FFI_ArrowSchema, at: &str, depth: usize, fields: &mut usize) -> Result<()> {
    let bad = |part: &str, problem: String| Err(Error::out_of_spec(format!("{at}{part}"), problem));
    // SAFETY: `Raw` has the layout that the ABI gives both.
    let raw = unsafe { &*std::ptr::from_ref(schema).cast::<Raw>() };
    *fields += 1;
    if raw.release.is_none() {
        return bad("", "released".into());
    }
    if depth > MAX_DEPTH || *fields > MAX_FIELDS {
        return bad("", format!("nested deeper than {MAX_DEPTH} or more than {MAX_FIELDS} fields"));
    }
    if raw.format.is_null() {
        return bad(".format", "null".into());
    }
    // SAFETY: the caller promised a terminated string.
    let Ok(format) = unsafe { CStr::from_ptr(raw.format) }.to_str() else {
        return bad(".format", "not UTF-8".into());
    };
    // SAFETY: as above.
    if !raw.name.is_null() && unsafe { CStr::from_ptr(raw.name) }.to_str().is_err() {
        return bad(".name", "not UTF-8".into());
    }

    let children = match format.split(':').next().unwrap_or("") {
        "+l" | "+L" | "+vl" | "+vL" | "+w" | "+m" => Some(1),
        "+r" => Some(2),
        "+s" | "+us" | "+ud" => None,
        _ => Some(0),
    };
    let allowed = children.map_or(0..=MAX_FIELDS as i64, |exactly| exactly..=exactly);
    if !allowed.contains(&raw.n_children) {
        return bad(".n_children", format!("{} under format {format:?}", raw.n_children));
    }
    if raw.n_children > 0 && raw.children.is_null() {
        return bad(".children", "null".into());
    }
    for i in 0..raw.n_children as usize {
        let at = format!("{at}.children[{i}]");
        // SAFETY: the caller promised `n_children` pointers, and that each is null or points to a schema.
        match unsafe { raw.children.add(i).read_unaligned().as_ref() } {
            // SAFETY: the caller's promise, passed on.
            Some(child) => unsafe { check(child, &at, depth + 1, fields) }?,
            None => return Err(Error::out_of_spec(at, "null")),
        }
    }
    // SAFETY: the caller promised null or a schema.
    if let Some(values) = unsafe { raw.dictionary.as_ref() } {
        // SAFETY: the caller's promise, passed on.
        unsafe { check(values, &format!("{at}.dictionary"), depth + 1, fields) }?;
    } else if children == Some(0)
        && let Err(error) = DataType::try_from(schema)
    {
        return bad(".format", error.to_string());
    }
    Ok(())
}
