//! Arrays from host memory to a device's and back.
//!
//! What a call moves is laid out in one block, however many buffers it has: one piece of pinned memory, one allocation on
//! the device, and one copy between them, of which the new arrays' buffers are parts. On the way to the host a kernel first
//! gathers the small buffers; large ones have a copy of their own.

use std::sync::Arc;

use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType, UnionMode};
use bowstring_kernels::copy::{BYTES_PER_LANE, COPY_VIEWS, CopyViews};
use bowstring_kernels::memory::In;
use bowstring_kernels::target::find;
use bowstring_kernels::views::BufferRow;

use super::{Pass, Pending, Region, host_bytes, pinned_buffer};
use crate::array::{Array, Batch, Bitmap, Buffer, Parts, Place, Ready, Slot};
use crate::device::{HostPool, Kept, Stream};
use crate::{Error, Result};

/// Every buffer starts at a multiple of this, and what is between them is zero.
const ALIGNMENT: usize = 64;
/// A buffer of at least this many bytes is worth a copy of its own.
const LARGE: usize = 1 << 20;

impl Stream {
    /// A host array on this stream's device. Does not block, but for the memory it reads; does not synchronise. On the
    /// CPU it is the array itself, as is an array that is on the device already.
    pub fn upload(&self, array: &Array) -> Result<Array> {
        let mut arrays = upload(self, std::slice::from_ref(array))?;
        arrays.pop().ok_or_else(|| Error::invalid("upload", "no array"))
    }

    /// As [`Stream::upload`]: one copy for all columns.
    pub fn upload_batch(&self, batch: &Batch) -> Result<Batch> {
        Batch::try_new(batch.schema().clone(), upload(self, batch.columns())?, batch.len())
    }

    /// An array of this stream's device in host memory; it says when it may be read. Synchronises once where the extent of
    /// a foreign string's bytes is not known, else never. A host array is itself.
    pub fn download(&self, array: &Array) -> Result<Array> {
        let mut arrays = download(self, vec![array.clone()])?.wait()?;
        arrays.pop().ok_or_else(|| Error::invalid("download", "no array"))
    }

    /// As [`Stream::download`], for all columns at once.
    pub fn download_batch(&self, batch: &Batch) -> Result<Batch> {
        self.download_batch_later(batch)?.wait()
    }

    /// As [`Stream::download_batch`], without ever blocking.
    pub fn download_batch_later(&self, batch: &Batch) -> Result<Pending<Batch>> {
        let (schema, len) = (batch.schema().clone(), batch.len());
        let columns = download(self, batch.columns().to_vec())?;
        Ok(columns.map(move |columns| Batch::try_new(schema, columns, len)))
    }
}

fn upload(stream: &Stream, arrays: &[Array]) -> Result<Vec<Array>> {
    let there = |array: &Array| array.place() == stream.device().place();
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
    let mut plan = Plan { align_bits: Some(stream.device().host_pool().clone()), ..Plan::default() };
    let sizes = unknown_ends(arrays)?.into_iter().map(|end| end.read(host_bytes(&end.at)));
    let mut sizes = sizes.collect::<Result<Vec<_>>>()?.into_iter();
    let planned = arrays.iter().map(|array| plan.array(array, &mut sizes)).collect::<Result<Vec<_>>>()?;
    let total = plan.lay_out(usize::MAX)?.total;

    let mut pass = Pass::begin("upload", stream)?;
    let mut staged = pass.stage(total)?;
    let block = &mut staged.pinned_mut().bytes_mut()[..total];
    block.fill(0);
    for piece in &plan.pieces {
        if let Some(from) = &piece.from {
            block[piece.at..][..piece.bytes].copy_from_slice(host_bytes(from));
        }
    }
    let block = pass.upload_staged(staged, total)?.buffer();
    let (place, ready) = (pass.place(), pass.ready.clone());
    let uploaded = planned.into_iter().map(|array| array.build(&plan, &block, place, &ready));
    let uploaded = uploaded.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(uploaded)
}

fn download(stream: &Stream, arrays: Vec<Array>) -> Result<Pending<Vec<Array>>> {
    if arrays.iter().all(|array| array.place() == Place::CPU) {
        return Ok(Pending::known(Ok(arrays)));
    }
    let mut pass = Pass::begin("download", stream)?;
    for array in &arrays {
        pass.input(array)?;
    }
    sized(pass, arrays, download_sized)
}

/// Goes on with a pass once the extents of all its arrays are known: at once, or when those that only the device knows have
/// been read.
pub(super) fn sized(
    mut pass: Pass,
    arrays: Vec<Array>,
    then: impl FnOnce(Pass, &[Array], Vec<usize>) -> Result<Vec<Array>> + Send + 'static,
) -> Result<Pending<Vec<Array>>> {
    let ends = unknown_ends(&arrays)?;
    if ends.is_empty() {
        return Ok(Pending::known(then(pass, &arrays, vec![])));
    }
    let mut plan = Plan::default();
    for end in &ends {
        plan.piece(Some(end.at.clone()), end.width);
    }
    let total = plan.lay_out(usize::MAX)?.total;
    let gathered = gather(&mut pass, &plan, total)?;
    let places: Vec<usize> = plan.pieces.iter().map(|piece| piece.at).collect();
    pass.read_later(&gathered, move |pass, words| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let sizes = ends.iter().zip(places).map(|(end, at)| end.read(&bytes[at..]));
        then(pass, &arrays, sizes.collect::<Result<Vec<_>>>()?)
    })
}

fn download_sized(mut pass: Pass, arrays: &[Array], sizes: Vec<usize>) -> Result<Vec<Array>> {
    let (mut plan, mut sizes) = (Plan::default(), sizes.into_iter());
    let planned = arrays.iter().map(|array| plan.array(array, &mut sizes)).collect::<Result<Vec<_>>>()?;
    let few = plan.pieces.iter().filter(|piece| piece.from.is_some()).count() <= 2;
    let laid_out = plan.lay_out(if few { 0 } else { LARGE })?;
    let mut staged = pass.stage(laid_out.total)?;
    staged.pinned_mut().bytes_mut()[..laid_out.total].fill(0);
    let staged = Arc::new(staged);
    let block = pinned_buffer(&staged, laid_out.total);
    // From here on the block may be written by the device, whatever goes wrong.
    pass.kept.push(Kept::Buffer(block.clone()));
    if laid_out.small > 0 {
        let gathered = gather(&mut pass, &plan, laid_out.small)?;
        pass.copy_out(gathered.memory.address(), laid_out.small, &staged, 0)?;
    }
    for piece in plan.pieces.iter().filter(|piece| piece.at >= laid_out.small) {
        if let Some(from) = &piece.from {
            pass.copy_out(from.address(), piece.bytes, &staged, piece.at)?;
        }
    }
    let ready = pass.ready.clone();
    let arrays = planned.into_iter().map(|array| array.build(&plan, &block, Place::CPU, &ready));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(arrays)
}

/// The pieces before byte `total` of the layout, gathered in device memory: each is a row of views that point to buffers,
/// what is between them are rows of zeros.
pub(super) fn gather(pass: &mut Pass, plan: &Plan, total: usize) -> Result<Region> {
    let (mut views, mut places, mut buffers) = (vec![], vec![], vec![]);
    let mut at = 0;
    let zeros = |views: &mut Vec<u64>, places: &mut Vec<u64>, at: &mut usize, upto: usize| {
        while *at < upto {
            // A row of up to 12 bytes is in its view.
            let bytes = (upto - *at).min(12);
            views.extend([bytes as u64, 0]);
            places.push(*at as u64);
            *at += bytes;
        }
    };
    let mut pieces: Vec<&Piece> =
        plan.pieces.iter().filter(|piece| piece.at < total && piece.bytes > 0).collect();
    pieces.sort_by_key(|piece| piece.at);
    for piece in pieces {
        zeros(&mut views, &mut places, &mut at, piece.at);
        let Some(from) = &piece.from else { continue };
        // Any length over 12 says that the bytes are in a buffer; how many is the distance to the next row.
        views.extend([13, buffers.len() as u64]);
        places.push(at as u64);
        let limit = piece.bytes as u64;
        let (bytes, offset) = In::bitmap(from.address() as u64, limit, 0);
        buffers.push(BufferRow { bytes, offset, limit }.words());
        at += piece.bytes;
    }
    zeros(&mut views, &mut places, &mut at, total);
    let rows = places.len();
    places.push(total as u64);

    let tables = pass.upload(&[&views[..], &places, buffers.as_flattened()].concat())?;
    let gathered = pass.output(total)?;
    let entry = find(COPY_VIEWS, &[8]).ok_or_else(|| pass.unsupported("gathering"))?;
    let (views_end, places_end) = (views.len() * 8, (views.len() + places.len()) * 8);
    let args = CopyViews {
        to: tables.part(views_end, places_end),
        views: tables.part(0, views_end),
        rows: rows as u64,
        buffers: tables.part(places_end, tables.bytes()),
        out: gathered.out(),
        len: total as u64,
    };
    let per_wave = BYTES_PER_LANE * u64::from(pass.width());
    pass.launch(entry, (total as u64).div_ceil(per_wave), &args)?;
    Ok(gathered)
}

/// Blocks until a host array and all below it may be read.
fn host_wait(array: &Array) -> Result<()> {
    array.ready().map_or(Ok(()), |ready| ready.wait())?;
    array.children().iter().chain(array.dictionary()).try_for_each(host_wait)
}

/// The last offset of an array whose bytes have no known extent.
struct End {
    at: Buffer,
    width: usize,
}

impl End {
    fn read(&self, bytes: &[u8]) -> Result<usize> {
        let size = match (self.width, bytes) {
            (4, [a, b, c, d, ..]) => i64::from(i32::from_ne_bytes([*a, *b, *c, *d])),
            (_, [a, b, c, d, e, f, g, h, ..]) => i64::from_ne_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
            _ => -1,
        };
        usize::try_from(size).map_err(|_| Error::out_of_spec("array.buffers", format!("offset {size}")))
    }
}

fn unknown_ends(arrays: &[Array]) -> Result<Vec<End>> {
    let mut ends = vec![];
    arrays.iter().try_for_each(|array| add_unknown_ends(array, &mut ends))?;
    Ok(ends)
}

/// In the order in which [`Plan::array`] wants their values.
fn add_unknown_ends(array: &Array, ends: &mut Vec<End>) -> Result<()> {
    if let ([Some(Slot::Offsets(width)), Some(Slot::Bytes)], [offsets, bytes]) =
        (array.layout().slots, array.buffers())
        && bytes.bytes().is_none()
        && !array.is_empty()
    {
        let at = offsets.slice((array.offset() + array.len()) * width, Some(width));
        ends.push(End { at, width });
    }
    array.children().iter().chain(array.dictionary()).try_for_each(|child| add_unknown_ends(child, ends))
}

/// The buffers that go over, and where in the block each goes.
#[derive(Default)]
pub(super) struct Plan {
    pieces: Vec<Piece>,
    /// For host arrays: bitmaps begin with a byte, so that no consumer on the device finds validity out of step.
    align_bits: Option<HostPool>,
}

struct Piece {
    /// `None` for zeros.
    from: Option<Buffer>,
    bytes: usize,
    at: usize,
}

pub(super) struct LaidOut {
    /// What is before this is small pieces only.
    small: usize,
    pub total: usize,
}

/// An array whose buffers are pieces.
pub(super) struct Planned {
    parts: Parts,
    validity: Option<(usize, usize)>,
    buffers: Vec<usize>,
    children: Vec<Planned>,
    dictionary: Option<Box<Planned>>,
}

impl Plan {
    fn piece(&mut self, from: Option<Buffer>, bytes: usize) -> usize {
        let from = from.filter(|_| bytes > 0).map(|buffer| buffer.slice(0, Some(bytes)));
        self.pieces.push(Piece { from, bytes, at: 0 });
        self.pieces.len() - 1
    }

    /// Gives each piece its place: those smaller than `large` first.
    pub fn lay_out(&mut self, large: usize) -> Result<LaidOut> {
        let overflow = || Error::invalid("copy", "the buffers together exceed any memory");
        let mut place = |at: usize, is_small: bool| {
            let pieces = self.pieces.iter_mut().filter(|piece| (piece.bytes < large) == is_small);
            pieces.into_iter().try_fold(at, |at, piece| {
                piece.at = at;
                at.checked_add(piece.bytes)?.checked_next_multiple_of(ALIGNMENT)
            })
        };
        let small = place(0, true).ok_or_else(overflow)?;
        Ok(LaidOut { small, total: place(small, false).ok_or_else(overflow)? })
    }

    /// Plans an array's rows, nothing before or behind them where that can be told without reading them.
    pub fn array(&mut self, array: &Array, sizes: &mut impl Iterator<Item = usize>) -> Result<Planned> {
        let aligned = self.align_bits.as_ref().map(|pool| with_aligned_bits(array, pool)).transpose()?;
        let array = aligned.as_ref().unwrap_or(array);
        let (offset, len, data_type) = (array.offset(), array.len(), array.data_type());
        let mut parts = Parts::new(data_type.clone(), len);
        let layout = array.layout();
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
                Slot::Bytes => {
                    let bytes = buffer.bytes().or_else(|| sizes.next());
                    (buffer.clone(), bytes.unwrap_or(0))
                }
            };
            buffers.push(self.piece(Some(from), bytes));
        }
        for buffer in array.buffers().iter().skip(buffers.len()) {
            let unknown = || Error::out_of_spec("array.buffers", "a view's data has no known extent");
            let bytes = buffer.bytes().ok_or_else(unknown)?;
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
            true => self.array(&array.child_rows(i)?, sizes),
            false => self.array(&array.children()[i], sizes),
        });
        let children = children.collect::<Result<Vec<_>>>()?;
        let dictionary =
            array.dictionary().map(|values| self.array(values, sizes)).transpose()?.map(Box::new);
        parts.null_count = array.known_null_count();
        Ok(Planned { parts, validity, buffers, children, dictionary })
    }
}

/// The same rows of a host array, its own bitmaps beginning with a byte.
fn with_aligned_bits(array: &Array, pool: &HostPool) -> Result<Array> {
    let bits = array.layout().slots[0] == Some(Slot::Bits);
    let first_bits = [array.validity().map(|bits| bits.offset), bits.then_some(array.offset())];
    if first_bits.into_iter().flatten().all(|bit| bit.is_multiple_of(8)) {
        return Ok(array.clone());
    }
    let aligned = |from: &Buffer, first: usize| {
        let mut copy = BooleanBufferBuilder::new(array.len());
        copy.append_packed_range(first..first + array.len(), host_bytes(from));
        let bytes = copy.as_slice();
        let mut memory = pool.alloc(bytes.len())?;
        memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(memory.freeze(bytes.len()))
    };
    let mut parts = array.clone().into_parts();
    if let Some(bits) = &mut parts.validity {
        *bits = Bitmap { buffer: aligned(&bits.buffer, bits.offset)?, offset: 0 };
    }
    if bits {
        parts.buffers[0] = aligned(&parts.buffers[0], parts.offset)?;
        parts.offset = 0;
    }
    Array::try_new(parts)
}

impl Planned {
    /// The array over a block that the plan's pieces are in.
    pub fn build(self, plan: &Plan, block: &Buffer, place: Place, ready: &Arc<dyn Ready>) -> Result<Array> {
        let part = |piece: usize| {
            let piece = &plan.pieces[piece];
            block.slice(piece.at, Some(piece.bytes))
        };
        let below = |planned: Planned| planned.build(plan, block, place, ready);
        let (children, dictionary) = (self.children, self.dictionary);
        Array::try_new(Parts {
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
