//! Runs examinations within this process, each on a thread of its own that stores each finding at once. A
//! thread that never returns costs only its own time, not the report. If a library ends the process, the
//! report is lost.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bowstring::ffi::DeviceType;
use bowstring::internals::{count_of, open_from, why_not};
use bowstring::{Device, Error, Result};

use super::asked::{At, Note, Progress, patience};
use super::examined;
use super::explain::{Diagnosis, State, of_error, of_libraries};
use super::lock::lock;
use super::machine::Machine;
use super::report::{Examined, Library};

/// The name of the step that looks for a library.
pub(super) const STEP: &str = "library";

/// Loads the library of a kind of GPU and counts its devices, or says what is wrong.
pub(super) fn look_for(machine: &Machine, runtime: DeviceType, most: usize, note: Note<'_>) -> Library {
    let mut tried = vec![];
    for name in machine.library_names(runtime) {
        note(STEP, &format!("loading {}", name.display()), 0, 2);
        let problem = why_not(&name);
        let is_there = problem.is_none();
        tried.push((name, problem));
        if is_there {
            break;
        }
    }
    let loaded = tried.iter().find(|(_, problem)| problem.is_none()).map(|(name, _)| name);
    note(STEP, "counting devices", 1, 2);
    let counted = count_of(machine.library(runtime), runtime);
    // The path of the file can only be seen while the library is loaded.
    let found = loaded.map(|name| machine.loaded_from(name).unwrap_or_else(|| name.display().to_string()));
    let (devices, problem) = match (&found, counted) {
        (None, _) => (0, Some(of_libraries(machine, runtime, &tried))),
        (_, Ok(0)) => {
            let reason = "counting devices failed with code 100".to_owned();
            (0, Some(of_error(machine, &Error::NoDevice { device: runtime, reason })))
        }
        (_, Ok(devices)) => (devices, None),
        (_, Err(error)) => (0, Some(of_error(machine, &error))),
    };
    let kernel_driver = machine.kernel_driver(runtime);
    Library { runtime, tried, found, kernel_driver, devices, examined: devices.min(most), problem }
}

/// Runs [`look_for`] on a thread of its own.
pub(super) fn library(
    machine: &Machine,
    runtime: DeviceType,
    most: usize,
    budget: Duration,
    on_progress: &mut dyn FnMut(&Progress<'_>),
) -> Library {
    let found = Arc::new(Mutex::new(None));
    let work = {
        let (machine, found) = (machine.clone(), found.clone());
        move |note: Note<'_>| {
            let library = look_for(&machine, runtime, most, note);
            *lock(&found) = Some(library);
        }
    };
    let ended = on_a_thread(STEP, budget, work, &mut |at| on_progress(&at.of(&runtime.to_string())));
    let found = lock(&found).clone();
    let words = || ended.unwrap_or_else(|| "nothing was found out".to_owned());
    found.unwrap_or_else(|| that_ended(machine, runtime, words()))
}

/// A library about which only the end of its examination is known.
pub(super) fn that_ended(machine: &Machine, runtime: DeviceType, words: String) -> Library {
    let kernel_driver = machine.kernel_driver(runtime);
    let problem = Some(failed(words));
    Library { runtime, tried: vec![], found: None, kernel_driver, devices: 0, examined: 0, problem }
}

/// Opens and examines one device on a thread, and returns the findings so far when its time is over.
pub(super) fn device(
    machine: &Machine,
    place: &str,
    open: impl FnOnce() -> Result<Device> + Send + 'static,
    budget: Duration,
    on_progress: &mut dyn FnMut(&Progress<'_>),
) -> Examined {
    let start = Instant::now();
    let found = Arc::new(Mutex::new(Examined { place: place.to_owned(), ..Examined::default() }));
    let work = {
        let (machine, found) = (machine.clone(), found.clone());
        move |note: Note<'_>| examined::examine(&machine, open, budget, &found, note)
    };
    let ended = on_a_thread(examined::OPENING, budget, work, &mut |at| on_progress(&at.of(place)));
    lock(&found).problems.extend(ended.map(failed));
    let mut examined = lock(&found).clone();
    examined.seconds = start.elapsed().as_secs_f64();
    examined
}

/// Gives a function that opens a device, through the machine's own library if it names one.
pub(super) fn opener(
    machine: &Machine,
    runtime: DeviceType,
    number: i64,
) -> impl FnOnce() -> Result<Device> + Send + use<> {
    let library = machine.library(runtime).map(Path::to_owned);
    move || match library {
        Some(path) => open_from(&path, runtime, number),
        None => Device::open(runtime, number),
    }
}

pub(super) fn failed(words: String) -> Diagnosis {
    Diagnosis { state: State::Failed, words }
}

/// Runs `work` on a thread until its time is over. Returns words if it did not end well.
fn on_a_thread(
    first: &str,
    budget: Duration,
    work: impl FnOnce(Note<'_>) + Send + 'static,
    on_progress: &mut dyn FnMut(&At),
) -> Option<String> {
    let (start, (sender, receiver)) = (Instant::now(), channel());
    let work = move || {
        work(&|step, part, done, of| {
            // If the time is over, the receiver is gone.
            let _ = sender.send(At { step: step.to_owned(), part: part.to_owned(), done, of });
        });
    };
    let thread = match thread::Builder::new().name("doctor".into()).spawn(work) {
        Ok(thread) => thread,
        Err(error) => return Some(format!("no thread could be started: {error}")),
    };
    let mut last = At::start(first);
    on_progress(&last);
    loop {
        match receiver.recv_timeout(patience(budget).saturating_sub(start.elapsed())) {
            Ok(at) => {
                on_progress(&at);
                last = at;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let (seconds, at) = (start.elapsed().as_secs(), last.words());
                return Some(format!("no answer after {seconds} s in: {at}. It was left alone."));
            }
        }
    }
    thread.join().err().map(|_| format!("a bug in bowstring: a panic in: {}", last.words()))
}
