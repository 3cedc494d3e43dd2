//! Parts of dates and times, bound: numbers since an epoch, divided.

use arrow_schema::{DataType, TimeUnit};

use super::binder::{Binder, Typed};
use super::plan::Op;
use super::{DatePart, Expr};
use crate::Result;

impl Binder<'_> {
    /// The part of a date or a time, as Int32.
    pub fn date_part(&mut self, expr: &Expr, part: DatePart, x: Typed) -> Result<Typed> {
        let text = expr.to_string();
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
        if is_date {
            let days = if has_time {
                self.node(Op::FloorDiv(each * day), DataType::Int64, &[&x], &text)
            } else {
                self.node(Op::Widen, DataType::Int64, &[&x], &text)
            };
            return Ok(self.node(Op::Date(part), to, &[&days], &text));
        }
        if !has_time {
            return Ok(self.zero_where_valid(x, &text));
        }
        let x = if matches!(x.data_type, DataType::Time32(_)) {
            self.node(Op::Widen, DataType::Int64, &[&x], &text)
        } else {
            x
        };
        let (unit, of) = match part {
            DatePart::Hour => (3600, 24),
            DatePart::Minute => (60, 60),
            _ => (1, 60),
        };
        let whole = self.node(Op::FloorDiv(each * unit), DataType::Int64, &[&x], &text);
        Ok(self.node(Op::FloorRem(of), to, &[&whole], &text))
    }

    /// Midnight.
    fn zero_where_valid(&mut self, x: Typed, text: &str) -> Typed {
        let wide = self.node(Op::Widen, DataType::Int64, &[&x], text);
        self.node(Op::FloorRem(1), DataType::Int32, &[&wide], text)
    }
}

fn a_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
