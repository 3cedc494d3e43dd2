//! Integers: a sign where there is one, and digits.

use super::figures::put_number;
use super::sink::Sink;

/// Writes an integer with its sign.
#[inline(always)]
pub fn write_integer<S: Sink>(negative: bool, magnitude: u64, sink: &mut S) {
    if negative {
        sink.put(b'-');
    }
    put_number(magnitude, sink);
}
