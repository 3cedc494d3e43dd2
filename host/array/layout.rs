//! The buffers and children of each data type. Import, export, copies, validation and every operation that
//! only moves data use this table. Adding a type adds a row.

use std::sync::Arc;

use arrow_schema::{DataType, Field, IntervalUnit, UnionFields, UnionMode};

/// The contents of one buffer of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// One bit per row.
    Bits,
    /// The given number of bytes per row.
    Fixed(usize),
    /// `len + 1` offsets of the given width in bytes (4 or 8).
    Offsets(usize),
    /// Bytes that offsets point into.
    Bytes,
    /// One 16-byte view per row; any number of data buffers follow.
    Views,
}

impl Slot {
    /// The number of bytes that rows `0..rows` need; `None` if the offsets determine it.
    pub fn bytes_for(self, rows: usize) -> Option<usize> {
        match self {
            Slot::Bits => Some(rows.div_ceil(8)),
            Slot::Fixed(width) => rows.checked_mul(width),
            Slot::Views => rows.checked_mul(16),
            // An array of no rows may lack its single offset.
            Slot::Offsets(_) if rows == 0 => Some(0),
            Slot::Offsets(width) => rows.checked_add(1)?.checked_mul(width),
            Slot::Bytes => None,
        }
    }
}

/// The buffers of an array of a given type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Whether the array can have a validity bitmap (the first buffer of the C struct).
    pub validity: bool,
    /// The buffers that follow the validity bitmap.
    pub slots: [Option<Slot>; 2],
    /// Whether any number of data buffers follow.
    pub variadic: bool,
}

impl Layout {
    /// The buffers that every array of the type has, without the validity bitmap.
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

/// The layout of a data type.
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

/// Whether a type is as asked, or one inside of it is, at any depth. A dictionary's values are inside.
pub fn any_part(data_type: &DataType, is: impl Fn(&DataType) -> bool + Copy) -> bool {
    is(data_type)
        || match data_type {
            DataType::Dictionary(_, values) => any_part(values, is),
            other => children(other).into_iter().any(|part| any_part(part, is)),
        }
}

/// Whether the type is one of the five layouts of lists. Maps are none.
pub fn is_list(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, List(_) | LargeList(_) | ListView(_) | LargeListView(_) | FixedSizeList(..))
}

/// The type of lists of any lengths that have the items of other lists. These may be null: so may those of
/// null lists of a fixed size, although no others may.
pub fn large_list_of(item: &Field) -> DataType {
    DataType::LargeList(Arc::new(item.clone().with_nullable(true)))
}

/// Whether any field inside the type, at any depth, is not nullable.
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

/// The type id that a null row of a union gets: the first member that can be null. `None` if no member can be
/// null.
pub fn null_member(fields: &UnionFields) -> Option<i8> {
    fields.iter().find(|(_, field)| says_null(field)).map(|(id, _)| id)
}

/// Whether rows under a field can be null. Unions and run-end encoded arrays have no validity bitmap of their
/// own; their members or values determine it.
pub fn says_null(field: &Field) -> bool {
    field.is_nullable()
        && match field.data_type() {
            DataType::RunEndEncoded(_, values) => says_null(values),
            DataType::Union(fields, _) => null_member(fields).is_some(),
            _ => true,
        }
}
