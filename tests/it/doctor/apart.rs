//! Drivers that hang, and drivers and GPUs that end the process, each in a process of its own: a report is
//! still written, and it names the step. That process is this test binary again, running `the_child`.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use bowstring::ffi::DeviceType::Cuda;
use bowstring_doctor::{Report, examine_apart, examine_only};
use serde_json::Value;

use super::fakes::{Folder, fake};
use super::{in_seconds, json};
use crate::support::native::standin_path;

/// Marks the arguments that are for the child.
const MARK: &str = "BOWSTRING_DOCTOR_CHILD";

/// Examines a machine whose loader finds `library` under the name of CUDA's, with these environment
/// variables.
fn examined(library: &Path, seconds: f64, variables: &[(&str, &str)]) -> (Value, String) {
    let folder = Folder::new();
    fs::copy(library, folder.0.join("libcuda.so.1")).unwrap();
    let mut seen = vec![];
    let report = examine_apart(
        &|| {
            // A shell script puts the added arguments into a variable, because a test takes no arguments.
            let mut command = Command::new("sh");
            let this = env::current_exe().unwrap();
            let script = format!("{MARK}=$2:$4 exec \"$0\" --exact doctor::apart::the_child --nocapture");
            command.args(["-c", &script]).arg(this);
            command.env("LD_LIBRARY_PATH", &folder.0).envs(variables.iter().copied());
            command
        },
        &in_seconds(seconds),
        &mut |_| (),
        &mut |report: &Report| seen.push(json(report)["devices"].as_array().unwrap().len()),
    );
    assert!(seen.is_sorted() && seen.contains(&1), "what is found is shown as it is found: {seen:?}");
    assert!(!report.is_well(), "{report}");
    let found = json(&report);
    assert_eq!(found["devices"][0]["well"], true, "the CPU is examined whatever the drivers do: {report}");
    (found, report.to_string())
}

/// Not a test by itself; the other tests start it.
#[test]
fn the_child() {
    let Some((what, seconds)) = env::var(MARK).ok().and_then(|asked| {
        let (what, seconds) = asked.rsplit_once(':')?;
        Some((what.to_owned(), seconds.parse().unwrap()))
    }) else {
        return;
    };
    let mut out = std::io::stdout();
    // The harness has already begun a line.
    out.write_all(b"\n").unwrap();
    examine_only(&what, &in_seconds(seconds), &mut out).unwrap();
}

#[test]
fn a_driver_that_crashes_or_hangs_is_named_with_the_step() {
    for (init, words) in [
        (
            "volatile int *nowhere = 0; return *nowhere;",
            "ended by signal 11 in: library, counting devices (1 of 2)",
        ),
        (
            "write(2, \"out of luck\\n\", 12); _exit(7);",
            "ended by itself with code 7 in: library, counting devices",
        ),
        ("write(2, \"out of luck\\n\", 12); _exit(7);", ". It said: out of luck"),
        ("for (;;) pause();", "s in: library, counting devices (1 of 2)"),
    ] {
        let folder = Folder::new();
        let library = folder.library(&fake(Cuda, &[("cuInit", init)]), &[]);
        let (found, page) = examined(&library, 0.3, &[]);
        let problem = &found["libraries"][0]["problem"];
        assert_eq!(problem["state"], "failed", "{page}");
        assert!(problem["words"].as_str().unwrap().contains(words), "{page}");
        assert!(page.contains(words) && page.contains("Something is wrong"), "{page}");
    }
}

#[test]
fn a_fault_that_ends_the_process_is_named_with_the_step() {
    let (found, page) = examined(&standin_path(), 40.0, &[("BOWSTRING_STANDIN_FAULT", "abort:copy")]);
    let gpu = &found["devices"][1];
    assert_eq!((&gpu["device"], &gpu["well"]), (&"CUDA:0".into(), &false.into()), "{page}");
    assert!(!gpu["tests"].as_array().unwrap().is_empty(), "what came before is there: {page}");
    let words = gpu["problems"][0]["words"].as_str().unwrap();
    assert!(words.starts_with("ended by signal 6 in: equivalence, concat of Int64 ("), "{page}");
    assert!(words.contains("memory access fault"), "{page}");
    assert!(page.contains(words) && page.contains(" passed, 0 failed"), "{page}");
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let command = || Command::new("/nowhere/doctor");
    let report = examine_apart(&command, &in_seconds(0.1), &mut |_| (), &mut |_| ());
    assert!(report.to_string().contains("no process could be started"), "{report}");
    let wrong = examine_only("tpu:0", &in_seconds(0.1), &mut std::io::sink()).unwrap_err();
    assert!(wrong.to_string().contains("tpu:0"), "{wrong}");
}
