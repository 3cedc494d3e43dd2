//! Time zones as tables of their offsets from UTC, and of the times at which these change.
//!
//! The one idea: the authority on zones is asked once for each zone, and the answer is a list of numbers that
//! every device can search. That authority is arrow's own implementation (chrono-tz, if compiled in), because
//! any other source would disagree with arrow-cast about some village before 1970, or about last month's
//! decree. It does not list the changes, so it is asked for every second day. No zone changes twice within
//! two days; a test checks this for all of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::timezone::Tz;
use bowstring_kernels::text::zone::table::Span;
use chrono::{DateTime, Offset, TimeZone};

use crate::device::fork::Guarded;

/// No existing zone changes before or after these times.
const YEARS: (i64, i64) = (-5_364_662_400, 7_258_118_400); // 1800, 2200
/// Less than the time between any two changes of a zone.
const STEP: i64 = 2 * 86_400;

/// The tables of zones that have been used, by name. About six hundred zones exist.
static KNOWN: Guarded<Option<HashMap<String, Arc<[u64]>>>> = Guarded::new(None);

/// The table of a zone, or of UTC if `zone` is `None`: the number of spans, followed by their words. `None`
/// if the zone is unknown.
pub(super) fn table(zone: Option<&str>) -> Option<Arc<[u64]>> {
    let Some(name) = zone else { return Some(fixed(0)) };
    if let Some(table) = KNOWN.with(|known| known.as_ref()?.get(name).cloned()) {
        return Some(table);
    }
    let zone: Tz = name.parse().ok()?;
    if let Some(east) = super::temporal::seconds_east(Some(name)) {
        return Some(fixed(east));
    }
    let spans = spans(&zone);
    let words = std::iter::once(spans.len() as u64).chain(spans.into_iter().map(Span::word));
    let table: Arc<[u64]> = words.collect();
    KNOWN.with(|known| known.get_or_insert_default().insert(name.to_owned(), table.clone()));
    Some(table)
}

fn fixed(east: i32) -> Arc<[u64]> {
    Arc::new([1, Span { from: 0, east }.word()])
}

fn east_at(zone: &Tz, second: i64) -> i32 {
    let utc = DateTime::from_timestamp(second, 0).unwrap_or_default().naive_utc();
    zone.offset_from_utc_datetime(&utc).fix().local_minus_utc()
}

fn spans(zone: &Tz) -> Vec<Span> {
    let (mut at, last) = YEARS;
    let mut spans = vec![Span { from: at, east: east_at(zone, at) }];
    while at < last {
        let east = spans.last().map_or(0, |span| span.east);
        let (mut before, mut after) = (at, at + STEP);
        if east_at(zone, after) != east {
            while after - before > 1 {
                let middle = before + (after - before) / 2;
                *if east_at(zone, middle) == east { &mut before } else { &mut after } = middle;
            }
            spans.push(Span { from: after, east: east_at(zone, after) });
        }
        at = after;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowstring_kernels::text::words::Table;
    use bowstring_kernels::text::zone::table::Zone;

    /// Zones with odd changes: by minutes, by a whole day, twice a year in half hours, four times a year.
    const ODD: [&str; 20] = [
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Africa/Monrovia",
        "Pacific/Apia",
        "Asia/Kathmandu",
        "America/Caracas",
        "Europe/Dublin",
        "Antarctica/Troll",
        "Africa/Casablanca",
        "Asia/Pyongyang",
        "Asia/Gaza",
        "America/Sao_Paulo",
        "Pacific/Kiritimati",
        "Europe/Amsterdam",
        "America/St_Johns",
        "Asia/Tehran",
        "Pacific/Chatham",
        "UTC",
    ];

    #[test]
    fn tables_say_what_the_zones_say() {
        for name in ODD {
            let zone: Tz = name.parse().unwrap();
            let words = table(Some(name)).unwrap();
            let table = Table::new(&words[..], 0);
            let mut random = 9u64;
            let mut seconds: Vec<i64> = (0..2000)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 31) as i64 - (1 << 32)
                })
                .collect();
            for i in 1..table.count() {
                let from = table.span(i).from;
                seconds.extend((-3..=3).map(|by| from + by));
            }
            for second in seconds {
                assert_eq!(table.offset_at_utc(second), east_at(&zone, second), "{name} {second}");
            }
        }
        assert!(table(Some("No/Where")).is_none());
        assert_eq!(table(Some("-07:30")).unwrap().len(), 2);
    }
}
