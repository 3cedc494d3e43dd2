//! Examines one device, from its memory to its speed. Each finding is stored at once where another thread can
//! read it, in case the next step never returns.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use bowstring::{Device, Error, Result, internals};

use super::asked::Note;
use super::explain::of_error;
use super::lock::lock;
use super::machine::Machine;
use super::report::Examined;
use super::{equivalence, kernels, measure, selftest};

/// The steps, and the share of the budget after which each has to end.
const STEPS: [(&str, f64); 4] = [("self-tests", 0.1), ("kernels", 0.5), ("equivalence", 0.7), ("speed", 1.0)];
/// The divisor that gives the usable share of a device's free memory. The rest is for other processes and for
/// the driver.
const PART_OF_MEMORY: usize = 2;

/// The name of the phase before all steps.
pub(super) const OPENING: &str = "opening";
/// Bytes of host memory that may be used if the host does not say how many are free.
const HOST_MEMORY: usize = 1 << 30;

/// Examines a device within its budget.
pub(super) fn examine(
    machine: &Machine,
    open: impl FnOnce() -> Result<Device>,
    budget: Duration,
    found: &Mutex<Examined>,
    note: Note<'_>,
) {
    let start = Instant::now();
    let until = |step: usize| start + budget.mul_f64(STEPS[step].1);
    let name = |step: usize| STEPS[step].0;
    let failed = |error: &Error| {
        let problem = of_error(machine, error);
        lock(found).problems.push(problem);
    };
    let cut = |step: usize, what: String| {
        let seconds = budget.as_secs_f64();
        lock(found).notes.push(format!("{} cut: {what}, of {seconds:.1} s for all", name(step)));
    };

    let device = &match open() {
        Ok(device) => device,
        Err(error) => return failed(&error),
    };
    let memory = internals::memory(device);
    {
        let mut found = lock(found);
        (found.name, found.memory) = (device.name(), memory);
        found.architecture = internals::architecture(device);
    }
    if device.name().contains("MIG ") {
        let words = "a MIG instance: a part of a GPU, and its memory and speed are that part's".to_owned();
        lock(found).notes.push(words);
    }

    for (done, (test, run)) in selftest::TESTS.iter().enumerate() {
        note(name(0), test, done, selftest::TESTS.len());
        if done > 0 && Instant::now() > until(0) {
            cut(0, format!("{done} of {} were run", selftest::TESTS.len()));
            break;
        }
        let wrong = run(device).err();
        let is_wrong = wrong.is_some();
        lock(found).tests.push((test, wrong));
        // All later steps depend on the first test.
        if is_wrong && done == 0 {
            return;
        }
    }

    let (loaded, outcome) =
        kernels::load(device, until(1), &|entry, done, of| note(name(1), entry, done, of));
    if let (Some(kernels), Ok(())) = (&loaded, &outcome)
        && kernels.loaded < kernels.of
    {
        cut(1, format!("{} of {} were loaded", kernels.loaded, kernels.of));
    }
    lock(found).kernels = loaded;
    if let Err(error) = outcome {
        failed(&error);
    }

    let stream = match device.stream() {
        Ok(stream) => stream,
        Err(error) => return failed(&error),
    };
    let compared = equivalence::compare(&stream, until(2), &|next, so_far| {
        lock(found).equivalence = Some(so_far.clone());
        note(name(2), next, so_far.compared, so_far.of);
    });
    let (done, of) = lock(found).equivalence.as_ref().map_or((0, 0), |found| (found.compared, found.of));
    match compared {
        Ok(()) if done < of => cut(2, format!("{done} of {of} results were compared")),
        Ok(()) => {}
        Err(error) => failed(&error),
    }

    let host_memory = machine.memory().map_or(HOST_MEMORY, |(free, _)| free);
    let free = memory.map_or(host_memory, |(free, _)| free.min(host_memory)) / PART_OF_MEMORY;
    let note = |part: &str, done, of| note(name(3), part, done, of);
    match measure::measure(&stream, until(3), machine.rows, free, &note) {
        Ok(speed) => lock(found).speed = Some(speed),
        Err(error) => failed(&error),
    }
}
