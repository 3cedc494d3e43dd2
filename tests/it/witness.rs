//! Tests the handling of a wrong result on a GPU: the first wrong launch is found, recorded and run again.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array};
use bowstring::compute::{CastOptions, cast};
use bowstring::exchange::from_arrow;
use bowstring::ffi::DeviceType;

use super::support::children;
use super::support::native::Native;
use super::support::witness::replay;

/// Casts on the stand-in's devices, with the launches witnessed into a folder.
fn casts(device_type: DeviceType, of: i64) {
    let native = Native::standin(device_type, of);
    let stream = native.device.stream().unwrap();
    let rows: ArrayRef = Arc::new(Int32Array::from_iter((0..100).map(|i| (i % 3 != 0).then_some(i))));
    let there = stream.upload(&from_arrow(&rows).unwrap()).unwrap();
    for to in [arrow_schema::DataType::Int64, arrow_schema::DataType::Utf8] {
        let done = cast(&there, &to, &CastOptions::default(), &stream).wait().unwrap();
        done.wait().unwrap();
    }
}

/// On PTX, and on code objects of both widths.
#[test]
fn the_first_wrong_launch_is_found_and_run_again() {
    let test = "witness::the_first_wrong_launch_is_found_and_run_again";
    let kinds =
        [("cuda", DeviceType::Cuda, 0), ("gfx90a", DeviceType::Rocm, 0), ("gfx11", DeviceType::Rocm, 1)];
    if let Some(case) = children::case() {
        let (_, device_type, of) = kinds.into_iter().find(|(name, ..)| *name == case).unwrap();
        return casts(device_type, of);
    }
    for (name, ..) in kinds {
        let folder = std::env::temp_dir().join(format!("bowstring-witness-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let run = |fault: &str| {
            let variables =
                [("BOWSTRING_WITNESS", folder.to_str().unwrap()), ("BOWSTRING_STANDIN_FAULT", fault)];
            children::run(test, name, None, 60, &variables);
            let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
            let wrong: Vec<PathBuf> = files.filter(|path| !path.ends_with("launches.txt")).collect();
            (wrong, fs::read_to_string(folder.join("launches.txt")).unwrap())
        };
        let (wrong, launches) = run("");
        assert!(wrong.is_empty() && launches.contains(" 0 otherwise, 0 with more"), "{wrong:?} {launches}");
        let (wrong, launches) = run("wrong:cast_i32_i64");
        assert!(launches.contains(" 1 otherwise, "), "{name}: {launches}");
        assert_eq!(wrong, [folder.join("wrong-launch-cast_i32_i64.txt")], "{name}: {launches}");
        let said = replay(&wrong[0]).unwrap();
        assert!(said.contains("cast_i32_i64 of cast") && said.contains(": differs: the word 0x0"), "{said}");
        // The flipped bit is the first that the launch wrote: flipping it back makes the device's result
        // right.
        let mut text = fs::read_to_string(&wrong[0]).unwrap();
        let changed =
            text.lines().find(|line| line.starts_with("memory ") && !line.ends_with(" same")).unwrap();
        let after = text.find(changed).unwrap() + changed.rfind(' ').unwrap() + 1;
        let byte = u8::from_str_radix(&text[after..after + 2], 16).unwrap();
        text.replace_range(after..after + 2, &format!("{:02x}", byte ^ 1));
        fs::write(&wrong[0], text).unwrap();
        let said = replay(&wrong[0]).unwrap();
        assert!(said.ends_with(": the same"), "{said}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

/// Not a test: runs the launch in the file `BOWSTRING_REPLAY` again, and prints the outcome.
#[test]
#[ignore = "of a file that a GPU's run has left"]
fn replayed() {
    let path = std::env::var_os("BOWSTRING_REPLAY").expect("BOWSTRING_REPLAY is a file");
    println!("{}", replay(path.as_ref()).unwrap());
}
