//! The devices that every operation is tried on: those that are here. A run says which they are, and what was not run;
//! `BOWSTRING_REQUIRE=cuda` (names, with commas between them) makes it an error when one is not.

use std::fmt;
use std::io::Write;
use std::sync::LazyLock;

use arrow_array::{Array as _, ArrayRef};
use bowstring::array::Place;
use bowstring::device::testing;
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{Array, Error, Stream};

use super::{assert_same_rows, displaced, rows};

/// Kinds of devices that a run may lack.
const KINDS: &[&str] = &["cpu", "emulator"];

/// A device that is here, and a stream on it.
pub struct Target {
    /// `cpu`, or the kind of device with what tells it from others of the kind.
    pub name: String,
    pub stream: Stream,
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

    /// A host array on this device, bit for bit where it is where that can be.
    fn adopt(&self, array: Array) -> Array {
        match self.name.starts_with("emulator") {
            true => testing::adopt(&array, self.stream.device()),
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

    /// An array of this device as arrow-rs', after `validate_full`.
    pub fn export(&self, array: &Array) -> ArrayRef {
        let there = self.stream.download(array).and_then(|array| to_arrow(&array));
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
        if let (Some(known), true) = (ours.known_null_count(), ours.layout().validity) {
            assert_eq!(known, exported.null_count(), "known null count: {context}");
        }
    }

    /// Whether an operation is one that this device has not.
    pub fn lacks<T>(&self, result: &Result<T, Error>) -> bool {
        matches!(result, Err(Error::Unsupported { .. })) && self.stream.device().place() != Place::CPU
    }

    /// What an operation gave, where this device has the operation: the CPU has all of them, a GPU may say that it has not.
    pub fn answer<T>(&self, result: Result<T, Error>, context: &dyn fmt::Display) -> Option<T> {
        match result {
            Ok(answer) => Some(answer),
            result if self.lacks(&result) => None,
            Err(error) => panic!("{context}, on {self:?}: {error}"),
        }
    }
}

/// The devices that are here.
pub fn devices() -> &'static [Target] {
    static DEVICES: LazyLock<Vec<Target>> = LazyLock::new(|| {
        let mut found = vec![Target { name: "cpu".into(), stream: Stream::cpu() }];
        for width in [32, 64] {
            let options = testing::EmulatorOptions { width, ..Default::default() };
            let device = testing::EmulatedDevice::new(options).expect("an emulator needs only threads");
            let stream = device.device().stream().expect("an emulator needs only threads");
            found.push(Target { name: format!("emulator:{width}"), stream });
        }
        let kind_of = |target: &Target| target.name.split(':').next().map(str::to_owned).unwrap_or_default();
        let kinds: Vec<String> = found.iter().map(kind_of).collect();
        let absent: Vec<&str> =
            KINDS.iter().copied().filter(|kind| !kinds.iter().any(|here| here == kind)).collect();
        // Past the test harness, which would swallow it: what was not run must be seen in every run.
        let names: Vec<&str> = found.iter().map(|target| target.name.as_str()).collect();
        let _ = writeln!(
            std::io::stderr(),
            "devices: {}; not run: {}",
            names.join(", "),
            match absent.len() {
                0 => "none".into(),
                _ => absent.join(", "),
            }
        );
        for required in
            std::env::var("BOWSTRING_REQUIRE").unwrap_or_default().split(',').filter(|name| !name.is_empty())
        {
            assert!(
                kinds.iter().any(|here| here == required),
                "BOWSTRING_REQUIRE={required}: there is none here"
            );
        }
        found
    });
    &DEVICES
}
