//! The columns that keys are read from.

use arrow_schema::DataType;

use super::super::bitmap::Bits;
use super::super::concat::concat;
use super::super::sort::ranks_of;
use super::super::text::layout::Column as Text;
use super::super::{logical, memory, rows};
use super::keys::{Key, Keys, Nulls, Values};
use crate::Result;
use crate::array::{Bitmap, Buffer, DeviceArray, Slot};
use crate::device::HostPool;
use crate::engine::Valid;
use crate::rules::seeds::weak_rounds;

/// The memory that keys are read from.
pub(in crate::cpu) struct Columns {
    columns: Vec<Owned>,
    rows: usize,
    /// Whether words are compared with those of other arrays, which may have nulls where these have none.
    comparable: bool,
}

enum Owned {
    Array(DeviceArray),
    /// Numbers of four bytes that are equal where the rows are, and the rows that are not null; nulls have a
    /// number too.
    Ranks(Buffer, Option<Bitmap>),
    /// A column in which every row is null.
    Nothing,
}

impl Columns {
    /// Takes columns of any type, to compare their rows with each other.
    pub fn new(columns: &[DeviceArray], pool: &HostPool) -> Result<Columns> {
        let owned = |array: &DeviceArray| {
            Ok(match array.data_type() {
                DataType::Null => Owned::Nothing,
                of if is_plain(of) => Owned::Array(array.clone()),
                _ => Owned::Ranks(ranks_of(array, pool)?, None),
            })
        };
        let rows = columns.first().map_or(0, DeviceArray::len);
        Ok(Columns { columns: columns.iter().map(owned).collect::<Result<_>>()?, rows, comparable: false })
    }

    /// Takes the columns of two sides, to compare the rows of one with those of the other.
    pub fn of_sides(sides: [&[DeviceArray]; 2], pool: &HostPool) -> Result<[Columns; 2]> {
        let rows = sides.map(|side| side.first().map_or(0, DeviceArray::len));
        let mut made = rows.map(|rows| Columns { columns: vec![], rows, comparable: true });
        for (one, other) in sides[0].iter().zip(sides[1]) {
            let owned = match one.data_type() {
                DataType::Null => [Owned::Nothing, Owned::Nothing],
                of if is_plain(of) => [Owned::Array(one.clone()), Owned::Array(other.clone())],
                _ => {
                    let both = ranks_of(&concat(&[one.clone(), other.clone()], pool)?, pool)?;
                    let ranks = [both.slice(0, Some(4 * one.len())), both.slice(4 * one.len(), None)];
                    let [first, second] = ranks;
                    [Owned::Ranks(first, nulls(one, pool)?), Owned::Ranks(second, nulls(other, pool)?)]
                }
            };
            made.iter_mut().zip(owned).for_each(|(side, owned)| side.columns.push(owned));
        }
        Ok(made)
    }

    /// Returns the keys of the rows.
    pub fn keys(&self, nulls: Nulls) -> Keys<'_> {
        let weak = weak_rounds() > 0;
        let mut keys = Keys { columns: vec![], rows: self.rows, nulls, exact: true, weak, nothing: false };
        let mut bits = Some(0u32);
        for column in &self.columns {
            let (values, valid) = match column {
                Owned::Nothing => {
                    keys.nothing |= nulls == Nulls::Apart;
                    continue;
                }
                Owned::Ranks(ranks, valid) => {
                    // Nulls have ranks too, and those of two members of a union differ.
                    let valid = valid.as_ref().filter(|_| nulls == Nulls::Apart);
                    let valid = valid.map(|valid| Bits::of(valid, self.rows));
                    (Values::Fixed(memory::bytes(ranks), 4), valid)
                }
                Owned::Array(array) => (values_of(array), rows::validity(array)),
            };
            let null = u32::from(nulls == Nulls::Equal && (self.comparable || valid.is_some()));
            let key = Key { values, valid, null, short: None };
            bits = bits.and_then(|bits| bits.checked_add(key.values.bits()?.checked_add(null)?));
            bits = bits.filter(|bits| *bits <= 64);
            keys.columns.push(key);
        }
        keys.exact = bits.is_some() && !weak;
        keys
    }
}

/// The rows of a nested array that are not null; `None` if all are.
fn nulls(array: &DeviceArray, pool: &HostPool) -> Result<Option<Bitmap>> {
    if !matches!(
        array.data_type(),
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) | DataType::Union(..)
    ) {
        return Ok(array.possible_nulls().cloned());
    }
    Ok(match logical::validity("join", array, pool)? {
        Valid::All => None,
        Valid::None => {
            let none = memory::zeroed(array.len().div_ceil(8), pool)?;
            Some(Bitmap { buffer: none.freeze(array.len().div_ceil(8)), offset: 0 })
        }
        Valid::These(valid) => Some(Bitmap { buffer: valid.buffers()[0].clone(), offset: valid.offset() }),
    })
}

/// Whether a type's rows hold their values.
pub(in crate::cpu) fn is_plain(of: &DataType) -> bool {
    !of.is_nested()
        && !matches!(of, DataType::Dictionary(..) | DataType::RunEndEncoded(..) | DataType::Union(..))
}

fn values_of(array: &DeviceArray) -> Values<'_> {
    match array.layout().slots().next() {
        Some(Slot::Bits) => Values::Bits(rows::booleans(array)),
        Some(Slot::Fixed(width)) => {
            let bytes = memory::bytes(&array.buffers()[0]);
            Values::Fixed(&bytes[array.offset() * width..][..array.len() * width], width)
        }
        _ => Values::Text(Text::of(array)),
    }
}
