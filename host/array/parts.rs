//! Arrays as they are kept: their parts, shared.
//!
//! The one idea: an array has parts and parts have arrays, so both are here. Nothing here looks whether parts fit together:
//! what makes arrays of them does, see `mod.rs`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_schema::DataType;

use super::{Bitmap, Buffer, Layout, Place, Ready, layout};
use crate::{Error, Result};

/// The parts of an [`Array`], for whoever makes or takes apart one.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The type.
    pub data_type: DataType,
    /// How many rows.
    pub len: usize,
    /// How many rows of the buffers and of struct, union and fixed-size list children come before the first.
    /// The validity bitmap has an offset of its own.
    pub offset: usize,
    /// Which rows are valid; `None` where all are. Types without validity never have it.
    pub validity: Option<Bitmap>,
    /// How many rows are null by `validity`, where that is known.
    pub null_count: Option<usize>,
    /// The buffers in the order of the Arrow format, without the validity bitmap; those that views point into come last, and the
    /// buffer of their lengths, which C structs have, is none of them.
    pub buffers: Vec<Buffer>,
    /// The children in the order of the type; a dictionary is none of them.
    pub children: Vec<Array>,
    /// The values of a dictionary array.
    pub dictionary: Option<Array>,
    /// Where it lives.
    pub place: Place,
    /// When it may be read; `None` means now.
    pub ready: Option<Arc<dyn Ready>>,
}

impl Parts {
    /// Parts of no buffers and no nulls, on the CPU, to be filled in.
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
pub struct Array(Arc<Inner>);

struct Inner {
    parts: Parts,
    /// Whether the contents are known to be valid Arrow data in every part: read through once, or made by arrow-rs, or by
    /// an operation of ours from such arrays. Not among the parts, which anybody may put together.
    valid: AtomicBool,
}

impl Array {
    /// An array of parts that fit together.
    #[inline]
    pub(super) fn of(parts: Parts, valid: bool) -> Array {
        Array(Arc::new(Inner { parts, valid: AtomicBool::new(valid) }))
    }

    /// Whether the contents are known to be valid Arrow data in every part.
    pub(crate) fn known_valid(&self) -> bool {
        self.0.valid.load(Ordering::Relaxed)
    }

    /// Takes down that somebody has read the contents through and found them valid. They do not change.
    pub(crate) fn set_known_valid(&self) {
        self.0.valid.store(true, Ordering::Relaxed);
    }

    /// The same array as one of plain host memory, where it is in memory that the host shares with a device: for a caller that
    /// has waited for it, so that what the host makes of its parts is in one place.
    pub(crate) fn on_host(&self) -> Array {
        if self.place() == Place::CPU {
            return self.clone();
        }
        let mut parts = self.0.parts.clone();
        (parts.place, parts.ready) = (Place::CPU, None);
        parts.children = self.children().iter().map(Array::on_host).collect();
        parts.dictionary = self.dictionary().map(Array::on_host);
        Array::of(parts, self.known_valid())
    }

    /// The parts, as they are.
    pub(super) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// The parts, cloned only where the array is shared.
    pub fn into_parts(self) -> Parts {
        match Arc::try_unwrap(self.0) {
            Ok(inner) => inner.parts,
            Err(shared) => shared.parts.clone(),
        }
    }

    /// The type.
    pub fn data_type(&self) -> &DataType {
        &self.0.parts.data_type
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.0.parts.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.parts.len == 0
    }

    /// How many rows of the buffers come before the first.
    pub fn offset(&self) -> usize {
        self.0.parts.offset
    }

    /// Which rows are valid; `None` where all are.
    pub fn validity(&self) -> Option<&Bitmap> {
        self.0.parts.validity.as_ref()
    }

    /// How many rows are null by the validity bitmap, where that is known without reading it.
    pub fn known_null_count(&self) -> Option<usize> {
        self.0.parts.null_count
    }

    /// Which rows are valid, unless it is known that all are.
    pub(crate) fn possible_nulls(&self) -> Option<&Bitmap> {
        self.validity().filter(|_| self.known_null_count() != Some(0))
    }

    /// The buffers, validity left out.
    pub fn buffers(&self) -> &[Buffer] {
        &self.0.parts.buffers
    }

    /// The children as they are: the array's own offset is not applied to them.
    pub fn children(&self) -> &[Array] {
        &self.0.parts.children
    }

    /// The values of a dictionary array.
    pub fn dictionary(&self) -> Option<&Array> {
        self.0.parts.dictionary.as_ref()
    }

    /// Where it lives.
    pub fn place(&self) -> Place {
        self.0.parts.place
    }

    /// When it may be read; `None` means now.
    pub fn ready(&self) -> Option<&Arc<dyn Ready>> {
        self.0.parts.ready.as_ref()
    }

    /// Blocks until it, and what it is made of, may be read. The errors that only the data shows (an index out of bounds,
    /// a value that does not fit) surface here.
    pub fn wait(&self) -> Result<()> {
        self.ready().map_or(Ok(()), |ready| ready.wait())?;
        self.children().iter().chain(self.dictionary()).try_for_each(Array::wait)
    }

    /// What it is made of.
    pub(crate) fn layout(&self) -> Layout {
        layout(self.data_type())
    }

    /// Rows `offset .. offset + len`.
    pub fn slice(&self, offset: usize, len: usize) -> Result<Array> {
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
        Ok(Array::of(parts, self.known_valid()))
    }

    /// Whether the rows are the same memory as another array's of the type.
    pub(crate) fn is_same_memory(&self, other: &Array) -> bool {
        let bits = |array: &Array| array.validity().map(|bits| (bits.buffer.address(), bits.offset));
        let buffers = |array: &Array| array.buffers().iter().map(Buffer::address).collect::<Vec<_>>();
        let below =
            |array: &Array| array.children().iter().chain(array.dictionary()).cloned().collect::<Vec<_>>();
        let (mine, theirs) = (below(self), below(other));
        (self.len(), self.offset(), bits(self)) == (other.len(), other.offset(), bits(other))
            && buffers(self) == buffers(other)
            && mine.len() == theirs.len()
            && mine.iter().zip(&theirs).all(|(mine, theirs)| mine.is_same_memory(theirs))
    }

    /// Child `i` as the rows of this array see it: for structs and sparse unions row by row, for fixed-size lists
    /// `size` rows a row; for every other type the child as it is.
    pub fn child_rows(&self, i: usize) -> Result<Array> {
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

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.parts.fmt(f)
    }
}
