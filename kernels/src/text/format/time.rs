//! Times of day as text: Time32 and Time64.

use super::moment::put_clock;
use super::sink::Sink;
use crate::text::unit::Unit;

/// Writes a time in a unit, and returns whether it is a time as arrow-cast sees it: arrow-cast keeps 32 bits
/// of the seconds.
#[inline(always)]
pub fn write_time<S: Sink>(value: i64, unit: Unit, sink: &mut S) -> bool {
    let (seconds, rest) = unit.split_toward_zero(value);
    let second = seconds as u32;
    let fits = second < 86_400 && rest >= 0;
    if fits {
        put_clock(second, (rest as u32).wrapping_mul(unit.nanoseconds() as u32), sink);
    }
    fits
}
