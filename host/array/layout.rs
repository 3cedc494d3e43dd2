//! What each data type is made of: the one table that import, export, copy, validation and every operation that
//! only moves data read. Adding a type adds a row.

use arrow_schema::{DataType, Field, IntervalUnit, UnionFields, UnionMode};

/// What one buffer of an array holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A bit a row.
    Bits,
    /// So many bytes a row.
    Fixed(usize),
    /// `len + 1` offsets of so many bytes each (4 or 8).
    Offsets(usize),
    /// Bytes that offsets point into.
    Bytes,
    /// A 16-byte view a row; the data buffers follow, any number of them.
    Views,
}

impl Slot {
    /// The bytes that rows `0..rows` need; `None` where that is data.
    pub fn bytes_for(self, rows: usize) -> Option<usize> {
        match self {
            Slot::Bits => Some(rows.div_ceil(8)),
            Slot::Fixed(width) => rows.checked_mul(width),
            Slot::Views => rows.checked_mul(16),
            // An array of no rows may come without its one offset.
            Slot::Offsets(_) if rows == 0 => Some(0),
            Slot::Offsets(width) => rows.checked_add(1)?.checked_mul(width),
            Slot::Bytes => None,
        }
    }
}

/// What an array of some type is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Whether there may be a validity bitmap (the first buffer of the C struct).
    pub validity: bool,
    /// The buffers behind it.
    pub slots: [Option<Slot>; 2],
    /// Whether any number of data buffers follow.
    pub variadic: bool,
}

impl Layout {
    /// The buffers that every array of the type has, validity left out.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.into_iter().flatten()
    }
}

const fn row(validity: bool, slots: [Option<Slot>; 2]) -> Layout {
    Layout { validity, slots, variadic: false }
}

const fn fixed(width: usize) -> Layout {
    row(true, [Some(Slot::Fixed(width)), None])
}

/// The table.
pub fn layout(data_type: &DataType) -> Layout {
    use DataType::*;
    use Slot::*;
    match data_type {
        Null => row(false, [None, None]),
        Boolean => row(true, [Some(Bits), None]),
        Int8 | UInt8 => fixed(1),
        Int16 | UInt16 | Float16 => fixed(2),
        Int32 | UInt32 | Float32 | Date32 | Time32(_) | Decimal32(..) => fixed(4),
        Int64 | UInt64 | Float64 | Date64 | Time64(_) | Timestamp(..) | Duration(_) | Decimal64(..) => {
            fixed(8)
        }
        Interval(IntervalUnit::YearMonth) => fixed(4),
        Interval(IntervalUnit::DayTime) => fixed(8),
        Interval(IntervalUnit::MonthDayNano) | Decimal128(..) => fixed(16),
        Decimal256(..) => fixed(32),
        FixedSizeBinary(width) => fixed(usize::try_from(*width).unwrap_or(0)),
        Utf8 | Binary => row(true, [Some(Offsets(4)), Some(Bytes)]),
        LargeUtf8 | LargeBinary => row(true, [Some(Offsets(8)), Some(Bytes)]),
        Utf8View | BinaryView => Layout { variadic: true, ..row(true, [Some(Views), None]) },
        List(_) | Map(..) => row(true, [Some(Offsets(4)), None]),
        LargeList(_) => row(true, [Some(Offsets(8)), None]),
        ListView(_) => row(true, [Some(Fixed(4)), Some(Fixed(4))]),
        LargeListView(_) => row(true, [Some(Fixed(8)), Some(Fixed(8))]),
        FixedSizeList(..) | Struct(_) => row(true, [None, None]),
        Union(_, UnionMode::Sparse) => row(false, [Some(Fixed(1)), None]),
        Union(_, UnionMode::Dense) => row(false, [Some(Fixed(1)), Some(Fixed(4))]),
        Dictionary(key, _) => layout(key),
        RunEndEncoded(..) => row(false, [None, None]),
    }
}

/// The types of an array's children, in order. A dictionary is not a child.
pub fn children(data_type: &DataType) -> Vec<&DataType> {
    use DataType::*;
    match data_type {
        List(f) | LargeList(f) | ListView(f) | LargeListView(f) | FixedSizeList(f, _) | Map(f, _) => {
            vec![f.data_type()]
        }
        Struct(fields) => fields.iter().map(|f| f.data_type()).collect(),
        Union(fields, _) => fields.iter().map(|(_, f)| f.data_type()).collect(),
        RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => vec![],
    }
}

/// Whether some part of the type, at whatever depth, has a field that says of it that it has no nulls.
pub fn forbids_nulls(data_type: &DataType) -> bool {
    use DataType::*;
    let of = |field: &Field| !field.is_nullable() || forbids_nulls(field.data_type());
    match data_type {
        List(f) | LargeList(f) | ListView(f) | LargeListView(f) | FixedSizeList(f, _) | Map(f, _) => of(f),
        Struct(fields) => fields.iter().any(|f| of(f)),
        Dictionary(_, values) => forbids_nulls(values),
        RunEndEncoded(_, values) => forbids_nulls(values.data_type()),
        _ => false,
    }
}

/// The member of a union that a row is of which is null: the first that can say so. `None` where none can.
pub fn null_member(fields: &UnionFields) -> Option<i8> {
    fields.iter().find(|(_, field)| says_null(field)).map(|(id, _)| id)
}

/// Whether rows under a field can be null: unions and runs have no validity of their own, and leave that to
/// what they are made of.
pub fn says_null(field: &Field) -> bool {
    field.is_nullable()
        && match field.data_type() {
            DataType::RunEndEncoded(_, values) => says_null(values),
            DataType::Union(fields, _) => null_member(fields).is_some(),
            _ => true,
        }
}
