//! The available devices, on which every operation is tested. A run prints which they are, and which are
//! missing. `BOWSTRING_PTX=1` adds an emulator that runs the PTX images (any other number is the seed of a
//! random order of lanes, and makes unordered accesses errors). `BOWSTRING_AMD` does the same with HIP's
//! driver on the stand-in, which runs the AMD code objects of every architecture, or of the one in
//! `BOWSTRING_AMD_ARCH`. `BOWSTRING_REQUIRE=cuda` (names, separated by commas) makes a missing device an
//! error.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, LazyLock, Once};
use std::time::Duration;

use arrow_array::{Array as _, ArrayRef, UInt8Array};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions, adopt, layout};
use bowstring::exchange::{from_arrow, to_arrow, validate};
use bowstring::{Device, DeviceArray, Error, Stream};

use super::native::{Native, Standin};
use super::ptx::Images;
use super::refusals::Refusals;
use super::{assert_same_rows, displaced, rows};

/// The most microseconds for which a slow stream sleeps before a piece of work.
const SLOW: u64 = 100;

/// The kinds of devices, some of which a run may lack.
const KINDS: &[&str] = &["cpu", "emulator", "cuda", "rocm"];

/// An available device, with a stream on it.
pub struct Target {
    /// `cpu`, or the kind of device, followed by a suffix that distinguishes devices of that kind.
    pub name: String,
    pub stream: Stream,
    emulator: Option<EmulatedDevice>,
    native: Option<Native>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The way in which an array was made. All forms have the same rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// A slice of a longer array by arrow-rs; its children may be slices too.
    SlicedBefore,
    /// A slice of a longer array by this library; its children are whole.
    SlicedAfter,
    /// Like `SlicedAfter`, at odd addresses and bits.
    Displaced,
}

impl Form {
    pub const ALL: [Form; 3] = [Form::SlicedBefore, Form::SlicedAfter, Form::Displaced];
}

impl Target {
    /// Imports an arrow-rs array to this device.
    pub fn import(&self, array: &ArrayRef) -> DeviceArray {
        self.stream
            .upload(&from_arrow(array).expect("arrow-rs arrays are valid"))
            .expect("host arrays go anywhere")
    }

    /// Imports an arrow-rs array and replaces the bytes of its first buffer, which no check of the host has
    /// seen.
    pub fn forged(&self, like: &ArrayRef, first: &[u8]) -> DeviceArray {
        let mut parts = self.import(like).into_parts();
        let raw: ArrayRef = Arc::new(UInt8Array::from(first.to_vec()));
        parts.buffers[0] = self.import(&raw).buffers()[0].clone();
        parts.null_count = None;
        DeviceArray::try_new(parts).expect("as long as was said")
    }

    /// Moves a host array to this device, keeping its bit offsets if the device allows it.
    fn adopt(&self, array: DeviceArray) -> DeviceArray {
        match self.name.starts_with("emulator") {
            true => adopt(&array, self.stream.device()),
            false => self.stream.upload(&array),
        }
        .expect("host arrays go anywhere")
    }

    /// Imports rows `offset .. offset + len` of an arrow-rs array in the given form.
    pub fn import_as(&self, form: Form, array: &ArrayRef, offset: usize, len: usize) -> DeviceArray {
        let host = |array: &ArrayRef| from_arrow(array).expect("arrow-rs arrays are valid");
        let sliced = match form {
            Form::SlicedBefore => Ok(self.adopt(host(&array.slice(offset, len)))),
            Form::SlicedAfter => self.import(array).slice(offset, len),
            Form::Displaced => {
                self.adopt(displaced(&host(array), 1 + len % 15, 1 + offset % 13)).slice(offset, len)
            }
        };
        sliced.expect("rows of the array")
    }

    /// Exports an array of this device to arrow-rs, after full validation, even if it is marked as valid.
    pub fn export(&self, array: &DeviceArray) -> ArrayRef {
        let there = self.stream.download(array).and_then(|array| {
            validate(&array)?;
            to_arrow(&array)
        });
        there.unwrap_or_else(|error| panic!("{self:?} made an invalid {}: {error}", array.data_type()))
    }

    /// Fails if `ours` differs from arrow-rs' array: in its type, a row, or its known null count.
    pub fn assert_same(&self, ours: &DeviceArray, theirs: &ArrayRef, context: &dyn fmt::Display) {
        let context = format!("{context}, on {self:?}");
        let exported = self.export(ours);
        assert_eq!(exported.data_type(), theirs.data_type(), "{context}");
        assert_same_rows(&rows(&exported), &rows(theirs), &context);
        self.assert_null_count(ours, &exported, &context);
    }

    /// Fails if the known null count of `ours` differs from its bitmap.
    pub fn assert_null_count(&self, ours: &DeviceArray, exported: &ArrayRef, context: &dyn fmt::Display) {
        if let (Some(known), true) = (ours.known_null_count(), layout(ours.data_type()).validity) {
            assert_eq!(known, exported.null_count(), "known null count: {context}");
        }
    }

    /// The result of an operation, if this device supports it. The README's table must list every refusal:
    /// see [`Refusals`].
    pub fn answer<T>(&self, result: Result<T, Error>, context: &dyn fmt::Display) -> Option<T> {
        match result {
            Ok(answer) => Some(answer),
            Err(Error::Unsupported { operation, what, .. }) if self.refuses(operation, &what.to_string()) => {
                None
            }
            Err(error) => panic!("{context}, on {self:?}: {error}"),
        }
    }
}

impl Target {
    fn cpu() -> Target {
        Target { name: "cpu".into(), stream: Stream::cpu(), emulator: None, native: None }
    }

    /// A new emulated GPU with waves of this many lanes.
    pub fn emulator(width: u32) -> Target {
        let options = EmulatorOptions { width, ..Default::default() };
        Target::emulated(format!("emulator:{width}"), options)
    }

    /// An emulator that runs the PTX images instead of the kernels' host build.
    pub fn images(images: Arc<Images>) -> Target {
        let options = EmulatorOptions { executor: Some(images), ..Default::default() };
        Target::emulated("emulator:ptx".into(), options)
    }

    fn emulated(name: String, options: EmulatorOptions) -> Target {
        let device = EmulatedDevice::new(options).expect("an emulator needs only threads");
        let stream = device.device().stream().expect("an emulator needs only threads");
        Target { name, stream, emulator: Some(device), native: None }
    }

    fn native(native: Native) -> Target {
        let stream = native.device.stream().expect("a device has streams");
        Target { name: native.name.clone(), stream, emulator: None, native: Some(native) }
    }

    /// CUDA's and HIP's drivers on the stand-in libraries: slow, so only for parts of a suite.
    pub fn standins() -> Vec<Target> {
        Native::standins().into_iter().map(Target::native).collect()
    }

    /// A new emulated GPU, whose streams sleep before each piece of work.
    pub fn slow_emulator(width: u32) -> Target {
        let options = EmulatorOptions { width, delay: Duration::from_micros(SLOW), ..Default::default() };
        Target::emulated(format!("emulator:{width}"), options)
    }

    /// Like [`Target::standins`], with streams that sleep before each piece of work.
    pub fn slow_standins() -> Vec<Target> {
        let slow = |native: Native| match native.standin {
            Some(standin) => standin.slowed(SLOW, || Target::native(native)),
            None => Target::native(native),
        };
        Native::standins().into_iter().map(slow).collect()
    }

    /// How often the host has waited for the device, as the library counts it, and as the driver does: this
    /// thread's calls that wait, or on an emulator those of all threads.
    pub fn blocking_calls(&self) -> u64 {
        let calls = self.emulator.as_ref().map(EmulatedDevice::calls).unwrap_or_default();
        let emulated = calls.iter().filter(|(call, _)| call.starts_with("synchronise"));
        let native = self.native.as_ref().and_then(|native| native.standin);
        self.stream.device().host_synchronisations()
            + emulated.map(|(_, times)| times).sum::<u64>()
            + native.map_or(0, Standin::blocking_calls)
    }

    /// Whether the README's table lists this refusal.
    fn refuses(&self, operation: &str, data_type: &str) -> bool {
        static REFUSALS: LazyLock<Vec<(String, Refusals)>> = LazyLock::new(|| {
            let asked = devices().into_iter().filter(|target| target.native.is_none());
            asked.map(|target| (target.name.clone(), Refusals::of(&target))).collect()
        });
        // All drivers refuse the same operations.
        let known = |name: &str| REFUSALS.iter().find(|(known, _)| known == name);
        let of_this = known(&self.name).or_else(|| known("emulator:32"));
        of_this.is_some_and(|(_, refusals)| refusals.expected(operation, data_type))
    }
}

impl Drop for Target {
    /// Checks that no work on this device made an invalid access.
    fn drop(&mut self) {
        let faults = self.emulator.as_ref().map(EmulatedDevice::faults).unwrap_or_default();
        let native = self.native.as_ref().map_or(0, Native::faults);
        let none = faults.is_empty() && native == 0;
        assert!(none || std::thread::panicking(), "{self:?}: {faults:?}, {native} in the stand-in");
    }
}

/// The available devices. Emulated ones are new, and GPUs have memory and streams of their own, so that a
/// fault in one test, or one case of it, is not reported by another.
pub fn devices() -> Vec<Target> {
    static SAID: Once = Once::new();
    let mut found: Vec<Target> = [Target::cpu()].into_iter().chain([32, 64].map(Target::emulator)).collect();
    static IMAGES: LazyLock<Option<Arc<Images>>> = LazyLock::new(|| {
        let seed = std::env::var("BOWSTRING_PTX").ok()?.parse().expect("BOWSTRING_PTX is a number");
        Some(Arc::new(match seed {
            1 => Images::default(),
            seed => Images::drawn(seed),
        }))
    });
    found.extend(IMAGES.clone().map(Target::images));
    if std::env::var_os("BOWSTRING_AMD").is_some() {
        found.extend(super::amd::targets().iter().map(|target| Target::native(Native::of_amd(target.name))));
    }
    // One GPU of each runtime: others of the kind run the same kernels, and the driver's own suite tests them
    // all.
    found.extend(
        Native::installed().into_iter().filter(|native| native.name.ends_with(":0")).map(Target::native),
    );
    SAID.call_once(|| say(&found));
    found
}

/// Whether any device interprets images. Interpreters take minutes for what the emulator does in seconds.
pub fn interpreted() -> bool {
    ["BOWSTRING_PTX", "BOWSTRING_AMD"].into_iter().any(|name| std::env::var_os(name).is_some())
}

/// Prints the available and the missing devices, and fails if a required one is missing.
fn say(found: &[Target]) {
    let here = |kind: &str| found.iter().any(|target| target.name.split(':').next() == Some(kind));
    let names: Vec<&str> = found.iter().map(|target| target.name.as_str()).collect();
    let why = |kind: &&str| match *kind {
        "cuda" => Device::cuda(0).err(),
        "rocm" => Device::rocm(0).err(),
        _ => None,
    };
    let because =
        |kind: &&str| why(kind).map_or_else(|| kind.to_string(), |error| format!("{kind} ({error})"));
    let absent: Vec<String> = KINDS.iter().filter(|kind| !here(kind)).map(because).collect();
    let absent = if absent.is_empty() { "none".into() } else { absent.join(", ") };
    for target in found.iter().filter(|target| target.native.is_some()) {
        let _ = writeln!(std::io::stderr(), "{}: {}", target.name, target.stream.device().name());
    }
    // Written past the test harness, which would capture it: every run must show what it has not tested.
    let _ = writeln!(std::io::stderr(), "devices: {}; not run: {absent}", names.join(", "));
    let required = std::env::var("BOWSTRING_REQUIRE").unwrap_or_default();
    for required in required.split(',').filter(|name| !name.is_empty()) {
        assert!(here(required), "BOWSTRING_REQUIRE={required}: there is none here");
    }
}

/// Checks the requirement even if no selected test uses devices.
#[test]
fn what_is_required_is_here() {
    let names: Vec<String> = devices().into_iter().map(|target| target.name.clone()).collect();
    assert!(["cpu", "emulator:32", "emulator:64"].iter().all(|name| names.iter().any(|here| here == name)));
    let installed = Device::cuda_count().min(1) + Device::rocm_count().min(1);
    let native = names.iter().filter(|name| ["cuda:0", "rocm:0"].contains(&name.as_str()));
    assert_eq!(native.count(), installed, "every kind of GPU that is installed is one of {names:?}");
}
