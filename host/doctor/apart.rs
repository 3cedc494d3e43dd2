//! Examinations in processes of their own, and what goes between: a line of JSON for each step, and for what was found so far. The
//! parent keeps the last of each, so whatever ends a child, all but the last step is in the report.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::asked::{At, Options, Progress, patience};
use super::examined::{self, OPENING};
use super::json::Json;
use super::machine::Machine;
use super::report::{Examined, Section};
use super::threads::{self, STEP, failed};
use crate::device::sync::Mutex;
use crate::device::{RUNTIMES, lock};
use crate::ffi::DeviceType;

/// How long a process may take to end once it has said all.
const EXIT: Duration = Duration::from_secs(5);
/// How often what was found is written where nothing of importance is new.
const OFTEN: Duration = Duration::from_millis(200);
/// Lines of a process's standard error that are kept: the first, and the last.
const ERRORS: [usize; 2] = [2, 4];

/// The child's half.
pub(super) fn examine_only(
    machine: &Machine,
    what: &str,
    options: &Options,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (name, number) = what.split_once(':').map_or((what, None), |(name, rest)| (name, Some(rest)));
    let runtime = RUNTIMES.into_iter().find(|runtime| runtime.to_string().eq_ignore_ascii_case(name));
    let unknown =
        || io::Error::new(ErrorKind::InvalidInput, format!("{what} is neither a library nor a device"));
    let runtime = runtime.ok_or_else(unknown)?;
    let number = number.map(|number| number.parse::<u32>().map_err(|_| unknown())).transpose()?;

    let out = Lines(RefCell::new((out, Ok(()))));
    match number {
        None => {
            let library = threads::look_for(machine, runtime, options.devices, &|step, part, done, of| {
                out.at(step, part, done, of);
            });
            out.found(&Section::of_library(&library));
        }
        Some(number) => device(machine, runtime, number, options.budget, &out),
    }
    out.line(&Json::object([("end", Json::Bool(true))]));
    out.0.into_inner().1
}

fn device(machine: &Machine, runtime: DeviceType, number: u32, budget: Duration, out: &Lines<'_>) {
    let start = Instant::now();
    let place = format!("{runtime}:{number}");
    let found = Mutex::new(Examined { place, ..Examined::default() });
    let section = || {
        let mut found = lock(&found);
        found.seconds = start.elapsed().as_secs_f64();
        Section::of_device(&found)
    };
    // What was written last: in which step, with how much of importance, and when.
    let written = RefCell::new((OPENING.to_owned(), 0, start));
    let note = |step: &str, part: &str, done: usize, of: usize| {
        out.at(step, part, done, of);
        let important = {
            let found = lock(&found);
            let wrong = found.equivalence.as_ref().map_or(0, |found| found.wrong);
            wrong + found.tests.len() + found.problems.len() + found.notes.len()
        };
        let (known_step, known, when) = &mut *written.borrow_mut();
        if known_step != step || *known != important || when.elapsed() > OFTEN {
            (*known_step, *known, *when) = (step.to_owned(), important, Instant::now());
            out.found(&section());
        }
    };
    note(OPENING, "", 0, 1);
    examined::examine(machine, threads::opener(machine, runtime, number.into()), budget, &found, &note);
    out.found(&section());
}

/// Where a child writes to, and whether it could. A parent that is gone is no reason to stop in the midst of a device's work.
struct Lines<'a>(RefCell<(&'a mut dyn Write, io::Result<()>)>);

impl Lines<'_> {
    fn line(&self, line: &Json) {
        let (out, outcome) = &mut *self.0.borrow_mut();
        if outcome.is_ok() {
            *outcome = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
        }
    }

    fn at(&self, step: &str, part: &str, done: usize, of: usize) {
        self.line(&Json::object([
            ("step", Json::text(step)),
            ("part", Json::text(part)),
            ("done", Json::count(done)),
            ("of", Json::count(of)),
        ]));
    }

    fn found(&self, section: &Section) {
        self.line(&Json::object([("found", section.json.clone()), ("page", Json::text(&section.page))]));
    }
}

/// The parent's half.
pub(super) struct Apart<'a> {
    pub machine: &'a Machine,
    pub command: &'a dyn Fn() -> Command,
    /// How many devices of a kind are examined.
    pub devices: usize,
}

/// What came of a process: what it has found, and how it ended where it did not end well.
struct Outcome {
    found: Option<Section>,
    wrong: Option<String>,
}

impl Apart<'_> {
    /// The library of a kind of GPU.
    pub fn library(
        &self,
        runtime: DeviceType,
        budget: Duration,
        on_progress: &mut dyn FnMut(&Progress<'_>),
    ) -> Section {
        let what = runtime.to_string();
        let Outcome { found, wrong } = self.run(&what, STEP, budget, on_progress);
        // One that ends the process at its end does so to each device's process too, where it is said.
        found.unwrap_or_else(|| {
            let words = wrong.unwrap_or_else(|| "the process found out nothing".to_owned());
            Section::of_library(&threads::that_ended(self.machine, runtime, words))
        })
    }

    /// One GPU.
    pub fn device(
        &self,
        place: &str,
        budget: Duration,
        on_progress: &mut dyn FnMut(&Progress<'_>),
    ) -> Section {
        let Outcome { found, wrong } = self.run(place, OPENING, budget, on_progress);
        let nothing = || Section::of_device(&Examined { place: place.to_owned(), ..Examined::default() });
        let mut section = found.unwrap_or_else(nothing);
        wrong.into_iter().for_each(|words| section.add_problem(&failed(words)));
        section
    }

    fn run(
        &self,
        what: &str,
        first: &str,
        budget: Duration,
        on_progress: &mut dyn FnMut(&Progress<'_>),
    ) -> Outcome {
        let start = Instant::now();
        let mut command = (self.command)();
        command.args(["--only", what, "--budget", &budget.as_secs_f64().to_string()]);
        command.args(["--devices", &self.devices.to_string()]);
        // Newer runtimes of ROCm's then return a fault as an error, as CUDA does.
        command.env("HIP_SKIP_ABORT_ON_GPU_ERROR", "1");
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) => {
                let words = format!("no process could be started: {error}");
                return Outcome { found: None, wrong: Some(words) };
            }
        };
        let (sender, lines) = channel();
        read(child.stdout.take(), sender.clone(), Said::Line);
        read(child.stderr.take(), sender, Said::Error);

        let (mut at, mut found, mut errors) = (At::start(first), None, vec![]);
        let mut until = start + patience(budget);
        let answered = loop {
            match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Said::Error(line)) => keep(&mut errors, line),
                Ok(Said::Line(line)) => {
                    // Drivers write what they like.
                    let Some(mut line) = Json::parse(&line) else { continue };
                    if let Json::Text(step) = line.get("step") {
                        let (part, step) = (line.text_of("part").to_owned(), step.clone());
                        at = At { step, part, done: line.count_of("done"), of: line.count_of("of") };
                        on_progress(&at.of(what));
                    } else if let Json::Text(page) = line.get("page") {
                        let page = page.clone();
                        let json = line.get_mut("found").map(std::mem::take).unwrap_or_default();
                        found = Some(Section { page, json });
                    } else if let Json::Bool(true) = line.get("end") {
                        at = At::start("the end of the process");
                        until = Instant::now() + EXIT;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break true,
                Err(RecvTimeoutError::Timeout) => break false,
            }
        };
        let status = if answered { ended(&mut child, EXIT) } else { None };
        let mut wrong = match status {
            Some(status) if status.success() => return Outcome { found, wrong: None },
            Some(status) => format!("ended by {} in: {}", how(status), at.words()),
            None => {
                // One that hangs in the kernel cannot be ended.
                let _ = child.kill();
                let left = if ended(&mut child, EXIT).is_some() { "" } else { ", and cannot be ended" };
                format!("no answer after {} s in: {}{left}", start.elapsed().as_secs(), at.words())
            }
        };
        if at.of > 1 {
            wrong += &format!(" ({} of {})", at.done, at.of);
        }
        if !errors.is_empty() {
            wrong += &format!(". It said: {}", errors.join(" / "));
        }
        Outcome { found, wrong: Some(wrong) }
    }
}

/// A line that a process has written, and where.
enum Said {
    Line(String),
    Error(String),
}

/// Sends all lines that come, from a thread.
fn read(from: Option<impl Read + Send + 'static>, to: Sender<Said>, said: fn(String) -> Said) {
    let Some(from) = from else { return };
    let lines = move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            if to.send(said(String::from_utf8_lossy(&line).into_owned())).is_err() {
                return;
            }
        }
    };
    // Without it, nothing is heard, which is said as such.
    let _ = thread::Builder::new().name("doctor".into()).spawn(lines);
}

fn keep(errors: &mut Vec<String>, line: String) {
    let line = line.trim();
    if !line.is_empty() {
        let [first, last] = ERRORS;
        if errors.len() == first + last {
            errors.remove(first);
        }
        errors.push(line.chars().take(300).collect());
    }
}

/// Waits a while for a process to end.
fn ended(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + patience;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() > until {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// How a process ended that did not end well.
fn how(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.code().map_or_else(|| status.to_string(), |code| format!("itself with code {code}"))
}
