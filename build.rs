//! Embeds the archives of `ptx/images` in the library, and reports those that are older than their kernel
//! sources. Runs again only if one of these has changed.
//!
//! Users need no device toolchain, because the archives are checked in. With `BOWSTRING_BUILD_KERNELS=1`
//! ptx/build.sh builds them here instead, and leaves the checked-in ones alone. A published crate has no
//! kernel sources beside it, so nothing can be out of date.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    embed(Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")));
}

/// Writes the tables of `host/images.rs`, for the library whose sources are in `root`.
pub fn embed(root: &Path) {
    let (ptx, out) = (root.join("ptx"), PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")));
    let watched = |path: &Path| println!("cargo::rerun-if-changed={}", path.display());
    watched(&ptx.join("images"));
    watched(&ptx.join("architectures"));
    for input in ["BOWSTRING_BUILD_KERNELS", "CI"] {
        println!("cargo::rerun-if-env-changed={input}");
    }
    let images = if env::var("BOWSTRING_BUILD_KERNELS").is_ok_and(|value| value == "1") {
        let built = out.join("images");
        let status =
            Command::new(ptx.join("build.sh")).arg(&built).env("TARGET_ROOT", out.join("device")).status();
        assert!(status.is_ok_and(|status| status.success()), "build.sh failed: see its output above");
        built
    } else {
        ptx.join("images")
    };
    let kernels = root.join("kernels");
    let ours = fs::read_to_string(kernels.join("Cargo.toml"))
        .is_ok_and(|text| text.contains("\"bowstring-kernels\""));
    if ours {
        watched(&kernels.join("src"));
        let stale: Vec<String> =
            files(&images, "manifest").iter().filter_map(|path| stale(path, &kernels.join("src"))).collect();
        if !stale.is_empty() {
            let problem =
                format!("device images are older than their sources: {}. Run tools/bless", stale.join(", "));
            assert!(!env::var("CI").is_ok_and(|value| value == "true"), "{problem}");
            println!("cargo::warning={problem}");
        }
    }
    let architectures = fs::read_to_string(ptx.join("architectures")).expect("it is in the package");
    let tables = format!("{}{}", architectures_of(&architectures), table(&images));
    fs::write(out.join("images.rs"), tables).expect("OUT_DIR is writable");
}

/// The files of a folder with this extension, sorted.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

/// The name of a file without its extension: the family.
fn family(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).expect("a family's name is ASCII")
}

/// Generates the table of architectures from the file `architectures`.
fn architectures_of(file: &str) -> String {
    let rows: Vec<String> = file
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let [name, lanes, since, gpus, machines] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
                panic!("a row of architectures has five columns: {line}");
            };
            let since = since.replace('.', ", ");
            let gpus: Vec<&str> = gpus.split_whitespace().collect();
            format!(
                "    Architecture {{ name: {name:?}, lanes: {lanes}, since: ({since}), gpus: &{gpus:?}, machines: {machines:?} }},\n"
            )
        })
        .collect();
    format!(
        "/// All of them.\npub static ARCHITECTURES: [Architecture; {}] = [\n{}];\n",
        rows.len(),
        rows.concat()
    )
}

/// Generates the table of images, and copies the archives that it refers to.
fn table(folder: &Path) -> String {
    let (mut archives, mut images, mut count) = (String::new(), String::new(), 0);
    for path in files(folder, "a") {
        let (family, archive) = (family(&path), format!("ARCHIVE_{}", family(&path).to_uppercase()));
        writeln!(archives, "static {archive}: &[u8] = include_bytes!({path:?});").expect("a string");
        let bytes = fs::read(&path).expect("it was found");
        for (architecture, start, length) in members(&bytes) {
            writeln!(images, "    Image::new({family:?}, {architecture:?}, {archive}, {start}, {length}),")
                .expect("a string");
            count += 1;
        }
    }
    format!("{archives}static IMAGES: [Image; {count}] = [\n{images}];\n")
}

/// The members of an `ar` archive: name, start and length of each.
fn members(archive: &[u8]) -> Vec<(&str, usize, usize)> {
    let text = |from: usize, to: usize| {
        std::str::from_utf8(&archive[from..to]).expect("a header is ASCII").trim_end()
    };
    assert!(archive.starts_with(b"!<arch>\n"), "images.py wrote it");
    let (mut members, mut at) = (vec![], 8);
    while at < archive.len() {
        let length: usize = text(at + 48, at + 58).parse().expect("a number");
        members.push((text(at, at + 16).trim_end_matches('/'), at + 60, length));
        at += 60 + length.next_multiple_of(2);
    }
    members
}

/// Returns a family whose source differs from the one in its manifest, with that source. images.py determined
/// the files of each family: it depends on another file only once one of these has changed.
fn stale(manifest: &Path, sources: &Path) -> Option<String> {
    let text = fs::read_to_string(manifest).unwrap_or_default();
    let changed = text.lines().filter_map(|line| line.strip_prefix("source ")).find_map(|line| {
        // CHECKSUM LENGTH FILE
        let (sum, file) = line.rsplit_once(' ')?;
        let bytes = fs::read(sources.join(file)).unwrap_or_default();
        (format!("{:08x} {}", checksum(&bytes), bytes.len()) != sum).then_some(file)
    })?;
    Some(format!("{} ({changed})", family(manifest)))
}

/// CRC-32, as zlib computes it.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}
