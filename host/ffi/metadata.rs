//! Encodes and decodes metadata in the format of the C data interface: a count, then for each pair the
//! lengths and bytes of key and value. Numbers are 32 bits wide, in native byte order.

use std::collections::BTreeMap;
use std::ffi::c_char;

use crate::{Error, Result};

/// Decodes metadata. A null pointer means no metadata. Returns `None` if a number is negative. Replaces bytes
/// that are not UTF-8 with U+FFFD.
///
/// # Safety
///
/// The pointer is null, or what is there is as long as its numbers say.
pub unsafe fn decode(from: *const c_char) -> Option<BTreeMap<String, String>> {
    let mut at = from.cast::<u8>();
    if at.is_null() {
        return Some(BTreeMap::new());
    }
    // SAFETY: the caller's promise: a number comes next.
    let pairs = unsafe { number(&mut at) }?;
    let mut found = BTreeMap::new();
    for _ in 0..pairs {
        // SAFETY: as above: as many pairs follow.
        unsafe { found.insert(text(&mut at)?, text(&mut at)?) };
    }
    Some(found)
}

/// # Safety
///
/// A number comes next.
unsafe fn number(at: &mut *const u8) -> Option<usize> {
    // SAFETY: the caller's promise.
    let value = unsafe { at.cast::<i32>().read_unaligned() };
    // SAFETY: as above.
    *at = unsafe { at.add(4) };
    usize::try_from(value).ok()
}

/// # Safety
///
/// A length comes next, and as many bytes.
unsafe fn text(at: &mut *const u8) -> Option<String> {
    // SAFETY: the caller's promise.
    unsafe {
        let len = number(at)?;
        let bytes = std::slice::from_raw_parts(*at, len);
        *at = at.add(len);
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Encodes metadata; `None` if it is empty. A number or a length beyond 31 bits is an error.
pub fn encode(metadata: &BTreeMap<String, String>) -> Result<Option<Vec<u8>>> {
    if metadata.is_empty() {
        return Ok(None);
    }
    let number = |number: usize| match i32::try_from(number) {
        Ok(number) => Ok(number.to_ne_bytes()),
        Err(_) => Err(Error::invalid("export", format!("metadata with a number or a length of {number}"))),
    };
    let mut bytes = number(metadata.len())?.to_vec();
    for text in metadata.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend(number(text.len())?);
        bytes.extend(text.as_bytes());
    }
    Ok(Some(bytes))
}
