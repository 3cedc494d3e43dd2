//! Concatenation of values of a fixed width.

use super::bitmap::Bits;
use super::{memory, rows};
use crate::array::{Bitmap, DeviceArray, Parts, Slot};
use crate::device::{HostPool, interrupt};
use crate::threads::{among_threads, each_part};
use crate::{Error, Result};

/// The bytes that a thread copies at once.
const SHARE: usize = 256 << 10;

/// Fewer bytes are copied by the calling thread.
const LARGE: usize = 1 << 20;

/// Concatenates values of a fixed width; `None` for arrays of other types, or not known to be valid.
pub(super) fn fixed(arrays: &[DeviceArray], pool: &HostPool) -> Result<Option<DeviceArray>> {
    let Some(first) = arrays.first() else { return Ok(None) };
    let slots: Vec<Slot> = first.layout().slots().collect();
    let [Slot::Fixed(width)] = slots[..] else { return Ok(None) };
    let plain = first.children().is_empty() && first.dictionary().is_none();
    if !plain || !arrays.iter().all(DeviceArray::known_valid) {
        return Ok(None);
    }
    let count = arrays.iter().map(DeviceArray::len).try_fold(0usize, usize::checked_add);
    let bytes = count.and_then(|count| count.checked_mul(width));
    let (Some(count), Some(bytes)) = (count, bytes) else {
        return Err(Error::out_of_host_memory(usize::MAX));
    };
    let mut values = pool.alloc(bytes)?;
    let (mut rest, mut parts) = (&mut values.bytes_mut()[..bytes], vec![]);
    for array in arrays.iter().filter(|array| !array.is_empty()) {
        let (own, later) = rest.split_at_mut(array.len() * width);
        let from = &memory::bytes(&array.buffers()[0])[array.offset() * width..][..own.len()];
        parts.extend(own.chunks_mut(SHARE).zip(from.chunks(SHARE)));
        rest = later;
    }
    among_threads(bytes >= LARGE, |_| each_part(parts, |(to, from)| to.copy_from_slice(from)))?;
    let mut joined = Parts::new(first.data_type().clone(), count);
    joined.buffers = vec![values.freeze(bytes)];
    (joined.validity, joined.null_count) = validity(arrays, count, pool)?;
    DeviceArray::made(joined, true).map(Some)
}

/// The validity of the rows of all arrays, and the number of nulls.
fn validity(
    arrays: &[DeviceArray],
    count: usize,
    pool: &HostPool,
) -> Result<(Option<Bitmap>, Option<usize>)> {
    if arrays.iter().all(|array| rows::validity(array).is_none()) {
        return Ok((None, Some(0)));
    }
    let mut bits = memory::zeroed(count.div_ceil(64) * 8, pool)?;
    let (words, mut at) = (memory::values_mut::<u64>(&mut bits), 0);
    for array in arrays {
        interrupt::check()?;
        match rows::validity(array) {
            None => rows::set(words, at, at + array.len()),
            Some(valid) => append(valid, words, at),
        }
        at += array.len();
    }
    let bitmap = Bitmap { buffer: bits.freeze(count.div_ceil(8)), offset: 0 };
    let nulls = count - Bits::of(&bitmap, count).count()?;
    Ok(((nulls > 0).then_some(bitmap), Some(nulls)))
}

/// Writes bits from bit `at` of the words on, which are zero there.
fn append(bits: Bits<'_>, words: &mut [u64], at: usize) {
    let (first, shift) = (at / 64, at % 64);
    for i in 0..bits.words() {
        let word = bits.word(i);
        words[first + i] |= word << shift;
        if shift > 0
            && let Some(next) = words.get_mut(first + i + 1)
        {
            *next |= word >> (64 - shift);
        }
    }
}
