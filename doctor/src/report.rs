//! The doctor's findings, and their form for programs.

use bowstring::ffi::DeviceType;
use bowstring::internals::Takes;

use super::calibrate::Gathered;
use super::equivalence::Equivalence;
use super::explain::{Diagnosis, Tried};
use super::json::Json;
use super::kernels::Kernels;
use super::measure::{Measured, Speed};

/// The findings of [`examine`](super::examine). `Display` prints them as a page for people;
/// [`to_json`](Report::to_json) gives them to programs, and adds each kernel's time.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub(super) host: Host,
    pub(super) libraries: Vec<Section>,
    pub(super) devices: Vec<Section>,
    pub(super) seconds: f64,
}

/// The findings about one library or one device, which another process may have written.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// The lines of the printed page.
    pub page: String,
    /// The same findings as a JSON object.
    pub json: Json,
}

impl Section {
    pub fn of_library(library: &Library) -> Section {
        Section { page: library.to_string(), json: library.json() }
    }

    pub fn of_device(device: &Examined) -> Section {
        Section { page: device.to_string(), json: device.json() }
    }

    /// Adds a problem of a device after the device's own findings.
    pub fn add_problem(&mut self, problem: &Diagnosis) {
        self.page += &format!("  {:<13} {}: {}\n", "PROBLEM", problem.state, problem.words);
        if let Some(well) = self.json.get_mut("well") {
            *well = Json::Bool(false);
        }
        if let Some(Json::List(problems)) = self.json.get_mut("problems") {
            problems.push(diagnosis(problem));
        }
    }

    pub fn is_well(&self) -> bool {
        matches!(self.json.get("well"), Json::Bool(true))
    }

    /// Whether the section is about a device that runs kernels: a GPU, or an emulated one.
    pub fn is_gpu(&self) -> bool {
        matches!(self.json.get("images"), Json::Text(_))
    }
}

/// The machine's processor, memory and environment variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub processor: String,
    pub vectors: String,
    pub threads: usize,
    /// Bytes of memory, if known: total, and available.
    pub memory: Option<(usize, usize)>,
    pub variables: Vec<(String, String)>,
}

/// A library that a kind of GPU needs.
#[derive(Clone, Debug)]
pub(super) struct Library {
    pub runtime: DeviceType,
    /// Empty if the search ended before it could report them.
    pub tried: Vec<Tried>,
    /// The file that was loaded.
    pub found: Option<String>,
    pub kernel_driver: Option<String>,
    pub devices: usize,
    /// How many of its devices are examined.
    pub examined: usize,
    pub problem: Option<Diagnosis>,
}

/// The findings about a device, as far as it was examined.
#[derive(Clone, Debug, Default)]
pub(super) struct Examined {
    /// `cpu`, or for instance `cuda:0`.
    pub place: String,
    pub name: String,
    pub architecture: Option<&'static str>,
    /// Bytes of memory: free, and total.
    pub memory: Option<(usize, usize)>,
    pub tests: Vec<(&'static str, Option<String>)>,
    pub kernels: Option<Kernels>,
    pub equivalence: Option<Equivalence>,
    pub speed: Option<Speed>,
    /// Problems, in the order in which they were found.
    pub problems: Vec<Diagnosis>,
    /// Remarks, and steps that the budget cut short.
    pub notes: Vec<String>,
    pub seconds: f64,
}

impl Examined {
    /// Whether all that was tried on the device succeeded.
    pub fn is_well(&self) -> bool {
        let tests = self.tests.iter().all(|(_, wrong)| wrong.is_none());
        tests && self.problems.is_empty() && self.equivalence.as_ref().is_none_or(|found| found.wrong == 0)
    }
}

impl Report {
    /// Whether every device that the machine has works. A kind of GPU that the machine does not have is no
    /// problem; one that it has and cannot use is.
    pub fn is_well(&self) -> bool {
        self.libraries.iter().chain(&self.devices).all(Section::is_well)
    }

    /// The report as JSON, on one line.
    pub fn to_json(&self) -> String {
        let pair = |(name, value): &(String, String)| Json::List(vec![Json::text(name), Json::text(value)]);
        let host = Json::object([
            ("system", Json::text(format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH))),
            ("processor", Json::text(&self.host.processor)),
            ("vectors", Json::text(&self.host.vectors)),
            ("threads", Json::count(self.host.threads)),
            ("memory", Json::option(self.host.memory, memory)),
            ("variables", Json::list(&self.host.variables, pair)),
        ]);
        let whole = Json::object([
            ("bowstring", Json::text(env!("CARGO_PKG_VERSION"))),
            ("well", Json::Bool(self.is_well())),
            ("seconds", Json::Number(self.seconds)),
            ("host", host),
            ("libraries", Json::list(&self.libraries, |library| library.json.clone())),
            ("devices", Json::list(&self.devices, |device| device.json.clone())),
        ]);
        whole.to_string()
    }
}

fn memory((free, all): (usize, usize)) -> Json {
    Json::object([("free", Json::count(free)), ("all", Json::count(all))])
}

fn diagnosis(found: &Diagnosis) -> Json {
    Json::object([("state", Json::text(found.state)), ("words", Json::text(&found.words))])
}

impl Library {
    fn is_well(&self) -> bool {
        use super::explain::State::{NoDriver, NotGiven};
        self.problem.as_ref().is_none_or(|problem| [NoDriver, NotGiven].contains(&problem.state))
    }

    fn json(&self) -> Json {
        let tried = |(name, problem): &Tried| {
            let problem = Json::option(problem.as_ref(), Json::text);
            Json::object([("name", Json::text(name.display())), ("problem", problem)])
        };
        Json::object([
            ("runtime", Json::text(self.runtime)),
            ("tried", Json::list(&self.tried, tried)),
            ("found", Json::option(self.found.as_ref(), Json::text)),
            ("kernel_driver", Json::option(self.kernel_driver.as_ref(), Json::text)),
            ("devices", Json::count(self.devices)),
            ("examined", Json::count(self.examined)),
            ("well", Json::Bool(self.is_well())),
            ("problem", Json::option(self.problem.as_ref(), diagnosis)),
        ])
    }
}

impl Examined {
    fn json(&self) -> Json {
        let test = |(name, wrong): &(&'static str, Option<String>)| {
            Json::object([("test", Json::text(name)), ("wrong", Json::option(wrong.as_ref(), Json::text))])
        };
        Json::object([
            ("device", Json::text(&self.place)),
            ("name", Json::text(&self.name)),
            ("images", Json::option(self.architecture, Json::text)),
            ("memory", Json::option(self.memory, memory)),
            ("well", Json::Bool(self.is_well())),
            ("tests", Json::list(&self.tests, test)),
            ("kernels", Json::option(self.kernels.as_ref(), kernels)),
            ("equivalence", Json::option(self.equivalence.as_ref(), equivalence)),
            ("speed", Json::option(self.speed.as_ref(), speed)),
            ("problems", Json::list(&self.problems, diagnosis)),
            ("notes", Json::list(&self.notes, |note| Json::text(note))),
            ("seconds", Json::Number(self.seconds)),
        ])
    }
}

fn kernels(found: &Kernels) -> Json {
    let image =
        |(name, seconds): &(&'static str, f64)| Json::List(vec![Json::text(name), Json::Number(*seconds)]);
    let takes = |(name, takes): &(&'static str, Takes)| {
        let numbers = [takes.registers, takes.local_bytes].map(|number| Json::count(number as usize));
        Json::List([vec![Json::text(name)], numbers.into()].concat())
    };
    Json::object([
        ("loaded", Json::count(found.loaded)),
        ("of", Json::count(found.of)),
        ("seconds", Json::Number(found.seconds())),
        ("images", Json::list(&found.images, image)),
        ("registers_and_local_bytes", Json::list(&found.takes, takes)),
    ])
}

fn equivalence(found: &Equivalence) -> Json {
    Json::object([
        ("compared", Json::count(found.compared)),
        ("of", Json::count(found.of)),
        ("wrong", Json::count(found.wrong)),
        ("told", Json::list(&found.told, |told| Json::text(told))),
        ("operations", Json::list(&found.operations, |name| Json::text(name))),
    ])
}

fn speed(found: &Speed) -> Json {
    let work = |measured: &Measured| {
        let prediction = measured.prediction;
        let of = |seconds: fn(&super::predictions::Prediction) -> f64| {
            Json::option(prediction.as_ref(), |prediction| Json::Number(seconds(prediction)))
        };
        Json::object([
            ("work", Json::text(measured.work)),
            ("seconds", Json::Number(measured.seconds)),
            ("bytes", Json::option(measured.bytes, Json::Number)),
            ("h200_expected", of(|prediction| prediction.expected)),
            ("h200_best", of(|prediction| prediction.best)),
            ("h200_worst", of(|prediction| prediction.worst)),
        ])
    };
    let small =
        |(name, seconds): &(&'static str, f64)| Json::List(vec![Json::text(name), Json::Number(*seconds)]);
    let gathered = |found: &Gathered| {
        Json::List(vec![Json::count(found.width), Json::count(found.from), Json::Number(found.rate)])
    };
    let grown = |(rows, copied, taken): &(usize, f64, f64)| {
        Json::List(vec![Json::count(*rows), Json::Number(*copied), Json::Number(*taken)])
    };
    Json::object([
        ("rows", Json::count(found.rows)),
        ("works", Json::list(&found.works, work)),
        ("queued", Json::Number(found.queued)),
        ("waited_for", Json::Number(found.waited_for)),
        ("small", Json::list(&found.small, small)),
        ("pinned_and_pageable_up_and_down", Json::list(&found.copied, |rate| Json::Number(*rate))),
        ("width_memory_and_rows_gathered", Json::list(&found.gathered, gathered)),
        ("rows_copied_and_taken", Json::list(&found.grown, grown)),
    ])
}
