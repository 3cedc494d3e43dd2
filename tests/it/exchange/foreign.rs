//! A producer of C structs that shares no code with ours: it copies an arrow-rs array to odd addresses, counts how
//! often it is released, and spoils its memory when it is. Its fields can be bent in every way.
//!
//! Also the one place in which the exchange tests are unsafe: what they bend, they bend in ways that import must see.

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
use bowstring::{Array, Batch, Device, Result};

use crate::support::Exact;

/// `ArrowArray`, spelled out once more.
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

/// `ArrowDeviceArray`, spelled out once more.
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
    /// A struct of so many rows over parts that end with it: it says what is true of them, and tests change that.
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
        // SAFETY: tests ask for children that `produce`, or the library, has put there.
        unsafe { &mut **self.children.add(i) }
    }

    /// Releases it, as a consumer in C would.
    pub fn release(&mut self) {
        // SAFETY: the callback belongs to the struct.
        unsafe { self.release.expect("not released")(self) }
    }

    /// Null where the consumer looks for child `i`; the producer still knows it.
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

    /// As the library knows it.
    pub fn into_ours(self) -> ArrowArray {
        // SAFETY: both have the ABI's layout.
        unsafe { std::mem::transmute::<RawArray, ArrowArray>(self) }
    }

    /// As a device array on the CPU, with garbage where known producers leave it.
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
    /// As the library knows it.
    pub fn into_ours(self) -> ArrowDeviceArray {
        // SAFETY: both have the ABI's layout.
        unsafe { std::mem::transmute::<RawDeviceArray, ArrowDeviceArray>(self) }
    }

    /// What the library made.
    pub fn of(array: &ArrowDeviceArray) -> RawDeviceArray {
        // SAFETY: both have the ABI's layout; the copy is only looked at.
        unsafe { std::ptr::from_ref(array).cast::<RawDeviceArray>().read() }
    }
}

/// How often things were released.
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

/// Where a buffer is that was put somewhere else, and what spoils it.
pub struct Elsewhere {
    pub pointer: *const c_void,
    pub spoil: Box<dyn FnOnce()>,
}

/// Puts bytes, which stay where they are until release, somewhere else.
pub type Put<'a> = dyn FnMut(&[u8]) -> Elsewhere + 'a;

/// What a struct points to, and what ends with it.
#[derive(Default)]
pub struct Inside {
    pub memory: Vec<Exact>,
    pub spoil: Vec<Box<dyn FnOnce()>>,
    pub pointers: Vec<*const c_void>,
    /// Null, or made by [`RawArray::over`].
    pub children: Vec<*mut RawArray>,
    /// As a child.
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
        // SAFETY: boxed by who made it, unboxed here, once.
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

/// The array as a stranger would hand it over, buffers `misalignment` bytes past an aligned address, with nothing behind
/// their last byte. Each struct of the tree counts one release.
pub fn produce(data: &ArrayData, misalignment: usize, releases: &Releases) -> RawArray {
    produce_in(data, misalignment, releases, None)
}

/// The same with its buffers somewhere else.
pub fn produce_in(
    data: &ArrayData,
    misalignment: usize,
    releases: &Releases,
    put: Option<&mut Put<'_>>,
) -> RawArray {
    produce_with(data, (misalignment, 0), releases, put)
}

/// The same with `spare` bytes behind each buffer, for structs that will say of them that they are longer than they are.
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
        // A copy to elsewhere may run late: what it reads stays until release.
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

/// How many structs the tree of an array has.
pub fn structs(data: &ArrayData) -> usize {
    1 + data.child_data().iter().map(structs).sum::<usize>()
}

/// The schema of a nullable field of this type.
pub fn schema(data_type: &DataType) -> FFI_ArrowSchema {
    FFI_ArrowSchema::try_from(Field::new("f", data_type.clone(), true)).unwrap()
}

/// [`bowstring::exchange::import_array`].
pub fn import_on(
    device: &Device,
    array: &mut ArrowDeviceArray,
    schema: &FFI_ArrowSchema,
) -> Result<(Field, Array)> {
    // SAFETY: valid, or wrong in a way that must be seen.
    unsafe { import_array(array, schema, device) }
}

/// [`bowstring::exchange::import_array`] on the CPU.
pub fn import(array: &mut ArrowDeviceArray, schema: &FFI_ArrowSchema) -> Result<(Field, Array)> {
    // SAFETY: valid, or wrong in a way that must be seen.
    unsafe { import_array(array, schema, &Device::cpu()) }
}

/// [`bowstring::exchange::import_host_array`].
pub fn import_host(array: ArrowArray, schema: &FFI_ArrowSchema) -> Result<(Field, Array)> {
    // SAFETY: as above.
    unsafe { import_host_array(array, schema) }
}

/// [`bowstring::exchange::import_batch`] on the CPU.
pub fn import_rows(array: &mut ArrowDeviceArray, schema: &FFI_ArrowSchema) -> Result<Batch> {
    // SAFETY: as above.
    unsafe { import_batch(array, schema, &Device::cpu()) }
}

/// [`bowstring::exchange::import_host_batch`].
pub fn import_host_rows(array: ArrowArray, schema: &FFI_ArrowSchema) -> Result<Batch> {
    // SAFETY: as above.
    unsafe { import_host_batch(array, schema) }
}

/// Imports an array by arrow-rs' own means.
pub fn import_by_arrow_rs(array: ArrowArray, schema: &FFI_ArrowSchema) -> ArrayRef {
    // SAFETY: both structs have the ABI's layout.
    let array = unsafe { std::mem::transmute::<ArrowArray, FFI_ArrowArray>(array) };
    // SAFETY: the array is valid, which is looked at next.
    let data = unsafe { arrow_array::ffi::from_ffi(array, schema) }.unwrap();
    data.validate_full().unwrap();
    make_array(data)
}

/// Exports an array by arrow-rs' own means.
pub fn export_by_arrow_rs(array: &ArrayRef) -> ArrowArray {
    let (array, _) = arrow_array::ffi::to_ffi(&array.to_data()).unwrap();
    // SAFETY: both structs have the ABI's layout.
    unsafe { std::mem::transmute::<FFI_ArrowArray, ArrowArray>(array) }
}
