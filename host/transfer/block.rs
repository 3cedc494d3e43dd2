//! Lays out a copy of arrays as one block: the pieces of buffers that move, their positions, and the arrays
//! over the resulting block.

use std::sync::Arc;

use arrow_buffer::bit_mask::set_bits;
use arrow_schema::{DataType, UnionMode};

use super::gathered::Gathered;
use super::host_bytes;
use crate::array::{Bitmap, Buffer, DeviceArray, Parts, Place, Ready, Slot};
use crate::device::HostPool;
use crate::pass::{Pass, Region};
use crate::{Error, Result};

/// The alignment of buffers in a block. The gaps between them are zero.
const ALIGNMENT: usize = 64;

/// The pieces of buffers that move, and their positions in the block.
#[derive(Default)]
pub(super) struct BlockLayout {
    pub pieces: Vec<Piece>,
    /// Set for host arrays: their bitmaps are moved to begin at a byte, so that consumers on the device find
    /// validity aligned with the values.
    pub align_bits: Option<HostPool>,
}

/// One piece of a block.
pub(super) struct Piece {
    /// The source of the bytes; `None` for zeros.
    pub from: Option<Buffer>,
    pub bytes: usize,
    pub at: usize,
}

pub(super) struct BlockSize {
    /// The size of the first part of the block, which only has small pieces.
    pub small: usize,
    pub total: usize,
}

/// An array whose buffers are pieces of a block.
pub(super) struct LaidOut {
    parts: Parts,
    validity: Option<(usize, usize)>,
    buffers: Vec<usize>,
    children: Vec<LaidOut>,
    dictionary: Option<Box<LaidOut>>,
}

impl BlockLayout {
    /// Adds a piece of a buffer's bytes, or of zeros. Returns its index.
    pub fn piece(&mut self, from: Option<Buffer>, bytes: usize) -> usize {
        let from = from.filter(|_| bytes > 0).map(|buffer| buffer.slice(0, Some(bytes)));
        self.pieces.push(Piece { from, bytes, at: 0 });
        self.pieces.len() - 1
    }

    /// Assigns a position to each piece. Pieces smaller than `large` come first.
    pub fn lay_out(&mut self, large: usize) -> Result<BlockSize> {
        let overflow = || Error::invalid("copy", "the buffers together exceed any memory");
        let mut place = |at: usize, is_small: bool| {
            let pieces = self.pieces.iter_mut().filter(|piece| (piece.bytes < large) == is_small);
            pieces.into_iter().try_fold(at, |at, piece| {
                piece.at = at;
                at.checked_add(piece.bytes)?.checked_next_multiple_of(ALIGNMENT)
            })
        };
        let small = place(0, true).ok_or_else(overflow)?;
        Ok(BlockSize { small, total: place(small, false).ok_or_else(overflow)? })
    }

    /// Plans the copy of an array whose extents are known. Leaves out bytes before and after its rows, as far
    /// as that is possible without reading offsets.
    pub fn array(&mut self, array: &DeviceArray) -> Result<LaidOut> {
        let aligned = self.align_bits.as_ref().map(|pool| with_aligned_bits(array, pool)).transpose()?;
        let array = aligned.as_ref().unwrap_or(array);
        let (offset, len, data_type) = (array.offset(), array.len(), array.data_type());
        let mut parts = Parts::new(data_type.clone(), len);
        let layout = array.layout();
        let unknown = || Error::out_of_spec("array.buffers", "nothing says how long a buffer is");
        let mut buffers = vec![];
        for (slot, buffer) in layout.slots().zip(array.buffers()) {
            let rows = |width: usize, rows: usize| (buffer.slice(offset * width, None), rows * width);
            let (from, bytes) = match slot {
                Slot::Bits => {
                    parts.offset = offset % 8;
                    (buffer.slice(offset / 8, None), (offset % 8 + len).div_ceil(8))
                }
                Slot::Fixed(width) => rows(width, len),
                Slot::Views => rows(16, len),
                Slot::Offsets(width) if len == 0 => {
                    buffers.push(self.piece(None, width));
                    continue;
                }
                Slot::Offsets(width) => rows(width, len + 1),
                Slot::Bytes if len == 0 => (buffer.clone(), 0),
                Slot::Bytes => (buffer.clone(), buffer.bytes().ok_or_else(unknown)?),
            };
            buffers.push(self.piece(Some(from), bytes));
        }
        for buffer in array.buffers().iter().skip(buffers.len()) {
            // Without rows, no view points into the buffer.
            let bytes = if len == 0 { 0 } else { buffer.bytes().ok_or_else(unknown)? };
            buffers.push(self.piece(Some(buffer.clone()), bytes));
        }
        let validity = array.validity().map(|bits| {
            let (first, bytes) = (bits.offset / 8, (bits.offset % 8 + len).div_ceil(8));
            (self.piece(Some(bits.buffer.slice(first, None)), bytes), bits.offset % 8)
        });
        let by_row = matches!(
            data_type,
            DataType::Struct(_) | DataType::FixedSizeList(..) | DataType::Union(_, UnionMode::Sparse)
        );
        if matches!(data_type, DataType::RunEndEncoded(..)) {
            parts.offset = offset;
        }
        let children = (0..array.children().len()).map(|i| match by_row {
            true => self.array(&array.child_rows(i)?),
            false => self.array(&array.children()[i]),
        });
        let children = children.collect::<Result<Vec<_>>>()?;
        let dictionary = array.dictionary().map(|values| self.array(values)).transpose()?.map(Box::new);
        parts.null_count = array.known_null_count();
        Ok(LaidOut { parts, validity, buffers, children, dictionary })
    }
}

/// The same rows of a host array, with bitmaps that begin at a byte.
fn with_aligned_bits(array: &DeviceArray, pool: &HostPool) -> Result<DeviceArray> {
    let bits = array.layout().slots[0] == Some(Slot::Bits);
    let first_bits = [array.validity().map(|bits| bits.offset), bits.then_some(array.offset())];
    if first_bits.into_iter().flatten().all(|bit| bit.is_multiple_of(8)) {
        return Ok(array.clone());
    }
    let aligned = |from: &Buffer, first: usize| {
        let bytes = array.len().div_ceil(8);
        let mut memory = pool.alloc_zeroed(bytes)?;
        set_bits(memory.bytes_mut(), host_bytes(from), 0, first, array.len());
        Ok(memory.freeze(bytes))
    };
    let mut parts = array.clone().into_parts();
    if let Some(bits) = &mut parts.validity {
        *bits = Bitmap { buffer: aligned(&bits.buffer, bits.offset)?, offset: 0 };
    }
    if bits {
        parts.buffers[0] = aligned(&parts.buffers[0], parts.offset)?;
        parts.offset = 0;
    }
    DeviceArray::try_new(parts)
}

impl LaidOut {
    /// Builds the array over a block that contains the layout's pieces.
    pub fn build(
        self,
        block_layout: &BlockLayout,
        block: &Buffer,
        place: Place,
        ready: &Arc<dyn Ready>,
    ) -> Result<DeviceArray> {
        let part = |piece: usize| {
            let piece = &block_layout.pieces[piece];
            block.slice(piece.at, Some(piece.bytes))
        };
        let below = |laid_out: LaidOut| laid_out.build(block_layout, block, place, ready);
        let (children, dictionary) = (self.children, self.dictionary);
        DeviceArray::try_new(Parts {
            validity: self.validity.map(|(piece, offset)| Bitmap { buffer: part(piece), offset }),
            buffers: self.buffers.into_iter().map(part).collect(),
            children: children.into_iter().map(below).collect::<Result<_>>()?,
            dictionary: dictionary.map(|values| below(*values)).transpose()?,
            place,
            ready: Some(ready.clone()),
            ..self.parts
        })
    }
}

/// Gathers the small pieces of the layout, which are those before byte `total`, in device memory. The gaps
/// are zero.
pub(super) fn gather(pass: &mut Pass, block_layout: &BlockLayout, total: usize) -> Result<Region> {
    let mut gathered = Gathered::default();
    // Small pieces have positions in the order of this list.
    for piece in block_layout.pieces.iter().filter(|piece| piece.at < total && piece.bytes > 0) {
        gathered.zeros(piece.at);
        if let Some(from) = &piece.from {
            gathered.bytes(from, piece.bytes);
        }
    }
    gathered.zeros(total);
    gathered.launch(pass)
}
