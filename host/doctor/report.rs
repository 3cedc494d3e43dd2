//! What the doctor found, and the same for machines to read.

use super::equivalence::Equivalence;
use super::explain::{Diagnosis, Tried};
use super::json::Json;
use super::kernels::Kernels;
use super::measure::{Measured, Speed};
use crate::ffi::DeviceType;

/// What [`examine`](super::examine) found. It is printed as a page for people; [`to_json`](Report::to_json) is the same for
/// programs, and with each kernel's time.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub(super) host: Host,
    pub(super) libraries: Vec<Library>,
    pub(super) devices: Vec<Examined>,
    pub(super) seconds: f64,
}

/// The machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub processor: String,
    pub vectors: String,
    pub threads: usize,
    /// Bytes, where that is known: all, and those that may be used.
    pub memory: Option<(usize, usize)>,
    pub variables: Vec<(String, String)>,
}

/// A library that a kind of GPU needs.
#[derive(Clone, Debug)]
pub(super) struct Library {
    pub runtime: DeviceType,
    pub tried: Vec<Tried>,
    /// The file that it is.
    pub found: Option<String>,
    pub kernel_driver: Option<String>,
    pub devices: usize,
    pub problem: Option<Diagnosis>,
}

/// A device, as far as it was examined.
#[derive(Clone, Debug, Default)]
pub(super) struct Examined {
    /// `cpu`, `cuda:0`.
    pub place: String,
    pub name: String,
    pub architecture: Option<&'static str>,
    /// Bytes: free, and all.
    pub memory: Option<(usize, usize)>,
    pub tests: Vec<(&'static str, Option<String>)>,
    pub kernels: Option<Kernels>,
    pub equivalence: Option<Equivalence>,
    pub speed: Option<Speed>,
    /// What went wrong, in the order in which it was met.
    pub problems: Vec<Diagnosis>,
    /// What is worth knowing, and what there was no time for.
    pub notes: Vec<String>,
    pub seconds: f64,
}

impl Examined {
    /// Whether everything that was tried did what it should.
    pub fn is_well(&self) -> bool {
        let tests = self.tests.iter().all(|(_, wrong)| wrong.is_none());
        tests && self.problems.is_empty() && self.equivalence.as_ref().is_none_or(|found| found.wrong == 0)
    }
}

impl Report {
    /// Whether every device that is here did what it should. A kind of GPU that is not here at all is no illness; one that is
    /// here and cannot be used is.
    pub fn is_well(&self) -> bool {
        use super::explain::State::{NoDriver, NotGiven};
        let is_ill = |problem: &Diagnosis| ![NoDriver, NotGiven].contains(&problem.state);
        let libraries = self.libraries.iter().filter_map(|library| library.problem.as_ref());
        !libraries.into_iter().any(is_ill) && self.devices.iter().all(Examined::is_well)
    }

    /// The same as JSON, on one line.
    pub fn to_json(&self) -> String {
        let memory = |(free, all): (usize, usize)| {
            Json::Object(vec![("free", Json::count(free)), ("all", Json::count(all))])
        };
        let pair = |(name, value): &(String, String)| Json::List(vec![Json::text(name), Json::text(value)]);
        let host = Json::Object(vec![
            ("system", Json::text(format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH))),
            ("processor", Json::text(&self.host.processor)),
            ("vectors", Json::text(&self.host.vectors)),
            ("threads", Json::count(self.host.threads)),
            ("memory", Json::option(self.host.memory, memory)),
            ("variables", Json::list(&self.host.variables, pair)),
        ]);
        let whole = Json::Object(vec![
            ("bowstring", Json::text(env!("CARGO_PKG_VERSION"))),
            ("well", Json::Bool(self.is_well())),
            ("seconds", Json::Number(self.seconds)),
            ("host", host),
            ("libraries", Json::list(&self.libraries, Library::json)),
            ("devices", Json::list(&self.devices, |device| device.json(&memory))),
        ]);
        whole.to_string()
    }
}

fn diagnosis(found: &Diagnosis) -> Json {
    Json::Object(vec![("state", Json::text(found.state)), ("words", Json::text(&found.words))])
}

impl Library {
    fn json(&self) -> Json {
        let tried = |(name, problem): &Tried| {
            let problem = Json::option(problem.as_ref(), Json::text);
            Json::Object(vec![("name", Json::text(name.display())), ("problem", problem)])
        };
        Json::Object(vec![
            ("runtime", Json::text(self.runtime)),
            ("tried", Json::list(&self.tried, tried)),
            ("found", Json::option(self.found.as_ref(), Json::text)),
            ("kernel_driver", Json::option(self.kernel_driver.as_ref(), Json::text)),
            ("devices", Json::count(self.devices)),
            ("problem", Json::option(self.problem.as_ref(), diagnosis)),
        ])
    }
}

impl Examined {
    fn json(&self, memory: &dyn Fn((usize, usize)) -> Json) -> Json {
        let test = |(name, wrong): &(&'static str, Option<String>)| {
            Json::Object(vec![
                ("test", Json::text(name)),
                ("wrong", Json::option(wrong.as_ref(), Json::text)),
            ])
        };
        Json::Object(vec![
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
    Json::Object(vec![
        ("loaded", Json::count(found.loaded)),
        ("of", Json::count(found.of)),
        ("seconds", Json::Number(found.seconds())),
        ("images", Json::list(&found.images, image)),
    ])
}

fn equivalence(found: &Equivalence) -> Json {
    Json::Object(vec![
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
        Json::Object(vec![
            ("work", Json::text(measured.work)),
            ("seconds", Json::Number(measured.seconds)),
            ("bytes", Json::option(measured.bytes, Json::Number)),
            ("h200_expected", of(|prediction| prediction.expected)),
            ("h200_best", of(|prediction| prediction.best)),
            ("h200_worst", of(|prediction| prediction.worst)),
        ])
    };
    Json::Object(vec![
        ("rows", Json::count(found.rows)),
        ("works", Json::list(&found.works, work)),
        ("queued", Json::Number(found.queued)),
        ("waited_for", Json::Number(found.waited_for)),
    ])
}
