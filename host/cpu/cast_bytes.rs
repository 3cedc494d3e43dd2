//! Upper bounds on the memory that arrow-cast allocates, computed before it does: if one of its allocations
//! fails the process ends, since Rust's collections abort. The bounds follow the allocations of arrow-cast 60
//! row by row, including intermediate results and the doubling of growing buffers.
//!
//! The one idea: a cast sees rows of an array, each once or some of them repeatedly (a dictionary's values, a
//! run's value, the items of list views). [`Rows`] describes such rows, and each type has a rule for the
//! memory that they take. Sums saturate: a bound beyond `usize` is refused like one that is merely too large.

use std::cell::Cell;

use arrow_cast::CastOptions;
use arrow_schema::{DataType, Fields};

use super::{run_ends, spans};
use crate::array::{Slot, is_list, layout};
use crate::{DeviceArray, Error, Result};

/// Returns a bound for casting all rows of a valid array. It is an error if the result is certain to exceed
/// the offsets of its type, because arrow-cast does not check for that.
pub(crate) fn of_cast(array: &DeviceArray, to: &DataType, options: &CastOptions<'_>) -> Result<usize> {
    let bound = Bound { options, too_long: Cell::new(false) };
    let bytes = bound.cast(&Rows::each(array.clone()), to);
    match bound.too_long.get() {
        true => Err(Error::too_long("cast", format_args!("the elements of {}", array.data_type()), to)),
        false => Ok(bytes),
    }
}

/// Returns whether views describe many times the bytes that exist, and many bytes in total. A view longer
/// than all data together is not counted: either it is null, or the validation that follows rejects it.
pub(crate) fn describes_more(array: &DeviceArray) -> bool {
    const MANY: usize = 256 << 20;
    if !is_view(array.data_type()) {
        return false;
    }
    let there =
        array.buffers()[1..].iter().filter_map(|buffer| buffer.bytes()).fold(0, usize::saturating_add);
    let length = spans::of_row(array);
    let lengths = (0..array.len()).map(length).filter(|length| *length <= there);
    lengths.fold(0, usize::saturating_add) > there.saturating_mul(8).max(MANY)
}

/// Returns a bound for computing the logical nulls of an array, wherever its type keeps them.
pub(crate) fn of_nulls(array: &DeviceArray) -> usize {
    // Each part takes a bitmap; a union takes a few more to combine them.
    let own = array.len().div_ceil(8).saturating_mul(4);
    let inside = matches!(
        array.data_type(),
        DataType::Dictionary(..) | DataType::Union(..) | DataType::RunEndEncoded(..)
    );
    let parts = array.children().iter().chain(array.dictionary()).filter(|_| inside);
    parts.fold(own, |sum, part| sum.saturating_add(of_nulls(part)))
}

/// Rows of an array that a cast reads, possibly several times each.
pub(super) struct Rows {
    array: DeviceArray,
    /// The number of rows; `None` if they are the array's rows, each once.
    any: Option<usize>,
    /// The bytes of text in the rows, if that is known more precisely than by the longest row.
    text: Option<usize>,
}

impl Rows {
    fn each(array: DeviceArray) -> Rows {
        Rows { array, any: None, text: None }
    }

    /// Describes `rows` rows of the array, whichever they are.
    pub(super) fn any(array: &DeviceArray, rows: usize, text: Option<usize>) -> Rows {
        Rows { array: array.clone(), any: Some(rows), text }
    }

    fn len(&self) -> usize {
        self.any.unwrap_or(self.array.len())
    }

    /// Returns the elements in the rows' ranges: bytes of text, or items.
    fn spanned(&self) -> usize {
        let spans = spans::of(&self.array);
        match self.any {
            None => spans.total,
            Some(rows) => self.text.unwrap_or(rows.saturating_mul(spans.longest)),
        }
    }

    /// Describes the rows of child `i`; each row has `size` of them.
    fn child(&self, i: usize, size: usize) -> Rows {
        match (self.any, self.array.child_rows(i)) {
            (None, Ok(child)) => Rows::each(child),
            _ => Rows::any(&self.array.children()[i], self.len().saturating_mul(size), None),
        }
    }

    /// Describes the items of lists and maps.
    fn items(&self) -> Rows {
        let items = &self.array.children()[0];
        let first = spans::first(&self.array).filter(|_| self.any.is_none());
        match first.map(|first| items.slice(first, self.spanned())) {
            Some(Ok(items)) => Rows::each(items),
            _ => Rows::any(items, self.spanned(), None),
        }
    }
}

fn add<const N: usize>(parts: [usize; N]) -> usize {
    parts.into_iter().fold(0, usize::saturating_add)
}

/// Returns the bytes of a row in a type's buffers, without what the row points into.
pub(super) fn width(data_type: &DataType) -> usize {
    let width = |slot: Slot| match slot {
        Slot::Bits => 1,
        Slot::Fixed(width) | Slot::Offsets(width) => width,
        Slot::Views => 16,
        Slot::Bytes => 0,
    };
    layout(data_type).slots().map(width).sum()
}

fn is_text(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

fn is_view(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView)
}

/// Returns the memory that a search for nulls takes: arrow-rs makes one for each list and struct that it
/// builds.
fn looked_through(rows: &Rows) -> usize {
    rows.len() / 2
}

/// Returns the memory of `rows` nulls of a type.
fn nulls(data_type: &DataType, rows: usize) -> usize {
    use DataType::*;
    let own = add([rows.saturating_mul(width(data_type)), rows / 8, 128]);
    match data_type {
        FixedSizeList(items, size) => {
            own.saturating_add(nulls(items.data_type(), rows.saturating_mul(*size as usize)))
        }
        Struct(fields) => fields.iter().fold(own, |sum, f| sum.saturating_add(nulls(f.data_type(), rows))),
        Union(fields, _) => {
            fields.iter().fold(own, |sum, (_, f)| sum.saturating_add(nulls(f.data_type(), rows)))
        }
        _ => own,
    }
}

/// Returns the memory of a copy of the rows, as a take makes it.
pub(super) fn copy(rows: &Rows) -> usize {
    use DataType::*;
    let (n, array) = (rows.len(), &rows.array);
    let own = add([n.saturating_mul(width(array.data_type())), n / 8, 128]);
    match array.data_type() {
        Utf8 | LargeUtf8 | Binary | LargeBinary => own.saturating_add(rows.spanned()),
        // Items are taken by indices, which need memory too.
        List(_) | LargeList(_) | Map(..) => {
            let items = rows.items();
            add([own, items.len().saturating_mul(8), copy(&items)])
        }
        FixedSizeList(_, size) => {
            let items = rows.child(0, *size as usize);
            add([own, items.len().saturating_mul(8), copy(&items)])
        }
        Struct(_) | Union(..) => {
            (0..array.children().len()).fold(own, |sum, i| sum.saturating_add(copy(&rows.child(i, 1))))
        }
        RunEndEncoded(..) => {
            add([own, n.saturating_mul(24), copy(&Rows::any(&array.children()[1], n, None))])
        }
        _ => own,
    }
}

struct Bound<'a> {
    options: &'a CastOptions<'a>,
    too_long: Cell<bool>,
}

impl Bound<'_> {
    /// Records whether the rows' `total` elements exceed the offsets of a type.
    fn reach(&self, rows: &Rows, total: usize, to: &DataType) {
        use DataType::*;
        let narrow = matches!(to, Utf8 | Binary | List(_) | ListView(_));
        if rows.any.is_none() && narrow && total > i32::MAX as usize {
            self.too_long.set(true);
        }
    }

    /// Returns a bound for casting these rows.
    fn cast(&self, rows: &Rows, to: &DataType) -> usize {
        use DataType::*;
        let (n, array, from) = (rows.len(), &rows.array, rows.array.data_type());
        if from == to {
            return 0;
        }
        let each = |bytes: usize| n.saturating_mul(bytes).saturating_add(1024);
        match (from, to) {
            (Null, to) => nulls(to, n),
            (RunEndEncoded(..), RunEndEncoded(_, values)) => {
                let runs = &array.children()[1];
                let bytes = runs.len().saturating_mul(48);
                add([bytes, self.cast(&Rows::each(runs.clone()), values.data_type())])
            }
            (RunEndEncoded(..), to) => {
                let text = rows.any.is_none().then(|| run_ends::spanned(array));
                let taken = Rows::any(&array.children()[1], n, text);
                add([each(16), copy(&taken), self.cast(&taken, to)])
            }
            (_, RunEndEncoded(_, values)) => {
                let cast = self.cast(rows, values.data_type());
                add([each(64), cast, self.result(rows, values.data_type(), cast)])
            }
            (Union(..), to) => {
                let children = (0..array.children().len()).map(|i| rows.child(i, 1));
                let extracted = children.map(|child| {
                    let child = Rows { any: Some(child.len().max(n)), ..child };
                    copy(&child).saturating_add(self.cast(&child, to))
                });
                each(16).saturating_add(extracted.max().unwrap_or(0))
            }
            (Dictionary(..), Dictionary(_, values)) => {
                add([each(48), array.dictionary().map_or(0, |of| self.cast(&Rows::each(of.clone()), values))])
            }
            (Dictionary(..), to) => {
                let text = rows.any.is_none().then(|| spans::of_keys(array));
                array.dictionary().map_or(0, |values| {
                    let cast = match to.is_nested() {
                        true => self.cast(&Rows::any(values, n.max(values.len()), None), to),
                        false => self.cast(&Rows::each(values.clone()), to),
                    };
                    add([each(9), cast, self.result(&Rows::any(values, n, text), to, cast)])
                })
            }
            (_, Dictionary(_, values)) => {
                // Distinct values are kept in a growing builder, and a hash table finds them again.
                let cast = self.cast(rows, values);
                add([each(64), cast, self.result(rows, values, cast).saturating_mul(3)])
            }
            (FixedSizeList(_, 1), to) if !is_list(to) => self.cast(&rows.child(0, 1), to),
            (FixedSizeList(_, size), List(f) | LargeList(f) | ListView(f) | LargeListView(f))
            | (FixedSizeList(_, size), FixedSizeList(f, _)) => {
                self.reach(rows, n.saturating_mul(*size as usize), to);
                let items = rows.child(0, *size as usize);
                add([each(24), looked_through(&items), self.cast(&items, f.data_type())])
            }
            (List(_) | LargeList(_) | ListView(_) | LargeListView(_), FixedSizeList(f, size)) => {
                let padded = n.saturating_mul(*size as usize);
                let items = Rows::any(&array.children()[0], padded, None);
                add([each(2), looked_through(&items), copy(&items), self.cast(&items, f.data_type())])
            }
            (ListView(_) | LargeListView(_), List(f) | LargeList(f)) => {
                // Items of null rows are left out.
                let seen = rows.any.map_or_else(|| spans::of_valid(array), |_| rows.spanned());
                let items = Rows::any(&array.children()[0], seen, None);
                let indices = items.len().max(array.children()[0].len()).saturating_mul(24);
                add([each(24), indices, copy(&items), self.cast(&items, f.data_type())])
            }
            (ListView(_) | LargeListView(_), ListView(f) | LargeListView(f)) => {
                let items = Rows::each(array.children()[0].clone());
                add([each(48), looked_through(&items), self.cast(&items, f.data_type())])
            }
            (List(_) | LargeList(_), List(f) | LargeList(f) | ListView(f) | LargeListView(f)) => {
                let items = rows.items();
                add([each(48), looked_through(&items), self.cast(&items, f.data_type())])
            }
            (_, List(f) | LargeList(f) | ListView(f) | LargeListView(f)) if !is_list(from) => {
                add([each(32), self.cast(rows, f.data_type())])
            }
            (_, FixedSizeList(f, 1)) if !is_list(from) => self.cast(rows, f.data_type()),
            (Map(..), Map(f, _)) => match f.data_type() {
                Struct(to) => {
                    let entries = rows.items();
                    add([each(16), looked_through(&entries), self.fields(&entries, to)])
                }
                _ => 0,
            },
            (Struct(_), Struct(to)) => add([each(1), looked_through(rows), self.fields(rows, to)]),
            (from, to) if is_text(from) && is_text(to) => self.text_as_text(rows, to),
            (from, to) if is_text(from) => each(width(to).max(1) * if self.options.safe { 4 } else { 8 }),
            // A growing buffer is copied to twice the memory before it is full, while the old half still
            // exists.
            (_, to) if is_text(to) => add([each(3 * width(to)), self.shown(rows).saturating_mul(3), 2 << 20]),
            (from, to) => each(2 * width(from) + 4 * width(to) + 1),
        }
    }

    /// Returns a bound for casting struct fields: by name if all target names exist, else by position.
    fn fields(&self, rows: &Rows, to: &Fields) -> usize {
        let DataType::Struct(from) = rows.array.data_type() else { return 0 };
        let named = |name: &str| from.iter().position(|field| field.name() == name);
        let in_order = from.len() == to.len() && from.iter().zip(to).all(|(a, b)| a.name() == b.name());
        let by_name = !in_order && to.iter().all(|field| named(field.name()).is_some());
        to.iter().enumerate().fold(0, |sum, (i, field)| {
            let i = if by_name { named(field.name()).unwrap_or(i) } else { i };
            let there = i < from.len();
            sum.saturating_add(if there { self.cast(&rows.child(i, 1), field.data_type()) } else { 0 })
        })
    }

    fn text_as_text(&self, rows: &Rows, to: &DataType) -> usize {
        let (from, text) = (rows.array.data_type(), rows.spanned());
        let own = rows.len().saturating_mul(2 * width(to) + 17);
        self.reach(rows, text, to);
        let bytes = match (is_view(from), is_view(to)) {
            // Bytes are shared, except for those that are not UTF-8 and are left out.
            (_, true) => text.saturating_add(2 << 20),
            (false, false) => text.saturating_mul(2),
            // arrow-cast reserves the size of the data, and grows the buffer if views share bytes.
            (true, false) => {
                let there = rows.array.buffers()[1..].iter().filter_map(|buffer| buffer.bytes());
                let there = there.fold(0, usize::saturating_add);
                if text <= there { there } else { text.saturating_mul(3) }
            }
        };
        add([own, bytes, 1024])
    }

    /// Returns a bound for the result of casting these rows, if it is copied; `cast` is the bound for casting
    /// as many.
    fn result(&self, rows: &Rows, to: &DataType, cast: usize) -> usize {
        let from = rows.array.data_type();
        let own = rows.len().saturating_mul(width(to) + 1);
        match to {
            to if from == to => copy(rows),
            DataType::Utf8View | DataType::BinaryView => own,
            to if is_text(to) && is_text(from) => own.saturating_add(rows.spanned()),
            to if is_text(to) => own.saturating_add(self.shown(rows)),
            to if to.is_nested() => copy(rows).saturating_add(cast),
            _ => own,
        }
    }

    /// Returns the bytes of text that the rows are displayed as.
    fn shown(&self, rows: &Rows) -> usize {
        use DataType::*;
        let (array, options) = (&rows.array, &self.options.format_options);
        let formats = [
            options.date_format(),
            options.datetime_format(),
            options.timestamp_format(),
            options.timestamp_tz_format(),
            options.time_format(),
        ];
        // A specifier has two letters or more, and expands to at most 40 bytes for each.
        let own: usize = formats.iter().flatten().map(|format| format.len() * 40).sum();
        let one = match array.data_type() {
            Null => 0,
            Boolean => 5,
            Int8 | UInt8 => 4,
            Int16 | UInt16 => 6,
            Int32 | UInt32 => 11,
            Int64 | UInt64 => 20,
            Float16 | Float32 | Float64 => 32,
            Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => {
                80 + usize::from(scale.unsigned_abs())
            }
            Interval(_) => 192,
            Duration(_) => 96,
            // In lists, the text of an error takes the place of a value outside of the calendar.
            Timestamp(_, Some(zone)) => own + 96 + zone.len(),
            Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) => own + 96,
            _ => 8,
        };
        let spanned = match array.data_type() {
            // Each byte displays as two digits.
            data_type if is_text(data_type) => rows.spanned().saturating_mul(2),
            List(_) | LargeList(_) | ListView(_) | LargeListView(_) | Map(..) => self.shown(&rows.items()),
            FixedSizeList(_, size) => self.shown(&rows.child(0, *size as usize)),
            Struct(fields) => {
                let names = fields.iter().fold(0, |sum, field| sum + field.name().len() + 4);
                let names = rows.len().saturating_mul(names);
                let shown = (0..fields.len()).map(|i| self.shown(&rows.child(i, 1)));
                shown.fold(names, usize::saturating_add)
            }
            Union(fields, _) => {
                let names = fields.iter().map(|(_, field)| field.name().len() + 4).max().unwrap_or(0);
                let shown = (0..fields.len()).map(|i| {
                    let child = rows.child(i, 1);
                    self.shown(&Rows { any: Some(child.len().max(rows.len())), ..child })
                });
                rows.len().saturating_mul(names).saturating_add(shown.max().unwrap_or(0))
            }
            Dictionary(..) => {
                let text = rows.any.is_none().then(|| spans::of_keys(array));
                array.dictionary().map_or(0, |of| self.shown(&Rows::any(of, rows.len(), text)))
            }
            RunEndEncoded(..) => {
                let text = rows.any.is_none().then(|| run_ends::spanned(array));
                self.shown(&Rows::any(&array.children()[1], rows.len(), text))
            }
            _ => 0,
        };
        // The 4 covers a separator, quotes, or the word for null.
        rows.len().saturating_mul(one + options.null().len() + 4).saturating_add(spanned)
    }
}
