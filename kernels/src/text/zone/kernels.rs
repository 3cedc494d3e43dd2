//! Casts that involve a time zone whose clocks have been set: a lane has a row, and searches for its position
//! in the zone's table.
//!
//! Bytes moved per row: its value, its value in the other type, and a bit; and as many words of the table as
//! a binary search reads.

use super::functions::{from_date32, from_timestamp, to_date32, to_date64, to_time};
use crate::memory::{Bits, In, Out};
use crate::target::Wave;
use crate::text::unit::Unit;
use crate::text::words::Table;

/// Rows that one wave casts for each of its lanes.
const ROWS_PER_LANE: u64 = 4;

/// The source and the target of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zoning {
    /// From a zone's timestamp to Date32.
    ToDate32,
    /// From a zone's timestamp to Date64.
    ToDate64,
    /// From a zone's timestamp to a time of day.
    ToTime,
    /// From the time on a wall clock to a zone's timestamp: a timestamp without a zone, or a Date64 in
    /// milliseconds.
    FromTimestamp,
    /// From a day to a zone's timestamp.
    FromDate32,
}

kernel! {
    family "zone";
    /// Casts from or to timestamps of a zone.
    CastZoned {
        /// The values to cast.
        values: In<u8>,
        /// The width of a value in bytes: 4 or 8.
        width: u64,
        /// The validity of the values, from `In::bitmap`. Null values become zeros. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows; not 0.
        rows: u64,
        /// The [`Zoning`], the units from and to, and the zone as a [`Table`].
        words: In<u64>,
        /// Receives the values of the other type; zero for those that do not fit.
        out: Out<u8>,
        /// The width of a result in bytes: 4 or 8.
        out_width: u64,
        /// Receives a bit for each row that is valid and fits, in whole words. May be absent.
        good: Out<u32>,
        /// Lowered to the first valid row that does not fit; `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, width| args.rows.div_ceil(ROWS_PER_LANE * u64::from(width));
    /// The only entry of this kernel.
    CAST_ZONED {
        zone_cast = cast,
    }
}

fn cast(args: &CastZoned, wave: &mut Wave) {
    let run = ROWS_PER_LANE * u64::from(wave.width());
    let mut at = wave.index() * run;
    let end = args.rows.min(at + run);
    if at >= end {
        return;
    }
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let zoning = args.words.get(0);
    let unit = |i: u64| Unit::new(args.words.get(i) as u32);
    let (from, to) = (unit(1), unit(2));
    let zone = Table::new(args.words, 3);
    while at < end {
        let fits = wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return false;
            }
            let wanted = valid.is_absent() || valid.get(row);
            let value = match args.width {
                4 => i64::from(args.values.cast::<i32>().get(row)),
                _ => args.values.cast::<i64>().get(row),
            };
            let cast = match zoning {
                0 => to_date32(value, from, zone).map(i64::from),
                1 => to_date64(value, from, zone),
                2 => to_time(value, from, zone, to),
                3 => from_timestamp(value, from, to, zone),
                _ => from_date32(value as i32, to, zone),
            };
            if wanted && cast.is_none() {
                args.fault.min(l, 0, row);
            }
            let value = if wanted { cast.unwrap_or(0) } else { 0 };
            match args.out_width {
                4 => args.out.cast::<i32>().set(l, row, value as i32),
                _ => args.out.cast::<i64>().set(l, row, value),
            }
            wanted && cast.is_some()
        });
        if !args.good.is_absent() {
            let mask = wave.ballot(fits);
            let (word, halves) = (at / 32, wave.width() / 32);
            wave.each(|l| {
                if l.index() < halves && (word + u64::from(l.index())) * 32 < args.rows {
                    args.good.set(l, word + u64::from(l.index()), mask.half(l.index()));
                }
            });
        }
        at += u64::from(wave.width());
    }
}
