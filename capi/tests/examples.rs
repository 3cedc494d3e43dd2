//! Uses the library like a C or C++ programmer: installs it, compiles the examples against the installation,
//! with the shared and with the static library, and runs them. Their output is tested too.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder that this test, and the libraries it depends on, were built into.
fn built() -> PathBuf {
    env::current_exe().expect("a test has a path").parent().expect("in a folder").to_owned()
}

fn crate_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// Installs the library, once for all tests because it is large, and returns its prefix.
fn installed() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefix");
        let _ = std::fs::remove_dir_all(&prefix);
        run(Command::new(crate_root().join("install.sh")).arg(&prefix).arg(built()));
        prefix
    })
}

/// The flags of the installed pkg-config file, read like pkg-config does. The program itself need not be
/// installed.
fn flags(prefix: &Path, statically: bool) -> Vec<String> {
    let file = std::fs::read_to_string(prefix.join("lib/pkgconfig/bowstring.pc")).expect("it was installed");
    let mut variables: Vec<(String, String)> = vec![];
    let mut flags = vec![];
    for line in file.lines() {
        let known = |text: &str| {
            variables
                .iter()
                .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
        };
        let wanted = ["Cflags: ", "Libs: ", "Libs.private: "];
        if let Some((name, value)) = line.split_once('=').filter(|(name, _)| !name.contains([':', ' '])) {
            let value = known(value);
            variables.push((name.to_owned(), value));
        } else if let Some(value) = wanted.iter().find_map(|field| line.strip_prefix(field)) {
            let said = known(value);
            let wanted = said.split_whitespace().filter(|_| statically || !line.starts_with("Libs.private"));
            flags.extend(wanted.map(str::to_owned));
        }
    }
    if statically {
        for flag in &mut flags {
            *flag = flag.replace("-lbowstring", "-l:libbowstring.a");
        }
    }
    flags
}

/// Compiles and runs a program, and returns its output.
fn example(source: &str, compiler: &[&str], statically: bool) -> String {
    let name = format!("{}-{}", source.replace('/', "-"), if statically { "static" } else { "shared" });
    let prefix = installed();
    let program = prefix.join(name);
    run(Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg(crate_root().join(source))
        .args(flags(prefix, statically)));
    let output = run(Command::new(program).env("LD_LIBRARY_PATH", prefix.join("lib")));
    String::from_utf8(output.stdout).expect("the examples print text")
}

const C: &[&str] = &["cc", "-std=c11", "-Wpedantic"];
const CPP: &[&str] = &["c++", "-std=c++17", "-Wpedantic"];

#[test]
fn the_c_example_does_what_it_says() {
    let printed = example("examples/filter.c", C, false);
    let expected = "\
values: 1 2 null 4 5 6 7 8
filter: 2 null 5 7 8
take: 8 1 null
cast: 1 2 null 4 5 6 7 8
nulls: 1
a mask of numbers: status 1, filter: the mask is Int64, not Boolean
an index too far: status 5, index 7 at row 0 is out of bounds for length 5
as null: null 1 null
released: 3 of 3
";
    assert_eq!(printed, expected);
    assert_eq!(example("examples/filter.c", C, true), expected);
}

#[test]
fn the_example_of_expressions_does_what_it_says() {
    let printed = example("examples/expressions.c", C, false);
    let expected = "\
where price < 10
rows: 3
count(*): 3
sum(pieces): 110
status 12: row 3: pieces + pieces overflows
nulls: 1
";
    assert_eq!(printed, expected);
    assert_eq!(example("examples/expressions.c", C, true), expected);
}

#[test]
fn the_cpp_example_does_what_it_says() {
    let printed = example("examples/streams.cpp", CPP, false);
    let expected = "\
kept: 0 3 6 9 12 15 18 21
after 3 batches: code 5, the producer failed with code 5: the disk is on fire
released: 10 of 10
";
    assert_eq!(printed, expected);
    assert_eq!(example("examples/streams.cpp", CPP, true), expected);
}

#[test]
fn a_flood_from_c_is_stopped_and_let_go_of() {
    assert_eq!(example("tests/async_hostile.c", C, false), "sent: 1002, kept: 2, let go of: 1000\n");
}

#[test]
fn work_ends_where_the_callback_says_so() {
    assert_eq!(example("tests/interrupts.c", C, false), "interrupted\n");
}

/// The code of that language in the project's README.
fn from_the_readme(language: &str) -> String {
    let readme = std::fs::read_to_string(crate_root().join("../README.md")).expect("there is a README");
    let (_, code) = readme.split_once(&format!("```{language}\n")).expect("with such code");
    code.split_once("```").expect("that ends").0.to_owned()
}

#[test]
fn the_readme_compiles() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let c = format!(
        "#include \"bowstring.h\"\n#include <stdio.h>\nvoid f(struct ArrowDeviceArray their_values, struct ArrowSchema \
         values_schema, struct ArrowDeviceArray their_mask, struct ArrowSchema mask_schema, struct ArrowDeviceArray \
         our_array, struct ArrowSchema our_schema) {{\n{}}}\n",
        from_the_readme("c")
    );
    // Declares only the functions of Arrow C++ that are called; `async_arrow.cpp` uses the real library.
    let cpp = format!(
        "#include \"bowstring.h\"\nnamespace arrow {{ int ExportDeviceRecordBatchReader(int, ArrowDeviceArrayStream*); int \
         ImportDeviceRecordBatchReader(ArrowDeviceArrayStream*); }}\nint f(int reader, BowstringDevice* device, \
         BowstringStream* stream) {{\n{} return filtered;\n}}\n",
        from_the_readme("cpp")
    );
    for (compiler, file, source) in [(C, "readme.c", c), (CPP, "readme.cpp", cpp)] {
        std::fs::write(scratch.join(file), source).expect("room for a file");
        run(Command::new(compiler[0])
            .args(&compiler[1..])
            .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
            .arg(crate_root().join("include"))
            .arg(scratch.join(file)));
    }
}

#[test]
fn the_header_is_c_and_cpp_by_itself() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (compiler, file) in [(C, "alone.c"), (CPP, "alone.cpp")] {
        let source = scratch.join(file);
        // Includes the header twice to test its guards.
        std::fs::write(&source, "#include \"bowstring.h\"\n#include \"bowstring.h\"\n")
            .expect("room for a file");
        run(Command::new(compiler[0])
            .args(&compiler[1..])
            .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
            .arg(crate_root().join("include"))
            .arg(source));
    }
}
