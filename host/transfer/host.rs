//! Copies arrays between host memory and a device.
//!
//! Each call lays out all buffers in one block, of which the buffers of the new arrays are parts: one
//! allocation, and one copy.
//!
//! To the device, each 16 MiB have pinned memory and a copy of their own, which starts as soon as threads
//! have filled them. To the host, a kernel first gathers the small buffers, and each large one has a copy of
//! its own. A downloaded block stays in pinned memory, unless it has more than 256 MiB. No copy needs more
//! pinned memory than that. Either kind of memory counts against the host's limit.

use std::ops::Range;
use std::sync::Arc;

use super::block::{BlockLayout, BlockSize, Piece, gather};
use super::extents::{sized_arrays, with_extents};
use super::{host_bytes, pinned_buffer};
use crate::array::{Buffer, Columns, DeviceArray, Place, number};
use crate::device::{Kept, Stream};
use crate::pass::{Pass, Pending, RING};
use crate::threads::{among_threads, each_part};
use crate::{Error, Result};

/// The size from which a buffer has a copy of its own.
const LARGE: usize = 1 << 20;

/// The bytes that a thread copies at once.
const SHARE: usize = 1 << 20;

impl Stream {
    /// Uploads a host array or batch to this stream's device, with one copy for each 16 MiB. Blocks until the
    /// host memory may be read, and has been read. Does not synchronise, unless it uploads more than 256 MiB:
    /// then it waits until the device has copied the first of them. On the CPU, and for arrays that are
    /// already on the device, returns the input itself. The CPU also takes memory that a device shares with
    /// it as it is: pinned and managed memory.
    pub fn upload<C: Columns>(&self, values: &C) -> Result<C> {
        C::framed(values.frame(), upload(self, values.arrays())?, values.rows())
    }

    /// Downloads an array or a batch of this stream's device to host memory, with one copy if it is small.
    /// The result carries an event for the copy. Synchronises once if only the device knows an extent (of a
    /// foreign string's bytes or a view's data). Waits for all bytes if there are more than 256 MiB, since
    /// these come part by part; otherwise never synchronises. Arrays in host memory are returned unchanged;
    /// on the CPU's stream, so are those in pinned and managed memory.
    pub fn download<C: Columns>(&self, values: &C) -> Result<C> {
        self.download_later(values)?.wait()
    }

    /// Downloads without ever blocking; otherwise like [`Stream::download`]. More than 256 MiB arrive only
    /// while somebody waits for the result or polls it, because the host copies each part.
    pub fn download_later<C: Columns>(&self, values: &C) -> Result<Pending<C>> {
        let (frame, rows) = (values.frame(), values.rows());
        let arrays = download(self, values.arrays().to_vec())?;
        Ok(arrays.map(move |arrays| C::framed(frame, arrays, rows)))
    }
}

/// Whether the stream is the CPU's, which reads the array where it is. A GPU gets a copy even of memory that
/// it shares, because it reads its own faster.
fn is_read_in_place(stream: &Stream, array: &DeviceArray) -> bool {
    let own = stream.device().place();
    own == Place::CPU && own.reaches(array.place())
}

fn upload(stream: &Stream, arrays: &[DeviceArray]) -> Result<Vec<DeviceArray>> {
    let _current = stream.enter()?;
    let there =
        |array: &DeviceArray| array.place() == stream.device().place() || is_read_in_place(stream, array);
    if arrays.iter().all(there) {
        return Ok(arrays.to_vec());
    }
    let moved: Vec<DeviceArray> = arrays.iter().filter(|array| !there(array)).cloned().collect();
    if moved.len() < arrays.len() {
        return Ok(in_their_places(arrays, there, upload(stream, &moved)?));
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
    let block =
        pass.upload_filled(total, |part, bytes| fill_among_threads(pieces, part.start, bytes))?.buffer();
    let (place, ready) = (pass.place(), pass.ready());
    let uploaded = laid_out.into_iter().map(|array| array.build(&block_layout, &block, place, &ready));
    let uploaded = uploaded.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(uploaded)
}

/// Arrays, of which those that do not stay are replaced by others.
pub(super) fn in_their_places(
    arrays: &[DeviceArray],
    stays: impl Fn(&DeviceArray) -> bool,
    moved: Vec<DeviceArray>,
) -> Vec<DeviceArray> {
    let mut moved = moved.into_iter();
    let replaced = |array: &DeviceArray| match stays(array) {
        true => array.clone(),
        false => moved.next().unwrap_or_else(|| array.clone()),
    };
    arrays.iter().map(replaced).collect()
}

/// Fills the bytes of a block from `start` on. Large copies are as fast as the threads that make them.
fn fill_among_threads(pieces: &[Piece], start: usize, bytes: &mut [u8]) -> Result<()> {
    if bytes.len() <= 2 * SHARE {
        fill(pieces, start..start + bytes.len(), bytes);
        return Ok(());
    }
    among_threads(true, |_| {
        let shares = bytes.chunks_mut(SHARE).zip((start..).step_by(SHARE));
        each_part(shares, |(bytes, start)| fill(pieces, start..start + bytes.len(), bytes)).map(|_| ())
    })
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
    let on = stream.clone();
    let stays = move |array: &DeviceArray| array.place() == Place::CPU || is_read_in_place(&on, array);
    let moved: Vec<DeviceArray> = arrays.iter().filter(|array| !stays(array)).cloned().collect();
    if moved.is_empty() {
        return Ok(Pending::known(Ok(arrays)));
    }
    if moved.len() < arrays.len() {
        let moved = download(stream, moved)?;
        return Ok(moved.map(move |moved| Ok(in_their_places(&arrays, stays, moved))));
    }
    let _current = stream.enter()?;
    let mut pass = Pass::begin("download", stream)?;
    for array in &arrays {
        pass.input(array)?;
    }
    let stream = stream.clone();
    Ok(Pending::begin(&stream, async move {
        let arrays = sized_arrays(&mut pass, arrays).await?;
        download_sized(pass, &arrays).await
    }))
}

async fn download_sized(mut pass: Pass, arrays: &[DeviceArray]) -> Result<Vec<DeviceArray>> {
    let mut block_layout = BlockLayout::default();
    let laid_out = arrays.iter().map(|array| block_layout.array(array)).collect::<Result<Vec<_>>>()?;
    let few = block_layout.pieces.iter().filter(|piece| piece.from.is_some()).count() <= 2;
    let size = block_layout.lay_out(if few { 0 } else { LARGE })?;
    let block = match size.total > RING {
        true => download_parts(&mut pass, &block_layout, &size).await?,
        false => download_whole(&mut pass, &block_layout, &size)?,
    };
    let ready = pass.ready();
    let arrays = laid_out.into_iter().map(|array| array.build(&block_layout, &block, Place::CPU, &ready));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(arrays)
}

/// Downloads a block to pinned memory, which stays the block's.
fn download_whole(pass: &mut Pass, block_layout: &BlockLayout, size: &BlockSize) -> Result<Buffer> {
    // Pinned memory is the host's, too, so it counts against the host's limit while the result lives.
    let reserved = pass.stream().device().host_pool().reserve(size.total)?;
    let mut staged = pass.stage(size.total)?;
    fill_gaps(block_layout, size, staged.pinned_mut().bytes_mut());
    let staged = Arc::new(staged);
    let block = pinned_buffer(&staged, size.total).kept_with(Arc::new(reserved));
    // From here on the device may write the block, even if a later step fails.
    pass.keep(Kept::Buffer(block.clone()));
    for (from, bytes, at) in ranges(pass, block_layout, size)? {
        pass.copy_out(from, bytes, &staged, at)?;
    }
    Ok(block)
}

/// Downloads a block to ordinary memory, by way of a little pinned memory: to pin much takes longer than to
/// copy it, and no other program can use it.
async fn download_parts(pass: &mut Pass, block_layout: &BlockLayout, size: &BlockSize) -> Result<Buffer> {
    let mut memory = pass.stream().device().host_pool().alloc(size.total)?;
    fill_gaps(block_layout, size, memory.bytes_mut());
    let ranges = ranges(pass, block_layout, size)?;
    let into = |at: usize, from: &[u8]| {
        among_threads(from.len() > 2 * SHARE, |_| {
            let shares = memory.bytes_mut()[at..at + from.len()].chunks_mut(SHARE).zip(from.chunks(SHARE));
            each_part(shares, |(to, from)| to.copy_from_slice(from)).map(|_| ())
        })
    };
    pass.download_parts(&ranges, into).await?;
    Ok(memory.freeze(size.total))
}

/// Fills what the device does not write of a block: the gaps between large pieces, and zeros that have no
/// source.
fn fill_gaps(block_layout: &BlockLayout, size: &BlockSize, bytes: &mut [u8]) {
    let mut written = size.small;
    for piece in block_layout.pieces.iter().filter(|piece| piece.at >= size.small && piece.from.is_some()) {
        bytes[written..piece.at].fill(0);
        written = piece.at + piece.bytes;
    }
    bytes[written..size.total].fill(0);
}

/// The device memory that a block comes from: addresses, lengths, and places in the block. Small pieces are
/// gathered first.
fn ranges(
    pass: &mut Pass,
    block_layout: &BlockLayout,
    size: &BlockSize,
) -> Result<Vec<(usize, usize, usize)>> {
    let mut ranges = vec![];
    if size.small > 0 {
        ranges.push((gather(pass, block_layout, size.small)?.address(), size.small, 0));
    }
    let large = block_layout.pieces.iter().filter(|piece| piece.at >= size.small);
    ranges.extend(large.filter_map(|piece| Some((piece.from.as_ref()?.address(), piece.bytes, piece.at))));
    Ok(ranges)
}

/// Blocks until a host array and its descendants may be read.
fn host_wait(array: &DeviceArray) -> Result<()> {
    array.ready().map_or(Ok(()), |ready| ready.wait())?;
    array.children().iter().chain(array.dictionary()).try_for_each(host_wait)
}
