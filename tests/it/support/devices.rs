//! The devices that every operation is tried on: those that are here. A run says which they are, and what was not run;
//! `BOWSTRING_PTX=1` adds an emulator that runs the PTX images (any other number: its lanes in an order drawn from it,
//! and unordered accesses are errors), `BOWSTRING_AMD` in the same way HIP's driver on the stand-in, which runs the AMD code
//! objects of every architecture, or of that in `BOWSTRING_AMD_ARCH`; `BOWSTRING_REQUIRE=cuda` (names, commas between them) makes it an error when one
//! is not there.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, LazyLock, Once};

use arrow_array::{Array as _, ArrayRef, UInt8Array};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions, adopt, layout};
use bowstring::exchange::{from_arrow, to_arrow, validate};
use bowstring::{Array, Device, Error, Stream};

use super::native::Native;
use super::ptx::Images;
use super::refusals::Refusals;
use super::{assert_same_rows, displaced, rows};

/// Kinds of devices that a run may lack.
const KINDS: &[&str] = &["cpu", "emulator", "cuda", "rocm"];

/// A device that is here, and a stream on it.
pub struct Target {
    /// `cpu`, or the kind of device with what tells it from others of the kind.
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

/// How an array came to be what it is. All of them have the same rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// arrow-rs sliced a longer one; its children may be sliced too.
    SlicedBefore,
    /// We sliced a longer one; its children are whole.
    SlicedAfter,
    /// As the last, at odd addresses and bits.
    Displaced,
}

impl Form {
    pub const ALL: [Form; 3] = [Form::SlicedBefore, Form::SlicedAfter, Form::Displaced];
}

impl Target {
    /// An arrow-rs array on this device.
    pub fn import(&self, array: &ArrayRef) -> Array {
        self.stream
            .upload(&from_arrow(array).expect("arrow-rs arrays are valid"))
            .expect("host arrays go anywhere")
    }

    /// An arrow-rs array on this device whose first buffer holds other bytes, which no check of the host has seen.
    pub fn forged(&self, like: &ArrayRef, first: &[u8]) -> Array {
        let mut parts = self.import(like).into_parts();
        let raw: ArrayRef = Arc::new(UInt8Array::from(first.to_vec()));
        parts.buffers[0] = self.import(&raw).buffers()[0].clone();
        parts.null_count = None;
        Array::try_new(parts).expect("as long as was said")
    }

    /// A host array on this device, bit for bit where it is where that can be.
    fn adopt(&self, array: Array) -> Array {
        match self.name.starts_with("emulator") {
            true => adopt(&array, self.stream.device()),
            false => self.stream.upload(&array),
        }
        .expect("host arrays go anywhere")
    }

    /// Rows `offset .. offset + len` of an arrow-rs array on this device.
    pub fn import_as(&self, form: Form, array: &ArrayRef, offset: usize, len: usize) -> Array {
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

    /// An array of this device as arrow-rs', after it was read through, whatever is said to be known of it.
    pub fn export(&self, array: &Array) -> ArrayRef {
        let there = self.stream.download(array).and_then(|array| {
            validate(&array)?;
            to_arrow(&array)
        });
        there.unwrap_or_else(|error| panic!("{self:?} made an invalid {}: {error}", array.data_type()))
    }

    /// Fails where `ours` differs from what arrow-rs has: in its type, a row, or a null count that it claims to know.
    pub fn assert_same(&self, ours: &Array, theirs: &ArrayRef, context: &dyn fmt::Display) {
        let context = format!("{context}, on {self:?}");
        let exported = self.export(ours);
        assert_eq!(exported.data_type(), theirs.data_type(), "{context}");
        assert_same_rows(&rows(&exported), &rows(theirs), &context);
        self.assert_null_count(ours, &exported, &context);
    }

    /// Fails where the null count that `ours` claims to know is not what its bitmap says.
    pub fn assert_null_count(&self, ours: &Array, exported: &ArrayRef, context: &dyn fmt::Display) {
        if let (Some(known), true) = (ours.known_null_count(), layout(ours.data_type()).validity) {
            assert_eq!(known, exported.null_count(), "known null count: {context}");
        }
    }

    /// What an operation gave, where this device has the operation. What it refuses must be in the README's table: see
    /// [`Refusals`].
    pub fn answer<T>(&self, result: Result<T, Error>, context: &dyn fmt::Display) -> Option<T> {
        match result {
            Ok(answer) => Some(answer),
            Err(Error::Unsupported { operation, data_type, .. }) if self.refuses(operation, &data_type) => {
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

    /// An emulated GPU of its own, whose waves have so many lanes.
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

    /// CUDA's and HIP's drivers over the library that stands in for theirs: slow, so for a part of a suite.
    pub fn standins() -> Vec<Target> {
        Native::standins().into_iter().map(Target::native).collect()
    }

    /// Whether the README says so.
    fn refuses(&self, operation: &str, data_type: &str) -> bool {
        static REFUSALS: LazyLock<Vec<(String, Refusals)>> = LazyLock::new(|| {
            let asked = devices().into_iter().filter(|target| target.native.is_none());
            asked.map(|target| (target.name.clone(), Refusals::of(&target))).collect()
        });
        // Drivers differ in nothing that an operation could refuse.
        let known = |name: &str| REFUSALS.iter().find(|(known, _)| known == name);
        let of_this = known(&self.name).or_else(|| known("emulator:32"));
        of_this.is_some_and(|(_, refusals)| refusals.expected(operation, data_type))
    }
}

impl Drop for Target {
    /// Nothing that ran here touched what it may not.
    fn drop(&mut self) {
        let faults = self.emulator.as_ref().map(EmulatedDevice::faults).unwrap_or_default();
        let native = self.native.as_ref().map_or(0, Native::faults);
        let none = faults.is_empty() && native == 0;
        assert!(none || std::thread::panicking(), "{self:?}: {faults:?}, {native} in the stand-in");
    }
}

/// The devices that are here, emulated ones made anew, GPUs with memory and streams of their own: what one test, or one
/// case of it, did to a device must not be another's failure.
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
    // One GPU of each runtime: others of the kind have the same kernels, and the driver's own suite tries them all.
    found.extend(
        Native::installed().into_iter().filter(|native| native.name.ends_with(":0")).map(Target::native),
    );
    SAID.call_once(|| say(&found));
    found
}

/// Says what is here and what is not, and fails where that was required.
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
    // Past the test harness, which would swallow it: what was not run must be seen in every run.
    let _ = writeln!(std::io::stderr(), "devices: {}; not run: {absent}", names.join(", "));
    let required = std::env::var("BOWSTRING_REQUIRE").unwrap_or_default();
    for required in required.split(',').filter(|name| !name.is_empty()) {
        assert!(here(required), "BOWSTRING_REQUIRE={required}: there is none here");
    }
}

/// Also where a run is of few tests, none of which asks for devices.
#[test]
fn what_is_required_is_here() {
    let names: Vec<String> = devices().into_iter().map(|target| target.name.clone()).collect();
    assert!(["cpu", "emulator:32", "emulator:64"].iter().all(|name| names.iter().any(|here| here == name)));
    let installed = Device::cuda_count().min(1) + Device::rocm_count().min(1);
    let native = names.iter().filter(|name| ["cuda:0", "rocm:0"].contains(&name.as_str()));
    assert_eq!(native.count(), installed, "every kind of GPU that is installed is one of {names:?}");
}
