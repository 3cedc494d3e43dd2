//! Records facts that criterion does not keep, as lines of JSON in `bowstring.jsonl` next to criterion's
//! figures: the machine, unavailable devices, and the bytes that a bench moves. If a fact occurs twice, the
//! last line counts.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use super::Moved;

/// The folder of criterion's figures: criterion asks cargo for the target folder, which this takes from the
/// executable's path.
fn folder() -> PathBuf {
    if let Some(home) = std::env::var_os("CRITERION_HOME") {
        return home.into();
    }
    if let Some(target) = std::env::var_os("CARGO_TARGET_DIR") {
        return PathBuf::from(target).join("criterion");
    }
    let exe = std::env::current_exe().unwrap_or_default();
    let deps = exe.parent().filter(|parent| parent.ends_with("deps"));
    let target = deps.and_then(|deps| deps.parent()?.parent());
    target.map_or_else(|| "target".into(), PathBuf::from).join("criterion")
}

/// Quotes text as JSON does.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if (c as u32) < 32 => write!(quoted, "\\u{:04x}", c as u32).expect("strings take all"),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Appends a line, if this run measures.
fn append(line: String) {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = folder();
    let written = std::fs::create_dir_all(&folder).and_then(|()| {
        let mut file = OpenOptions::new().append(true).create(true).open(folder.join("bowstring.jsonl"))?;
        writeln!(file, "{line}")
    });
    if let Err(error) = written {
        eprintln!("{}: {error}", folder.display());
    }
}

/// Records a device of this run.
pub fn device(kind: &str, name: &str) {
    append(format!("{{\"device\": {}, \"name\": {}}}", quoted(kind), quoted(name)));
}

/// Records an unavailable device, with the reason.
pub fn not_run(kind: &str, reason: &str) {
    append(format!("{{\"not_run\": {}, \"reason\": {}}}", quoted(kind), quoted(reason)));
}

/// Records the bytes that a bench moves.
pub fn moves(id: &str, moved: &Moved) {
    let sectors = moved.sectors.map_or("null".into(), |sectors| sectors.to_string());
    append(format!("{{\"id\": {}, \"bytes\": {}, \"sectors\": {sectors}}}", quoted(id), moved.bytes));
}
