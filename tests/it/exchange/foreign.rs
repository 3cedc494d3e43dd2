//! An independent producer of C structs: it copies an arrow-rs array to odd addresses, counts its releases,
//! and overwrites its memory on release. Tests can modify each of its fields.
//!
//! The unsafe code of the exchange tests is here: their modifications are all ones that import must detect.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array as _, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::{DataType, Field};
use bowstring::exchange::{import_array, import_batch, import_host_array, import_host_batch};
use bowstring::ffi::{ArrowArray, ArrowDeviceArray, FFI_ArrowSchema};
use bowstring::{Device, DeviceArray, DeviceBatch, Result};

use crate::support::Exact;

/// An independent definition of `ArrowArray`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *mut *const c_void,
    pub children: *mut *mut RawArray,
    pub dictionary: *mut RawArray,
    pub release: Option<unsafe extern "C" fn(*mut RawArray)>,
    pub private_data: *mut c_void,
}

/// An independent definition of `ArrowDeviceArray`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawDeviceArray {
    pub array: RawArray,
    pub device_id: i64,
    pub device_type: i32,
    pub sync_event: *mut c_void,
    pub reserved: [i64; 3],
}

impl RawArray {
    /// A struct of this many rows over parts that it owns; its fields are correct until a test changes them.
    pub fn over(length: usize, inside: Inside, releases: &Releases) -> RawArray {
        let mut private = Box::new(Private { inside, releases: releases.clone() });
        let Inside { pointers, children, dictionary, .. } = &mut private.inside;
        RawArray {
            length: length as i64,
            null_count: 0,
            offset: 0,
            n_buffers: pointers.len() as i64,
            n_children: children.len() as i64,
            buffers: pointers.as_mut_ptr(),
            children: children.as_mut_ptr(),
            dictionary: dictionary.unwrap_or(null_mut()),
            release: Some(release),
            private_data: Box::into_raw(private).cast(),
        }
    }

    pub fn child(&mut self, i: usize) -> &mut RawArray {
        // SAFETY: tests use only children that `produce` or the library has set.
        unsafe { &mut **self.children.add(i) }
    }

    /// Releases the struct, as a consumer in C would.
    pub fn release(&mut self) {
        // SAFETY: the callback belongs to the struct.
        unsafe { self.release.expect("not released")(self) }
    }

    /// Hides child `i` from the consumer behind a null pointer; the producer still frees it.
    pub fn hide_child(&mut self, i: usize) {
        let shown =
            (0..self.n_children as usize).map(|n| if n == i { null_mut() } else { &raw mut *self.child(n) });
        self.children = shown.collect::<Vec<_>>().leak().as_mut_ptr();
    }

    pub fn dictionary(&mut self) -> &mut RawArray {
        // SAFETY: as for children.
        unsafe { &mut *self.dictionary }
    }

    pub fn buffer(&mut self, i: usize) -> &mut *const c_void {
        // SAFETY: as for children.
        unsafe { &mut *self.buffers.add(i) }
    }

    /// Converts to the library's type.
    pub fn into_ours(self) -> ArrowArray {
        // SAFETY: both have the ABI's layout.
        unsafe { std::mem::transmute::<RawArray, ArrowArray>(self) }
    }

    /// Makes a device array on the CPU, with garbage in the fields in which known producers leave it.
    pub fn on_cpu(self) -> RawDeviceArray {
        RawDeviceArray {
            array: self,
            device_id: -1,
            device_type: 1,
            sync_event: null_mut(),
            reserved: [0x5a5a; 3],
        }
    }
}

impl From<ArrowArray> for RawArray {
    fn from(array: ArrowArray) -> RawArray {
        // SAFETY: both have the ABI's layout.
        unsafe { std::mem::transmute(array) }
    }
}

impl RawDeviceArray {
    /// Converts to the library's type.
    pub fn into_ours(self) -> ArrowDeviceArray {
        // SAFETY: both have the ABI's layout.
        unsafe { std::mem::transmute::<RawDeviceArray, ArrowDeviceArray>(self) }
    }

    /// Reads an array that the library exported.
    pub fn of(array: &ArrowDeviceArray) -> RawDeviceArray {
        // SAFETY: both have the ABI's layout; the copy is only looked at.
        unsafe { std::ptr::from_ref(array).cast::<RawDeviceArray>().read() }
    }
}

/// A shared counter of releases.
#[derive(Clone, Default)]
pub struct Releases(Arc<AtomicUsize>);

impl Releases {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The address of a buffer in other memory, with the function that overwrites it.
pub struct Elsewhere {
    pub pointer: *const c_void,
    pub spoil: Box<dyn FnOnce()>,
}

/// Copies bytes to other memory; the bytes stay valid until release.
pub type Put<'a> = dyn FnMut(&[u8]) -> Elsewhere + 'a;

/// The parts that a struct points to and owns.
#[derive(Default)]
pub struct Inside {
    pub memory: Vec<Exact>,
    pub spoil: Vec<Box<dyn FnOnce()>>,
    pub pointers: Vec<*const c_void>,
    /// Each is null, or made by [`RawArray::over`].
    pub children: Vec<*mut RawArray>,
    /// The dictionary's struct, made like a child.
    pub dictionary: Option<*mut RawArray>,
}

struct Private {
    inside: Inside,
    releases: Releases,
}

unsafe extern "C" fn release(array: *mut RawArray) {
    // SAFETY: the interface asks for a valid struct.
    let array = unsafe { &mut *array };
    assert!(array.release.take().is_some(), "released twice");
    // SAFETY: boxed in `over`, unboxed here, once.
    let mut private = unsafe { Box::from_raw(array.private_data.cast::<Private>()) };
    let inside = &mut private.inside;
    for child in inside.children.iter().copied().chain(inside.dictionary).filter(|c| !c.is_null()) {
        // SAFETY: boxed by its creator, unboxed here, once.
        let mut child = unsafe { Box::from_raw(child) };
        if let Some(release) = child.release {
            // SAFETY: not released yet.
            unsafe { release(&mut *child) };
        }
    }
    inside.spoil.drain(..).for_each(|spoil| spoil());
    inside.memory.drain(..).for_each(Exact::bury);
    private.releases.add();
}

/// Exports the array as another library would, with buffers `misalignment` bytes past an aligned address and
/// no spare bytes after their end. Each struct of the tree counts one release.
pub fn produce(data: &ArrayData, misalignment: usize, releases: &Releases) -> RawArray {
    produce_in(data, misalignment, releases, None)
}

/// Like [`produce`], with the buffers in other memory.
pub fn produce_in(
    data: &ArrayData,
    misalignment: usize,
    releases: &Releases,
    put: Option<&mut Put<'_>>,
) -> RawArray {
    produce_with(data, (misalignment, 0), releases, put)
}

/// Like [`produce`], with `spare` bytes after each buffer, for structs that will claim to be longer than they
/// are.
pub fn produce_with(
    data: &ArrayData,
    (misalignment, spare): (usize, usize),
    releases: &Releases,
    mut put: Option<&mut Put<'_>>,
) -> RawArray {
    let offset = data.offset();
    let layout = arrow_data::layout(data.data_type());
    let (mut memory, mut spoil) = (vec![], vec![]);
    let mut keep = |bytes: &[u8]| {
        let copy = match spare {
            0 => Exact::holding(bytes, misalignment),
            _ => Exact::holding(&[bytes, &vec![0xee; spare]].concat(), misalignment),
        };
        let mut pointer = std::ptr::with_exposed_provenance(copy.address());
        // A copy to other memory may run late, so its source stays valid until release.
        if let Some(put) = put.as_mut().filter(|_| !bytes.is_empty()) {
            let elsewhere = put(&copy.bytes()[..bytes.len()]);
            spoil.push(elsewhere.spoil);
            pointer = elsewhere.pointer;
        }
        memory.push(copy);
        pointer
    };

    let mut pointers = vec![];
    if layout.can_contain_null_mask {
        pointers.push(data.nulls().map_or(null(), |nulls| {
            let mut bits = vec![0xa5u8; (offset + data.len()).div_ceil(8)];
            for i in 0..data.len() {
                let (byte, bit) = ((offset + i) / 8, 1 << ((offset + i) % 8));
                bits[byte] = bits[byte] & !bit | if nulls.is_valid(i) { bit } else { 0 };
            }
            keep(&bits)
        }));
    }
    pointers.extend(data.buffers().iter().map(|buffer| keep(buffer)));
    if layout.variadic {
        let sizes: Vec<u8> =
            data.buffers()[1..].iter().flat_map(|buffer| (buffer.len() as i64).to_ne_bytes()).collect();
        pointers.push(if sizes.is_empty() { null() } else { keep(&sizes) });
    }

    let mut boxed = |data: &ArrayData| {
        let put = put.as_mut().map(|put| &mut **put as &mut Put<'_>);
        Box::into_raw(Box::new(produce_with(data, (misalignment, spare), releases, put)))
    };
    let (children, dictionary) = match data.data_type() {
        DataType::Dictionary(..) => (vec![], Some(boxed(&data.child_data()[0]))),
        _ => (data.child_data().iter().map(boxed).collect(), None),
    };
    let inside = Inside { memory, spoil, pointers, children, dictionary };
    let null_count = if *data.data_type() == DataType::Null { data.len() } else { data.null_count() };
    let made = RawArray::over(data.len(), inside, releases);
    RawArray { null_count: null_count as i64, offset: offset as i64, ..made }
}

/// The number of structs in an array's tree.
pub fn structs(data: &ArrayData) -> usize {
    1 + data.child_data().iter().map(structs).sum::<usize>()
}

/// The schema of a nullable field of this type.
pub fn schema(data_type: &DataType) -> FFI_ArrowSchema {
    FFI_ArrowSchema::try_from(Field::new("f", data_type.clone(), true)).unwrap()
}

/// Calls [`bowstring::exchange::import_array`] for a device.
pub fn import_on(
    device: &Device,
    array: &mut ArrowDeviceArray,
    schema: &FFI_ArrowSchema,
) -> Result<(Field, DeviceArray)> {
    // SAFETY: valid, or wrong in a way that import must detect.
    unsafe { import_array(array, schema, device) }
}

/// Calls [`bowstring::exchange::import_array`] on the CPU.
pub fn import(array: &mut ArrowDeviceArray, schema: &FFI_ArrowSchema) -> Result<(Field, DeviceArray)> {
    // SAFETY: valid, or wrong in a way that import must detect.
    unsafe { import_array(array, schema, &Device::cpu()) }
}

/// Calls [`bowstring::exchange::import_host_array`] with test structs.
pub fn import_host(array: ArrowArray, schema: &FFI_ArrowSchema) -> Result<(Field, DeviceArray)> {
    // SAFETY: as above.
    unsafe { import_host_array(array, schema) }
}

/// Calls [`bowstring::exchange::import_batch`] on the CPU.
pub fn import_rows(array: &mut ArrowDeviceArray, schema: &FFI_ArrowSchema) -> Result<DeviceBatch> {
    // SAFETY: as above.
    unsafe { import_batch(array, schema, &Device::cpu()) }
}

/// Calls [`bowstring::exchange::import_host_batch`] with test structs.
pub fn import_host_rows(array: ArrowArray, schema: &FFI_ArrowSchema) -> Result<DeviceBatch> {
    // SAFETY: as above.
    unsafe { import_host_batch(array, schema) }
}

/// Imports an array with arrow-rs' own code.
pub fn import_by_arrow_rs(array: ArrowArray, schema: &FFI_ArrowSchema) -> ArrayRef {
    // SAFETY: both structs have the ABI's layout.
    let array = unsafe { std::mem::transmute::<ArrowArray, FFI_ArrowArray>(array) };
    // SAFETY: the array is valid, which the next line checks.
    let data = unsafe { arrow_array::ffi::from_ffi(array, schema) }.unwrap();
    data.validate_full().unwrap();
    make_array(data)
}

/// Exports an array with arrow-rs' own code.
pub fn export_by_arrow_rs(array: &ArrayRef) -> ArrowArray {
    let (array, _) = arrow_array::ffi::to_ffi(&array.to_data()).unwrap();
    // SAFETY: both structs have the ABI's layout.
    unsafe { std::mem::transmute::<FFI_ArrowArray, ArrowArray>(array) }
}
