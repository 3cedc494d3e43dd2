//! The consuming side: a handler for a foreign producer to call, and the batches that it received.
//!
//! The producer's struct may be used until the producer calls `release`, which it may do at any moment and on
//! any thread. Therefore `release` waits until no other thread is inside a call to the producer.
//!
//! A task is never refused, because the specification leaves open who owns a refused one. A task that cannot
//! be used (after an error, out of turn, beyond the requested number, after the reader is gone) is extracted
//! and discarded, and the producer is told to stop. So no producer can queue more tasks here than the queue
//! holds.

use std::cell::UnsafeCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::task::Waker;

use arrow_schema::{DataType, SchemaRef};

use super::ECANCELED;
use crate::array::{DeviceBatch, Metadata, Place};
use crate::device::sync::thread::{self, ThreadId};
use crate::device::sync::{Condvar, Mutex};
use crate::device::{Device, lock};
use crate::exchange::import::{batch, import_typed, schema_of, served};
use crate::exchange::streams::{EINVAL, EIO};
use crate::ffi::{
    ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, AsyncHandler, FFI_ArrowSchema,
    check_schema, metadata,
};
use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct Consumer {
    /// The producer writes one field of it; no other code writes it.
    handler: UnsafeCell<ArrowAsyncDeviceStreamHandler>,
    device: Device,
    queue: i64,
    pub state: Mutex<State>,
    /// Signalled when a call to the producer has returned.
    returned: Condvar,
}

/// A batch that can be extracted, and its metadata.
#[derive(Debug)]
pub(super) struct Task {
    task: ArrowAsyncTask,
    metadata: Metadata,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Set from the producer's schema until its release.
    producer: Option<NonNull<ArrowAsyncProducer>>,
    /// The threads that are inside a call to the producer.
    calling: Vec<ThreadId>,
    pub schema: Option<SchemaRef>,
    pub metadata: BTreeMap<String, String>,
    pub device_type: i32,
    /// The total number of batches requested. `come` counts the batches received.
    requested: u64,
    come: u64,
    pub tasks: VecDeque<Task>,
    /// The end of the stream or its error, which follows the queued tasks.
    pub end: Option<Result<()>>,
    /// The consumer wants no more batches.
    closed: bool,
    released: bool,
    pub waker: Option<Waker>,
}

// SAFETY: `handler` is written by the producer alone, which the interface makes call one callback at a time;
// pointers to the producer are followed only as `Consumer::call` says.
unsafe impl Send for Consumer {}
// SAFETY: as above; all else is behind a lock.
unsafe impl Sync for Consumer {}

impl State {
    /// Sets the end of the stream, unless it is already set. Returns whether it was set.
    fn finish(&mut self, end: Result<()>) -> bool {
        let first = self.end.is_none();
        self.end.get_or_insert(end);
        first
    }
}

fn violation(at: &str, problem: impl Into<String>) -> Error {
    Error::out_of_spec(format!("handler.{at}"), problem)
}

impl Consumer {
    pub fn new(device: &Device, queue: usize) -> (Arc<Consumer>, AsyncHandler) {
        let consumer = Arc::new(Consumer {
            handler: UnsafeCell::new(ArrowAsyncDeviceStreamHandler {
                on_schema: Some(on_schema),
                on_next_task: Some(on_next_task),
                on_error: Some(on_error),
                release: Some(release),
                producer: null_mut(),
                private_data: null_mut(),
            }),
            device: device.clone(),
            queue: i64::try_from(queue.max(1)).unwrap_or(i64::MAX),
            state: Mutex::new(State::default()),
            returned: Condvar::new(),
        });
        let handler = consumer.handler.get();
        // SAFETY: no other code has access to it yet. The handler's own count of the consumer is given back
        // in `release`.
        unsafe { (*handler).private_data = Arc::into_raw(consumer.clone()).cast_mut().cast() };
        // SAFETY: it is what the interface says, and there until `release`, since it is part of the consumer.
        let handler = unsafe { AsyncHandler::from_raw(NonNull::new_unchecked(handler)) };
        (consumer, handler)
    }

    /// The memory that holds the batches, once the schema has arrived.
    pub fn place(&self) -> Place {
        let here = self.device.place();
        let device_type = lock(&self.state).device_type;
        served(device_type, here.device_id, &self.device).unwrap_or(here)
    }

    /// Changes the state, and wakes the reader.
    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (changed, waker) = {
            let mut state = lock(&self.state);
            (change(&mut state), state.waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        changed
    }

    /// Calls the producer, unless it has released the handler.
    fn call(&self, body: impl FnOnce(NonNull<ArrowAsyncProducer>)) {
        let own = thread::current().id();
        let producer = {
            let mut state = lock(&self.state);
            let Some(producer) = state.producer else { return };
            state.calling.push(own);
            producer
        };
        body(producer);
        let mut state = lock(&self.state);
        let place = state.calling.iter().position(|thread| *thread == own);
        place.map(|place| state.calling.swap_remove(place));
        self.returned.notify_all();
    }

    pub fn request(&self, n: i64) {
        // Counted before the producer is called, because it may send at once.
        lock(&self.state).requested += n.unsigned_abs();
        // SAFETY: while `call` runs this, the producer has not been told that its handler is released.
        self.call(|producer| unsafe {
            if let Some(request) = (*producer.as_ptr()).request {
                request(producer.as_ptr(), n);
            }
        });
    }

    /// Drops the received batches, and tells the producer, once, that no more are wanted.
    pub fn close(&self) {
        let (going_on, tasks) = {
            let mut state = lock(&self.state);
            let going_on = !std::mem::replace(&mut state.closed, true) && state.end.is_none();
            (going_on, std::mem::take(&mut state.tasks))
        };
        if going_on {
            self.cancel();
        }
        drop(tasks);
    }

    /// Ends the stream with an error after the received batches, and stops the producer without dropping
    /// those batches.
    fn fail(&self, error: Error) {
        if self.update(|state| state.finish(Err(error))) {
            self.cancel();
        }
    }

    fn cancel(&self) {
        // SAFETY: as for `request`.
        self.call(|producer| unsafe {
            if let Some(cancel) = (*producer.as_ptr()).cancel {
                cancel(producer.as_ptr());
            }
        });
    }

    /// # Safety
    ///
    /// The requirements of the callback apply.
    unsafe fn begin(
        &self,
        producer: *mut ArrowAsyncProducer,
        schema: Option<FFI_ArrowSchema>,
    ) -> Result<bool> {
        let Some(known) = NonNull::new(producer) else { return Err(violation("producer", "null")) };
        // SAFETY: the caller's promise: it is there until the handler is released.
        let (device_type, request, words) = unsafe {
            let producer = known.as_ptr();
            ((*producer).device_type, (*producer).request, (*producer).additional_metadata)
        };
        let schema = schema.ok_or_else(|| violation("on_schema", "null"))?;
        if request.is_none() {
            return Err(violation("producer.request", "null"));
        }
        served(device_type, self.device.place().device_id, &self.device)?;
        // SAFETY: the caller's promise.
        unsafe { check_schema(&schema) }?;
        let schema = schema_of(&schema)?;
        // SAFETY: the caller's promise.
        let metadata = unsafe { metadata::decode(words) }
            .ok_or_else(|| violation("producer.additional_metadata", "malformed"))?;
        self.update(|state| {
            if state.schema.is_some() {
                return Err(violation("on_schema", "called again"));
            }
            (state.metadata, state.device_type) = (metadata, device_type);
            state.schema = Some(Arc::new(schema));
            state.producer = Some(known).filter(|_| !state.released);
            Ok(!state.closed && state.end.is_none())
        })
    }

    /// Receives a batch, or the end if `task` is `None`. `metadata` is `None` if it is malformed.
    fn next(&self, mut task: Option<ArrowAsyncTask>, metadata: Option<BTreeMap<String, String>>) {
        let accepted = self.update(|state| {
            if state.schema.is_none() {
                return Err(violation("on_next_task", "called before on_schema"));
            }
            if state.closed || state.end.is_some() {
                return Ok(());
            }
            let metadata = metadata.ok_or_else(|| violation("on_next_task", "malformed metadata"))?;
            if task.is_none() {
                state.metadata.extend(metadata);
                state.finish(Ok(()));
            } else if state.come < state.requested {
                state.come += 1;
                let metadata = Metadata::from(metadata);
                state.tasks.extend(task.take().map(|task| Task { task, metadata }));
            } else {
                let problem = format!("called for batch {} of {} requested", state.come + 1, state.requested);
                return Err(violation("on_next_task", problem));
            }
            Ok(())
        });
        if let Err(error) = accepted {
            self.fail(error);
        }
        // Outside of the lock: dropping a remaining task calls the producer.
        drop(task);
    }

    /// Extracts the batch of a task.
    pub fn take(&self, Task { task, metadata }: Task) -> Result<DeviceBatch> {
        let (schema, device_type) = {
            let state = lock(&self.state);
            (state.schema.clone(), state.device_type)
        };
        let schema = schema.ok_or_else(|| violation("on_schema", "not called"))?;
        // SAFETY: moved out of what the producer has lent.
        let array = unsafe { task.extract() }.map_err(|code| {
            // The producer reports the same error in words, and may have done so already.
            match &lock(&self.state).end {
                Some(Err(error @ Error::Producer { .. })) => error.clone(),
                _ if code == 0 => Error::out_of_spec("task.extract_data", "null"),
                _ => failure(code, "a task could not be extracted".into()),
            }
        })?;
        if array.is_released() {
            return Err(Error::out_of_spec("array", "released"));
        }
        if array.device_type != device_type {
            let problem = format!("{} in a stream of {device_type}", array.device_type);
            return Err(Error::out_of_spec("array.device_type", problem));
        }
        let place = served(array.device_type, array.device_id, &self.device)?;
        let rows = DataType::Struct(schema.fields().clone());
        // SAFETY: who gave the handler to the producer promised that its arrays are what they should be.
        let rows = unsafe { import_typed(array, &rows, place, &self.device) }?;
        Ok(batch(schema, &rows)?.with_metadata(metadata))
    }
}

fn failure(code: c_int, message: String) -> Error {
    Error::Producer { code, message, metadata: BTreeMap::new() }
}

/// Runs a callback's body. A panic does not unwind into the producer; it becomes an error code.
fn guard(body: impl FnOnce() -> c_int) -> c_int {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(EIO)
}

/// The consumer of a handler, kept alive while a callback runs. `None` after the handler's release, while the
/// handler's memory still exists.
///
/// # Safety
///
/// The handler, or the producer's copy of it, is there.
unsafe fn consumer(handler: *mut ArrowAsyncDeviceStreamHandler) -> Option<Arc<Consumer>> {
    // SAFETY: the caller's promise.
    let consumer = unsafe { (*handler).private_data }.cast::<Consumer>().cast_const();
    // SAFETY: the handler's own count keeps it; this one is another.
    (!consumer.is_null()).then(|| unsafe {
        Arc::increment_strong_count(consumer);
        Arc::from_raw(consumer)
    })
}

unsafe extern "C" fn on_schema(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    schema: *mut FFI_ArrowSchema,
) -> c_int {
    guard(|| {
        // SAFETY: the interface asks for a handler that is not released, and a schema that is ours to take.
        let (consumer, producer, schema) = unsafe {
            let schema = schema.as_mut().map(|schema| std::mem::replace(schema, FFI_ArrowSchema::empty()));
            (consumer(handler), (*handler).producer, schema)
        };
        let Some(consumer) = consumer else { return EINVAL };
        // SAFETY: as above; the interface has the producer there by now.
        match unsafe { consumer.begin(producer, schema) } {
            Ok(true) => consumer.request(consumer.queue),
            Ok(false) => return ECANCELED,
            Err(error) => {
                consumer.fail(error);
                return EINVAL;
            }
        }
        0
    })
}

unsafe extern "C" fn on_next_task(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    task: *mut ArrowAsyncTask,
    words: *const c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the interface asks for a handler that is not released, null or a task that is ours to move,
        // and null or metadata.
        let (consumer, task, metadata) = unsafe {
            let task = task.as_mut().map(|task| std::mem::replace(task, ArrowAsyncTask::empty()));
            (consumer(handler), task, metadata::decode(words))
        };
        match consumer {
            Some(consumer) => consumer.next(task, metadata),
            None => drop(task),
        }
        0
    })
}

unsafe extern "C" fn on_error(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    code: c_int,
    message: *const c_char,
    words: *const c_char,
) {
    guard(|| {
        let message = match message.is_null() {
            true => "no message".into(),
            // SAFETY: the interface asks for null or a terminated string.
            false => unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned(),
        };
        // SAFETY: the interface asks for null or metadata.
        let metadata = unsafe { metadata::decode(words) }.unwrap_or_default();
        // SAFETY: the interface asks for a handler that is not released.
        let Some(consumer) = (unsafe { consumer(handler) }) else { return EINVAL };
        consumer.update(|state| state.finish(Err(Error::Producer { code, message, metadata })));
        0
    });
}

unsafe extern "C" fn release(handler: *mut ArrowAsyncDeviceStreamHandler) {
    guard(|| {
        // SAFETY: the interface asks for a handler that is not released, once. If it is called again while
        // the reader is alive, the handler still exists, too, and says so.
        let private_data: *mut c_void = unsafe {
            (*handler).release = None;
            std::mem::replace(&mut (*handler).private_data, null_mut())
        };
        if private_data.is_null() {
            return 0;
        }
        // SAFETY: the handler's own count, given back here.
        let consumer = unsafe { Arc::from_raw(private_data.cast::<Consumer>().cast_const()) };
        let own = thread::current().id();
        let mut state = lock(&consumer.state);
        (state.released, state.producer) = (true, None);
        // A producer that calls this from within its own `request` or `cancel` knows that it is.
        while state.calling.iter().any(|thread| *thread != own) {
            state = consumer.returned.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        drop(state);
        let early = violation("release", "called before the end of the stream");
        consumer.update(|state| state.finish(Err(early)));
        0
    });
}
