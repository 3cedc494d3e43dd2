//! Independent implementations of both sides of an asynchronous stream, controlled by a test, which record
//! all calls: a consumer for our exports, and a part of the producer for our readers.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::pin::Pin;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use bowstring::ffi::{ArrowDeviceArray, AsyncHandler, FFI_ArrowSchema};

use super::foreign::RawDeviceArray;

/// An independent definition of `ArrowAsyncTask`.
#[repr(C)]
pub struct RawTask {
    pub extract_data: Option<unsafe extern "C" fn(*mut RawTask, *mut RawDeviceArray) -> c_int>,
    pub private_data: *mut c_void,
}

/// An independent definition of `ArrowAsyncProducer`.
#[repr(C)]
pub struct RawProducer {
    pub device_type: i32,
    pub request: Option<unsafe extern "C" fn(*mut RawProducer, i64)>,
    pub cancel: Option<unsafe extern "C" fn(*mut RawProducer)>,
    pub additional_metadata: *const c_char,
    pub private_data: *mut c_void,
}

/// An independent definition of `ArrowAsyncDeviceStreamHandler`.
#[repr(C)]
pub struct RawHandler {
    pub on_schema: Option<unsafe extern "C" fn(*mut RawHandler, *mut FFI_ArrowSchema) -> c_int>,
    pub on_next_task: Option<unsafe extern "C" fn(*mut RawHandler, *mut RawTask, *const c_char) -> c_int>,
    pub on_error: Option<unsafe extern "C" fn(*mut RawHandler, c_int, *const c_char, *const c_char)>,
    pub release: Option<unsafe extern "C" fn(*mut RawHandler)>,
    pub producer: *mut RawProducer,
    pub private_data: *mut c_void,
}

// SAFETY: tests call from one thread at a time, or test concurrent calls on purpose.
unsafe impl Send for RawTask {}

/// A waker that counts its wakes.
#[derive(Default)]
pub struct Wakes(pub AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wakes {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Polls a future for as long as it wakes itself.
pub fn settle<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    loop {
        let before = wakes.count();
        let polled = Pin::new(&mut *future).poll(&mut Context::from_waker(&waker));
        if polled.is_ready() || wakes.count() == before {
            return polled;
        }
    }
}

/// A call that a consumer has received.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Schema(BTreeMap<String, String>),
    Task,
    End,
    Error(c_int, String, BTreeMap<String, String>),
    Release,
}

/// The behaviour of a consumer when it is called.
#[derive(Clone, Copy, Default)]
pub struct Manner {
    /// The number of batches that it requests as soon as it has a schema.
    pub asks: Option<i64>,
    pub refuses_schema: c_int,
    pub refuses_tasks: c_int,
    /// Whether it extracts a task before it refuses it.
    pub extracts_first: bool,
}

#[derive(Default)]
pub struct Notes {
    pub told: Vec<Told>,
    /// The metadata of each task.
    pub said: Vec<BTreeMap<String, String>>,
    tasks: VecDeque<RawTask>,
    pub producer: usize,
}

/// A consumer that records the calls that it receives.
pub struct RawConsumer {
    manner: Manner,
    pub notes: Mutex<Notes>,
}

impl RawConsumer {
    pub fn new(manner: Manner) -> (Arc<RawConsumer>, AsyncHandler) {
        RawConsumer::bent(manner, |_| {})
    }

    /// Creates a consumer whose handler is modified first.
    pub fn bent(manner: Manner, bend: impl FnOnce(&mut RawHandler)) -> (Arc<RawConsumer>, AsyncHandler) {
        let consumer = Arc::new(RawConsumer { manner, notes: Mutex::default() });
        let mut handler = Box::new(RawHandler {
            on_schema: Some(on_schema),
            on_next_task: Some(on_next_task),
            on_error: Some(on_error),
            release: Some(release),
            producer: null_mut(),
            private_data: Arc::into_raw(consumer.clone()).cast_mut().cast(),
        });
        bend(&mut handler);
        let handler = NonNull::from(Box::leak(handler)).cast();
        // SAFETY: both have the ABI's layout; the box is freed in `release`.
        (consumer, unsafe { AsyncHandler::from_raw(handler) })
    }

    pub fn told(&self) -> Vec<Told> {
        self.notes.lock().unwrap().told.clone()
    }

    /// How often the consumer received this call.
    pub fn count(&self, what: &Told) -> usize {
        self.told().iter().filter(|told| *told == what).count()
    }

    pub fn producer(&self) -> *mut RawProducer {
        std::ptr::with_exposed_provenance_mut(self.notes.lock().unwrap().producer)
    }

    pub fn request(&self, n: i64) {
        let producer = self.producer();
        // SAFETY: tests make requests only while the producer exists.
        unsafe { (*producer).request.unwrap()(producer, n) }
    }

    /// Makes a request while the stream cannot end: it holds the lock that the final call needs.
    pub fn request_unless_over(&self, n: i64) {
        let notes = self.notes.lock().unwrap();
        let over = notes.told.iter().any(|told| !matches!(told, Told::Schema(_) | Told::Task));
        let producer = std::ptr::with_exposed_provenance_mut::<RawProducer>(notes.producer);
        if !over && !producer.is_null() {
            // SAFETY: the producer's last call is yet to come.
            unsafe { (*producer).request.unwrap()(producer, n) }
        }
    }

    pub fn cancel(&self) {
        let producer = self.producer();
        // SAFETY: as above.
        unsafe { (*producer).cancel.unwrap()(producer) }
    }

    pub fn take(&self) -> Option<RawTask> {
        self.notes.lock().unwrap().tasks.pop_front()
    }
}

/// Extracts a task; returns the code, and the array.
pub fn extract(task: &mut RawTask) -> (c_int, ArrowDeviceArray) {
    let mut array = ArrowDeviceArray::empty();
    // SAFETY: the callback belongs to the struct; both kinds of array have the ABI's layout.
    let code = unsafe { task.extract_data.unwrap()(task, (&raw mut array).cast()) };
    (code, array)
}

/// Discards a task without its data.
pub fn discard(task: &mut RawTask) -> c_int {
    // SAFETY: the callback belongs to the struct.
    unsafe { task.extract_data.unwrap()(task, null_mut()) }
}

unsafe fn consumer<'a>(handler: *mut RawHandler) -> &'a RawConsumer {
    // SAFETY: counted in `new`, given back in `release`.
    unsafe { &*(*handler).private_data.cast::<RawConsumer>() }
}

unsafe extern "C" fn on_schema(handler: *mut RawHandler, schema: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: the producer promised a handler and a schema to take.
    let (consumer, producer) = unsafe {
        drop(std::ptr::read(schema));
        (consumer(handler), (*handler).producer)
    };
    // SAFETY: the producer is there by now.
    let metadata = unsafe { pairs((*producer).additional_metadata) };
    let mut notes = consumer.notes.lock().unwrap();
    notes.told.push(Told::Schema(metadata));
    notes.producer = producer.expose_provenance();
    drop(notes);
    if let Some(n) = consumer.manner.asks {
        consumer.request(n);
    }
    consumer.manner.refuses_schema
}

unsafe extern "C" fn on_next_task(
    handler: *mut RawHandler,
    task: *mut RawTask,
    metadata: *const c_char,
) -> c_int {
    // SAFETY: the producer promised a handler, null or a task, and metadata.
    let (consumer, task, said) =
        unsafe { (consumer(handler), (!task.is_null()).then(|| task.read()), pairs(metadata)) };
    let mut notes = consumer.notes.lock().unwrap();
    assert!(!notes.told.contains(&Told::End), "told more after the end");
    notes.told.push(if task.is_some() { Told::Task } else { Told::End });
    notes.said.extend(task.is_some().then_some(said));
    match task {
        Some(mut task) if consumer.manner.refuses_tasks != 0 => {
            if consumer.manner.extracts_first {
                assert_eq!(extract(&mut task).0, 0);
            }
        }
        task => notes.tasks.extend(task),
    }
    consumer.manner.refuses_tasks
}

unsafe extern "C" fn on_error(
    handler: *mut RawHandler,
    code: c_int,
    message: *const c_char,
    metadata: *const c_char,
) {
    // SAFETY: the producer promised a handler, a terminated string and metadata.
    let (consumer, message, metadata) =
        unsafe { (consumer(handler), CStr::from_ptr(message), pairs(metadata)) };
    let message = message.to_str().unwrap().to_owned();
    consumer.notes.lock().unwrap().told.push(Told::Error(code, message, metadata));
}

unsafe extern "C" fn release(handler: *mut RawHandler) {
    // SAFETY: boxed and counted in `new`, freed here, once.
    let (consumer, handler) =
        unsafe { (Arc::from_raw((*handler).private_data.cast::<RawConsumer>()), Box::from_raw(handler)) };
    drop(handler);
    let mut notes = consumer.notes.lock().unwrap();
    assert!(!notes.told.contains(&Told::Release), "released twice");
    notes.told.push(Told::Release);
}

/// Reads metadata in Arrow's encoding, by a simple loop.
unsafe fn pairs(at: *const c_char) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if at.is_null() {
        return found;
    }
    let mut at = at.cast::<u8>();
    let mut number = |skip: usize| {
        // SAFETY: the metadata is as long as its counts say.
        unsafe {
            at = at.add(skip);
            let value = at.cast::<i32>().read_unaligned() as usize;
            at = at.add(4);
            (value, at)
        }
    };
    let mut before = 0;
    for _ in 0..number(0).0 {
        let [key, value] = [(); 2].map(|()| {
            let (len, start) = number(std::mem::take(&mut before));
            before = len;
            // SAFETY: as above.
            String::from_utf8(unsafe { std::slice::from_raw_parts(start, len) }.to_vec()).unwrap()
        });
        found.insert(key, value);
    }
    found
}
