//! Looks at this machine's devices, tries each, and says what it found: `cargo run --release --example doctor`.
//!
//! `--json FILE` writes the same for us to read, `--budget SECONDS` bounds the time, `--devices N` the GPUs of a kind. Ends with 1
//! where something is wrong.

use std::process::ExitCode;
use std::time::Duration;

use bowstring::doctor::{Options, examine};
use indicatif::{ProgressBar, ProgressStyle};

const USAGE: &str = "usage: doctor [--json FILE] [--budget SECONDS] [--devices NUMBER]";

/// What was asked for; `None` where that cannot be understood.
fn asked(arguments: impl Iterator<Item = String>) -> Option<(Options, Option<String>)> {
    let (mut options, mut json, mut arguments) = (Options::default(), None, arguments);
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--json" => json = Some(value),
            "--budget" => options.budget = Duration::try_from_secs_f64(value.parse().ok()?).ok()?,
            "--devices" => options.devices = value.parse().ok()?,
            _ => return None,
        }
    }
    Some((options, json))
}

fn main() -> ExitCode {
    let Some((options, json)) = asked(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // Nothing is drawn where standard error is no terminal.
    let bar = ProgressBar::new(1);
    let style = ProgressStyle::with_template("{elapsed_precise} {bar:32} {pos}/{len} {msg}");
    bar.set_style(style.expect("a template without mistakes"));
    let report = examine(&options, &mut |progress| {
        bar.set_length(progress.of as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.to_string());
    });
    bar.finish_and_clear();
    print!("{report}");
    if let Some(file) = json {
        if let Err(error) = std::fs::write(&file, report.to_json() + "\n") {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
        println!("The same for programs: {file}");
    }
    if report.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
