//! Converts Arrow types between DataFusion's version of arrow and ours. Both have the same types under the
//! same names; a schema is converted once for a stream, never once for a batch.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema as ours;
use datafusion::arrow::datatypes as theirs;

macro_rules! crossing {
    ($doc:literal, $data_type:ident, $field:ident, $fields:ident, $metadata:path, $from:ident => $to:ident) => {
        #[doc = concat!("A type as ", $doc)]
        pub(crate) fn $data_type(from: &$from::DataType) -> $to::DataType {
            use $from::DataType as From;
            use $to::DataType as To;
            let unit = |unit: &$from::TimeUnit| match unit {
                $from::TimeUnit::Second => $to::TimeUnit::Second,
                $from::TimeUnit::Millisecond => $to::TimeUnit::Millisecond,
                $from::TimeUnit::Microsecond => $to::TimeUnit::Microsecond,
                $from::TimeUnit::Nanosecond => $to::TimeUnit::Nanosecond,
            };
            match from {
                From::Null => To::Null,
                From::Boolean => To::Boolean,
                From::Int8 => To::Int8,
                From::Int16 => To::Int16,
                From::Int32 => To::Int32,
                From::Int64 => To::Int64,
                From::UInt8 => To::UInt8,
                From::UInt16 => To::UInt16,
                From::UInt32 => To::UInt32,
                From::UInt64 => To::UInt64,
                From::Float16 => To::Float16,
                From::Float32 => To::Float32,
                From::Float64 => To::Float64,
                From::Timestamp(of, zone) => To::Timestamp(unit(of), zone.clone()),
                From::Date32 => To::Date32,
                From::Date64 => To::Date64,
                From::Time32(of) => To::Time32(unit(of)),
                From::Time64(of) => To::Time64(unit(of)),
                From::Duration(of) => To::Duration(unit(of)),
                From::Interval(of) => To::Interval(match of {
                    $from::IntervalUnit::YearMonth => $to::IntervalUnit::YearMonth,
                    $from::IntervalUnit::DayTime => $to::IntervalUnit::DayTime,
                    $from::IntervalUnit::MonthDayNano => $to::IntervalUnit::MonthDayNano,
                }),
                From::Binary => To::Binary,
                From::FixedSizeBinary(width) => To::FixedSizeBinary(*width),
                From::LargeBinary => To::LargeBinary,
                From::BinaryView => To::BinaryView,
                From::Utf8 => To::Utf8,
                From::LargeUtf8 => To::LargeUtf8,
                From::Utf8View => To::Utf8View,
                From::List(item) => To::List($field(item)),
                From::ListView(item) => To::ListView($field(item)),
                From::FixedSizeList(item, length) => To::FixedSizeList($field(item), *length),
                From::LargeList(item) => To::LargeList($field(item)),
                From::LargeListView(item) => To::LargeListView($field(item)),
                From::Struct(parts) => To::Struct($fields(parts)),
                From::Union(parts, mode) => {
                    let mode = match mode {
                        $from::UnionMode::Sparse => $to::UnionMode::Sparse,
                        $from::UnionMode::Dense => $to::UnionMode::Dense,
                    };
                    To::Union(parts.iter().map(|(id, part)| (id, $field(part))).collect(), mode)
                }
                From::Dictionary(keys, values) => {
                    To::Dictionary(Box::new($data_type(keys)), Box::new($data_type(values)))
                }
                From::Decimal32(precision, scale) => To::Decimal32(*precision, *scale),
                From::Decimal64(precision, scale) => To::Decimal64(*precision, *scale),
                From::Decimal128(precision, scale) => To::Decimal128(*precision, *scale),
                From::Decimal256(precision, scale) => To::Decimal256(*precision, *scale),
                From::Map(entries, sorted) => To::Map($field(entries), *sorted),
                From::RunEndEncoded(ends, values) => To::RunEndEncoded($field(ends), $field(values)),
            }
        }

        fn $field(from: &Arc<$from::Field>) -> Arc<$to::Field> {
            let made = $to::Field::new(from.name(), $data_type(from.data_type()), from.is_nullable());
            Arc::new(made.with_metadata($metadata(from.metadata())))
        }

        fn $fields(from: &$from::Fields) -> $to::Fields {
            from.iter().map($field).collect()
        }
    };
}

crossing!("ours.", our_type, our_field, our_fields, HashMap::clone, theirs => ours);
crossing!("DataFusion's.", their_type, their_field, their_fields, their_metadata, ours => theirs);

/// Whether a type is a number, a date or a time, a boolean, text or bytes: neither nested nor encoded.
pub(crate) fn is_flat(data_type: &theirs::DataType) -> bool {
    use theirs::DataType::*;
    let variable = matches!(data_type, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView);
    variable || has_fixed_width(data_type)
}

/// Whether all values of a type take as many bits.
pub(crate) fn has_fixed_width(data_type: &theirs::DataType) -> bool {
    data_type.is_primitive() || *data_type == theirs::DataType::Boolean
}

/// Converts a schema to DataFusion's version.
pub(crate) fn their_schema(from: &ours::Schema) -> theirs::Schema {
    theirs::Schema::new_with_metadata(their_fields(from.fields()), their_metadata(from.metadata()))
}

/// Converts a schema to our version.
pub(crate) fn our_schema(from: &theirs::Schema) -> ours::Schema {
    ours::Schema::new_with_metadata(our_fields(from.fields()), ours::Metadata::from(from.metadata().clone()))
}

fn their_metadata(from: &ours::Metadata) -> HashMap<String, String> {
    from.clone().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_come_back_as_they_went() {
        use theirs::{DataType, Field, IntervalUnit, TimeUnit, UnionFields, UnionMode};
        let item = Arc::new(Field::new("item", DataType::Utf8View, true));
        let parts = theirs::Fields::from(vec![
            Field::new("a", DataType::Decimal128(38, -3), false),
            Field::new("b", DataType::Timestamp(TimeUnit::Nanosecond, Some("+01:00".into())), true),
        ]);
        let union = UnionFields::from_iter([(3, item.clone()), (7, parts[0].clone())]);
        let types = [
            DataType::Null,
            DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::FixedSizeBinary(7),
            DataType::List(item.clone()),
            DataType::FixedSizeList(item.clone(), 3),
            DataType::Struct(parts),
            DataType::Union(union, UnionMode::Dense),
            DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8)),
            DataType::RunEndEncoded(Arc::new(Field::new("run_ends", DataType::Int32, false)), item),
        ];
        for data_type in types {
            assert_eq!(their_type(&our_type(&data_type)), data_type);
        }
    }

    #[test]
    fn metadata_crosses() {
        let said = HashMap::from([("key".to_owned(), "said".to_owned())]);
        let field = theirs::Field::new("a", theirs::DataType::Int8, true).with_metadata(said.clone());
        let there = our_field(&Arc::new(field.clone()));
        assert_eq!(there.metadata().get("key").map(String::as_str), Some("said"));
        let schema = ours::Schema::new_with_metadata(vec![there], ours::Metadata::from(said.clone()));
        assert_eq!(their_schema(&schema), theirs::Schema::new_with_metadata(vec![field], said));
    }
}
