//! Explains what is wrong and what to do about it, from a runtime's answer and from the state of the
//! machine's files.

use std::fmt;
use std::path::PathBuf;

use bowstring::Error;
use bowstring::ffi::DeviceType;
use bowstring::images::ARCHITECTURES;
use bowstring::internals::{NVIDIA_DRIVER, is_absent, is_too_old, is_unknown, refusal};

use super::machine::Machine;

/// Why a GPU cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing says that the machine has a GPU of this kind.
    NoDriver,
    /// The machine has one, but the container was not given it or its library.
    NotGiven,
    /// A library is installed, but it cannot be used.
    Broken,
    /// The driver is older than what we need.
    TooOld,
    /// A file exists that this process may not open.
    NoPermission,
    /// An environment variable hides the GPU.
    Hidden,
    /// An environment variable switches off something that we need.
    SwitchedOff,
    /// The GPU is split into MIG instances, and this process has none of them.
    Mig,
    /// Its memory is used up.
    OutOfMemory,
    /// Another process has exclusive use of it.
    InUse,
    /// A service that it needs has not started.
    NotReady,
    /// The library has no kernels for its architecture.
    NoKernels,
    /// A failure with none of the causes above.
    Failed,
}

/// A state, and the words for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Diagnosis {
    pub state: State,
    pub words: String,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::NoDriver => "no driver",
            State::NotGiven => "not given to us",
            State::Broken => "broken library",
            State::TooOld => "driver too old",
            State::NoPermission => "no permission",
            State::Hidden => "hidden by a variable",
            State::SwitchedOff => "switched off by a variable",
            State::Mig => "MIG",
            State::OutOfMemory => "out of memory",
            State::InUse => "in use",
            State::NotReady => "not ready",
            State::NoKernels => "no kernels for it",
            State::Failed => "failed",
        })
    }
}

fn say(state: State, words: impl Into<String>) -> Diagnosis {
    Diagnosis { state, words: words.into() }
}

/// A library that was looked for, and the error if it was not loaded.
pub(super) type Tried = (PathBuf, Option<String>);

/// Explains why no library of a kind of GPU could be loaded.
pub(super) fn of_libraries(machine: &Machine, runtime: DeviceType, tried: &[Tried]) -> Diagnosis {
    let mut problems = tried.iter().filter_map(|(name, problem)| Some((name, problem.as_ref()?)));
    if let Some((name, problem)) = problems.find(|(name, problem)| !is_absent(name, problem)) {
        return say(
            State::Broken,
            format!(
                "{} is there and cannot be loaded: {problem}. Install the driver anew; or it is for another machine, or something \
                 in front of it in LD_LIBRARY_PATH has its name.",
                name.display()
            ),
        );
    }
    let files = machine.device_files(runtime);
    if let Some(first) = files.first() {
        let how = given(runtime);
        return say(
            State::NotGiven,
            format!(
                "{} is here, the driver's library is not. In a container it comes with the device: {how}.",
                first.path
            ),
        );
    }
    match machine.kernel_driver(runtime) {
        Some(version) => say(
            State::NotGiven,
            format!(
                "the kernel has a driver ({version}), but here are neither its library nor its devices: a container that was \
                 given no GPU? {}.",
                given(runtime)
            ),
        ),
        None => say(
            State::NoDriver,
            "neither a library, nor a device, nor a driver in the kernel: no GPU of this kind, or no driver",
        ),
    }
}

/// How to give a container a GPU.
fn given(runtime: DeviceType) -> &'static str {
    match runtime {
        DeviceType::Rocm => {
            "docker run --device /dev/kfd --device /dev/dri, and ROCm's libraries in the image"
        }
        _ => {
            "docker run --gpus all, with NVIDIA's container toolkit and NVIDIA_DRIVER_CAPABILITIES of all, or with compute in it"
        }
    }
}

/// Explains why a loaded library has no usable device, or why a device misbehaves.
pub(super) fn of_error(machine: &Machine, error: &Error) -> Diagnosis {
    let runtime = match error {
        Error::NoDevice { device, .. } | Error::Driver { device, .. } => *device,
        Error::OutOfMemory { device, .. } | Error::Image { device, .. } => *device,
        _ => DeviceType::Cpu,
    };
    match error {
        Error::NoDevice { reason, .. } => match refusal(reason) {
            Some((call, code)) => of_code(machine, runtime, call, code),
            None => of_reason(machine, runtime, reason),
        },
        Error::OutOfMemory { bytes, .. } => say(
            State::OutOfMemory,
            format!(
                "{bytes} bytes were not to be had: other processes hold the device's memory ({}).",
                who_uses(runtime)
            ),
        ),
        Error::Driver { call, code, .. } => of_code(machine, runtime, call, *code),
        Error::Image { family, code, log, .. } => {
            let mut found = of_code(machine, runtime, "loading a kernel", *code);
            found.words = format!("the driver does not take the kernels of {family}: {log}. {}", found.words);
            found
        }
        other => say(State::Failed, other.to_string()),
    }
}

fn who_uses(runtime: DeviceType) -> &'static str {
    if runtime == DeviceType::Rocm { "rocm-smi --showpids says whose" } else { "nvidia-smi says whose" }
}

fn of_reason(machine: &Machine, runtime: DeviceType, reason: &str) -> Diagnosis {
    if is_unknown(reason) {
        return say(State::Failed, format!("{reason}. A newer bowstring may know it."));
    }
    if let Some((_, function)) = reason.split_once("it has no ") {
        if ["cuInit", "hipInit"].contains(&function) {
            return say(
                State::Broken,
                format!("the library has no {function}, so it is another one that has its name"),
            );
        }
        let version = machine.kernel_driver(runtime).unwrap_or_else(|| "of no known version".to_owned());
        let needs = needs(runtime);
        let has = reason.split_once("and this is ").and_then(|(_, rest)| rest.split_once(';'));
        let has = has.map_or(String::new(), |(has, _)| format!(", and is {has}"));
        return say(
            State::TooOld,
            format!(
                "the library has no {function}{has}: {needs} is needed. The kernel's driver is {version}."
            ),
        );
    }
    if is_too_old(reason) {
        let version = machine.kernel_driver(runtime).unwrap_or_else(|| "of no known version".to_owned());
        return say(State::TooOld, format!("{reason}. The kernel's driver is {version}."));
    }
    if reason.starts_with("compute capability") || reason.starts_with("there are no kernels") {
        return say(
            State::NoKernels,
            format!(
                "{reason}: kernels are shipped for NVIDIA's from Turing on, and for AMD's of the README's list."
            ),
        );
    }
    say(State::Failed, reason)
}

fn image_refused(runtime: DeviceType, call: &str, code: i64, driver: &str) -> Diagnosis {
    let needs = needs(runtime);
    let words = format!(
        "{call}: the runtime takes no image of ours for this GPU (code {code}); {needs} is needed, and the kernel's driver is {driver}."
    );
    say(State::TooOld, words)
}

/// The oldest versions that we support.
fn needs(runtime: DeviceType) -> String {
    let is_rocm = runtime == DeviceType::Rocm;
    let all = || ARCHITECTURES.iter().filter(|images| images.gpus.is_empty() != is_rocm);
    let (major, minor) = all().map(|images| images.since).max().unwrap_or_default();
    if !is_rocm {
        return format!("{NVIDIA_DRIVER} or newer (CUDA {major}.{minor})");
    }
    let earlier = all().filter(|images| images.since < (major, minor));
    let earlier =
        earlier.map(|images| format!("; {} takes {}.{}", images.machines, images.since.0, images.since.1));
    format!("ROCm {major}.{minor} or newer{}", earlier.collect::<String>())
}

/// Explains the code that a call returned. Both runtimes have nearly the same codes.
fn of_code(machine: &Machine, runtime: DeviceType, call: &str, code: i64) -> Diagnosis {
    let driver = machine.kernel_driver(runtime).unwrap_or_else(|| "of no known version".to_owned());
    match code {
        2 => say(
            State::OutOfMemory,
            format!(
                "{call} found no memory (code 2): other processes hold the device's ({}).",
                who_uses(runtime)
            ),
        ),
        3 => say(
            State::Failed,
            format!(
                "{call} says that the runtime was not started in this process (code 3): a process that was forked after its parent \
                 used a GPU has none. Start a new one (in Python, multiprocessing's spawn)."
            ),
        ),
        4 => say(
            State::Failed,
            format!(
                "{call} says that the runtime is shut down (code 4): the process is at its end, or something in it has reset the \
                 device."
            ),
        ),
        34 => say(
            State::Broken,
            "the library is a stub, which the CUDA toolkit has to link against (code 34): take its folder out of LD_LIBRARY_PATH.",
        ),
        98 | 303 if runtime == DeviceType::Rocm => image_refused(runtime, call, code, &driver),
        200 | 209 => image_refused(runtime, call, code, &driver),
        218 => say(
            State::Failed,
            format!(
                "{call}: the driver's compiler says that the kernels are wrong (code 218); the kernel's driver is {driver}. \
                 Please send us the file."
            ),
        ),
        221 => say(
            State::Broken,
            "the driver's compiler is missing (code 221): libnvidia-ptxjitcompiler.so.1 belongs to the driver and was not installed; \
             in a container, NVIDIA_DRIVER_CAPABILITIES must be all, or have compute in it.",
        ),
        222 => say(
            State::TooOld,
            format!(
                "{call}: the driver does not know this version of PTX (code 222); {} is needed, and the kernel's driver is {driver}.",
                needs(runtime)
            ),
        ),
        223 => say(
            State::SwitchedOff,
            format!(
                "the driver may not compile kernels (code 223): CUDA_DISABLE_PTX_JIT is \"{}\". Unset it: all of ours are compiled \
                 when they are first used.",
                machine.variable("CUDA_DISABLE_PTX_JIT").unwrap_or_default()
            ),
        ),
        35 | 36 => say(
            State::TooOld,
            format!(
                "{call} says that the driver is too old for what it is asked (code {code}); the kernel's is {driver}."
            ),
        ),
        46 => say(
            State::InUse,
            "all devices are in use or not to be used (code 46): one is in exclusive mode and somebody else has it.",
        ),
        100 | 101 => no_device(machine, runtime, code),
        304 if !refused(machine, runtime).is_empty() => no_permission(machine, runtime),
        802 => say(
            State::NotReady,
            "the system is not ready (code 802): on machines with NVSwitch the fabric manager must run (systemctl status nvidia-fabricmanager).",
        ),
        803 | 804 => say(
            State::TooOld,
            format!(
                "the library and the kernel's driver do not fit together (code {code}); the kernel's is {driver}. Restart after an update; \
                 in a container, take the forward compatibility libraries out of LD_LIBRARY_PATH."
            ),
        ),
        999 if runtime == DeviceType::Cuda && !machine.root.join("dev/nvidia-uvm").exists() => say(
            State::NotReady,
            "an unknown error (code 999), and there is no /dev/nvidia-uvm: load the kernel's module nvidia-uvm (nvidia-modprobe -u).",
        ),
        700..=719 => say(
            State::Failed,
            format!(
                "{call} failed with code {code}: a kernel did what it may not, and the device takes no more work from this process. \
                 Please send us the file."
            ),
        ),
        _ => say(State::Failed, format!("{call} failed with code {code}.")),
    }
}

/// The device files that this process may not open.
fn refused(machine: &Machine, runtime: DeviceType) -> Vec<String> {
    let files = machine.device_files(runtime).into_iter();
    files.filter_map(|file| Some(format!("{} ({})", file.path, file.refused?))).collect()
}

fn no_permission(machine: &Machine, runtime: DeviceType) -> Diagnosis {
    let how = match runtime {
        DeviceType::Rocm => {
            "join the groups that have it (usermod -aG render,video USER), and log in again; in a container, --group-add"
        }
        _ => {
            "ask who runs the machine; in a container, the device must be among those that it may use (--gpus, device cgroup)"
        }
    };
    let files = refused(machine, runtime).join(", ");
    say(State::NoPermission, format!("there is a GPU, which we may not open: {files}. To be allowed: {how}."))
}

/// Explains why the runtime may say that it has no device.
fn no_device(machine: &Machine, runtime: DeviceType, code: i64) -> Diagnosis {
    let variables: &[&str] = match runtime {
        DeviceType::Rocm => &["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"],
        _ => &["CUDA_VISIBLE_DEVICES"],
    };
    let set = variables.iter().find_map(|name| Some(format!("{name} is \"{}\"", machine.variable(name)?)));
    if !refused(machine, runtime).is_empty() {
        // No value of the variable helps before the files may be opened.
        let mut found = no_permission(machine, runtime);
        found.words.extend(set.map(|set| format!(" Besides, {set}, which may hide it, too.")));
        return found;
    }
    if let Some(set) = set {
        return say(
            State::Hidden,
            format!(
                "{set}, and by that there is no device (code {code}): unset it, or name one that there is."
            ),
        );
    }
    let files = machine.device_files(runtime);
    let gpus = machine.names("proc/driver/nvidia/capabilities", "gpu");
    let instances =
        |gpu: &String| machine.names(&format!("proc/driver/nvidia/capabilities/{gpu}/mig"), "gi").len();
    let instances: usize = gpus.iter().map(instances).sum();
    if runtime == DeviceType::Cuda && instances > 0 {
        return say(
            State::Mig,
            format!(
                "the GPU is cut into {instances} MIG instances, of which none is ours (code {code}): name one in CUDA_VISIBLE_DEVICES \
                 (nvidia-smi -L lists them), or give it to the container."
            ),
        );
    }
    match (files.first(), machine.kernel_driver(runtime)) {
        (None, None) => say(
            State::NoDriver,
            format!(
                "the library finds no device (code {code}), and the kernel has no driver loaded: no GPU, or a module that did not load."
            ),
        ),
        (None, Some(version)) => say(
            State::NotGiven,
            format!(
                "the kernel has a driver ({version}), but no device is here (code {code}): a container that was given none? {}.",
                given(runtime)
            ),
        ),
        (Some(first), _) => say(
            State::Failed,
            format!(
                "{} is here and may be opened, and yet the library finds no device (code {code}): a GPU in MIG mode without \
                 instances (nvidia-smi mig -lgi), or one that has failed (dmesg says so).",
                first.path
            ),
        ),
    }
}
