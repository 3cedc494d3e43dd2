//! Parts of dates and times, bound: numbers since an epoch, divided.

use arrow_schema::{DataType, TimeUnit};

use super::binder::{Binder, Typed};
use super::plan::Op;
use super::{DatePart, Expr};
use crate::Result;

/// The first and the last day since 1970 of the years that arrow-rs knows, those of the crate chrono.
const DAYS: [i64; 2] = [-96_465_292, 95_026_236];

impl Binder<'_> {
    /// The part of a date or a time, as Int32.
    pub fn date_part(&mut self, expr: &Expr, part: DatePart, x: Typed) -> Result<Typed> {
        let day = 86_400;
        // How many there are in a second, and whether it is a date, a time or both.
        let (each, has_date, has_time) = match &x.data_type {
            DataType::Date32 => (0, true, false),
            DataType::Date64 => (1000, true, true),
            DataType::Timestamp(unit, None) => (a_second(*unit), true, true),
            DataType::Time32(unit) | DataType::Time64(unit) => (a_second(*unit), false, true),
            other => return Err(self.wrong(expr, format!("no parts of {other}"))),
        };
        let is_date = matches!(part, DatePart::Year | DatePart::Month | DatePart::Day);
        if is_date && !has_date {
            return Err(self.wrong(expr, format!("{} has no {part}", x.data_type)));
        }
        let to = DataType::Int32;
        // As arrow-rs: nothing is known of times beyond a day, nor of far years but, in timestamps, the time.
        let each_day = if has_time { each * day } else { 1 };
        let known = match &x.data_type {
            DataType::Time32(_) | DataType::Time64(_) => Some([0, each_day - 1]),
            DataType::Date64 => days(each_day),
            _ if is_date => days(each_day),
            _ => None,
        };
        let x = match known {
            Some([low, high]) => self.node(Op::Within(low, high), x.data_type.clone(), &[&x], expr),
            None => x,
        };
        if is_date {
            let days = if has_time {
                self.node(Op::FloorDiv(each_day), DataType::Int64, &[&x], expr)
            } else {
                self.node(Op::Widen, DataType::Int64, &[&x], expr)
            };
            return Ok(self.node(Op::Date(part), to, &[&days], expr));
        }
        if !has_time {
            return Ok(self.zero_where_valid(x, expr));
        }
        let x = if matches!(x.data_type, DataType::Time32(_)) {
            self.node(Op::Widen, DataType::Int64, &[&x], expr)
        } else {
            x
        };
        let (unit, of) = match part {
            DatePart::Hour => (3600, 24),
            DatePart::Minute => (60, 60),
            _ => (1, 60),
        };
        let whole = self.node(Op::FloorDiv(each * unit), DataType::Int64, &[&x], expr);
        Ok(self.node(Op::FloorRem(of), to, &[&whole], expr))
    }

    /// Midnight.
    fn zero_where_valid(&mut self, x: Typed, expr: &Expr) -> Typed {
        let wide = self.node(Op::Widen, DataType::Int64, &[&x], expr);
        self.node(Op::FloorRem(1), DataType::Int32, &[&wide], expr)
    }
}

/// The same in units of which a day has so many; nothing where no value is beyond them.
fn days(each: i64) -> Option<[i64; 2]> {
    Some([DAYS[0].checked_mul(each)?, (DAYS[1] + 1).checked_mul(each)? - 1])
}

fn a_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
