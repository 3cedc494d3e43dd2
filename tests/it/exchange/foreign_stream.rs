//! An independent stream that follows a script; and our streams, called as C code calls them.

use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_schema::DataType;
use bowstring::array::Batches;
use bowstring::exchange::{
    ArrayReader, import_batches, import_host_batches, import_host_stream, import_stream,
};
use bowstring::ffi::{ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, FFI_ArrowSchema};
use bowstring::{Device, Result};

use super::foreign::{RawArray, RawDeviceArray, Releases, schema};

/// An independent definition of `ArrowDeviceArrayStream`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawStream {
    pub device_type: i32,
    pub get_schema: Option<unsafe extern "C" fn(*mut RawStream, *mut FFI_ArrowSchema) -> c_int>,
    pub get_next: Option<unsafe extern "C" fn(*mut RawStream, *mut RawDeviceArray) -> c_int>,
    pub get_last_error: Option<unsafe extern "C" fn(*mut RawStream) -> *const c_char>,
    pub release: Option<unsafe extern "C" fn(*mut RawStream)>,
    pub private_data: *mut c_void,
}

/// The behaviour of one call of `get_next`.
pub enum Step {
    Give(RawDeviceArray),
    Fail(c_int, Option<&'static CStr>),
    End,
}

struct Script {
    data_type: DataType,
    steps: VecDeque<Step>,
    error: Option<&'static CStr>,
    releases: Releases,
}

impl RawStream {
    /// A stream of arrays of one type on the CPU that performs these steps.
    pub fn new(data_type: DataType, steps: Vec<Step>, releases: &Releases) -> RawStream {
        let script = Script { data_type, steps: steps.into(), error: None, releases: releases.clone() };
        RawStream {
            device_type: 1,
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release),
            private_data: Box::into_raw(Box::new(script)).cast(),
        }
    }

    /// Converts to the library's type.
    pub fn into_ours(self) -> ArrowDeviceArrayStream {
        // SAFETY: both have the ABI's layout.
        unsafe { std::mem::transmute::<RawStream, ArrowDeviceArrayStream>(self) }
    }

    /// Takes a stream of the library's, to call it as C code does.
    pub fn of(stream: ArrowDeviceArrayStream) -> RawStream {
        // SAFETY: both have the ABI's layout.
        unsafe { std::mem::transmute::<ArrowDeviceArrayStream, RawStream>(stream) }
    }

    pub fn call_next(&mut self) -> (c_int, ArrowDeviceArray) {
        let mut array = ArrowDeviceArray::empty();
        // SAFETY: the callback belongs to the struct; both kinds of array have the ABI's layout.
        let code = unsafe { self.get_next.unwrap()(self, (&raw mut array).cast()) };
        (code, array)
    }

    pub fn call_last_error(&mut self) -> Option<String> {
        // SAFETY: the callback belongs to the struct.
        let error = unsafe { self.get_last_error.unwrap()(self) };
        // SAFETY: null or a terminated string.
        (!error.is_null()).then(|| unsafe { CStr::from_ptr(error) }.to_str().unwrap().to_string())
    }

    pub fn call_release(&mut self) {
        // SAFETY: the callback belongs to the struct.
        unsafe { self.release.expect("not released")(self) }
    }
}

unsafe fn script<'a>(stream: *mut RawStream) -> &'a mut Script {
    // SAFETY: boxed in `new`, and the interface asks for a valid stream.
    unsafe { &mut *(*stream).private_data.cast::<Script>() }
}

unsafe extern "C" fn get_schema(stream: *mut RawStream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: as above.
    unsafe { out.write(schema(&script(stream).data_type)) };
    0
}

unsafe extern "C" fn get_next(stream: *mut RawStream, out: *mut RawDeviceArray) -> c_int {
    // SAFETY: as above.
    let script = unsafe { script(stream) };
    match script.steps.pop_front().expect("asked on after an error or the end") {
        Step::Give(array) => {
            // SAFETY: the interface asks for room.
            unsafe { out.write(array) };
            0
        }
        Step::Fail(code, message) => {
            script.error = message;
            // Begun, and not given away.
            // SAFETY: as above.
            unsafe { (*out).array.release = Some(not_theirs) };
            code
        }
        Step::End => {
            // SAFETY: as above.
            unsafe { (*out).array.release = None };
            0
        }
    }
}

unsafe extern "C" fn not_theirs(_: *mut RawArray) {
    eprintln!("an array of a call that failed was released");
    std::process::abort();
}

unsafe extern "C" fn get_last_error(stream: *mut RawStream) -> *const c_char {
    // SAFETY: as above.
    unsafe { script(stream) }.error.map_or(null(), CStr::as_ptr)
}

unsafe extern "C" fn release(stream: *mut RawStream) {
    // SAFETY: as above.
    let stream = unsafe { &mut *stream };
    assert!(stream.release.take().is_some(), "released twice");
    let private = std::mem::replace(&mut stream.private_data, null_mut());
    // SAFETY: boxed in `new`, unboxed here, once.
    let script = unsafe { Box::from_raw(private.cast::<Script>()) };
    for step in script.steps {
        if let Step::Give(mut array) = step {
            array.array.release();
        }
    }
    script.releases.add();
}

/// Calls [`bowstring::exchange::import_stream`] for a device.
pub fn read(stream: &mut ArrowDeviceArrayStream, device: &Device) -> Result<ArrayReader> {
    // SAFETY: valid, or wrong in a way that import must detect.
    unsafe { import_stream(stream, device) }
}

/// Calls [`bowstring::exchange::import_batches`] for a device.
pub fn read_batches(stream: &mut ArrowDeviceArrayStream, device: &Device) -> Result<Batches> {
    // SAFETY: as above.
    unsafe { import_batches(stream, device) }
}

/// Calls [`bowstring::exchange::import_host_stream`] with a test stream.
pub fn read_host(stream: ArrowArrayStream) -> Result<ArrayReader> {
    // SAFETY: as above.
    unsafe { import_host_stream(stream) }
}

/// Calls [`bowstring::exchange::import_host_batches`] with a test stream.
pub fn read_host_batches(stream: ArrowArrayStream) -> Result<Batches> {
    // SAFETY: as above.
    unsafe { import_host_batches(stream) }
}

/// Reads a stream with arrow-rs' own code.
pub fn read_by_arrow_rs(stream: ArrowArrayStream) -> RecordBatchStreamReader {
    // SAFETY: both structs have the ABI's layout.
    let stream = unsafe { std::mem::transmute::<ArrowArrayStream, FFI_ArrowArrayStream>(stream) };
    RecordBatchStreamReader::try_new(stream).unwrap()
}

/// Makes a stream with arrow-rs' own code.
pub fn stream_by_arrow_rs(batches: Box<dyn RecordBatchReader + Send>) -> ArrowArrayStream {
    // SAFETY: both structs have the ABI's layout.
    unsafe {
        std::mem::transmute::<FFI_ArrowArrayStream, ArrowArrayStream>(FFI_ArrowArrayStream::new(batches))
    }
}
