//! Timestamps as text.
//!
//! The one idea: an instant is seconds and nanoseconds, whatever its unit, and a zone only adds to the
//! seconds. So one reader is enough, with the unit and the zone as arguments.

use super::moment::{Moment, Place, moment};
use super::said::Said;
use crate::text::bytes::Bytes;
use crate::text::unit::Unit;
use crate::text::zone::table::Zone;

/// Reads a text as a timestamp; `zone` is that of the type, or UTC for a type without a zone. A time that a
/// wall clock shows twice, or never, gives no value.
#[inline(always)]
pub fn read_timestamp(text: impl Bytes, unit: Unit, zone: impl Zone) -> Said<i64> {
    let Some(Moment { seconds, nanoseconds, place }) = moment(text) else { return Said::Nothing };
    let east = match place {
        Place::East(east) => east,
        Place::Named => return Said::Elsewhere,
        Place::Unsaid => match zone.offset_of_local(seconds) {
            Some(east) => east,
            None => return Said::Nothing,
        },
    };
    Said::from(unit.join(seconds - i64::from(east), nanoseconds))
}
