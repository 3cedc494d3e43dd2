//! Imports a foreign array and its descendants, and checks each node. `import.rs` documents what is checked
//! and what is believed.

use std::sync::Arc;

use arrow_schema::DataType;

use super::{export, extents};
use crate::array::{
    Bitmap, Buffer, DeviceArray, Owner, Parts, Place, Ready, Slot, children, fits, layout, well_formed,
};
use crate::device::Device;
use crate::ffi::ArrowArray;
use crate::{Error, Result};

/// The most data buffers of a view array: more than a view's 32-bit index can address.
const MAX_VARIADIC: usize = 1 << 31;

/// The context that all nodes of one import share.
pub(super) struct Nodes<'a> {
    pub owner: Owner,
    pub place: Place,
    pub ready: Option<Arc<dyn Ready>>,
    /// Whether the host can read the buffers at the time of the import.
    pub host_reads: bool,
    pub device: &'a Device,
}

fn bad<T>(part: &str, problem: impl Into<String>) -> Result<T> {
    Err(Error::out_of_spec(format!("array{part}"), problem))
}

fn not_negative(value: i64, part: &str) -> Result<usize> {
    usize::try_from(value).or_else(|_| bad(part, format!("{value}")))
}

impl Nodes<'_> {
    /// Imports one array of the tree.
    ///
    /// # Safety
    ///
    /// The requirements of [`super::import_array`] apply.
    pub unsafe fn import(&self, array: &ArrowArray, data_type: &DataType) -> Result<DeviceArray> {
        well_formed(data_type).or_else(|problem| bad("", problem))?;
        if array.is_released() {
            return bad("", "released");
        }
        let len = not_negative(array.length, ".length")?;
        let offset = not_negative(array.offset, ".offset")?;
        let Some(end) = offset.checked_add(len).filter(|end| *end < i64::MAX as usize) else {
            return bad("", format!("offset {offset} + length {len} overflows"));
        };
        if array.null_count < -1 || array.null_count > array.length {
            return bad(".null_count", format!("{} of {len} rows", array.null_count));
        }

        let mut parts = Parts::new(data_type.clone(), len);
        parts.offset = offset;
        parts.null_count = usize::try_from(array.null_count).ok();
        parts.place = self.place;
        parts.ready = self.ready.clone();
        // SAFETY: the caller's promise.
        unsafe {
            parts.children = self.children(array, data_type)?;
            parts.dictionary = self.dictionary(array, data_type)?;
            self.buffers(array, end, &mut parts)?;
        }
        DeviceArray::try_new(parts)
    }

    unsafe fn children(&self, array: &ArrowArray, data_type: &DataType) -> Result<Vec<DeviceArray>> {
        let types = children(data_type);
        if array.n_children != types.len() as i64 {
            let problem = format!("{}, but {data_type} has {}", array.n_children, types.len());
            return bad(".n_children", problem);
        }
        if array.children.is_null() && !types.is_empty() {
            return bad(".children", "null");
        }
        let mut found = Vec::with_capacity(types.len());
        for (i, data_type) in types.into_iter().enumerate() {
            let part = format!("children[{i}]");
            // SAFETY: the caller promised `n_children` pointers, each null or to an array.
            let child = match unsafe { array.children.add(i).read_unaligned().as_ref() } {
                // SAFETY: the caller's promise.
                Some(child) => unsafe { self.import(child, data_type) },
                None => bad("", "null"),
            };
            found.push(child.map_err(|error| error.inside(&part))?);
        }
        Ok(found)
    }

    unsafe fn dictionary(&self, array: &ArrowArray, data_type: &DataType) -> Result<Option<DeviceArray>> {
        // SAFETY: the caller promised null or an array.
        match (data_type, unsafe { array.dictionary.as_ref() }) {
            (DataType::Dictionary(_, values), Some(dictionary)) => {
                // SAFETY: the caller's promise.
                let values = unsafe { self.import(dictionary, values) };
                values.map(Some).map_err(|error| error.inside("dictionary"))
            }
            (DataType::Dictionary(..), None) => bad(".dictionary", "null"),
            (_, Some(_)) => bad(".dictionary", format!("not null, but {data_type} has none")),
            (_, None) => Ok(None),
        }
    }

    unsafe fn buffers(&self, array: &ArrowArray, end: usize, parts: &mut Parts) -> Result<()> {
        let layout = layout(&parts.data_type);
        let first = usize::from(layout.validity);
        let expected = first + layout.slots().count();
        let (least, most) = match layout.variadic {
            // The buffer of the data buffers' sizes comes last.
            true => (expected + 1, expected + 1 + MAX_VARIADIC),
            false => (expected, expected),
        };
        let Some(n_buffers) = usize::try_from(array.n_buffers).ok().filter(|n| (least..=most).contains(n))
        else {
            let problem = format!("{}, but {} has {least}", array.n_buffers, parts.data_type);
            return bad(".n_buffers", problem + if layout.variadic { " or more" } else { "" });
        };
        if array.buffers.is_null() && n_buffers > 0 {
            return bad(".buffers", "null");
        }
        // SAFETY: the caller promised `n_buffers` pointers, and only those are asked for.
        let address = |i: usize| unsafe { array.buffers.add(i).read_unaligned() }.expose_provenance();

        if layout.validity && address(0) != 0 {
            // SAFETY: the caller promised a bit for each row.
            let buffer = unsafe { self.buffer(array, address(0), Some(end.div_ceil(8)), 0) }?;
            parts.validity = Some(Bitmap { buffer, offset: parts.offset });
        } else if layout.validity && array.null_count > 0 {
            return bad(".buffers[0]", format!("null, but {} rows are", array.null_count));
        }
        let mut bytes_at_offsets = None;
        for (i, slot) in (first..).zip(layout.slots()) {
            let bytes = match slot {
                // A null pointer counts as a buffer of no bytes; only the offsets tell whether that is
                // enough.
                Slot::Bytes => bytes_at_offsets.or((address(i) == 0).then_some(0)),
                _ => match slot.bytes_for(end) {
                    None => return bad("", format!("{end} rows of {} overflow", parts.data_type)),
                    // An array of no rows needs no buffer, not even for rows before its offset.
                    Some(_) if address(i) == 0 && parts.len == 0 => {
                        parts.offset = 0;
                        Some(0)
                    }
                    needed => needed,
                },
            };
            // SAFETY: the caller promised what the rows, or their offsets, need.
            let buffer = unsafe { self.buffer(array, address(i), bytes, i) }?;
            let buffer = match export::exported(array).and_then(|ours| ours.buffers().get(i - first)) {
                Some(ours) if slot == Slot::Bytes => buffer.ending_as(ours),
                _ => buffer,
            };
            if let Slot::Offsets(width) = slot {
                if self.host_reads {
                    // SAFETY: the caller promised offsets up to the last row's, and the host may read them.
                    let last = unsafe { extents::last_offset(&buffer, width, parts.offset, end) };
                    bytes_at_offsets = Some(last.or_else(|problem| bad(&format!(".buffers[{i}]"), problem))?);
                }
                if let (Some(needed), [child]) = (bytes_at_offsets, &parts.children[..]) {
                    extents::reach(child, needed)?;
                }
            }
            parts.buffers.push(buffer);
        }
        if layout.variadic {
            // SAFETY: the caller promised the address of every buffer.
            unsafe { self.variadic(array, &address, expected..n_buffers - 1, parts) }?;
        }
        // SAFETY: the caller promised run ends for the length, and the children have been imported.
        unsafe { extents::run_ends(&parts.data_type, &parts.children, (parts.len, end), self.host_reads) }
    }

    /// Imports the data buffers of views. The last buffer of the struct has their sizes.
    ///
    /// # Safety
    ///
    /// The addresses are those of the struct's buffers.
    unsafe fn variadic(
        &self,
        array: &ArrowArray,
        address: &dyn Fn(usize) -> usize,
        buffers: std::ops::Range<usize>,
        parts: &mut Parts,
    ) -> Result<()> {
        let (count, last) = (buffers.len(), buffers.end);
        if count == 0 {
            return Ok(());
        }
        let sizes = address(last);
        if sizes == 0 {
            return bad(&format!(".buffers[{last}]"), "null, but there are data buffers");
        }
        // SAFETY: the caller promised a size for each data buffer.
        let numbers = unsafe { self.buffer(array, sizes, Some(8 * count), last) }?;
        // Some producers keep the sizes in host memory, some on the device. The latter are read only when
        // they are needed.
        let known = self.host_reads || self.on_host(sizes)?;
        for (n, i) in buffers.enumerate() {
            // SAFETY: as above, and the host may read them.
            let bytes = known.then(|| unsafe { extents::integer(sizes, 8, n) });
            let bytes =
                bytes.map(|bytes| not_negative(bytes, &format!(".buffers[{last}][{n}]"))).transpose()?;
            // A null pointer counts as a buffer of no bytes.
            let bytes = bytes.or((address(i) == 0).then_some(0));
            // SAFETY: the caller promised that many bytes, or as many as the size on the device says.
            parts.buffers.push(unsafe {
                let buffer = self.buffer(array, address(i), bytes, i)?;
                match bytes {
                    Some(_) => buffer,
                    None => buffer.said_by(numbers.slice(8 * n, Some(8))),
                }
            });
        }
        Ok(())
    }

    /// Whether the host may read at an address that is part of a device's array. It may if the runtime does
    /// not know the memory, because no stream writes such memory, or if the memory is shared with the host
    /// and the array waits for no event.
    fn on_host(&self, address: usize) -> Result<bool> {
        let place = self.device.place_of(address)?;
        Ok(place.is_none_or(|place| place.device_type.host_accessible() && self.ready.is_none()))
    }

    /// Buffer `i`, if its address and length are possible.
    ///
    /// # Safety
    ///
    /// The memory, if any, is as long as that for as long as the owner lives.
    unsafe fn buffer(
        &self,
        array: &ArrowArray,
        address: usize,
        bytes: Option<usize>,
        i: usize,
    ) -> Result<Buffer> {
        let part = format!(".buffers[{i}]");
        if address == 0 && bytes != Some(0) {
            let needed = bytes.map_or("some".into(), |bytes| bytes.to_string());
            return bad(&part, format!("null, but {needed} bytes are needed"));
        }
        let bytes_at_least = bytes.unwrap_or(0);
        if !fits(address, bytes_at_least) {
            return bad(&part, format!("{bytes_at_least} bytes go past the end of memory"));
        }
        let owner = export::owner_of(array, i, address, bytes).unwrap_or_else(|| self.owner.clone());
        // SAFETY: the caller's promise; an array of ours has the memory for as long as that owner lives.
        Ok(unsafe { Buffer::new(address, bytes, owner) })
    }
}
