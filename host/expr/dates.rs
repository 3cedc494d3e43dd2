//! Binds components of dates and times, and arithmetic with times: divisions of numbers since an epoch.

use arrow_array::{Array, StringArray};
use arrow_buffer::Buffer;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_data::ArrayData;
use arrow_schema::{DataType, TimeUnit};

use super::binder::{Binder, Typed};
use super::plan::{Bad, Op};
use super::{Arithmetic, DatePart, Expr};
use crate::Result;

/// The first and last day that arrow-rs (and its calendar crate chrono) supports, in days since 1970.
const DAYS: [i64; 2] = [-96_465_292, 95_026_236];

impl Binder<'_> {
    /// Binds a component of a date or time, as Int32.
    pub fn date_part(&mut self, expr: &Expr, part: DatePart, x: Typed) -> Result<Typed> {
        let day = 86_400;
        // The units per second, and whether the type has a date, a time or both.
        let (each, has_date, has_time) = match &x.data_type {
            DataType::Date32 => (0, true, false),
            DataType::Date64 => (1000, true, true),
            DataType::Timestamp(unit, None) => (per_second(*unit), true, true),
            DataType::Time32(unit) | DataType::Time64(unit) => (per_second(*unit), false, true),
            other => return Err(self.wrong(expr, format!("no parts of {other}"))),
        };
        let is_date = matches!(part, DatePart::Year | DatePart::Month | DatePart::Day);
        if is_date && !has_date {
            return Err(self.wrong(expr, format!("{} has no {part}", x.data_type)));
        }
        let to = DataType::Int32;
        // As in arrow-rs, times beyond a day give null. Days outside of the calendar do too, except for the
        // time in timestamps.
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

    /// Binds sums and differences of dates, timestamps and durations, as in arrow-rs, and of dates and
    /// constant durations of whole days. Returns `None` for other types.
    pub fn between_times(
        &mut self,
        expr: &Expr,
        op: Arithmetic,
        a: &Typed,
        b: &Typed,
    ) -> Result<Option<Typed>> {
        use DataType::{Date32, Date64, Duration, Timestamp};
        let bad = self.checked();
        let made = match (op, &a.data_type, &b.data_type) {
            (Arithmetic::Sub, Date32, Date32) => {
                let [a, b] = [a, b].map(|x| self.node(Op::Widen, DataType::Int64, &[x], expr));
                let days = Op::Arithmetic(Arithmetic::Sub, Bad::Wraps);
                let days = self.node(days, DataType::Int64, &[&a, &b], expr);
                let day = self.literal(Some(DAY.into()), DataType::Int64, expr);
                let seconds = Op::Arithmetic(Arithmetic::Mul, Bad::Wraps);
                self.node(seconds, Duration(TimeUnit::Second), &[&days, &day], expr)
            }
            (Arithmetic::Sub, Date64, Date64) => {
                self.node(Op::Arithmetic(op, bad), Duration(TimeUnit::Millisecond), &[a, b], expr)
            }
            (Arithmetic::Sub, Timestamp(unit, _), Timestamp(other, _)) if unit == other => {
                self.node(Op::Arithmetic(op, bad), Duration(*unit), &[a, b], expr)
            }
            (Arithmetic::Add | Arithmetic::Sub, Duration(unit), Duration(other)) if unit == other => {
                self.node(Op::Arithmetic(op, bad), a.data_type.clone(), &[a, b], expr)
            }
            (Arithmetic::Add | Arithmetic::Sub, Timestamp(..), Duration(unit)) if self.moves(a, b) => {
                let a = self.in_units(expr, a, *unit)?;
                self.node(Op::Arithmetic(op, bad), a.data_type.clone(), &[&a, b], expr)
            }
            (Arithmetic::Add, Duration(unit), Timestamp(..)) if self.moves(b, a) => {
                let b = self.in_units(expr, b, *unit)?;
                self.node(Op::Arithmetic(op, bad), b.data_type.clone(), &[a, &b], expr)
            }
            (Arithmetic::Add | Arithmetic::Sub, Timestamp(..) | Date32 | Date64, Duration(_)) => {
                let by = self.duration_of(expr, b, &a.data_type)?;
                self.node(Op::Arithmetic(op, bad), a.data_type.clone(), &[a, &by], expr)
            }
            (Arithmetic::Add, Duration(_), Timestamp(..) | Date32 | Date64) => {
                let by = self.duration_of(expr, a, &b.data_type)?;
                self.node(Op::Arithmetic(op, bad), b.data_type.clone(), &[&by, b], expr)
            }
            _ => return Ok(None),
        };
        Ok(Some(made))
    }

    /// Whether a moment is constant and the duration next to it is not.
    fn moves(&self, moment: &Typed, by: &Typed) -> bool {
        let is_literal = |of: &Typed| matches!(self.plan.nodes[of.id].op, Op::Literal(_));
        is_literal(moment) && !is_literal(by)
    }

    /// Converts a constant moment to the unit of what is added to it.
    fn in_units(&mut self, expr: &Expr, of: &Typed, unit: TimeUnit) -> Result<Typed> {
        let (DataType::Timestamp(_, zone), Op::Literal(raw)) = (&of.data_type, &self.plan.nodes[of.id].op)
        else {
            return Ok(of.clone());
        };
        let to = DataType::Timestamp(unit, zone.clone());
        let Some(raw) = *raw else { return Ok(self.literal(None, to, expr)) };
        match moment(raw, &of.data_type, &to) {
            Some(raw) => Ok(self.literal(Some(raw), to, expr)),
            None => Err(self.wrong(expr, format!("no {to} is that moment; cast the duration"))),
        }
    }

    /// Converts a duration to the unit of the type that it is added to.
    fn duration_of(&mut self, expr: &Expr, by: &Typed, to: &DataType) -> Result<Typed> {
        let (DataType::Duration(from), Op::Literal(raw)) = (&by.data_type, &self.plan.nodes[by.id].op) else {
            return match (to, &by.data_type) {
                (DataType::Timestamp(unit, _), DataType::Duration(own)) if unit == own => Ok(by.clone()),
                (DataType::Date32 | DataType::Date64, DataType::Duration(unit)) => {
                    // Other libraries disagree here: the result is a date, a timestamp, or drops the hours.
                    let instead = DataType::Timestamp(*unit, None);
                    let problem = format!("{to} and durations of each row; cast the date to {instead}");
                    Err(self.wrong(expr, problem))
                }
                (_, own) => Err(self.wrong(expr, format!("{to} and {own}; cast one"))),
            };
        };
        // The unit of which the duration must be a multiple, and the size of one step in the result.
        let (whole, one) = match to {
            DataType::Timestamp(unit, _) => (nanoseconds(*unit), nanoseconds(*unit)),
            DataType::Date64 => (A_DAY, nanoseconds(TimeUnit::Millisecond)),
            _ => (A_DAY, A_DAY),
        };
        let Some(all) = raw.map(|raw| raw * i128::from(nanoseconds(*from))) else {
            return Ok(self.literal(None, to.clone(), expr));
        };
        let value = all / i128::from(one);
        let fits = *to != DataType::Date32 || i32::try_from(value).is_ok();
        if all % i128::from(whole) != 0 || !fits || i64::try_from(value).is_err() {
            let problem = format!("no value of {to} is so much later: days and units are added whole");
            return Err(self.wrong(expr, problem));
        }
        Ok(self.literal(Some(value), to.clone(), expr))
    }

    /// Zero, the time of midnight, for each row that is not null.
    fn zero_where_valid(&mut self, x: Typed, expr: &Expr) -> Typed {
        let wide = self.node(Op::Widen, DataType::Int64, &[&x], expr);
        self.node(Op::FloorRem(1), DataType::Int32, &[&wide], expr)
    }
}

/// The supported range of days in units of `each` per day; `None` if every value is inside.
fn days(each: i64) -> Option<[i64; 2]> {
    Some([DAYS[0].checked_mul(each)?, (DAYS[1] + 1).checked_mul(each)? - 1])
}

/// The nanoseconds of one unit of a date, time or duration; `None` for other types.
fn each(of: &DataType) -> Option<i64> {
    Some(match of {
        DataType::Date32 => A_DAY,
        DataType::Date64 => nanoseconds(TimeUnit::Millisecond),
        DataType::Timestamp(unit, _)
        | DataType::Time32(unit)
        | DataType::Time64(unit)
        | DataType::Duration(unit) => nanoseconds(*unit),
        _ => return None,
    })
}

/// Converts a date, time or duration to the unit of another type of the same kind; `None` if the result is
/// not a whole number. A date is midnight as a timestamp without a zone. Timestamps with a zone are instants,
/// whatever the zone.
pub(super) fn moment(raw: i128, from: &DataType, to: &DataType) -> Option<i128> {
    let kind = |of: &DataType| match of {
        DataType::Date32 | DataType::Date64 => Some(0),
        DataType::Timestamp(_, zone) => Some(1 + u8::from(zone.is_some())),
        DataType::Time32(_) | DataType::Time64(_) => Some(3),
        DataType::Duration(_) => Some(4),
        _ => None,
    };
    let (each, of) = (each(from)?, each(to)?);
    let (from, to_kind) = (kind(from)?, kind(to)?);
    let is_same = from == to_kind || (from, to_kind) == (0, 1);
    let all = raw.checked_mul(each.into())?;
    let value = all / i128::from(of);
    let is_whole = all % i128::from(of) == 0;
    let fits = match to {
        DataType::Date32 | DataType::Time32(_) => i32::try_from(value).is_ok(),
        _ => i64::try_from(value).is_ok(),
    };
    (is_same && is_whole && fits).then_some(value)
}

/// Parses text as a date, time or timestamp, as a cast does; `None` if the type cannot represent all of it. A
/// bare number is no time.
pub(super) fn read(text: &str, to: &DataType) -> Option<i128> {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    let finest = [TimeUnit::Nanosecond, TimeUnit::Microsecond];
    let finest = match to {
        Date32 | Date64 => finest.map(|unit| Timestamp(unit, None)),
        Time32(_) | Time64(_) if text.contains(':') => finest.map(Time64),
        Timestamp(_, zone) => finest.map(|unit| Timestamp(unit, zone.clone())),
        _ => return None,
    };
    let raw = parsed(text, to)?;
    let fine = finest.iter().find_map(|of| Some(parsed(text, of)?.checked_mul(each(of)?.into())));
    let is_exact = fine.is_none_or(|fine| fine == each(to).and_then(|each| raw.checked_mul(each.into())));
    is_exact.then_some(raw)
}

/// Parses text as a cast does, which drops what a type does not represent.
fn parsed(text: &str, to: &DataType) -> Option<i128> {
    let row = StringArray::from(vec![text]);
    let read = arrow_cast::cast(&row, to).ok().filter(|read| read.is_valid(0))?.to_data();
    Some(match to {
        DataType::Date32 | DataType::Time32(_) => read.buffer::<i32>(0)[0].into(),
        _ => read.buffer::<i64>(0)[0].into(),
    })
}

/// Formats a date, time, timestamp or duration in ISO 8601; `None` for other types, and for years outside of
/// the calendar.
pub(super) fn written(raw: i128, of: &DataType) -> Option<String> {
    use DataType::{Date32, Date64, Duration, Time32, Time64, Timestamp};
    if let Timestamp(unit, Some(_)) = of {
        // An offset may lead out of the calendar, where arrow-rs panics.
        let day = A_DAY / nanoseconds(*unit);
        let inside = days(day).map(|[first, last]| i128::from(first + day)..=i128::from(last - day));
        if inside.is_some_and(|inside| !inside.contains(&raw)) {
            return None;
        }
    }
    let raw = match of {
        Date32 | Time32(_) => Buffer::from_vec(vec![i32::try_from(raw).ok()?]),
        Date64 | Time64(_) | Timestamp(..) | Duration(_) => Buffer::from_vec(vec![i64::try_from(raw).ok()?]),
        _ => return None,
    };
    let row = ArrayData::builder(of.clone()).len(1).add_buffer(raw).build().ok()?;
    let row = arrow_array::make_array(row);
    ArrayFormatter::try_new(&row, &FormatOptions::default()).ok()?.value(0).try_to_string().ok()
}

/// The number of seconds in a day. `A_DAY` is in nanoseconds.
const DAY: i64 = 86_400;
const A_DAY: i64 = DAY * 1_000_000_000;

fn nanoseconds(unit: TimeUnit) -> i64 {
    per_second(TimeUnit::Nanosecond) / per_second(unit)
}

/// The number of units in a second.
pub(crate) const fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
