//! L8: the doctor: looks for devices, tries each, and says in words what it found, what is missing, and where it looked.
//!
//! ```no_run
//! use bowstring::doctor::{Options, examine};
//!
//! let report = examine(&Options::default(), &mut |progress| eprintln!("{progress}"));
//! print!("{report}"); // one page
//! std::fs::write("doctor.json", report.to_json())?; // to send to us
//! # std::io::Result::Ok(())
//! ```
//!
//! The one idea: a device that has never been tried may do anything, so each is examined by a thread of its own, which puts
//! down what it finds as it finds it. One that does not answer costs its own time and nobody's report.

mod equivalence;
mod examined;
mod explain;
mod json;
mod kernels;
mod machine;
mod measure;
mod page;
mod predictions;
mod report;
mod samples;
mod selftest;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

#[doc(hidden)]
pub use machine::Machine;
pub use report::Report;

use crate::array::Place;
use crate::device::sync::Mutex;
use crate::device::{RUNTIMES, count_of, lock, open_from, why_not};
use crate::ffi::DeviceType;
use crate::{Device, Error, Result};
use explain::{Diagnosis, State, of_error, of_libraries};
use report::{Examined, Host, Library};

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
    /// How much of that has been done.
    pub done: usize,
    /// How much there is.
    pub of: usize,
}

/// The part of the time that the CPU has.
const CPU: f64 = 0.15;
/// How long a device may go on before it is left alone, as times its budget, and beyond that: a step only looks at the clock
/// between its parts.
const GRACE: f64 = 1.1;
const LEAST_GRACE: Duration = Duration::from_secs(10);
/// Variables that say which libraries and devices a process sees.
const VARIABLES: [&str; 7] = [
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_CACHE_DISABLE",
    "CUDA_FORCE_PTX_JIT",
];

/// Examines this machine: the CPU, and every GPU that can be found. Takes up to `options.budget`, and blocks.
pub fn examine(options: &Options, on_progress: &mut dyn FnMut(&Progress<'_>)) -> Report {
    examine_machine(&Machine::this(), options, on_progress)
}

/// Examines one device. A report with nothing of libraries.
pub fn examine_device(
    device: &Device,
    options: &Options,
    on_progress: &mut dyn FnMut(&Progress<'_>),
) -> Report {
    let (machine, start) = (Machine::this(), Instant::now());
    let host = host(&machine);
    let (place, device) = (device.place().to_string(), device.clone());
    let devices = vec![examine_one(&machine, place, move || Ok(device), options.budget, &host, on_progress)];
    Report { host, libraries: vec![], devices, seconds: start.elapsed().as_secs_f64() }
}

/// Examines a machine, or what is to be taken for one.
#[doc(hidden)]
pub fn examine_machine(
    machine: &Machine,
    options: &Options,
    on_progress: &mut dyn FnMut(&Progress<'_>),
) -> Report {
    let (start, host) = (Instant::now(), host(machine));
    let (mut libraries, mut devices, mut waiting) = (vec![], vec![], vec![]);
    for runtime in RUNTIMES {
        on_progress(&Progress { device: &runtime.to_string(), step: "library", done: 0, of: 1 });
        let library = look_for(machine, runtime);
        let some = library.devices.min(options.devices);
        waiting.extend((0..some).map(|number| (runtime, number as i64)));
        libraries.push(library);
    }
    let cpu = options.budget.mul_f64(if waiting.is_empty() { 1.0 } else { CPU });
    let open_cpu = || Ok(Device::cpu());
    devices.push(examine_one(machine, Place::CPU.to_string(), open_cpu, cpu, &host, on_progress));
    for (done, (runtime, number)) in waiting.iter().copied().enumerate() {
        let left = options.budget.saturating_sub(start.elapsed());
        let budget = left / (waiting.len() - done) as u32;
        let library = machine.library(runtime).map(Path::to_owned);
        let open = move || match library {
            Some(path) => open_from(&path, runtime, number),
            None => Device::open(runtime, number),
        };
        devices.push(examine_one(machine, format!("{runtime}:{number}"), open, budget, &host, on_progress));
    }
    for library in libraries.iter().filter(|library| library.devices > options.devices) {
        let words = format!("{} devices more were not examined", library.devices - options.devices);
        let of_it = |device: &&mut Examined| device.place.starts_with(&library.runtime.to_string());
        devices.iter_mut().rfind(of_it).into_iter().for_each(|last| last.notes.push(words.clone()));
    }
    Report { host, libraries, devices, seconds: start.elapsed().as_secs_f64() }
}

/// The library of a kind of GPU, and how many devices it finds; or what is wrong.
fn look_for(machine: &Machine, runtime: DeviceType) -> Library {
    let mut tried = vec![];
    for name in machine.library_names(runtime) {
        let problem = why_not(&name);
        let is_there = problem.is_none();
        tried.push((name, problem));
        if is_there {
            break;
        }
    }
    let loaded = tried.iter().find(|(_, problem)| problem.is_none()).map(|(name, _)| name);
    let counted = count_of(machine.library(runtime), runtime);
    // Where it lies is to be seen while it is loaded.
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
    Library { runtime, tried, found, kernel_driver, devices, problem }
}

/// Opens and examines one device on a thread, and gives what is known of it when its time is over.
fn examine_one(
    machine: &Machine,
    place: String,
    open: impl FnOnce() -> Result<Device> + Send + 'static,
    budget: Duration,
    host: &Host,
    on_progress: &mut dyn FnMut(&Progress<'_>),
) -> Examined {
    let (start, (sender, receiver)) = (Instant::now(), channel());
    let found = Arc::new(Mutex::new(Examined { place: place.clone(), ..Examined::default() }));
    let work = {
        let (machine, found) = (machine.clone(), found.clone());
        let spare = host.memory.map_or(1 << 30, |(free, _)| free);
        move || {
            let note = |step, done, of| {
                // Nobody listens any more where this took too long.
                let _ = sender.send((step, done, of));
            };
            note("opening", 0, 1);
            examined::examine(&machine, open, budget, spare, &found, &note);
        }
    };
    let mut step = "opening";
    let thread = match thread::Builder::new().name("doctor".into()).spawn(work) {
        Ok(thread) => Some(thread),
        Err(error) => {
            lock(&found).problems.push(failed(format!("no thread could be started: {error}")));
            None
        }
    };
    let answered = loop {
        let patience = (budget.mul_f64(GRACE) + LEAST_GRACE).saturating_sub(start.elapsed());
        match receiver.recv_timeout(patience) {
            Ok((at, done, of)) => {
                step = at;
                on_progress(&Progress { device: &place, step, done, of });
            }
            Err(RecvTimeoutError::Disconnected) => break true,
            Err(RecvTimeoutError::Timeout) => break false,
        }
    };
    match thread {
        Some(thread) if answered => {
            let ended = thread.join();
            let panic = ended.err().map(|_| failed(format!("a bug in bowstring: a panic in the {step}")));
            lock(&found).problems.extend(panic);
        }
        Some(_) => {
            let words = format!("no answer for {} s, in the {step}: left alone", start.elapsed().as_secs());
            lock(&found).problems.push(failed(words));
        }
        None => {}
    }
    let mut examined = lock(&found).clone();
    examined.seconds = start.elapsed().as_secs_f64();
    examined
}

fn failed(words: String) -> Diagnosis {
    Diagnosis { state: State::Failed, words }
}

/// The machine itself.
fn host(machine: &Machine) -> Host {
    let kib = |name| machine.line("proc/meminfo", name)?.trim_end_matches("kB").trim().parse::<usize>().ok();
    let memory = kib("MemAvailable").zip(kib("MemTotal")).map(|(free, all)| (free << 10, all << 10));
    let set = |name: &&str| Some(((*name).to_owned(), machine.variable(name)?.to_owned()));
    Host {
        processor: machine.line("proc/cpuinfo", "model name").unwrap_or_else(|| "a processor".into()),
        vectors: format!("{:?}", crate::cpu::VectorLevel::widest()),
        threads: thread::available_parallelism().map_or(1, usize::from),
        memory,
        variables: VARIABLES.iter().filter_map(set).collect(),
    }
}
