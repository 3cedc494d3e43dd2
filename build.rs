//! Embeds the device images of ptx/, and says when they are older than the kernels they were made from.
//!
//! Users need no device toolchain: the images are checked in. With `BOWSTRING_BUILD_KERNELS=1` they are built here instead,
//! by ptx/build.sh, and the checked-in ones are left alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for input in ["ptx", "kernels/src"] {
        println!("cargo::rerun-if-changed={input}");
    }
    for input in ["BOWSTRING_BUILD_KERNELS", "CI"] {
        println!("cargo::rerun-if-env-changed={input}");
    }

    let images = if env::var("BOWSTRING_BUILD_KERNELS").is_ok_and(|value| value == "1") {
        let built = out.join("images");
        let status = Command::new(root.join("ptx/build.sh"))
            .arg(&built)
            .env("TARGET_ROOT", out.join("device"))
            .status();
        assert!(status.is_ok_and(|status| status.success()), "ptx/build.sh failed: see its output above");
        built
    } else {
        root.join("ptx")
    };
    if let Some(file) = stale(&images, &root.join("kernels/src")) {
        let problem = format!("the device images are older than kernels/src/{file}: run ptx/build.sh");
        assert!(!env::var("CI").is_ok_and(|value| value == "true"), "{problem}");
        println!("cargo::warning={problem}");
    }
    fs::write(out.join("images.rs"), table(&images)).expect("OUT_DIR is writable");
}

/// `IMAGES`: family, architecture and contents of each image, sorted.
fn table(images: &Path) -> String {
    let mut paths: Vec<PathBuf> = fs::read_dir(images)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ptx" || extension == "hsaco"));
    paths.sort();
    let mut table = String::from("pub static IMAGES: &[(&str, &str, &[u8])] = &[\n");
    for path in paths {
        // FAMILY.ARCH.ptx or FAMILY.ARCH.hsaco
        let name = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.split_once('.'));
        let (family, arch) = name.expect("an image is named FAMILY.ARCH");
        writeln!(table, "    ({family:?}, {arch:?}, include_bytes!({path:?})),").expect("a string");
    }
    table + "];\n"
}

/// A source file that is not what the images' MANIFEST says they were made from.
fn stale(images: &Path, sources: &Path) -> Option<String> {
    let manifest = fs::read_to_string(images.join("MANIFEST")).unwrap_or_default();
    // source CHECKSUM LENGTH FILE
    let mut listed: Vec<(String, String)> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("source ")?.rsplit_once(' '))
        .map(|(sum, file)| (file.to_owned(), sum.to_owned()))
        .collect();
    for (file, bytes) in device_sources(sources, sources) {
        let sum = format!("{} {}", cksum(&bytes), bytes.len());
        match listed.iter().position(|(name, _)| *name == file) {
            Some(at) if listed[at].1 == sum => drop(listed.swap_remove(at)),
            _ => return Some(file),
        }
    }
    listed.pop().map(|(file, _)| file)
}

/// Every file that device code is made from: all but the two that only the host compiles.
fn device_sources(folder: &Path, root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root).expect("inside").to_string_lossy().into_owned();
        if path.is_dir() {
            files.extend(device_sources(&path, root));
        } else if name.ends_with(".rs") && name != "target/host.rs" && name != "target/entry.rs" {
            files.push((name, fs::read(&path).unwrap_or_default()));
        }
    }
    files
}

/// The checksum of POSIX `cksum`: a CRC of the bytes and of their number.
fn cksum(bytes: &[u8]) -> u32 {
    let length = bytes.len().to_le_bytes();
    let digits = length.len() - length.iter().rev().take_while(|byte| **byte == 0).count();
    !bytes.iter().chain(&length[..digits]).fold(0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            crc << 1 ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 }
        })
    })
}
