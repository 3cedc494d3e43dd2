//! Arrays whose memory other programs read by its address.

use super::foreign::core_of;
use super::pool::Memory;
use super::released::{Reader, Released};
use super::staging::drop_without_calls;
use crate::array::{Buffer, DeviceArray};

/// Drops an array that a consumer has read on a stream of its own. Its memory, and what others have lent to
/// us for it, is freed only after the consumer's work has passed.
pub(crate) fn let_go(array: DeviceArray, reader: Reader) {
    let bitmap = array.validity().map(|bits| &bits.buffer);
    let mut owners = array.buffers().iter().chain(bitmap).map(Buffer::owner);
    if let Some(memory) = owners.find_map(|owner| owner.clone().downcast::<Memory>().ok()) {
        return memory.core().let_go(Released::new(array, reader));
    }
    // A producer that gave no event, as all do for host memory, cannot be made to wait.
    match array.ready().and_then(core_of) {
        Some(core) => core.let_go(Released::new(array, reader)),
        None => drop_without_calls(array),
    }
}

/// An array that a consumer reads by its address, without a deleter to call. Drop it when the consumer has no
/// more use for it: its memory is used again only once the work that the consumer has queued by then has
/// passed. [`Device::set_export_fence`](crate::Device::set_export_fence) says how far that is safe.
#[derive(Debug)]
pub struct Lent(Option<DeviceArray>);

impl Lent {
    /// Lends an array until the result is dropped.
    pub fn new(array: DeviceArray) -> Lent {
        Lent(Some(array))
    }

    /// The array that is lent.
    pub fn array(&self) -> &DeviceArray {
        self.0.as_ref().expect("there until dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(array) = self.0.take() {
            let_go(array, Reader::default());
        }
    }
}
