//! The asynchronous device stream, laid out as in Arrow's `abi.h`. In this interface the producer calls the
//! consumer.
//!
//! The consumer creates a handler. The producer calls it with the schema, with tasks, with their end or an
//! error, and finally calls `release`. A task delivers its array at the time, and on the thread, that the
//! consumer chooses. The producer sends at most as many tasks as the consumer has asked for with `request`.
//! The interface is marked experimental. (Arrow's documentation page gives `ArrowAsyncProducer` a member that
//! neither the header nor any implementation has.)

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{ManuallyDrop, offset_of};
use std::ptr::{NonNull, null, null_mut};

use super::{ArrowDeviceArray, FFI_ArrowSchema};

/// A promise of one array. Dropping the task tells the producer that the array is not wanted.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowAsyncTask {
    pub(crate) extract_data:
        Option<unsafe extern "C" fn(*mut ArrowAsyncTask, *mut ArrowDeviceArray) -> c_int>,
    pub(crate) private_data: *mut c_void,
}

/// Lets a consumer request more tasks or cancel the stream. The producer owns it and keeps it alive until the
/// handler is released.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowAsyncProducer {
    pub(crate) device_type: i32,
    pub(crate) request: Option<unsafe extern "C" fn(*mut ArrowAsyncProducer, i64)>,
    pub(crate) cancel: Option<unsafe extern "C" fn(*mut ArrowAsyncProducer)>,
    pub(crate) additional_metadata: *const c_char,
    pub(crate) private_data: *mut c_void,
}

type OnSchema = unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler, *mut FFI_ArrowSchema) -> c_int;
type OnNextTask =
    unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler, *mut ArrowAsyncTask, *const c_char) -> c_int;
type OnError = unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler, c_int, *const c_char, *const c_char);

/// The callbacks through which a producer delivers a stream to its consumer.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowAsyncDeviceStreamHandler {
    pub(crate) on_schema: Option<OnSchema>,
    pub(crate) on_next_task: Option<OnNextTask>,
    pub(crate) on_error: Option<OnError>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler)>,
    pub(crate) producer: *mut ArrowAsyncProducer,
    pub(crate) private_data: *mut c_void,
}

const _: () = {
    assert!(size_of::<ArrowAsyncTask>() == 16);
    assert!(offset_of!(ArrowAsyncTask, extract_data) == 0);
    assert!(offset_of!(ArrowAsyncTask, private_data) == 8);
    assert!(size_of::<ArrowAsyncProducer>() == 40);
    assert!(offset_of!(ArrowAsyncProducer, device_type) == 0);
    assert!(offset_of!(ArrowAsyncProducer, request) == 8);
    assert!(offset_of!(ArrowAsyncProducer, cancel) == 16);
    assert!(offset_of!(ArrowAsyncProducer, additional_metadata) == 24);
    assert!(offset_of!(ArrowAsyncProducer, private_data) == 32);
    assert!(size_of::<ArrowAsyncDeviceStreamHandler>() == 48);
    assert!(offset_of!(ArrowAsyncDeviceStreamHandler, on_schema) == 0);
    assert!(offset_of!(ArrowAsyncDeviceStreamHandler, on_next_task) == 8);
    assert!(offset_of!(ArrowAsyncDeviceStreamHandler, on_error) == 16);
    assert!(offset_of!(ArrowAsyncDeviceStreamHandler, release) == 24);
    assert!(offset_of!(ArrowAsyncDeviceStreamHandler, producer) == 32);
    assert!(offset_of!(ArrowAsyncDeviceStreamHandler, private_data) == 40);
};

// SAFETY: whom a task is moved to may extract it, on any thread.
unsafe impl Send for ArrowAsyncTask {}

impl ArrowAsyncTask {
    /// A task without a producer; extracting it fails.
    pub(crate) fn empty() -> ArrowAsyncTask {
        ArrowAsyncTask { extract_data: None, private_data: null_mut() }
    }

    /// Calls the producer for the array. Returns a released array if the producer provides none, or the
    /// producer's error code: 0 if the task has no function to call.
    ///
    /// # Safety
    ///
    /// The task is a producer's, and was moved here.
    pub(crate) unsafe fn extract(mut self) -> Result<ArrowDeviceArray, c_int> {
        let mut array = ManuallyDrop::new(ArrowDeviceArray::empty());
        let Some(extract_data) = self.extract_data.take() else { return Err(0) };
        // SAFETY: the caller's promise; taken out, so that it is called once.
        match unsafe { extract_data(&mut self, &mut *array) } {
            0 => Ok(ManuallyDrop::into_inner(array)),
            // A producer that fails transfers no ownership, whatever it has written.
            code => Err(code),
        }
    }
}

impl Drop for ArrowAsyncTask {
    fn drop(&mut self) {
        if let Some(extract_data) = self.extract_data.take() {
            // SAFETY: not extracted yet; no room for the array means that it is not wanted.
            unsafe { extract_data(self, null_mut()) };
        }
    }
}

/// The right to call a handler and the duty to release it, which dropping this value does. The consumer owns
/// the memory.
#[derive(Debug)]
pub struct AsyncHandler(NonNull<ArrowAsyncDeviceStreamHandler>);

// SAFETY: the interface wants a handler's callbacks called one after the other, on whichever threads.
unsafe impl Send for AsyncHandler {}

impl AsyncHandler {
    /// Takes over a consumer's handler.
    ///
    /// # Safety
    ///
    /// The handler must be what the interface says, as far as that cannot be checked. It must be there until
    /// it is released, and no other code may call it. Calling it on any thread, one at a time, must be fine.
    pub unsafe fn from_raw(handler: NonNull<ArrowAsyncDeviceStreamHandler>) -> AsyncHandler {
        AsyncHandler(handler)
    }

    /// Passes the handler to a producer, which must call and release it as the interface says.
    pub fn into_raw(self) -> NonNull<ArrowAsyncDeviceStreamHandler> {
        ManuallyDrop::new(self).0
    }

    /// The name of the first mandatory callback that is missing.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        // SAFETY: `from_raw` was promised a handler that is there until released.
        let (schema, task, error) = unsafe {
            let handler = self.0.as_ptr();
            ((*handler).on_schema, (*handler).on_next_task, (*handler).on_error)
        };
        let missing = [
            ("on_schema", schema.is_none()),
            ("on_next_task", task.is_none()),
            ("on_error", error.is_none()),
        ];
        missing.into_iter().find(|(_, missing)| *missing).map(|(name, _)| name)
    }

    /// Sets the producer that answers the consumer's requests. Must precede all other callbacks.
    ///
    /// # Safety
    ///
    /// The producer must be there until the handler is released.
    pub(crate) unsafe fn connect(&mut self, producer: *const ArrowAsyncProducer) {
        // SAFETY: as above; the field is the producer's to write.
        unsafe { (*self.0.as_ptr()).producer = producer.cast_mut() };
    }

    /// Delivers the schema. Returns a non-zero code if the consumer refuses it.
    pub(crate) fn on_schema(&mut self, schema: FFI_ArrowSchema) -> c_int {
        // The consumer takes the contents, whatever it returns.
        let mut schema = ManuallyDrop::new(schema);
        // SAFETY: `from_raw` was promised a handler.
        let on_schema = unsafe { (*self.0.as_ptr()).on_schema };
        // SAFETY: as above, and that it may be called.
        on_schema.map_or(0, |on_schema| unsafe { on_schema(self.0.as_ptr(), &mut *schema) })
    }

    /// Lends a task; the consumer moves its contents out. Returns a non-zero code if the consumer refuses it;
    /// then the task is still ours. `metadata` is in the interface's encoding.
    pub(crate) fn on_next_task(&mut self, task: &mut ArrowAsyncTask, metadata: Option<&[u8]>) -> c_int {
        self.next(task, metadata)
    }

    /// Signals the end of the tasks. Returns a non-zero code if the consumer refuses it.
    pub(crate) fn on_end(&mut self) -> c_int {
        self.next(null_mut(), None)
    }

    fn next(&mut self, task: *mut ArrowAsyncTask, metadata: Option<&[u8]>) -> c_int {
        let metadata = metadata.map_or(null(), |bytes| bytes.as_ptr().cast());
        // SAFETY: `from_raw` was promised a handler.
        let on_next_task = unsafe { (*self.0.as_ptr()).on_next_task };
        // SAFETY: as above, and that it may be called; null is the end.
        on_next_task.map_or(0, |on_next_task| unsafe { on_next_task(self.0.as_ptr(), task, metadata) })
    }

    /// Reports an error; `metadata` is in the interface's encoding.
    pub(crate) fn on_error(&mut self, code: c_int, message: &CStr, metadata: Option<&[u8]>) {
        // SAFETY: `from_raw` was promised a handler.
        if let Some(on_error) = unsafe { (*self.0.as_ptr()).on_error } {
            let metadata = metadata.map_or(null(), |bytes| bytes.as_ptr().cast());
            // SAFETY: as above, and that it may be called.
            unsafe { on_error(self.0.as_ptr(), code, message.as_ptr(), metadata) };
        }
    }
}

impl Drop for AsyncHandler {
    fn drop(&mut self) {
        // SAFETY: `from_raw` was promised a handler that is there until released, which is now, once.
        if let Some(release) = unsafe { (*self.0.as_ptr()).release } {
            // SAFETY: as above.
            unsafe { release(self.0.as_ptr()) };
        }
    }
}
