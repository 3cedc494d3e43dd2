//! The CPU path's only access to memory: host buffers as slices of plain values.
//!
//! Callers must have a [`crate::DeviceArray`] on a host-accessible place whose event, if any, has passed. The
//! making of a [`Buffer`] has promised that it is readable for its extent.

#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;

use bowstring_kernels::map::function::Native;

use crate::Result;
use crate::array::Buffer;
use crate::device::{HostMemory, HostPool, interrupt};

/// The bytes that are moved between two checks for an interrupt. They take some milliseconds.
pub(crate) const LOOK: usize = 16 << 20;

/// A type of which any bytes are a value: no padding, no invalid patterns, no pointers.
///
/// # Safety
///
/// Every bit pattern of the type's size must be a value of it.
pub(crate) unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: integers and floats take every bit pattern; an array of plain values is one.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for u128 {}
// SAFETY: as above.
unsafe impl Plain for i8 {}
// SAFETY: as above.
unsafe impl Plain for i16 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for i128 {}
// SAFETY: as above.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}
// SAFETY: as above.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Returns the bytes of a host buffer.
pub(crate) fn bytes(buffer: &Buffer) -> &[u8] {
    let len = buffer.bytes().expect("host buffers know their extent");
    if len == 0 {
        return &[];
    }
    // SAFETY: `Buffer::new` promised `len` readable, unchanging bytes here for as long as the buffer lives.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(buffer.address()), len) }
}

/// Returns as many whole numbers as the bytes hold; `None` if they are not aligned for them.
pub(crate) fn numbers<T: Native>(bytes: &[u8]) -> Option<&[T]> {
    // SAFETY: every bit pattern is a `T`: the `Native` types are integers and floats (a boolean is a byte).
    // The half is two bytes, and the 256-bit integer is two integers without padding.
    unsafe { slice_of(bytes) }
}

/// As [`numbers`], but mutable.
pub(crate) fn numbers_mut<T: Native>(bytes: &mut [u8]) -> Option<&mut [T]> {
    let start = bytes.as_mut_ptr().cast::<T>();
    if !start.is_aligned() {
        return bytes.is_empty().then_some(&mut []);
    }
    // SAFETY: aligned, inside `bytes` and borrowed with it, and every bit pattern is a `T` (see `numbers`),
    // whose every value is bytes.
    Some(unsafe { std::slice::from_raw_parts_mut(start, bytes.len() / size_of::<T>()) })
}

/// Returns as many whole `T`s as the bytes hold; `None` if they are not aligned for them.
pub(crate) fn plain<T: Plain>(bytes: &[u8]) -> Option<&[T]> {
    // SAFETY: the promise of `Plain`.
    unsafe { slice_of(bytes) }
}

/// As [`plain`], of any type.
///
/// # Safety
///
/// Every bit pattern must be a `T`.
unsafe fn slice_of<T>(bytes: &[u8]) -> Option<&[T]> {
    let start = bytes.as_ptr().cast::<T>();
    if !start.is_aligned() {
        return bytes.is_empty().then_some(&[]);
    }
    // SAFETY: aligned, inside `bytes`, and every bit pattern is a `T`.
    Some(unsafe { std::slice::from_raw_parts(start, bytes.len() / size_of::<T>()) })
}

/// Returns the buffer itself if it is aligned for values of `alignment` bytes, else an aligned copy. Foreign
/// memory may start at any address.
pub(crate) fn aligned(buffer: &Buffer, alignment: usize, pool: &HostPool) -> Result<Buffer> {
    if buffer.address().is_multiple_of(alignment) {
        return Ok(buffer.clone());
    }
    let from = bytes(buffer);
    let mut copy = pool.alloc(from.len())?;
    self::copy(from, &mut copy.bytes_mut()[..from.len()])?;
    Ok(copy.freeze(from.len()))
}

/// Copies all bytes, unless the caller interrupts it.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) -> Result<()> {
    assert_eq!(from.len(), to.len());
    for (from, to) in from.chunks(LOOK).zip(to.chunks_mut(LOOK)) {
        interrupt::check()?;
        to.copy_from_slice(from);
    }
    Ok(())
}

/// Sets all bytes to one value, unless the caller interrupts it.
pub(crate) fn fill(bytes: &mut [u8], with: u8) -> Result<()> {
    for bytes in bytes.chunks_mut(LOOK) {
        interrupt::check()?;
        bytes.fill(with);
    }
    Ok(())
}

/// Allocates memory of zero bytes.
pub(crate) fn zeroed(bytes: usize, pool: &HostPool) -> Result<HostMemory> {
    let mut memory = pool.alloc(bytes)?;
    fill(&mut memory.bytes_mut()[..bytes], 0)?;
    Ok(memory)
}

/// Returns a block's memory as mutable values.
pub(crate) fn values_mut<T: Plain>(memory: &mut HostMemory) -> &mut [T] {
    let bytes = memory.bytes_mut();
    let start = bytes.as_mut_ptr().cast::<T>();
    assert!(start.is_aligned(), "blocks are aligned to 256 bytes");
    // SAFETY: aligned, inside the block, borrowed with it, and every bit pattern is a `T`.
    unsafe { std::slice::from_raw_parts_mut(start, bytes.len() / size_of::<T>()) }
}

/// Returns the two words of a wide number as they lie in memory.
#[inline(always)]
pub(crate) fn halves(number: u128) -> [u64; 2] {
    let bytes = number.to_ne_bytes();
    let half = |first: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[first + i]));
    [half(0), half(8)]
}

/// Returns the memory of numbers as words that several threads may store to, each anywhere.
pub(crate) fn shared<T: Plain>(numbers: &mut [T]) -> &[AtomicU64] {
    const { assert!(align_of::<T>() >= align_of::<AtomicU64>() && size_of::<T>().is_multiple_of(8)) };
    let words = size_of_val(numbers) / size_of::<AtomicU64>();
    // SAFETY: the same memory, borrowed mutably with it and aligned; an atomic word is any eight bytes, and
    // any bytes are a `T`.
    unsafe { std::slice::from_raw_parts(numbers.as_mut_ptr().cast(), words) }
}
