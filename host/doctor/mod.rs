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
//! The one idea: a device that has never been tried may do anything, so each is examined apart from the
//! others, by something that puts down what it finds as it finds it. In [`examine`] that is a thread, and a
//! driver that ends the process ends it all, for a library does not start processes by itself. Programs
//! have [`examine_apart`], where it is a process.

mod apart;
mod asked;
mod calibrate;
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
mod threads;

use std::io::{self, Write};
use std::process::Command;
use std::thread;
use std::time::Instant;

pub use asked::{Options, Progress};
#[doc(hidden)]
pub use machine::Machine;
pub use report::Report;

use crate::Device;
use crate::array::Place;
use crate::device::RUNTIMES;
use apart::Apart;
use report::{Host, Section};

/// The part of the time that the CPU has, and that a library has to be loaded and to count its devices.
const CPU: f64 = 0.15;
const LIBRARY: f64 = 0.15;
/// Variables that say which libraries and devices a process sees.
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

/// Examines this machine: the CPU, and every GPU that can be found. Takes up to `options.budget`, and
/// blocks. All of it is done in this process: should a driver's library crash, or a runtime end the process
/// at a GPU's fault, as ROCm does, then no report is left. See [`examine_apart`].
pub fn examine(options: &Options, on_progress: &mut dyn FnMut(&Progress<'_>)) -> Report {
    examine_machine(&Machine::this(), options, on_progress)
}

/// Examines this machine, each GPU in a process of its own, so that whatever it does to that process is in
/// the report: which signal ended it, or for how long it did not answer, in which step. No driver is loaded
/// into this process.
///
/// `command` gives the start of a command that ends up in [`examine_only`]: to it are added `--only WHAT`,
/// `--budget SECONDS` and `--devices NUMBER`. Its standard input, output and error are ours. `on_found` is
/// shown the report so far after each library and each device.
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

/// The part of [`examine_apart`] that is done by another process: examines the one thing that `what` names
/// (`cuda`, a library; `cuda:0`, a device), and writes a line of JSON before and after each step.
/// `InvalidInput` where nothing has that name.
pub fn examine_only(what: &str, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    apart::examine_only(&Machine::this(), what, options, out)
}

/// Examines one device. A report with nothing of libraries.
pub fn examine_device(
    device: &Device,
    options: &Options,
    on_progress: &mut dyn FnMut(&Progress<'_>),
) -> Report {
    let (machine, start) = (Machine::this(), Instant::now());
    let (place, device) = (device.place().to_string(), device.clone());
    let found = threads::device(&machine, &place, move || Ok(device), options.budget, on_progress);
    let (host, devices) = (host(&machine), vec![Section::of_device(&found)]);
    Report { host, libraries: vec![], devices, seconds: start.elapsed().as_secs_f64() }
}

/// Examines a machine, or what is to be taken for one.
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

/// The machine itself.
fn host(machine: &Machine) -> Host {
    let set = |name: &&str| Some(((*name).to_owned(), machine.variable(name)?.to_owned()));
    Host {
        processor: machine.line("proc/cpuinfo", "model name").unwrap_or_else(|| "a processor".into()),
        vectors: format!("{:?}", crate::cpu::VectorLevel::widest()),
        threads: thread::available_parallelism().map_or(1, usize::from),
        memory: machine.memory(),
        variables: VARIABLES.iter().filter_map(set).collect(),
    }
}
