//! What was said of batches and streams besides their schemas, in the encoding that the Arrow C data interface has for a
//! schema's metadata.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::ptr::null;
use std::sync::OnceLock;

use bowstring::Result;
use bowstring::ffi::metadata::{decode, encode};

use crate::array::BowstringBatch;
use crate::status::{BowstringStatus, borrow, give, guard, invalid, put};

/// Encoded metadata, made when somebody asks, and kept with the handle.
#[derive(Default)]
pub(crate) struct Said(OnceLock<Option<Vec<u8>>>);

impl Said {
    /// Null where nothing was said.
    pub fn of(&self, metadata: &BTreeMap<String, String>) -> *const c_char {
        let bytes = self.0.get_or_init(|| encode(metadata));
        bytes.as_ref().map_or(null(), |bytes| bytes.as_ptr().cast())
    }
}

/// What a caller says.
///
/// # Safety
///
/// The pointer is null or to metadata, as long as its numbers say.
pub(crate) unsafe fn pairs(metadata: *const c_char) -> Result<BTreeMap<String, String>> {
    // SAFETY: the caller's promise.
    unsafe { decode(metadata) }.ok_or_else(|| invalid("metadata with a negative number"))
}

/// What was said of a batch besides its schema, by the producer of an asynchronous stream or by
/// `bowstring_batch_with_metadata`: pairs in the encoding of ArrowSchema.metadata, or NULL where nothing was. It is the
/// handle's, and valid until that is freed. Operations on batches give it on with their results.
///
/// # Safety
///
/// `batch` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_metadata(
    batch: *const BowstringBatch,
    out: *mut *const c_char,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let BowstringBatch(batch, said) = borrow(batch, "batch")?;
        put(said.of(batch.metadata()), out)
    })
}

/// The batch, copying nothing, with `metadata` said of it, which is copied: pairs in the encoding of ArrowSchema.metadata, or
/// NULL for none. Who consumes it in an asynchronous stream is told.
///
/// # Safety
///
/// `batch` must be NULL or a live handle, `metadata` NULL or metadata, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_with_metadata(
    batch: *const BowstringBatch,
    metadata: *const c_char,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batch = borrow(batch, "batch")?.0.clone();
        give(BowstringBatch::new(batch.with_metadata(pairs(metadata)?.into())), out)
    })
}
