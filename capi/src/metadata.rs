//! The metadata of batches and streams, in the encoding that the Arrow C data interface defines for the
//! metadata of a schema.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::ptr::null;
use std::sync::OnceLock;

use bowstring::Result;
use bowstring::ffi::metadata::{decode, encode};

use crate::status::invalid;

/// Encoded metadata, made when it is first requested, and kept with the handle.
#[derive(Default)]
pub(crate) struct EncodedMetadata(OnceLock<Option<Vec<u8>>>);

impl EncodedMetadata {
    /// Encodes the metadata at the first call; NULL if there is none. Valid as long as `self`.
    pub fn of(&self, metadata: &BTreeMap<String, String>) -> Result<*const c_char> {
        let bytes = match self.0.get() {
            Some(bytes) => bytes,
            None => {
                let bytes = encode(metadata)?;
                self.0.get_or_init(|| bytes)
            }
        };
        Ok(bytes.as_ref().map_or(null(), |bytes| bytes.as_ptr().cast()))
    }
}

/// Decodes the caller's metadata; NULL means none.
///
/// # Safety
///
/// The pointer is null or to metadata, as long as its numbers say.
pub(crate) unsafe fn pairs(metadata: *const c_char) -> Result<BTreeMap<String, String>> {
    // SAFETY: the caller's promise.
    unsafe { decode(metadata) }.ok_or_else(|| invalid("metadata with a negative number"))
}
