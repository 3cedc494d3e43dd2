//! Moves an array to where foreign memory might be: to odd addresses, with its bitmaps at odd bits.

use std::sync::Arc;

use bowstring::DeviceArray;
use bowstring::array::{Bitmap, Buffer};
use bowstring::device::testing::{Slot, layout};

use super::Exact;

/// A copy of a CPU array, with its children and dictionary. All buffers start `bytes` after a multiple of 64,
/// and validity bitmaps start `bits` later than before. Nothing else changes.
pub fn displaced(array: &DeviceArray, bytes: usize, bits: usize) -> DeviceArray {
    let mut parts = array.clone().into_parts();
    let slots: Vec<Slot> = layout(array.data_type()).slots().collect();
    for (i, buffer) in parts.buffers.iter_mut().enumerate() {
        // Only whole values are copied: the bytes after the last row are not part of the array.
        let needed = slots.get(i).and_then(|slot| slot.bytes_for(parts.offset + parts.len));
        let all = read(buffer);
        *buffer = moved(&all[..needed.unwrap_or(all.len()).min(all.len())], bytes);
    }
    parts.validity = parts.validity.map(|validity| {
        let old = read(&validity.buffer);
        let bit = |i: usize| old[(validity.offset + i) / 8] >> ((validity.offset + i) % 8) & 1;
        let mut new = vec![0xa5; (bits + parts.len).div_ceil(8)];
        for i in 0..parts.len {
            let (byte, at) = ((bits + i) / 8, (bits + i) % 8);
            new[byte] = new[byte] & !(1 << at) | bit(i) << at;
        }
        Bitmap { buffer: moved(&new, bytes), offset: bits }
    });
    parts.children = parts.children.iter().map(|child| displaced(child, bytes, bits)).collect();
    parts.dictionary = parts.dictionary.map(|values| displaced(&values, bytes, bits));
    DeviceArray::try_new(parts).expect("the same parts elsewhere")
}

fn read(buffer: &Buffer) -> Vec<u8> {
    let len = buffer.bytes().expect("buffers on the CPU know their extent");
    if len == 0 {
        return vec![];
    }
    // SAFETY: a buffer on the CPU has `len` readable bytes for as long as it lives.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(buffer.address()), len) }.to_vec()
}

fn moved(bytes: &[u8], by: usize) -> Buffer {
    let memory = Exact::holding(bytes, by);
    // SAFETY: these bytes stay where they are, unchanged, as long as the memory lives.
    unsafe { Buffer::new(memory.address(), Some(bytes.len()), Arc::new(memory)) }
}
