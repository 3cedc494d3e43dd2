//! Tests casts that depend on a time zone: each row is the result of the plain functions, and the kernel
//! names the first row that does not fit.

use bowstring_kernels::memory::In;
use bowstring_kernels::target::Value;
use bowstring_kernels::text::unit::Unit;
use bowstring_kernels::text::zone::functions::{from_date32, from_timestamp, to_date32, to_date64, to_time};
use bowstring_kernels::text::zone::kernels::{CAST_ZONED, CastZoned, Zoning};
use bowstring_kernels::text::zone::table::Span;

use crate::device::{LENGTHS, Memory, Random, WIDTHS, run};
use crate::selection::{bits, packed, unpacked};

/// Berlin before, in, and after the summer of 2020.
const ZONE: [u64; 3] = [
    Span { from: 0, east: 3600 }.word(),
    Span { from: 1_585_443_600, east: 7200 }.word(),
    Span { from: 1_603_587_600, east: 3600 }.word(),
];

const CASTS: [(Zoning, Unit, Unit); 6] = [
    (Zoning::ToDate32, Unit::SECOND, Unit::SECOND),
    (Zoning::ToDate64, Unit::MILLISECOND, Unit::MILLISECOND),
    (Zoning::ToTime, Unit::SECOND, Unit::MILLISECOND),
    (Zoning::ToTime, Unit::MILLISECOND, Unit::NANOSECOND),
    (Zoning::FromTimestamp, Unit::SECOND, Unit::NANOSECOND),
    (Zoning::FromDate32, Unit::NANOSECOND, Unit::NANOSECOND),
];

fn plain(how: Zoning, value: i64, from: Unit, to: Unit) -> Option<i64> {
    let zone = &ZONE[..];
    match how {
        Zoning::ToDate32 => to_date32(value, from, zone).map(i64::from),
        Zoning::ToDate64 => to_date64(value, from, zone),
        Zoning::ToTime => to_time(value, from, zone, to),
        Zoning::FromTimestamp => from_timestamp(value, from, to, zone),
        Zoning::FromDate32 => from_date32(value as i32, to, zone),
    }
}

/// Numbers of so many bytes in memory.
fn numbers(values: &[i64], bytes: u64) -> Memory {
    let narrow: Vec<i32> = values.iter().map(|value| *value as i32).collect();
    if bytes == 4 { Memory::of(&narrow) } else { Memory::of(values) }
}

fn wide<T: Value + Into<i64>>(memory: &Memory, rows: usize) -> Vec<i64> {
    memory.read::<T>(rows).into_iter().map(Into::into).collect()
}

#[test]
fn rows_are_cast_by_their_zone() {
    let lengths = LENGTHS.into_iter().filter(|rows| *rows > 0);
    for (width, rows) in WIDTHS.into_iter().flat_map(|width| lengths.clone().map(move |rows| (width, rows))) {
        let mut rng = Random::new(rows as u64);
        for (how, from, to) in CASTS {
            let days = how == Zoning::FromDate32;
            let each = if days { 1 } else { from.per_second() };
            let values: Vec<i64> = (0..rows)
                .map(|_| match (rng.below(300), days) {
                    (0, true) => i32::MAX.into(),
                    (0, false) => i64::MAX,
                    (_, true) => 18_200 + rng.below(400) as i64,
                    _ => (1_585_430_000 + rng.below(30_000) as i64) * each,
                })
                .collect();
            let (bytes, out_bytes) = match how {
                Zoning::ToDate32 => (8, 4),
                Zoning::ToTime if to.per_second() < 1_000_000 => (8, 4),
                Zoning::FromDate32 => (4, 8),
                _ => (8, 8),
            };
            let live = bits(&mut rng, rows, 2);
            let (mut from_memory, mut live_bits) = (numbers(&values, bytes), Memory::of(&packed(&live)));
            let words = [how as u64, from.cuts().into(), to.cuts().into(), ZONE.len() as u64];
            let mut words = Memory::of(&words.into_iter().chain(ZONE).collect::<Vec<_>>());
            for nulls in [false, true] {
                let mut out = Memory::room::<i64>(rows);
                let mut good = Memory::room::<u32>(rows.div_ceil(32));
                let mut fault = Memory::of(&[u64::MAX]);
                let (valid, valid_offset) = if nulls { live_bits.bitmap(0) } else { (In::absent(), 0) };
                let args = CastZoned {
                    values: from_memory.input(),
                    width: bytes,
                    valid,
                    valid_offset,
                    rows: rows as u64,
                    words: words.input(),
                    out: out.output(),
                    out_width: out_bytes,
                    good: good.output(),
                    fault: fault.output(),
                };
                run(CAST_ZONED, &[], args, width);
                let wanted = |row: usize| !nulls || live[row];
                let cast: Vec<Option<i64>> =
                    values.iter().map(|value| plain(how, *value, from, to)).collect();
                let fits: Vec<bool> = (0..rows).map(|row| wanted(row) && cast[row].is_some()).collect();
                assert_eq!(unpacked(&good, rows), fits, "{how:?}");
                let made = if out_bytes == 4 { wide::<i32>(&out, rows) } else { wide::<i64>(&out, rows) };
                let expected = |row: usize| cast[row].filter(|_| wanted(row)).unwrap_or(0);
                assert_eq!(made, (0..rows).map(expected).collect::<Vec<_>>(), "{how:?}");
                let bad = (0..rows).find(|row| wanted(*row) && cast[*row].is_none());
                assert_eq!(fault.read::<u64>(1), [bad.map_or(u64::MAX, |row| row as u64)], "{how:?}");
            }
        }
    }
}
