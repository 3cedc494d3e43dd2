//! L2: what the data is. An [`Array`] is a data type, a length and an offset, buffers with their owners, children
//! and a dictionary, on one device; it knows nothing of drivers, and following its addresses is up to the device.

mod batches;
mod buffer;
mod extents;
mod layout;
mod validate;

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_schema::{DataType, SchemaRef};

pub use batches::Batches;
pub use buffer::{Bitmap, Buffer, Owner};
pub(crate) use extents::{fits, number};
pub use layout::{Layout, Slot, children, layout};
pub(crate) use validate::well_formed;

use crate::ffi::DeviceType;
use crate::{Error, Result};

/// Which memory of which device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The kind of memory.
    pub device_type: DeviceType,
    /// Which device; -1 for the CPU.
    pub device_id: i64,
}

impl Place {
    /// Host memory.
    pub const CPU: Place = Place { device_type: DeviceType::Cpu, device_id: -1 };

    /// Whether a device here, or the host, can read that memory: its own, and what a runtime shares between both.
    pub(crate) fn reaches(self, memory: Place) -> bool {
        let kind = memory.device_type;
        let shared = match self.device_type {
            DeviceType::Cpu => kind.host_accessible(),
            device => device == kind.device() && kind.host_accessible(),
        };
        shared || self == memory
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device_id {
            -1 => write!(f, "{}", self.device_type),
            id => write!(f, "{}:{id}", self.device_type),
        }
    }
}

/// When an array's contents may be read: a device's event, ours or the producer's. Arrays carry it, streams wait on it.
pub trait Ready: Any + fmt::Debug + Send + Sync {
    /// Whether that moment has passed.
    fn is_ready(&self) -> Result<bool>;
    /// Blocks the calling thread until it has.
    fn wait(&self) -> Result<()>;
    /// Where the runtime's event handle is kept, for as long as this lives: what a consumer gets as `sync_event`.
    /// `None` where there is no handle to give away; an exporter then waits on the host.
    fn sync_event(&self) -> Option<NonNull<c_void>>;
}

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
    /// The buffers as [`layout`] lists them, variadic ones behind.
    pub buffers: Vec<Buffer>,
    /// The children as [`children`] lists them.
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
    /// An array of these parts, where they fit together: see the checks in `validate.rs`. No device memory is read. From here
    /// on every buffer says how long it is, or which number on its device does: see `extents.rs`.
    pub fn try_new(mut parts: Parts) -> Result<Array> {
        validate::structure(&parts)?;
        extents::bind(&mut parts)?;
        if parts.validity.is_none() {
            parts.null_count = Some(0);
        }
        Ok(Array::of(parts, false))
    }

    /// An array that an operation of ours made. `valid` where its contents are valid Arrow data; an operation that only
    /// moves rows keeps them so. Flat parts of our own making fit together; with children it is as well to look.
    #[inline]
    pub(crate) fn made(parts: Parts, valid: bool) -> Result<Array> {
        if cfg!(debug_assertions) || !parts.children.is_empty() {
            validate::structure(&parts)?;
        }
        Ok(Array::of(parts, valid))
    }

    #[inline]
    fn of(parts: Parts, valid: bool) -> Array {
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
    pub fn layout(&self) -> Layout {
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

/// What somebody says of a batch besides its schema.
pub type Metadata = Arc<BTreeMap<String, String>>;

/// Arrays of equal length under a schema: a record batch.
#[derive(Clone, Debug)]
pub struct Batch {
    schema: SchemaRef,
    metadata: Metadata,
    columns: Vec<Array>,
    len: usize,
}

impl Batch {
    /// A batch of these columns, where their types are the schema's and their lengths `len`.
    pub fn try_new(schema: SchemaRef, columns: Vec<Array>, len: usize) -> Result<Batch> {
        let problem = |problem| Err(Error::Invalid { operation: "batch", problem });
        if schema.fields().len() != columns.len() {
            return problem(format!("{} fields but {} columns", schema.fields().len(), columns.len()));
        }
        for (field, column) in schema.fields().iter().zip(&columns) {
            if field.data_type() != column.data_type() {
                return problem(format!(
                    "{} is {} but its column {}",
                    field.name(),
                    field.data_type(),
                    column.data_type()
                ));
            }
            if column.len() != len {
                return problem(format!("{} has {} rows, not {len}", field.name(), column.len()));
            }
        }
        Ok(Batch { schema, metadata: Metadata::default(), columns, len })
    }

    /// The fields' names and types.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What was said of this batch besides its schema, by who sent it in an asynchronous stream or by
    /// [`with_metadata`](Self::with_metadata). Operations give it on with their results, as they do the schema's metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The batch with another metadata.
    pub fn with_metadata(mut self, metadata: Metadata) -> Batch {
        self.metadata = metadata;
        self
    }

    /// What makes a batch of other columns under the same schema, with the same metadata.
    pub(crate) fn like(&self) -> impl FnOnce(Vec<Array>, usize) -> Result<Batch> + Send + use<> {
        let (schema, metadata) = (self.schema.clone(), self.metadata.clone());
        move |columns, len| Ok(Batch::try_new(schema, columns, len)?.with_metadata(metadata))
    }

    /// The columns.
    pub fn columns(&self) -> &[Array] {
        &self.columns
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
