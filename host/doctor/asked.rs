//! What an examination is asked for, and what it says while it goes on.

use std::time::Duration;

/// How long an examination may take, and of how much.
#[derive(Clone, Debug)]
pub struct Options {
    /// The time for everything, nearly: steps that would go beyond are cut short, and named.
    pub budget: Duration,
    /// How many GPUs of a kind are examined; more are only counted.
    pub devices: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { budget: Duration::from_secs(100), devices: 8 }
    }
}

/// Where an examination is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Which device.
    pub device: &'a str,
    /// What is done with it.
    pub step: &'a str,
    /// Which part of the step begins; empty where it has no parts with names.
    pub part: &'a str,
    /// How much of that has been done.
    pub done: usize,
    /// How much there is.
    pub of: usize,
}

/// The same of one device, as long as somebody wants to keep it.
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

    /// Where that is, in words.
    pub fn words(&self) -> String {
        let At { step, part, .. } = self;
        if part.is_empty() { step.clone() } else { format!("{step}, {part}") }
    }
}

/// Told what begins: the step, the part of it, how much is done, of how much.
pub(super) type Note<'a> = &'a dyn Fn(&str, &str, usize, usize);

/// How long a device, or a library, may go on before it is left alone, as times its budget, and beyond that: a step only looks at
/// the clock between its parts.
const GRACE: f64 = 1.1;
const LEAST_GRACE: Duration = Duration::from_secs(10);

pub(super) fn patience(budget: Duration) -> Duration {
    budget.mul_f64(GRACE) + LEAST_GRACE
}
