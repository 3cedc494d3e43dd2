//! Copies arrays between host memory and a device.
//!
//! Each call lays out all buffers in one block: one piece of pinned memory, one allocation on the device, and
//! one copy between them, or on the way to the device one for each 16 MiB, which starts as soon as these are
//! filled. The buffers of the new arrays are parts of the block. On the way to the host a
//! kernel first gathers the small buffers; each large one has a copy of its own.

use std::ops::Range;
use std::sync::Arc;

use super::block::{BlockLayout, Piece, gather};
use super::extents::{sized, with_extents};
use super::{host_bytes, pinned_buffer};
use crate::array::{Columns, DeviceArray, Place, number};
use crate::device::{Kept, Stream};
use crate::pass::{Pass, Pending};
use crate::{Error, Result};

/// The size from which a buffer has a copy of its own.
const LARGE: usize = 1 << 20;

impl Stream {
    /// Uploads a host array or batch to this stream's device with one copy. Blocks only until the host memory
    /// may be read; does not synchronise. On the CPU, and for arrays that are already on the device, returns
    /// the input itself.
    pub fn upload<C: Columns>(&self, values: &C) -> Result<C> {
        C::framed(values.frame(), upload(self, values.arrays())?, values.rows())
    }

    /// Downloads an array or a batch of this stream's device to host memory, with one copy if it is small.
    /// The result carries an event for the copy. Synchronises once if only the device knows an extent (of a
    /// foreign string's bytes or a view's data); otherwise never. Arrays in host memory are returned
    /// unchanged.
    pub fn download<C: Columns>(&self, values: &C) -> Result<C> {
        self.download_later(values)?.wait()
    }

    /// Downloads without ever blocking; otherwise like [`Stream::download`].
    pub fn download_later<C: Columns>(&self, values: &C) -> Result<Pending<C>> {
        let (frame, rows) = (values.frame(), values.rows());
        let arrays = download(self, values.arrays().to_vec())?;
        Ok(arrays.map(move |arrays| C::framed(frame, arrays, rows)))
    }
}

fn upload(stream: &Stream, arrays: &[DeviceArray]) -> Result<Vec<DeviceArray>> {
    let _current = stream.enter()?;
    let there = |array: &DeviceArray| array.place() == stream.device().place();
    if arrays.iter().all(there) {
        return Ok(arrays.to_vec());
    }
    for array in arrays {
        if !array.place().device_type.host_accessible() {
            let problem = format!("an array on {} is not in host memory", array.place());
            return Err(Error::invalid("upload", problem));
        }
        host_wait(array)?;
    }
    let mut block_layout =
        BlockLayout { align_bits: Some(stream.device().host_pool().clone()), ..BlockLayout::default() };
    let arrays = with_extents(arrays.to_vec(), &mut |buffer| {
        let unread = || Error::invalid("upload", "a number that is not there");
        number(buffer.bytes().unwrap_or(0), host_bytes(buffer)).ok_or_else(unread)
    })?;
    let laid_out = arrays.iter().map(|array| block_layout.array(array)).collect::<Result<Vec<_>>>()?;
    let total = block_layout.lay_out(usize::MAX)?.total;

    let mut pass = Pass::begin("upload", stream)?;
    let pieces = &block_layout.pieces;
    let block = pass.upload_filled(total, |part, bytes| fill(pieces, part, bytes))?.buffer();
    let (place, ready) = (pass.place(), pass.ready());
    let uploaded = laid_out.into_iter().map(|array| array.build(&block_layout, &block, place, &ready));
    let uploaded = uploaded.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(uploaded)
}

/// Fills a part of a block, of which the pieces are in order.
fn fill(pieces: &[Piece], part: Range<usize>, bytes: &mut [u8]) {
    let first = pieces.partition_point(|piece| piece.at + piece.bytes <= part.start);
    let mut filled = part.start;
    for piece in pieces[first..].iter().take_while(|piece| piece.at < part.end) {
        let Some(from) = &piece.from else { continue };
        let (start, end) = (piece.at.max(part.start), part.end.min(piece.at + piece.bytes));
        if start >= end {
            continue;
        }
        bytes[filled - part.start..start - part.start].fill(0);
        let from = &host_bytes(from)[start - piece.at..end - piece.at];
        bytes[start - part.start..end - part.start].copy_from_slice(from);
        filled = end;
    }
    bytes[filled - part.start..].fill(0);
}

fn download(stream: &Stream, arrays: Vec<DeviceArray>) -> Result<Pending<Vec<DeviceArray>>> {
    if arrays.iter().all(|array| array.place() == Place::CPU) {
        return Ok(Pending::known(Ok(arrays)));
    }
    let _current = stream.enter()?;
    let mut pass = Pass::begin("download", stream)?;
    for array in &arrays {
        pass.input(array)?;
    }
    Ok(sized(pass, arrays, download_sized))
}

fn download_sized(mut pass: Pass, arrays: &[DeviceArray]) -> Result<Vec<DeviceArray>> {
    let mut block_layout = BlockLayout::default();
    let laid_out = arrays.iter().map(|array| block_layout.array(array)).collect::<Result<Vec<_>>>()?;
    let few = block_layout.pieces.iter().filter(|piece| piece.from.is_some()).count() <= 2;
    let size = block_layout.lay_out(if few { 0 } else { LARGE })?;
    let mut staged = pass.stage(size.total)?;
    // The device writes all but the gaps between large pieces, and zeros that have no source.
    let (bytes, mut written) = (&mut staged.pinned_mut().bytes_mut()[..size.total], size.small);
    for piece in block_layout.pieces.iter().filter(|piece| piece.at >= size.small && piece.from.is_some()) {
        bytes[written..piece.at].fill(0);
        written = piece.at + piece.bytes;
    }
    bytes[written..].fill(0);
    let staged = Arc::new(staged);
    let block = pinned_buffer(&staged, size.total);
    // From here on the device may write the block, even if a later step fails.
    pass.keep(Kept::Buffer(block.clone()));
    if size.small > 0 {
        let gathered = gather(&mut pass, &block_layout, size.small)?;
        pass.copy_out(gathered.address(), size.small, &staged, 0)?;
    }
    for piece in block_layout.pieces.iter().filter(|piece| piece.at >= size.small) {
        if let Some(from) = &piece.from {
            pass.copy_out(from.address(), piece.bytes, &staged, piece.at)?;
        }
    }
    let ready = pass.ready();
    let arrays = laid_out.into_iter().map(|array| array.build(&block_layout, &block, Place::CPU, &ready));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(arrays)
}

/// Blocks until a host array and its descendants may be read.
fn host_wait(array: &DeviceArray) -> Result<()> {
    array.ready().map_or(Ok(()), |ready| ready.wait())?;
    array.children().iter().chain(array.dictionary()).try_for_each(host_wait)
}
