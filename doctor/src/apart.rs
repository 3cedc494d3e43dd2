//! Runs examinations in processes of their own. A child writes a line of JSON for each step and for what it
//! has found so far; the parent keeps the last of each kind. If a child dies, the report still has everything
//! up to its last step.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bowstring::ffi::DeviceType;
use bowstring::internals::RUNTIMES;

use super::asked::{At, Options, Progress, patience};
use super::examined::{self, OPENING};
use super::json::Json;
use super::lock::lock;
use super::machine::Machine;
use super::report::{Examined, Section};
use super::threads::{self, STEP, failed};

/// How long a process may take to end after it has written everything.
const EXIT: Duration = Duration::from_secs(5);
/// How often findings are written while none of them is important.
const OFTEN: Duration = Duration::from_millis(200);
/// How many lines of a process's standard error are kept: the first ones, and the last ones.
const ERRORS: [usize; 2] = [2, 4];

/// The child's half: examines the library or device that `what` names, and writes its findings to `out`.
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
    // The last written step, how many important findings had been written by then, and when.
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

/// The writer of a child, and whether it still works. If the parent is gone, the child goes on: it must not
/// stop in the middle of a device's work.
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

/// The parent's half: starts the children and reads their lines.
pub(super) struct Apart<'a> {
    pub machine: &'a Machine,
    pub command: &'a dyn Fn() -> Command,
    /// How many devices of each kind are examined.
    pub devices: usize,
}

/// The result of a process: its findings, and how it ended if it did not end well.
struct Outcome {
    found: Option<Section>,
    wrong: Option<String>,
}

impl Apart<'_> {
    /// Examines the library of a kind of GPU.
    pub fn library(
        &self,
        runtime: DeviceType,
        budget: Duration,
        on_progress: &mut dyn FnMut(&Progress<'_>),
    ) -> Section {
        let what = runtime.to_string();
        let Outcome { found, wrong } = self.run(&what, STEP, budget, on_progress);
        // A library that ends its process only at exit also ends each device's process, and is reported
        // there.
        found.unwrap_or_else(|| {
            let words = wrong.unwrap_or_else(|| "the process found out nothing".to_owned());
            Section::of_library(&threads::that_ended(self.machine, runtime, words))
        })
    }

    /// Examines one GPU in a child process.
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
        // With this variable, newer ROCm runtimes return a fault as an error, as CUDA does.
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
                    // Drivers also write to standard output, so lines that are not JSON are skipped.
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
                // A process that hangs in the kernel cannot be killed.
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

/// A line that a process has written, and to which of its outputs.
enum Said {
    Line(String),
    Error(String),
}

/// Starts a thread that sends every line of `from`.
fn read(from: Option<impl Read + Send + 'static>, to: Sender<Said>, said: fn(String) -> Said) {
    let Some(from) = from else { return };
    let lines = move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            if to.send(said(String::from_utf8_lossy(&line).into_owned())).is_err() {
                return;
            }
        }
    };
    // If the thread does not start, no line arrives, and the report says so.
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

/// Waits up to `patience` for a process to end; `None` if it is still running.
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

/// Says how a process ended badly: by which signal, or with which code.
fn how(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.code().map_or_else(|| status.to_string(), |code| format!("itself with code {code}"))
}
