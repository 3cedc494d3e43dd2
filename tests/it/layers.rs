//! Checks the project's rules in the sources: imports only go down, `unsafe` stays in its permitted places,
//! and no file is long.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module's level; a file may use modules below its own. Modules of one level do not use each other.
const LEVELS: &[(&str, u32)] = &[
    ("ffi", 1),
    ("expr", 1),
    ("images", 1),
    ("array", 2),
    ("device", 3),
    ("pass", 4),
    ("threads", 4),
    ("exchange", 5),
    ("transfer", 5),
    ("engine", 6),
    ("rules", 6),
    ("cpu", 7),
    ("gpu", 7),
    ("compute", 8),
    ("internals", 8),
];

/// The places that may contain `unsafe` code.
const UNSAFE: &[&str] = &[
    "host/array/buffer.rs",
    "host/ffi/",
    "host/exchange/",
    "host/device/cuda/",
    "host/device/hip/",
    "host/device/emu/",
    "host/device/driver",
    "host/device/foreign.rs",
    "host/device/fork.rs",
    "host/device/handles",
    "host/device/native/",
    "host/device/host_pool",
    "host/device/stream.rs",
    "host/pass/copies.rs",
    "host/pass/mod.rs",
    "host/pass/probes.rs",
    "host/pass/region.rs",
    "host/pass/tests.rs",
    "host/transfer/mod.rs",
    "host/cpu/count.rs",
    "host/cpu/memory.rs",
    "host/cpu/intrinsics/",
    "host/cpu/vectorise.rs",
    "kernels/src/memory.rs",
    "kernels/src/program/registers.rs",
    "kernels/src/target/",
    "capi/src/",
    "python/src/capsule.rs",
    "python/src/cuda.rs",
    "python/src/device.rs",
    "python/src/tensor.rs",
    // Code that acts as another library would, or that has no other access to a clock.
    "benches/host_cost.rs",
    "benches/support/clock.rs",
    "examples/02-import-and-export.rs",
    // Arrays between two versions of arrow-rs, through the C structs.
    "engines/datafusion/src/bridge.rs",
    // Temporary files that are mapped to memory.
    "engines/datafusion/src/spill.rs",
    // C structs in capsules of Python.
    "engines/python/src/capsule.rs",
    "lab/parts/src/memory.rs",
    "lab/drivers/src/",
];

/// The folders that are scanned. Tests often act as another library, and contain `unsafe` code for that.
const SCANNED: &[&str] = &[
    "host",
    "kernels/src",
    "capi/src",
    "python/src",
    "benches",
    "engines/ballista/src",
    "engines/python/src",
    "engines/sql/src",
    "engines/datafusion/src",
    "engines/tpch/src",
    "examples",
    "lab/races/src",
    "lab/ptx/src",
    "lab/amd/src",
    "lab/parts/src",
    "lab/drivers/src",
    "doctor/src",
];

/// The folders whose files have a limit of lines, in Rust and in Python, tests included.
const LIMITED: &[&str] = &[
    "benches", "capi", "docs", "doctor", "engines", "examples", "host", "kernels", "lab", "ptx", "python",
    "tests",
];

/// The limit on a file's lines.
const LINES: usize = 400;

/// The files that are longer than that, and may have this many lines. The list only gets shorter.
const LONGER: (usize, &[&str]) = (
    480,
    &[
        "host/cpu/program/steps.rs",
        "host/cpu/take.rs",
        "host/device/native/mod.rs",
        "host/device/native/tests.rs",
        "host/exchange/async_streams/consumer.rs",
        "host/expr/mod.rs",
        "host/gpu/program/lower.rs",
        "host/gpu/take_tables.rs",
        "host/pass/tests.rs",
        "kernels/src/map/functions.rs",
        // A class of Python has all its methods in one block.
        "python/src/methods/batch.rs",
    ],
);

fn sources(dir: &Path, extensions: &[&str], into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        // A crate's own `target`, and an environment of Python, are no sources of ours.
        let foreign = entry.join("CACHEDIR.TAG").exists() || entry.join("pyvenv.cfg").exists();
        if entry.is_dir() && !foreign {
            sources(&entry, extensions, into);
        } else if entry.extension().and_then(|it| it.to_str()).is_some_and(|it| extensions.contains(&it)) {
            into.push(entry);
        }
    }
}

fn all_sources(of: &[&str], extensions: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![];
    for dir in of {
        let before = files.len();
        sources(&root.join(dir), extensions, &mut files);
        assert!(files.len() > before, "{dir} has no sources");
    }
    let name = |path: &Path| path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn imports_only_go_down() {
    let level = |module: &str| LEVELS.iter().find(|(name, _)| *name == module).map(|(_, level)| *level);
    let mut wrong = vec![];
    // A module's own tests may use modules above it.
    for (name, text) in
        all_sources(&["host"], &["rs"]).into_iter().filter(|(name, _)| !name.ends_with("tests.rs"))
    {
        let Some(module) = name.strip_prefix("host/").and_then(|rest| rest.split(['/', '.']).next()) else {
            continue;
        };
        let Some(own) = level(module) else { continue };
        for line in text.lines().map(|line| line.split("//").next().unwrap_or("")) {
            for used in line.split("crate::").skip(1) {
                let used = used.split([':', ';', '{', ',', ' ', '<', '(']).next().unwrap_or("");
                if used != module && level(used).is_some_and(|used| used >= own) {
                    wrong.push(format!("{name}: {}", line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "imports that go up or sideways:\n{}", wrong.join("\n"));
}

/// Operations choose an engine in one place, and only ask it: none of them knows a kernel, a driver, or a
/// thread pool.
#[test]
fn operations_know_engines_only() {
    let foreign = ["as_gpu", "DeviceType", "among_threads", "bowstring_kernels", "crate::cpu", "crate::gpu"];
    let allowed = [
        ("host/compute/mod.rs", "use crate::cpu::Cpu;"),
        ("host/compute/mod.rs", "use crate::gpu::Gpu;"),
        // A scalar is a value in host memory, whichever engine uses it.
        ("host/compute/scalar.rs", "use crate::cpu::scalar;"),
    ];
    let mut found: Vec<(String, String)> = vec![];
    for (name, text) in all_sources(&["host/compute"], &["rs"]) {
        let lines = text.lines().map(|line| line.split("//").next().unwrap_or("").trim());
        let used = lines.filter(|line| foreign.iter().any(|foreign| line.contains(foreign)));
        found.extend(used.map(|line| (name.clone(), line.to_owned())));
    }
    found.sort();
    let found: Vec<(&str, &str)> = found.iter().map(|(name, line)| (&**name, &**line)).collect();
    assert_eq!(found, allowed);
}

#[test]
fn unsafe_stays_where_it_may_be() {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let is_unsafe = |line: &str| {
        let code = line.split("//").next().unwrap_or("");
        code.split(|c| !word(c)).any(|word| word == "unsafe")
    };
    for (name, text) in all_sources(SCANNED, &["rs"]) {
        if !UNSAFE.iter().any(|allowed| name.starts_with(allowed)) {
            let line = text.lines().position(is_unsafe);
            assert!(line.is_none(), "{name}:{} holds unsafe code", line.unwrap_or(0) + 1);
        }
    }
}

/// The kernel determines the number of waves in a launch: with a wrong number some rows stay unwritten. A
/// single place tells the driver, and that place asks the entry.
#[test]
fn only_the_kernel_says_how_many_waves_are_launched() {
    let sources = all_sources(&["host"], &["rs"]).into_iter();
    let sources =
        sources.filter(|(name, _)| !name.starts_with("host/device/") && !name.ends_with("tests.rs"));
    let makes: Vec<String> = sources
        .filter(|(_, text)| {
            text.lines().any(|line| line.contains("Launch {") && !line.contains("struct Launch"))
        })
        .map(|(name, _)| name)
        .collect();
    assert_eq!(makes, ["host/pass/mod.rs"], "files above the drivers that make a `Launch`");
    let pass = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("host/pass/mod.rs")).unwrap();
    assert!(
        pass.contains("pub fn launch<A: Args>(&mut self, entry: &'static Entry<A>, args: &A) -> Result<()>")
    );
    assert_eq!(pass.matches("let waves = (entry.waves)(args, self.width());").count(), 1);
}

#[test]
fn python_calls_the_library_where_panics_are_caught() {
    for (name, text) in all_sources(&["python/src"], &["rs"]) {
        if name != "python/src/error.rs" {
            // That file converts errors to exceptions, and lets other threads run, always inside code that
            // catches panics.
            let around =
                text.lines().position(|line| line.contains(".detach(") || line.contains(".exception()"));
            assert!(around.is_none(), "{name}:{}: use `ours` or `detached`", around.unwrap_or(0) + 1);
        }
    }
}

/// `device::testing` is for tests and `internals` for the doctor. Programs of others do not have them either.
#[test]
fn bindings_and_engines_use_the_public_interface() {
    let above = ["capi/src", "python/src", "engines/ballista/src", "engines/datafusion/src", "examples"];
    let users = |of: &[&str], module: &str| -> Vec<String> {
        all_sources(of, &["rs"])
            .into_iter()
            .filter(|(_, text)| {
                text.lines().any(|line| line.contains("bowstring::") && line.contains(module))
            })
            .map(|(name, _)| name)
            .collect()
    };
    let hidden = [users(&above, "testing"), users(&above, "internals"), users(&["doctor/src"], "testing")];
    assert_eq!(hidden.concat(), [""; 0], "files that use hidden modules");
    assert!(!users(&["doctor/src"], "internals").is_empty(), "internals is for the doctor");
}

#[test]
fn no_file_is_long() {
    let (most, longer) = LONGER;
    let lengths: Vec<(String, usize)> = all_sources(LIMITED, &["rs", "py"])
        .into_iter()
        .map(|(name, text)| (name, text.lines().count()))
        .collect();
    let limit = |name: &String| if longer.contains(&name.as_str()) { most } else { LINES };
    let long: Vec<_> = lengths.iter().filter(|(name, lines)| *lines > limit(name)).collect();
    assert!(long.is_empty(), "files of more than {LINES} lines: {long:#?}");
    for name in longer {
        let is_long = lengths.iter().any(|(long, lines)| long == name && *lines > LINES);
        assert!(is_long, "{name} is not long: remove it from the list");
    }
}
