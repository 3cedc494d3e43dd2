//! The options of an examination, and the progress that it reports.

use std::time::Duration;

/// Limits of an examination: its time, and the number of devices.
#[derive(Clone, Debug)]
pub struct Options {
    /// The approximate time for the whole examination. Steps that would take longer are cut short, and the
    /// report names them.
    pub budget: Duration,
    /// How many GPUs of each kind are examined; further ones are only counted.
    pub devices: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { budget: Duration::from_secs(100), devices: 8 }
    }
}

/// The current step of an examination.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The device that is examined, such as `cuda:0`, or the library, such as `cuda`.
    pub device: &'a str,
    /// The current step, such as `equivalence`.
    pub step: &'a str,
    /// The part of the step that begins; empty if the parts have no names.
    pub part: &'a str,
    /// How many parts of the step are done.
    pub done: usize,
    /// How many parts the step has.
    pub of: usize,
}

/// An owned copy of [`Progress`] without the device.
#[derive(Clone, Debug)]
pub(super) struct At {
    pub step: String,
    pub part: String,
    pub done: usize,
    pub of: usize,
}

impl At {
    pub fn start(step: &str) -> At {
        At { step: step.to_owned(), part: String::new(), done: 0, of: 1 }
    }

    pub fn of<'a>(&'a self, device: &'a str) -> Progress<'a> {
        Progress { device, step: &self.step, part: &self.part, done: self.done, of: self.of }
    }

    /// Names the step and its part.
    pub fn words(&self) -> String {
        let At { step, part, .. } = self;
        if part.is_empty() { step.clone() } else { format!("{step}, {part}") }
    }
}

/// Called when a part begins, with the step, the part, the number of parts done and the number of all parts.
pub(super) type Note<'a> = &'a dyn Fn(&str, &str, usize, usize);

/// How long a device or library may run before it is abandoned: its budget times this, and at least so much
/// more. A step looks at the clock only between its parts.
const GRACE: f64 = 1.1;
const LEAST_GRACE: Duration = Duration::from_secs(10);

pub(super) fn patience(budget: Duration) -> Duration {
    budget.mul_f64(GRACE) + LEAST_GRACE
}
