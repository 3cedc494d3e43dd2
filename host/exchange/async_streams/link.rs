//! The link between an export and its consumer: the producer's struct, the consumer's requests, and the
//! tasks.
//!
//! The struct, part of a [`Link`], must exist until `release`. Known consumers use it even after that: they
//! request one more batch for each task that they take out of their queue, possibly long after the producer
//! has finished. So the link is reference-counted. The export holds a count until it has released the
//! handler, each task until it is extracted, and each array made of a task until the array is released. A
//! consumer that takes a task out of its queue holds the task or its array while it requests, so this is
//! sound. One case stays unsound, as in the specification: to request or cancel after the release when every
//! task has been extracted and every array released, or only children remain that were moved out of their
//! arrays.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};

use crate::device::lock;
use crate::device::sync::Mutex;
use crate::exchange::streams::EINVAL;
use crate::ffi::{ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceArray, DeviceType};

/// The producer's struct, and the requests that it has received.
#[repr(C)]
pub(super) struct Link {
    pub producer: ArrowAsyncProducer,
    demand: Mutex<Demand>,
    _metadata: Option<Vec<u8>>,
}

// SAFETY: the producer's struct is never written, and points to the link itself and to its metadata.
unsafe impl Send for Link {}
// SAFETY: as above; the rest is behind a lock.
unsafe impl Sync for Link {}

#[derive(Default)]
struct Demand {
    wanted: u64,
    /// The stream has ended or was cancelled.
    over: bool,
    nonsense: Option<i64>,
    waker: Option<Waker>,
}

/// The state of the consumer's requests.
pub(super) enum Demanded {
    Nothing,
    Batch,
    End,
    Nonsense(i64),
}

impl Link {
    pub fn new(device_type: DeviceType, metadata: Option<Vec<u8>>) -> Arc<Link> {
        Arc::new_cyclic(|link: &Weak<Link>| Link {
            producer: ArrowAsyncProducer {
                device_type: device_type as i32,
                request: Some(request),
                cancel: Some(cancel),
                additional_metadata: metadata.as_ref().map_or(null(), |bytes| bytes.as_ptr().cast()),
                private_data: link.as_ptr().cast_mut().cast(),
            },
            demand: Mutex::default(),
            _metadata: metadata,
        })
    }

    /// The current demand. Wakes the context when the demand changes.
    pub fn demand(&self, context: &Context<'_>) -> Demanded {
        let waker = context.waker().clone();
        let mut demand = lock(&self.demand);
        let old = demand.waker.replace(waker);
        let demanded = match *demand {
            Demand { over: true, .. } => Demanded::End,
            Demand { nonsense: Some(n), .. } => Demanded::Nonsense(n),
            Demand { wanted: 0, .. } => Demanded::Nothing,
            _ => Demanded::Batch,
        };
        drop(demand);
        drop(old);
        demanded
    }

    pub fn served(&self) {
        lock(&self.demand).wanted -= 1;
    }

    /// Ends the stream; later requests are ignored.
    pub fn end(&self) {
        let waker = {
            let mut demand = lock(&self.demand);
            demand.over = true;
            demand.waker.take()
        };
        drop(waker);
    }

    fn change(&self, change: impl FnOnce(&mut Demand)) {
        let waker = {
            let mut demand = lock(&self.demand);
            if demand.over {
                return;
            }
            change(&mut demand);
            demand.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// # Safety
///
/// `producer` is null or a link's, or a copy of it, and the link is there.
unsafe fn change(producer: *mut ArrowAsyncProducer, change: impl FnOnce(&mut Demand)) {
    // SAFETY: the caller's promise.
    let link =
        unsafe { producer.as_ref().and_then(|producer| producer.private_data.cast::<Link>().as_ref()) };
    if let Some(link) = link {
        // A waker may panic. A panic must not unwind into C, and this function cannot report it.
        let _ = catch_unwind(AssertUnwindSafe(|| link.change(change)));
    }
}

unsafe extern "C" fn request(producer: *mut ArrowAsyncProducer, n: i64) {
    let add = |demand: &mut Demand| match u64::try_from(n) {
        Ok(more @ 1..) => demand.wanted = demand.wanted.saturating_add(more),
        _ => demand.nonsense = demand.nonsense.or(Some(n)),
    };
    // SAFETY: the interface asks for a producer that is there.
    unsafe { change(producer, add) };
}

unsafe extern "C" fn cancel(producer: *mut ArrowAsyncProducer) {
    // SAFETY: as above.
    unsafe { change(producer, |demand| demand.over = true) };
}

/// The target of a task's `private_data`.
pub(super) struct Sent {
    array: Mutex<Option<ArrowDeviceArray>>,
    _link: Arc<Link>,
}

impl Sent {
    /// Wraps an array for extraction. Returns it together with its task, which holds a count of its own.
    pub fn new(array: ArrowDeviceArray, link: Arc<Link>) -> (Arc<Sent>, ArrowAsyncTask) {
        let sent = Arc::new(Sent { array: Mutex::new(Some(array)), _link: link });
        let private_data = Arc::into_raw(sent.clone()).cast_mut().cast();
        (sent, ArrowAsyncTask { extract_data: Some(extract_data), private_data })
    }

    /// Takes the array back after the consumer has refused the task, unless it was already extracted.
    pub fn take_back(self: Arc<Sent>) {
        // Dropped outside the lock, because a producer's release may call anything.
        let taken = lock(&self.array).take();
        if taken.is_some() {
            // SAFETY: the task's own count, which extracting would have given back.
            unsafe { Arc::decrement_strong_count(Arc::as_ptr(&self)) };
        }
    }
}

unsafe extern "C" fn extract_data(task: *mut ArrowAsyncTask, out: *mut ArrowDeviceArray) -> c_int {
    // SAFETY: the interface asks for null or a task.
    let Some(task) = (unsafe { task.as_mut() }) else { return EINVAL };
    let sent: *mut c_void = std::mem::replace(&mut task.private_data, null_mut());
    let extracted = catch_unwind(AssertUnwindSafe(|| {
        if sent.is_null() {
            return None;
        }
        // SAFETY: the task's own count, given back here; the interface has this called once.
        let sent = unsafe { Arc::from_raw(sent.cast::<Sent>().cast_const()) };
        lock(&sent.array).take()
    }));
    match (extracted, out.is_null()) {
        (Ok(Some(array)), false) => {
            // SAFETY: the interface asks for room for an array, of whatever contents.
            unsafe { out.write(array) };
            0
        }
        (Ok(Some(array)), true) => {
            drop(array);
            0
        }
        (_, false) => {
            // SAFETY: as above.
            unsafe { out.write(ArrowDeviceArray::empty()) };
            EINVAL
        }
        (_, true) => EINVAL,
    }
}
