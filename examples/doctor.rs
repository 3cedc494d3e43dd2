//! Finds this machine's devices, tries each, and prints a report: `cargo run --release --example doctor`.
//!
//! `--json FILE` also writes the report in a form for us to read, updated after each device; `--budget
//! SECONDS` limits the time, `--devices N` the number of GPUs of a kind. A process of its own examines each
//! GPU: this program with `--only cuda:0`. So the report is written whatever a GPU or its driver does. The
//! exit status is 1 if a device has a fault.

use std::process::{Command, ExitCode};
use std::time::Duration;

use bowstring_doctor::{Options, Report, examine_apart, examine_only};
use indicatif::{ProgressBar, ProgressStyle};

const USAGE: &str = "usage: doctor [--json FILE] [--budget SECONDS] [--devices NUMBER] [--only cuda|rocm|cuda:NUMBER|rocm:NUMBER]";

/// The parsed command line.
#[derive(Default)]
struct Asked {
    options: Options,
    json: Option<String>,
    only: Option<String>,
}

/// Parses the arguments; `None` if they are invalid.
fn asked(mut arguments: impl Iterator<Item = String>) -> Option<Asked> {
    let mut asked = Asked::default();
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--json" => asked.json = Some(value),
            "--only" => asked.only = Some(value),
            "--budget" => asked.options.budget = Duration::try_from_secs_f64(value.parse().ok()?).ok()?,
            "--devices" => asked.options.devices = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(asked)
}

fn main() -> ExitCode {
    let Some(Asked { options, json, only }) = asked(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if let Some(what) = only {
        return match examine_only(&what, &options, &mut std::io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(2)
            }
        };
    }
    // Draws nothing if standard error is not a terminal.
    let bar = ProgressBar::new(1);
    let style = ProgressStyle::with_template("{elapsed_precise} {bar:32} {pos}/{len} {msg}");
    bar.set_style(style.expect("a template without mistakes"));
    let this = std::env::current_exe().unwrap_or_else(|_| std::env::args().next().unwrap_or_default().into());
    let mut written = Ok(());
    let mut write = |report: &Report| {
        if let Some(file) = &json {
            written =
                std::fs::write(file, report.to_json() + "\n").map_err(|error| format!("{file}: {error}"));
        }
    };
    let on_progress = &mut |progress: &bowstring_doctor::Progress<'_>| {
        bar.set_length(progress.of as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.to_string());
    };
    let report = examine_apart(&|| Command::new(&this), &options, on_progress, &mut write);
    bar.finish_and_clear();
    print!("{report}");
    if let Err(problem) = written {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    if let Some(file) = json {
        println!("The same for programs: {file}");
    }
    if report.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
