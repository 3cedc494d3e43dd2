//! The types with which every operation is tested.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit, UnionFields, UnionMode};

use super::interpreted;

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

/// Every Arrow type; parametric ones have representative parameters.
pub fn types() -> Vec<DataType> {
    use DataType::*;
    let item = || Arc::new(field("item", Int32));
    let key = Field::new("keys", Utf8, false);
    let entries = Field::new("entries", Struct(Fields::from(vec![key, field("values", Int32)])), false);
    let members = || {
        // Type ids are labels, not positions: these two show if code confuses them.
        UnionFields::try_new([3, 1], [field("number", Int32), field("text", Utf8)]).unwrap()
    };
    let run_ends = Arc::new(Field::new("run_ends", Int32, false));
    vec![
        Null,
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Decimal32(9, 2),
        Decimal64(18, 4),
        Decimal128(38, 10),
        Decimal256(76, 20),
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Millisecond, None),
        Timestamp(TimeUnit::Microsecond, None),
        Timestamp(TimeUnit::Nanosecond, None),
        Timestamp(TimeUnit::Microsecond, Some("+02:00".into())),
        Duration(TimeUnit::Second),
        Duration(TimeUnit::Millisecond),
        Duration(TimeUnit::Microsecond),
        Duration(TimeUnit::Nanosecond),
        Interval(IntervalUnit::YearMonth),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        FixedSizeBinary(5),
        List(item()),
        LargeList(item()),
        ListView(item()),
        LargeListView(item()),
        FixedSizeList(item(), 3),
        Struct(Fields::from(vec![field("a", Int32), field("b", Utf8)])),
        Map(Arc::new(entries), false),
        Union(members(), UnionMode::Sparse),
        Union(members(), UnionMode::Dense),
        Dictionary(Box::new(Int32), Box::new(Utf8)),
        RunEndEncoded(run_ends, Arc::new(field("values", Int32))),
    ]
}

/// The types of [`types`]. If images are interpreted, which takes a hundred times as long, one of those that
/// the same kernels serve when rows are sorted, grouped and joined.
pub fn types_to_launch() -> Vec<DataType> {
    use DataType::*;
    let is_like_another = |of: &DataType| {
        matches!(of, UInt8 | UInt16 | UInt32 | UInt64 | Float16 | Float32 | Decimal32(..) | Decimal64(..))
            || matches!(of, Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_) | Utf8)
            || matches!(of, Binary | BinaryView | LargeList(_) | ListView(_) | Map(..))
            || matches!(of, Union(_, UnionMode::Sparse))
    };
    let interpreted = interpreted();
    types().into_iter().filter(|of| !(interpreted && is_like_another(of))).collect()
}

/// The types that indices and dictionary keys may have.
pub fn index_types() -> Vec<DataType> {
    use DataType::*;
    vec![Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64]
}

/// Whether a row of the type can be null. A union's rows cannot, only its members' rows.
pub fn has_nulls(data_type: &DataType) -> bool {
    match data_type {
        DataType::Union(..) => false,
        DataType::Dictionary(_, of) => has_nulls(of),
        DataType::RunEndEncoded(_, values) => has_nulls(values.data_type()),
        _ => true,
    }
}
