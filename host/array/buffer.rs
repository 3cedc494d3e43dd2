//! Memory on some device, and whatever keeps it alive.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Whatever must live as long as a buffer does: an allocation, a foreign array, an arrow-rs buffer.
pub type Owner = Arc<dyn Any + Send + Sync>;

/// Device memory, shared: an address, an extent, an owner. Cloning and slicing copy nothing.
///
/// The address means something to the device it belongs to; only a device's own code may follow it.
#[derive(Clone)]
pub struct Buffer {
    address: usize,
    extent: Extent,
    owner: Owner,
}

/// How long a buffer is.
#[derive(Clone)]
enum Extent {
    Bytes(usize),
    /// A signed number of 4 or 8 bytes in memory of its device, at any address, says so.
    SaidBy(Arc<Buffer>),
    /// The array that it becomes part of says so: see `extents.rs`.
    Unbound,
}

impl Buffer {
    /// A buffer over memory that `owner` keeps alive. `bytes` is `None` where the extent is data on a device
    /// (the C interface does not carry the size of a string's bytes): then it ends where the last offset says of the array
    /// that is made of it, and for every part of that array too.
    ///
    /// # Safety
    ///
    /// The memory must be readable on its device for `bytes` (where unknown: for what the rows of the array need, or its
    /// last offset says), and must not change, for as long as `owner` lives. A null address must have zero bytes.
    #[allow(unsafe_code)]
    pub unsafe fn new(address: usize, bytes: Option<usize>, owner: Owner) -> Buffer {
        Buffer { address, extent: bytes.map_or(Extent::Unbound, Extent::Bytes), owner }
    }

    /// The same memory, as long as a number on its device says: one of 4 or 8 bytes.
    pub(crate) fn said_by(&self, number: Buffer) -> Buffer {
        Buffer { extent: Extent::SaidBy(Arc::new(number)), ..self.clone() }
    }

    /// The same memory, as long as somebody has found out that it is.
    pub(super) fn with_bytes(&self, bytes: usize) -> Buffer {
        Buffer { extent: Extent::Bytes(bytes), ..self.clone() }
    }

    /// Whether an array that it is made part of has to say how long it is.
    pub(super) fn is_unbound(&self) -> bool {
        matches!(self.extent, Extent::Unbound)
    }

    /// A buffer of no bytes at no address.
    pub fn empty() -> Buffer {
        Buffer { address: 0, extent: Extent::Bytes(0), owner: Arc::new(()) }
    }

    /// Where it starts.
    pub fn address(&self) -> usize {
        self.address
    }

    /// How many bytes it has, where that is known.
    pub fn bytes(&self) -> Option<usize> {
        match self.extent {
            Extent::Bytes(bytes) => Some(bytes),
            Extent::SaidBy(_) | Extent::Unbound => None,
        }
    }

    /// The number that says how many they are, where only their device knows: 4 or 8 bytes.
    pub(crate) fn extent_at(&self) -> Option<&Buffer> {
        if let Extent::SaidBy(number) = &self.extent { Some(number) } else { None }
    }

    /// What keeps it alive.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The same memory, and something else that lives as long.
    pub(crate) fn kept_with(&self, also: Owner) -> Buffer {
        Buffer { owner: Arc::new((self.owner.clone(), also)), ..self.clone() }
    }

    /// The part from byte `start`, at most `bytes` of it where given.
    ///
    /// # Panics
    ///
    /// Where the part is not inside the buffer, as far as its extent is known.
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

/// One bit a row, least significant first, starting `offset` bits into a buffer.
#[derive(Clone, Debug)]
pub struct Bitmap {
    /// The bytes.
    pub buffer: Buffer,
    /// The bit of the first row.
    pub offset: usize,
}

impl Bitmap {
    /// The same bits from row `start` on.
    pub fn slice(&self, start: usize) -> Bitmap {
        Bitmap { buffer: self.buffer.clone(), offset: self.offset + start }
    }
}
