//! Runs tests in child processes: with little memory, with a memory limit of their own, or because the child
//! may crash. The one idea: the child is this test binary, running one test, which finds its case in the
//! environment.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CASE: &str = "BOWSTRING_CHILD";

/// The case of this process, if it is a child.
pub fn case() -> Option<String> {
    std::env::var(CASE).ok()
}

/// Runs `test` again in a child, for `case`: with this many MiB of address space, if limited, and with these
/// variables. The child must end by itself within `seconds`, and its test must pass.
pub fn run(test: &str, case: &str, mebibytes: Option<usize>, seconds: u64, variables: &[(&str, &str)]) {
    output(test, case, mebibytes, seconds, variables);
}

/// Like [`run`], and returns the child's output.
pub fn output(
    test: &str,
    case: &str,
    mebibytes: Option<usize>,
    seconds: u64,
    variables: &[(&str, &str)],
) -> String {
    let limit = mebibytes.map_or(String::new(), |mebibytes| format!("ulimit -v {} && ", mebibytes * 1024));
    let mut child = Command::new("sh")
        .args(["-c", &format!("{limit}exec \"$0\" \"$@\" 2>&1")])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CASE, case)
        // Each allocator arena would reserve 64 MiB of address space for each thread.
        .env("MALLOC_ARENA_MAX", "1")
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![];
        let _ = output.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if begun.elapsed() > Duration::from_secs(seconds) => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let output = reader.join().unwrap();
    let lines: Vec<&str> = output.lines().collect();
    // A sanitizer prints its finding first, and then much else.
    let found = lines.iter().position(|line| line.contains("Sanitizer: "));
    let last = match found {
        Some(found) => &lines[found..lines.len().min(found + 60)],
        None => &lines[lines.len().saturating_sub(30)..],
    };
    match status {
        None => panic!("{test} for {case} did not end; it said:\n{}", last.join("\n")),
        Some(status) if !status.success() => {
            panic!("{test} for {case} ended with {status}; it said:\n{}", last.join("\n"))
        }
        Some(_) => assert!(output.contains("1 passed"), "{test} is no test: {output}"),
    }
    output
}
