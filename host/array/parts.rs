//! Arrays and their parts, shared by reference count.
//!
//! The one idea: arrays contain parts and parts contain arrays, so both types are in this file. Nothing here
//! checks whether parts fit together; the constructors in `mod.rs` do.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_schema::DataType;

use super::{Bitmap, Buffer, Layout, Place, Ready, layout};
use crate::{Error, Result};

/// The parts of a [`DeviceArray`], for code that builds an array or takes one apart.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The Arrow type of the array.
    pub data_type: DataType,
    /// The number of rows.
    pub len: usize,
    /// The number of rows before the first, in the buffers and in the children of structs, sparse unions and
    /// fixed-size lists. The validity bitmap has an offset of its own.
    pub offset: usize,
    /// The validity bitmap; `None` if all rows are valid. Always `None` for types without a validity bitmap.
    pub validity: Option<Bitmap>,
    /// The number of rows that are null by `validity`, if known.
    pub null_count: Option<usize>,
    /// The buffers in the order of the Arrow format, without the validity bitmap. The data buffers of views
    /// come last; the buffer of their lengths, which C structs have, is not included.
    pub buffers: Vec<Buffer>,
    /// The children in the order of the type. A dictionary is not a child.
    pub children: Vec<DeviceArray>,
    /// The values of a dictionary array; `None` for other types.
    pub dictionary: Option<DeviceArray>,
    /// The device memory that holds the buffers. Nothing checks that it does: another place breaks the
    /// promise that was made to [`Buffer::new`].
    pub place: Place,
    /// The event after which the contents may be read; `None` if they may be read now. The same holds for it.
    pub ready: Option<Arc<dyn Ready>>,
}

impl Parts {
    /// Creates parts on the CPU without buffers or nulls, for the caller to fill in.
    #[inline]
    pub fn new(data_type: DataType, len: usize) -> Parts {
        Parts {
            data_type,
            len,
            offset: 0,
            validity: None,
            null_count: Some(0),
            buffers: vec![],
            children: vec![],
            dictionary: None,
            place: Place::CPU,
            ready: None,
        }
    }
}

/// Arrow data on a device. Cloning and slicing copy nothing that is on the device.
#[derive(Clone)]
pub struct DeviceArray(Arc<Inner>);

struct Inner {
    parts: Parts,
    /// Whether the contents are known to be valid Arrow data in every part: validated in full, made by
    /// arrow-rs, or made by one of our operations from such arrays. Not one of the `Parts`, which any code
    /// may assemble.
    valid: AtomicBool,
}

impl DeviceArray {
    /// Creates an array of parts that fit together.
    #[inline]
    pub(super) fn of(parts: Parts, valid: bool) -> DeviceArray {
        DeviceArray(Arc::new(Inner { parts, valid: AtomicBool::new(valid) }))
    }

    /// Whether the contents are known to be valid Arrow data in every part.
    pub(crate) fn known_valid(&self) -> bool {
        self.0.valid.load(Ordering::Relaxed)
    }

    /// Records that a full validation found the contents valid. Contents do not change, so this stays true.
    pub(crate) fn set_known_valid(&self) {
        self.0.valid.store(true, Ordering::Relaxed);
    }

    /// Converts an array in memory that the host shares with a device into one of plain host memory, so that
    /// later code on the host handles a single kind of place. The caller must have waited for it.
    pub(crate) fn on_host(&self) -> DeviceArray {
        self.relabelled(Place::CPU, true)
    }

    /// The same array as one of another place, which must reach its memory.
    pub(crate) fn seen_from(&self, place: Place) -> DeviceArray {
        self.relabelled(place, false)
    }

    fn relabelled(&self, place: Place, was_waited_for: bool) -> DeviceArray {
        if self.place() == place {
            return self.clone();
        }
        let mut parts = self.0.parts.clone();
        parts.place = place;
        if was_waited_for {
            parts.ready = None;
        }
        let relabelled = |part: &DeviceArray| part.relabelled(place, was_waited_for);
        parts.children = self.children().iter().map(relabelled).collect();
        parts.dictionary = self.dictionary().map(relabelled);
        DeviceArray::of(parts, self.known_valid())
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// Converts the array into its parts. Clones them only if the array is shared.
    pub fn into_parts(self) -> Parts {
        match Arc::try_unwrap(self.0) {
            Ok(inner) => inner.parts,
            Err(shared) => shared.parts.clone(),
        }
    }

    /// The Arrow type of the array.
    pub fn data_type(&self) -> &DataType {
        &self.0.parts.data_type
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.0.parts.len
    }

    /// Whether the array has no rows.
    pub fn is_empty(&self) -> bool {
        self.0.parts.len == 0
    }

    /// The number of rows in the buffers that precede the array's first row.
    pub fn offset(&self) -> usize {
        self.0.parts.offset
    }

    /// The validity bitmap; `None` if all rows are valid.
    pub fn validity(&self) -> Option<&Bitmap> {
        self.0.parts.validity.as_ref()
    }

    /// The number of nulls in the validity bitmap, if it is known without reading the bitmap.
    pub fn known_null_count(&self) -> Option<usize> {
        self.0.parts.null_count
    }

    /// The validity bitmap, unless the array is known to have no nulls.
    pub(crate) fn possible_nulls(&self) -> Option<&Bitmap> {
        self.validity().filter(|_| self.known_null_count() != Some(0))
    }

    /// The buffers in the order of the Arrow format, without the validity bitmap.
    pub fn buffers(&self) -> &[Buffer] {
        &self.0.parts.buffers
    }

    /// The children as stored: the array's own offset is not applied to them. See
    /// [`child_rows`](Self::child_rows).
    pub fn children(&self) -> &[DeviceArray] {
        &self.0.parts.children
    }

    /// The values of a dictionary array; `None` for other types.
    pub fn dictionary(&self) -> Option<&DeviceArray> {
        self.0.parts.dictionary.as_ref()
    }

    /// The device memory that holds the buffers.
    pub fn place(&self) -> Place {
        self.0.parts.place
    }

    /// The event after which the contents may be read; `None` if they may be read now.
    pub fn ready(&self) -> Option<&Arc<dyn Ready>> {
        self.0.parts.ready.as_ref()
    }

    /// Blocks until the array, its children and its dictionary may be read. Returns errors that depend on the
    /// data (an index out of bounds, a value that does not fit).
    pub fn wait(&self) -> Result<()> {
        self.ready().map_or(Ok(()), |ready| ready.wait())?;
        self.children().iter().chain(self.dictionary()).try_for_each(DeviceArray::wait)
    }

    /// The buffers that the array's type consists of.
    pub(crate) fn layout(&self) -> Layout {
        layout(self.data_type())
    }

    /// Rows `offset .. offset + len`, without copying. Returns an error if the array has fewer rows.
    pub fn slice(&self, offset: usize, len: usize) -> Result<DeviceArray> {
        if offset.checked_add(len).is_none_or(|end| end > self.len()) {
            return Err(Error::invalid(
                "slice",
                format!("rows {offset}+{len} of an array of {}", self.len()),
            ));
        }
        let mut parts = self.0.parts.clone();
        parts.len = len;
        parts.offset += offset;
        parts.validity = parts.validity.map(|bits| bits.slice(offset));
        parts.null_count = match parts.null_count {
            Some(0) => Some(0),
            Some(all) if all == self.len() => Some(len),
            known if len == self.len() => known,
            _ => None,
        };
        Ok(DeviceArray::of(parts, self.known_valid()))
    }

    /// Whether the rows occupy the same memory as those of another array of the same type.
    pub(crate) fn is_same_memory(&self, other: &DeviceArray) -> bool {
        let bits = |array: &DeviceArray| array.validity().map(|bits| (bits.buffer.address(), bits.offset));
        let buffers = |array: &DeviceArray| array.buffers().iter().map(Buffer::address).collect::<Vec<_>>();
        let below = |array: &DeviceArray| {
            array.children().iter().chain(array.dictionary()).cloned().collect::<Vec<_>>()
        };
        let (mine, theirs) = (below(self), below(other));
        (self.len(), self.offset(), bits(self)) == (other.len(), other.offset(), bits(other))
            && buffers(self) == buffers(other)
            && mine.len() == theirs.len()
            && mine.iter().zip(&theirs).all(|(mine, theirs)| mine.is_same_memory(theirs))
    }

    /// Child `i`, restricted to the rows of this array: one row per row for structs and sparse unions, `size`
    /// rows per row for fixed-size lists. Children of other types are returned unchanged.
    pub fn child_rows(&self, i: usize) -> Result<DeviceArray> {
        let child = &self.children()[i];
        match self.data_type() {
            DataType::Struct(_) | DataType::Union(_, arrow_schema::UnionMode::Sparse) => {
                child.slice(self.offset(), self.len())
            }
            DataType::FixedSizeList(_, size) => {
                let size = *size as usize;
                child.slice(self.offset() * size, self.len() * size)
            }
            _ => Ok(child.clone()),
        }
    }
}

impl fmt::Debug for DeviceArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.parts.fmt(f)
    }
}
