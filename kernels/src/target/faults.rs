//! The accesses outside of a kernel's arguments, which an emulation does not make.

use core::cell::Cell;

/// The accesses that an emulation refused. It keeps one of them: the first argument's, at the lowest element,
/// whatever the order in which waves and lanes ran.
#[derive(Default)]
pub struct Faults {
    first: Cell<Option<Fault>>,
}

impl Faults {
    /// No faults so far: the state before an emulation.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// The fault of the first argument, at its lowest element, or `None` if there was none.
    pub fn first(&self) -> Option<Fault> {
        self.first.get()
    }

    pub(super) fn record(&self, fault: Fault) {
        let place = |fault: Fault| (fault.argument, fault.index);
        if self.first.get().is_none_or(|first| place(fault) < place(first)) {
            self.first.set(Some(fault));
        }
    }
}

/// An access that a kernel must not make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The index of the argument it went through (see [`super::AnyEntry::arguments`]). For a buffer out of a
    /// table, that is the table.
    pub argument: usize,
    /// The index of the element, in units of the accessed type, from the start of the buffer.
    pub index: u64,
    /// Whether the kernel read or wrote.
    pub access: Access,
    /// The reason why the access was refused.
    pub cause: Cause,
}

/// The direction of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A load from memory.
    Read,
    /// A store or an atomic update.
    Write,
}

/// The reason why an access is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The element is not inside the extent.
    Outside,
    /// The address is not a multiple of the type's alignment.
    Misaligned,
}
