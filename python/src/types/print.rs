//! Types as text, as pyarrow's users write them; `parse` reads all of them except unions.

use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit, UnionMode};

/// The metadata key for the name of an extension type.
pub const EXTENSION: &str = "ARROW:extension:name";

/// Returns the name of a field's type, or of the extension type in its metadata.
pub fn of_field(field: &Field) -> String {
    match field.metadata().get(EXTENSION) {
        Some(name) => format!("extension<{name}>"),
        None => name(field.data_type()),
    }
}

/// Writes a field inside a type, with its name.
fn named(field: &Field) -> String {
    format!("{}: {}", field.name(), item(field))
}

/// Writes a field inside a type without its name, which carries no meaning.
fn item(field: &Field) -> String {
    let not_null = if field.is_nullable() { "" } else { " not null" };
    format!("{}{not_null}", of_field(field))
}

pub fn unit(unit: &TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

/// Returns the name of a type.
pub fn name(data_type: &DataType) -> String {
    use DataType::*;
    match data_type {
        Null => "null".to_owned(),
        Boolean => "bool".to_owned(),
        Timestamp(of, None) => format!("timestamp[{}]", unit(of)),
        Timestamp(of, Some(zone)) => format!("timestamp[{}, tz={zone}]", unit(of)),
        Time32(of) => format!("time32[{}]", unit(of)),
        Time64(of) => format!("time64[{}]", unit(of)),
        Duration(of) => format!("duration[{}]", unit(of)),
        Interval(IntervalUnit::YearMonth) => "month_interval".to_owned(),
        Interval(IntervalUnit::DayTime) => "day_time_interval".to_owned(),
        Interval(IntervalUnit::MonthDayNano) => "month_day_nano_interval".to_owned(),
        Utf8 => "string".to_owned(),
        LargeUtf8 => "large_string".to_owned(),
        Utf8View => "string_view".to_owned(),
        LargeBinary => "large_binary".to_owned(),
        BinaryView => "binary_view".to_owned(),
        FixedSizeBinary(bytes) => format!("fixed_size_binary[{bytes}]"),
        Decimal32(precision, scale) => format!("decimal32({precision}, {scale})"),
        Decimal64(precision, scale) => format!("decimal64({precision}, {scale})"),
        Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        Decimal256(precision, scale) => format!("decimal256({precision}, {scale})"),
        List(of) => format!("list<{}>", item(of)),
        LargeList(of) => format!("large_list<{}>", item(of)),
        ListView(of) => format!("list_view<{}>", item(of)),
        LargeListView(of) => format!("large_list_view<{}>", item(of)),
        FixedSizeList(of, rows) => format!("fixed_size_list<{}>[{rows}]", item(of)),
        Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(|field| named(field)).collect();
            format!("struct<{}>", fields.join(", "))
        }
        Map(entries, sorted) => {
            let sorted = if *sorted { ", keys_sorted" } else { "" };
            match entries.data_type() {
                Struct(fields) if fields.len() == 2 => {
                    format!("map<{}, {}{sorted}>", of_field(&fields[0]), item(&fields[1]))
                }
                other => format!("map<{}{sorted}>", name(other)),
            }
        }
        Dictionary(keys, values) => format!("dictionary<values={}, indices={}>", name(values), name(keys)),
        RunEndEncoded(ends, values) => {
            format!("run_end_encoded<run_ends: {}, values: {}>", name(ends.data_type()), item(values))
        }
        Union(fields, mode) => {
            let mode = if *mode == UnionMode::Dense { "dense" } else { "sparse" };
            let fields: Vec<String> =
                fields.iter().map(|(id, field)| format!("{}={id}", named(field))).collect();
            format!("{mode}_union<{}>", fields.join(", "))
        }
        // Integers, floats, dates and plain bytes have the same names in arrow-rs, but for case.
        other => other.to_string().to_lowercase(),
    }
}
