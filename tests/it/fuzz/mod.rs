//! A fuzzer that knows the formats. For each format, a function accepts any bytes, turns them into structs as
//! an untrusted producer might hand them over, and uses the result. The result is an array, a value or an
//! error. No case panics, hangs, leaks, reads a byte that the structs do not describe, or blames the wrong
//! party, and every struct is released once.
//!
//! [`TARGETS`] is the list. `driver.rs` changes the corpus (`corpus/`, an input a line) for a few seconds in
//! every run, or for `BOWSTRING_FUZZ=seconds`. `BOWSTRING_FUZZ_ONLY=arrays` selects one target,
//! `BOWSTRING_FUZZ_SEED` sets the seed, and `BOWSTRING_FUZZ_KEEP=1` writes the corpus anew. A failure prints
//! its input, which `BOWSTRING_FUZZ_INPUT='arrays 00ff'` runs again. Other fuzzers may call the same
//! functions.

#![cfg(target_os = "linux")]

mod async_streams;
mod driver;
mod expressions;
mod input;
mod metadata;
mod operations;
mod programs;
mod stranger;
mod streams;
mod structs;
mod tensors;
mod types;
mod world;

use std::path::Path;
use std::time::Duration;

use crate::support::children;
use driver::{Driver, Target, from_hex};

const fn target(name: &'static str, run: fn(&[u8]), corpus: &'static str) -> Target {
    Target { name, run, corpus }
}

/// The targets, one for each format.
static TARGETS: [Target; 8] = [
    target("arrays", structs::arrays, include_str!("corpus/arrays.txt")),
    target("schemas", structs::schemas, include_str!("corpus/schemas.txt")),
    target("metadata", metadata::target, include_str!("corpus/metadata.txt")),
    target("streams", streams::target, include_str!("corpus/streams.txt")),
    target("async-readers", async_streams::readers, include_str!("corpus/async-readers.txt")),
    target("async-exports", async_streams::exports, include_str!("corpus/async-exports.txt")),
    target("tensors", tensors::target, include_str!("corpus/tensors.txt")),
    target("programs", programs::target, include_str!("corpus/programs.txt")),
];

fn setting(name: &str) -> Option<String> {
    std::env::var(format!("BOWSTRING_FUZZ{name}")).ok()
}

#[test]
fn what_strangers_hand_over_is_used_or_refused() {
    const NAME: &str = "fuzz::what_strangers_hand_over_is_used_or_refused";
    if let Some(input) = setting("_INPUT") {
        let (name, input) = input.split_once(' ').expect("a target and hexadecimal digits");
        let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
        return (target.run)(&from_hex(input));
    }
    let number =
        |name: &str, otherwise: u64| setting(name).map_or(otherwise, |n| n.parse().expect("a number"));
    let seconds = number("", 4);
    if let Some(state) = children::case() {
        let only = setting("_ONLY");
        let targets = TARGETS.iter().filter(|target| only.as_ref().is_none_or(|only| only == target.name));
        let mut driver = Driver::new(targets.collect(), number("_SEED", 0), Some(state.into()));
        driver.run(Duration::from_secs(seconds));
        if setting("_KEEP").is_some() {
            let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fuzz/corpus");
            for (name, lines) in driver.kept() {
                std::fs::write(corpus.join(format!("{name}.txt")), lines).unwrap();
            }
        }
        let failed = driver.report();
        // The driver's own panic hook would swallow this message.
        drop(std::panic::take_hook());
        assert!(failed.is_empty(), "{failed}");
        return;
    }
    let state = std::env::temp_dir().join(format!("bowstring-fuzz-{}", std::process::id()));
    let mebibytes = std::env::var_os("BOWSTRING_SANITIZED").is_none().then_some(6000);
    let case = state.to_str().expect("a plain path");
    let ran = std::panic::catch_unwind(|| children::output(NAME, case, mebibytes, seconds + 300, &[]));
    let input = std::fs::read_to_string(&state).unwrap_or_default();
    let _ = std::fs::remove_file(&state);
    match ran {
        Ok(said) => {
            said.lines().filter(|line| line.starts_with("fuzz: ")).for_each(|line| println!("{line}"))
        }
        Err(_) => panic!(
            "failed; what is printed above, or if that has no input the last one:\nBOWSTRING_FUZZ_INPUT='{}'",
            input.lines().next().unwrap_or_default()
        ),
    }
}
