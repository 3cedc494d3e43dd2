//! Booleans, as `true` and `false`.

use super::sink::Sink;
use crate::text::bytes::pack;

/// Writes a boolean as `true` or `false`.
#[inline(always)]
pub fn write_boolean<S: Sink>(value: bool, sink: &mut S) {
    let (letters, count) = if value { (const { pack(b"true") }, 4) } else { (const { pack(b"false") }, 5) };
    sink.put_all(letters, count);
}
