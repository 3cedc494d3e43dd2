//! Copies the formats that a caller lends to a cast, so that another thread can own them.

use arrow_cast::display::{DurationFormat, FormatOptions};

/// The settings of [`FormatOptions`], owned.
pub(super) struct Formats {
    /// The text for nulls.
    null: String,
    /// The formats of dates, datetimes, timestamps, timestamps with a time zone, and times.
    times: [Option<String>; 5],
    duration: DurationFormat,
    /// Whether errors are displayed, types are shown and strings are quoted.
    flags: [bool; 3],
}

impl Formats {
    /// Copies the settings. `None` if the caller supplies a formatter of its own, which cannot be copied.
    pub fn of(options: &FormatOptions<'_>) -> Option<Formats> {
        if options.formatter_factory().is_some() {
            return None;
        }
        let times = [
            options.date_format(),
            options.datetime_format(),
            options.timestamp_format(),
            options.timestamp_tz_format(),
            options.time_format(),
        ];
        Some(Formats {
            null: options.null().to_owned(),
            times: times.map(|format| format.map(str::to_owned)),
            duration: options.duration_format(),
            flags: [options.safe(), options.types_info(), options.quoted_strings()],
        })
    }

    pub fn options(&self) -> FormatOptions<'_> {
        let [date, datetime, timestamp, timestamp_tz, time] = self.times.each_ref().map(Option::as_deref);
        let [safe, types, quoted] = self.flags;
        FormatOptions::new()
            .with_display_error(safe)
            .with_null(&self.null)
            .with_date_format(date)
            .with_datetime_format(datetime)
            .with_timestamp_format(timestamp)
            .with_timestamp_tz_format(timestamp_tz)
            .with_time_format(time)
            .with_duration_format(self.duration)
            .with_types_info(types)
            .with_quoted_strings(quoted)
    }
}
