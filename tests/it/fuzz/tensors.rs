//! Fuzzes tensors in both forms: shapes, strides, types and places of any kind, over memory that is exactly
//! as long as they say, if that is possible.

use std::ptr::null_mut;

use bowstring::compute::tensors::{export_tensor, import_tensor};
use bowstring::exchange::import_dlpack;
use bowstring::ffi::dlpack::{DLManagedTensor, DLManagedTensorVersioned, ManagedTensor};
use bowstring::{DeviceArray, Result, Stream};

use super::input::Input;
use super::programs;
use super::types::kind;
use super::world::{World, outcome};
use crate::exchange::foreign::Releases;
use crate::exchange::foreign_tensor::Tensor;

/// The largest tensor that gets memory, in bytes.
const LARGEST: usize = 1 << 16;

/// The target: imports a tensor, exports the result again, and runs a program on it.
pub fn target(bytes: &[u8]) {
    let [mut said, mut program] = Input::new(bytes).halves();
    let releases = Releases::default();
    World::with(|world| {
        let at = said.below(world.streams.len());
        let stream = &world.streams[at];
        let tensor = stranger(&mut said, stream, &releases);
        let imported = match said.byte() % 4 {
            0 => import_dlpack(tensor.versioned(), stream),
            1 => import_dlpack(tensor.legacy(), stream),
            2 => import_tensor(tensor.versioned(), stream),
            _ => import_tensor(tensor.legacy(), stream),
        };
        let Some(array) = outcome(("import", at.min(1)), imported) else { return };
        let at = if array.place() == bowstring::array::Place::CPU { 0 } else { at };
        match said.byte() % 2 {
            0 => again::<DLManagedTensorVersioned>(&array, &world.streams[at]),
            _ => again::<DLManagedTensor>(&array, &world.streams[at]),
        }
        programs::run(&mut program, world, vec![(array, at)]);
    });
    assert_eq!(releases.count(), 1, "deleted");
}

/// Exports an array and imports it again: it must stay the same.
fn again<T: ManagedTensor>(array: &DeviceArray, stream: &Stream) {
    let back = |array: &DeviceArray| -> Result<DeviceArray> {
        import_tensor(export_tensor::<T>(array, stream, Some(stream))?, stream)
    };
    if let Some(back) = outcome(("export", kind(array.data_type())), back(array)) {
        assert_eq!((back.len(), back.data_type()), (array.len(), array.data_type()));
    }
}

/// Makes a tensor from an input.
fn stranger(input: &mut Input<'_>, stream: &Stream, releases: &Releases) -> Tensor {
    let kinds = [
        (0, 32),
        (0, 8),
        (0, 16),
        (0, 64),
        (1, 8),
        (1, 16),
        (1, 32),
        (1, 64),
        (2, 16),
        (2, 32),
        (2, 64),
        (6, 8),
    ];
    let (code, bits) = if input.one_in(16) { (input.byte(), input.byte()) } else { *input.pick(&kinds) };
    let dimensions = [1, 2, 3, 4, 1, 1, 65, 0][input.below(8)];
    let size = |input: &mut Input<'_>| if input.one_in(16) { input.number() } else { input.below(12) as i64 };
    let shape: Vec<i64> = (0..dimensions).map(|_| size(input)).collect();
    let mut dense = 1i64;
    let mut strides = vec![0; dimensions];
    for (stride, size) in strides.iter_mut().zip(&shape).rev() {
        *stride = if input.one_in(32) { input.number() } else { dense };
        dense = dense.saturating_mul(*size);
    }
    let strides = input.one_in(2).then_some(&strides[..]);
    let byte_offset = if input.one_in(8) { input.below(40) as u64 } else { 0 };
    // If the tensor is too long for its memory to be allocated, its data is null, which an import can see.
    let elements = shape.iter().try_fold(1usize, |all, size| all.checked_mul(usize::try_from(*size).ok()?));
    let bytes = elements.and_then(|all| all.checked_mul(usize::from(bits).div_ceil(8)));
    let known = bytes.and_then(|bytes| bytes.checked_add(byte_offset as usize)).filter(|all| *all <= LARGEST);
    let contents = input.chance().bytes(known.unwrap_or(0));
    let mut tensor = Tensor::new((code, bits), &shape, strides, contents, byte_offset, releases);
    let place = stream.device().place();
    (tensor.raw.device_type, tensor.raw.device_id) =
        (place.device_type as i32, place.device_id.max(0) as i32);
    if known.is_none() {
        tensor.raw.data = null_mut();
    }
    match input.byte() {
        255 => tensor.raw.ndim = *input.pick(&[0, -1, i32::MAX, 65]),
        254 => tensor.raw.shape = null_mut(),
        253 => tensor.raw.data = null_mut(),
        252 => tensor.raw.lanes = input.byte().into(),
        251 => tensor.raw.device_type = input.number() as i32,
        250 => tensor.raw.device_id = input.number() as i32,
        249 => tensor.major = input.byte().into(),
        248 if tensor.raw.data.is_null() => tensor.raw.byte_offset = input.number() as u64,
        _ => {}
    }
    tensor
}
