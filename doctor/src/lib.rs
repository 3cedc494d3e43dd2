//! The doctor of `bowstring`. It looks for devices, tries each of them, and says in words what it found, what
//! is missing, and where it looked.
//!
//! ```no_run
//! use bowstring_doctor::{Options, examine};
//!
//! let report = examine(&Options::default(), &mut |progress| eprintln!("{progress}"));
//! print!("{report}"); // one page
//! std::fs::write("doctor.json", report.to_json())?; // to send to us
//! # std::io::Result::Ok(())
//! ```
//!
//! The one idea: a device that has never been tried may do anything. So each one is examined apart from the
//! others, by a thread or process that reports its findings as it makes them. [`examine`] uses threads,
//! because a library must not start processes by itself; a driver that ends the process ends the whole
//! examination. Programs can use [`examine_apart`], which uses processes.

mod apart;
mod asked;
mod calibrate;
mod equivalence;
mod examined;
mod explain;
mod json;
mod kernels;
mod lock;
mod machine;
mod measure;
mod page;
mod predictions;
mod report;
mod samples;
mod selftest;
mod threads;

use std::io::{self, Write};
use std::process::Command;
use std::thread;
use std::time::Instant;

use bowstring::Device;
use bowstring::array::Place;
use bowstring::internals::{self, RUNTIMES};

pub use asked::{Options, Progress};
#[doc(hidden)]
pub use machine::Machine;
pub use report::Report;

use apart::Apart;
use report::{Host, Section};

/// The share of the time for the CPU, and the share for loading a library and counting its devices.
const CPU: f64 = 0.15;
const LIBRARY: f64 = 0.15;
/// Environment variables that decide which libraries and devices a process sees.
const VARIABLES: [&str; 12] = [
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_PATH",
    "CUDA_CACHE_MAXSIZE",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_PTX_JIT",
    "HSA_OVERRIDE_GFX_VERSION",
    "BOWSTRING_HIP_ASYNC_ALLOC",
];

/// Examines this machine: the CPU, and every GPU that can be found. It takes up to `options.budget`, and
/// blocks. Everything runs in this process. If a driver's library crashes, or a runtime ends the process at a
/// GPU's fault, as ROCm does, no report is left; see [`examine_apart`].
pub fn examine(options: &Options, on_progress: &mut dyn FnMut(&Progress<'_>)) -> Report {
    examine_machine(&Machine::this(), options, on_progress)
}

/// Examines this machine, each GPU in a process of its own. So the report has whatever a GPU does to its
/// process: which signal ended it, or how long it did not answer, and in which step. No driver is loaded into
/// this process.
///
/// `command` returns a command that calls [`examine_only`] in the end; the arguments `--only WHAT`, `--budget
/// SECONDS` and `--devices NUMBER` are added to it. The doctor uses its standard input, output and error.
/// `on_found` receives the report so far after each library and each device.
pub fn examine_apart(
    command: &dyn Fn() -> Command,
    options: &Options,
    on_progress: &mut dyn FnMut(&Progress<'_>),
    on_found: &mut dyn FnMut(&Report),
) -> Report {
    let machine = Machine::this();
    let way = Way::Apart(Apart { machine: &machine, command, devices: options.devices });
    gather(&way, &machine, options, on_progress, on_found)
}

/// The part of [`examine_apart`] that runs in another process. Examines the library (`cuda`) or device
/// (`cuda:0`) that `what` names, and writes a line of JSON before and after each step. Fails with
/// `InvalidInput` if no library or device has that name.
pub fn examine_only(what: &str, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    apart::examine_only(&Machine::this(), what, options, out)
}

/// Examines one device of a machine, or of the imitation of one. The report has no libraries.
#[doc(hidden)]
pub fn examine_device_of(
    machine: &Machine,
    device: &Device,
    options: &Options,
    on_progress: &mut dyn FnMut(&Progress<'_>),
) -> Report {
    let start = Instant::now();
    let (place, device) = (device.place().to_string(), device.clone());
    let found = threads::device(machine, &place, move || Ok(device), options.budget, on_progress);
    let (host, devices) = (host(machine), vec![Section::of_device(&found)]);
    Report { host, libraries: vec![], devices, seconds: start.elapsed().as_secs_f64() }
}

/// Examines a machine, or the imitation of one.
#[doc(hidden)]
pub fn examine_machine(
    machine: &Machine,
    options: &Options,
    on_progress: &mut dyn FnMut(&Progress<'_>),
) -> Report {
    gather(&Way::Threads, machine, options, on_progress, &mut |_| ())
}

/// How libraries and GPUs are kept apart while they are examined.
enum Way<'a> {
    Threads,
    Apart(Apart<'a>),
}

fn gather(
    way: &Way<'_>,
    machine: &Machine,
    options: &Options,
    on_progress: &mut dyn FnMut(&Progress<'_>),
    on_found: &mut dyn FnMut(&Report),
) -> Report {
    let start = Instant::now();
    let mut report = Report { host: host(machine), ..Report::default() };
    let mut found = |report: &mut Report| {
        report.seconds = start.elapsed().as_secs_f64();
        on_found(report);
    };
    let mut waiting = vec![];
    for runtime in RUNTIMES {
        let (budget, most) = (options.budget.mul_f64(LIBRARY), options.devices);
        let library = match way {
            Way::Threads => {
                Section::of_library(&threads::library(machine, runtime, most, budget, on_progress))
            }
            Way::Apart(apart) => apart.library(runtime, budget, on_progress),
        };
        waiting.extend((0..library.json.count_of("examined").min(most)).map(|number| (runtime, number)));
        report.libraries.push(library);
        found(&mut report);
    }
    let cpu = options.budget.mul_f64(if waiting.is_empty() { 1.0 } else { CPU });
    let examined = threads::device(machine, &Place::CPU.to_string(), || Ok(Device::cpu()), cpu, on_progress);
    report.devices.push(Section::of_device(&examined));
    found(&mut report);
    for (done, (runtime, number)) in waiting.iter().copied().enumerate() {
        let left = options.budget.saturating_sub(start.elapsed());
        let (place, budget) = (format!("{runtime}:{number}"), left / (waiting.len() - done) as u32);
        let device = match way {
            Way::Threads => {
                let open = threads::opener(machine, runtime, number as i64);
                Section::of_device(&threads::device(machine, &place, open, budget, on_progress))
            }
            Way::Apart(apart) => apart.device(&place, budget, on_progress),
        };
        report.devices.push(device);
        found(&mut report);
    }
    report
}

/// The findings about the machine itself.
fn host(machine: &Machine) -> Host {
    let set = |name: &&str| Some(((*name).to_owned(), machine.variable(name)?.to_owned()));
    Host {
        processor: machine.line("proc/cpuinfo", "model name").unwrap_or_else(|| "a processor".into()),
        vectors: internals::vectors(),
        threads: thread::available_parallelism().map_or(1, usize::from),
        memory: machine.memory(),
        variables: VARIABLES.iter().filter_map(set).collect(),
    }
}
