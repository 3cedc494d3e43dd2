//! Memory on a device, together with its owner.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A value that keeps a buffer's memory alive: an allocation, a foreign array, an arrow-rs buffer.
pub type Owner = Arc<dyn Any + Send + Sync>;

/// Shared device memory: an address, an extent, an owner. Cloning and slicing copy nothing.
///
/// The address is valid on the device that the memory belongs to; only that device's own code may follow it.
#[derive(Clone)]
pub struct Buffer {
    address: usize,
    extent: Extent,
    owner: Owner,
}

/// The length of a buffer.
#[derive(Clone)]
enum Extent {
    Bytes(usize),
    /// A signed number of 4 or 8 bytes in the buffer's device memory, at any alignment.
    SaidBy(Arc<Buffer>),
    /// Not known until the buffer becomes part of an array: see `extents.rs`.
    Unbound,
}

impl Buffer {
    /// Creates a buffer over memory that `owner` keeps alive. Pass `None` for `bytes` if only the device
    /// knows the extent (the C interface does not carry the size of a string's bytes). The buffer then ends
    /// at the last offset of the array that is built from it, also in every slice of that array.
    ///
    /// # Safety
    ///
    /// The memory must be readable on its device for `bytes` (if unknown: for what the rows of the array
    /// need, or its last offset says), and must not change, for as long as `owner` lives. A null address must
    /// have zero bytes. Every array that is built from the buffer must have a [`Place`](super::Place) whose
    /// device reaches the memory: the place, which the buffer does not know, says who follows the address.
    #[allow(unsafe_code)]
    pub unsafe fn new(address: usize, bytes: Option<usize>, owner: Owner) -> Buffer {
        Buffer { address, extent: bytes.map_or(Extent::Unbound, Extent::Bytes), owner }
    }

    /// The same memory with its length in a number of 4 or 8 bytes on its device.
    pub(crate) fn said_by(&self, number: Buffer) -> Buffer {
        Buffer { extent: Extent::SaidBy(Arc::new(number)), ..self.clone() }
    }

    /// The same memory with a length that has become known.
    pub(super) fn with_bytes(&self, bytes: usize) -> Buffer {
        Buffer { extent: Extent::Bytes(bytes), ..self.clone() }
    }

    /// Whether the array that contains the buffer must determine its length.
    pub(super) fn is_unbound(&self) -> bool {
        matches!(self.extent, Extent::Unbound)
    }

    /// Creates a buffer of no bytes at address 0.
    pub fn empty() -> Buffer {
        Buffer { address: 0, extent: Extent::Bytes(0), owner: Arc::new(()) }
    }

    /// The address of the first byte, in the device's address space.
    pub fn address(&self) -> usize {
        self.address
    }

    /// The length in bytes; `None` if only the device knows it.
    pub fn bytes(&self) -> Option<usize> {
        match self.extent {
            Extent::Bytes(bytes) => Some(bytes),
            Extent::SaidBy(_) | Extent::Unbound => None,
        }
    }

    /// The number on the device (4 or 8 bytes) that states the length, if the host does not know it.
    pub(crate) fn extent_at(&self) -> Option<&Buffer> {
        if let Extent::SaidBy(number) = &self.extent { Some(number) } else { None }
    }

    /// The value that keeps the memory alive.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The same memory, which then also keeps `also` alive.
    pub(crate) fn kept_with(&self, also: Owner) -> Buffer {
        Buffer { owner: Arc::new((self.owner.clone(), also)), ..self.clone() }
    }

    /// The part of the buffer that starts at byte `start`. It is `bytes` long, or extends to the end if
    /// `bytes` is `None`.
    ///
    /// # Panics
    ///
    /// Panics if the part is not inside the buffer, as far as its extent is known.
    pub fn slice(&self, start: usize, bytes: Option<usize>) -> Buffer {
        let rest = self.bytes().map(|all| all.checked_sub(start).expect("slice starts inside the buffer"));
        let extent = match (rest, bytes) {
            (Some(rest), Some(bytes)) => {
                assert!(bytes <= rest, "slice ends inside the buffer");
                Extent::Bytes(bytes)
            }
            (None, None) if start == 0 => self.extent.clone(),
            (rest, bytes) => bytes.or(rest).map_or(Extent::Unbound, Extent::Bytes),
        };
        Buffer { address: self.address + start, extent, owner: self.owner.clone() }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes() {
            Some(bytes) => write!(f, "Buffer({:#x}, {bytes} bytes)", self.address),
            None => write!(f, "Buffer({:#x}, unknown extent)", self.address),
        }
    }
}

/// The data buffers of several arrays of views. A list that several arrays share is kept once: each of many
/// small arrays may have all buffers of the large one that its rows were taken from.
#[derive(Default)]
pub(crate) struct SharedBuffers {
    all: Vec<Buffer>,
    /// The place of the first buffer of each list, by the addresses and lengths of the list.
    places: HashMap<Vec<(usize, usize)>, usize>,
}

impl SharedBuffers {
    /// Returns the place of the first of an array's buffers, which are added if they are not there yet.
    pub fn place(&mut self, own: &[Buffer]) -> usize {
        let key: Option<Vec<_>> = own.iter().map(|one| Some((one.address(), one.bytes()?))).collect();
        let next = self.all.len();
        let place = key.map_or(next, |key| *self.places.entry(key).or_insert(next));
        if place == next {
            self.all.extend_from_slice(own);
        }
        place
    }

    /// The number of buffers.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The list of all buffers, of which each is kept once.
    pub fn into_buffers(self) -> Vec<Buffer> {
        self.all
    }
}

/// One bit per row, least significant bit first, starting `offset` bits into a buffer.
#[derive(Clone, Debug)]
pub struct Bitmap {
    /// The memory that holds the bits.
    pub buffer: Buffer,
    /// The position of the first row's bit in the buffer.
    pub offset: usize,
}

impl Bitmap {
    /// The bitmap without its first `start` rows.
    pub fn slice(&self, start: usize) -> Bitmap {
        Bitmap { buffer: self.buffer.clone(), offset: self.offset + start }
    }
}
