//! An independent producer of asynchronous streams, which sends a test's messages and records the requests
//! that it gets.

use std::ffi::{CString, c_int};
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

use bowstring::ffi::{AsyncHandler, FFI_ArrowSchema};

use super::foreign::RawDeviceArray;
use super::foreign_async::{RawHandler, RawProducer, RawTask};

/// Encodes one pair in Arrow's metadata encoding.
pub fn pair(key: &str, value: &str) -> Vec<u8> {
    let mut bytes = 1i32.to_ne_bytes().to_vec();
    for text in [key, value] {
        bytes.extend((text.len() as i32).to_ne_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// The requests to a producer, and the fate of its tasks.
#[derive(Default)]
pub struct Asked {
    pub requests: Vec<i64>,
    pub cancels: usize,
    pub extracted: usize,
    pub discarded: usize,
    /// Whether the handler was released; later requests are errors.
    over: bool,
    pub too_late: usize,
}

/// A producer that sends a test's messages and records the requests that it gets.
pub struct RawSender {
    pub handler: *mut RawHandler,
    producer: Box<RawProducer>,
    pub asked: Arc<Mutex<Asked>>,
}

// SAFETY: tests call from one thread at a time, or test concurrent calls on purpose.
unsafe impl Send for RawSender {}
// SAFETY: as above.
unsafe impl Sync for RawSender {}

impl RawSender {
    pub fn new(handler: AsyncHandler) -> RawSender {
        let asked = Arc::<Mutex<Asked>>::default();
        let producer = Box::new(RawProducer {
            device_type: 1,
            request: Some(request),
            cancel: Some(cancel),
            additional_metadata: null(),
            private_data: Arc::as_ptr(&asked).cast_mut().cast(),
        });
        RawSender { handler: handler.into_raw().as_ptr().cast(), producer, asked }
    }

    pub fn bend(&mut self, bend: impl FnOnce(&mut RawProducer)) {
        bend(&mut self.producer);
    }

    /// Sends a valid schema.
    pub fn schema(&mut self, schema: FFI_ArrowSchema) -> c_int {
        self.raw_schema(Some(schema), true)
    }

    /// Sends a schema or none, after setting the producer or not.
    pub fn raw_schema(&mut self, schema: Option<FFI_ArrowSchema>, with_producer: bool) -> c_int {
        let mut schema = schema;
        let given = schema.as_mut().map_or(null_mut(), |schema| &raw mut *schema);
        // SAFETY: the callback belongs to the struct; a schema that was moved out is marked as released.
        unsafe {
            if with_producer {
                (*self.handler).producer = &raw mut *self.producer;
            }
            (*self.handler).on_schema.unwrap()(self.handler, given)
        }
    }

    /// Sends a task as it is.
    pub fn raw_task(&self, mut task: RawTask) -> c_int {
        self.next(&mut task, None)
    }

    /// Sends a task that returns an array, or fails with a code.
    pub fn task(&self, array: Result<RawDeviceArray, c_int>) -> c_int {
        self.task_with(array, None)
    }

    /// Sends a task with metadata.
    pub fn task_with(&self, array: Result<RawDeviceArray, c_int>, metadata: Option<&[u8]>) -> c_int {
        let private = Box::new(Pending { array, asked: self.asked.clone() });
        let mut task =
            RawTask { extract_data: Some(extract_data), private_data: Box::into_raw(private).cast() };
        self.next(&mut task, metadata)
    }

    pub fn end(&self) -> c_int {
        self.end_with(None)
    }

    /// Ends the stream, with metadata.
    pub fn end_with(&self, metadata: Option<&[u8]>) -> c_int {
        self.next(null_mut(), metadata)
    }

    fn next(&self, task: *mut RawTask, metadata: Option<&[u8]>) -> c_int {
        let metadata = metadata.map_or(null(), |bytes| bytes.as_ptr().cast());
        // SAFETY: the callback belongs to the struct.
        unsafe { (*self.handler).on_next_task.unwrap()(self.handler, task, metadata) }
    }

    /// The number of requested batches that were not sent yet; the caller counts those sent.
    pub fn wanted(&self, sent: i64) -> i64 {
        self.asked.lock().unwrap().requests.iter().sum::<i64>() - sent
    }

    pub fn error(&self, code: c_int, message: Option<&str>, metadata: Option<&[u8]>) {
        let message = message.map(|text| CString::new(text).unwrap());
        let words = message.as_ref().map_or(null(), |text| text.as_ptr());
        let metadata = metadata.map_or(null(), |bytes| bytes.as_ptr().cast());
        // SAFETY: the callback belongs to the struct.
        unsafe { (*self.handler).on_error.unwrap()(self.handler, code, words, metadata) }
    }

    /// Releases the handler; later requests count as too late.
    pub fn release(&self) {
        // SAFETY: the callback belongs to the struct.
        unsafe { (*self.handler).release.unwrap()(self.handler) }
        self.asked.lock().unwrap().over = true;
    }
}

unsafe fn asked<'a>(producer: *mut RawProducer) -> &'a Mutex<Asked> {
    // SAFETY: the sender exists and keeps it.
    unsafe { &*(*producer).private_data.cast() }
}

unsafe extern "C" fn request(producer: *mut RawProducer, n: i64) {
    // SAFETY: as above.
    let asked = unsafe { asked(producer) };
    let over = asked.lock().unwrap().over;
    // Gives a release the chance to come in between, if the reader allows it.
    std::thread::yield_now();
    let mut asked = asked.lock().unwrap();
    asked.too_late += usize::from(over || asked.over);
    asked.requests.push(n);
}

unsafe extern "C" fn cancel(producer: *mut RawProducer) {
    // SAFETY: as above.
    let mut asked = unsafe { asked(producer) }.lock().unwrap();
    asked.too_late += usize::from(asked.over);
    asked.cancels += 1;
}

struct Pending {
    array: Result<RawDeviceArray, c_int>,
    asked: Arc<Mutex<Asked>>,
}

unsafe extern "C" fn extract_data(task: *mut RawTask, out: *mut RawDeviceArray) -> c_int {
    // SAFETY: boxed in `task`, unboxed here; a second time, the pointer is null.
    let pending = unsafe {
        let private = std::mem::replace(&mut (*task).private_data, null_mut());
        assert!(!private.is_null(), "extracted twice");
        Box::from_raw(private.cast::<Pending>())
    };
    let Pending { array, asked } = *pending;
    let mut asked = asked.lock().unwrap();
    match (array, out.is_null()) {
        (Ok(array), false) => {
            asked.extracted += 1;
            let array = ManuallyDrop::new(array);
            // SAFETY: the interface asks for room.
            unsafe { out.write(*array) };
            0
        }
        (array, true) => {
            asked.discarded += 1;
            if let Ok(mut array) = array {
                array.array.release();
            }
            0
        }
        (Err(code), false) => {
            asked.extracted += 1;
            code
        }
    }
}
