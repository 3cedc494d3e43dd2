//! Tests the doctor's reports on healthy devices, on one that computes wrong results, and on one that does
//! not answer. `doctor/fakes.rs` has the reports without a usable device, and `doctor/apart.rs` those on a
//! device that ends the process.

mod apart;
mod fakes;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bowstring::Device;
use bowstring::device::testing::{DeviceMemory, EmulatedDevice, EmulatorOptions, Execution, Executor};
use bowstring::ffi::DeviceType;
use bowstring_doctor::{Machine, Options, Report, examine_device_of, examine_machine};
use serde_json::Value;

use crate::support::native::standin_path;
use crate::support::operations::OPERATIONS;
use crate::support::ptx::Images;

/// Rows that devices are measured with: the fewest, because the figures mean nothing.
const ROWS: usize = 1 << 14;
/// A budget that no step uses up, however busy the machine is.
const ENOUGH: f64 = 3600.0;

fn in_seconds(seconds: f64) -> Options {
    Options { budget: Duration::from_secs_f64(seconds), devices: 1 }
}

fn json(report: &Report) -> Value {
    serde_json::from_str(&report.to_json()).expect("a report is JSON")
}

/// A device's report, and the page that contains it.
fn examined(device: &Device) -> (Value, String) {
    let machine = Machine { rows: ROWS, ..Machine::this() };
    let report = examine_device_of(&machine, device, &in_seconds(ENOUGH), &mut |_| ());
    let device = json(&report)["devices"][0].clone();
    assert_eq!(report.is_well(), device["well"].as_bool().unwrap(), "{report}");
    (device, report.to_string())
}

#[test]
fn the_cpu_is_well_and_its_copies_and_operations_are_measured() {
    let (device, page) = examined(&Device::cpu());
    assert_eq!((&device["device"], &device["well"]), (&"CPU".into(), &true.into()), "{page}");
    let found = &device["equivalence"];
    assert_eq!((&found["compared"], &found["wrong"]), (&found["of"], &0.into()));
    let tried: BTreeSet<&str> =
        found["operations"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let missing: Vec<_> = OPERATIONS.iter().filter(|operation| !tried.contains(operation.name)).collect();
    assert!(missing.is_empty(), "the doctor tries {tried:?}");
    let works = device["speed"]["works"].as_array().unwrap();
    assert!(works.len() >= 5 && works.iter().all(|work| work["seconds"].as_f64().unwrap() > 0.0));
    assert!(works.iter().all(|work| work["h200_expected"].is_null()), "nobody has predicted a CPU");
}

/// A machine with the stand-in for CUDA, and without ROCm.
fn with_standin() -> Machine {
    let nowhere = Path::new("/nowhere/libamdhip64.so").to_owned();
    let libraries = vec![(DeviceType::Cuda, standin_path()), (DeviceType::Rocm, nowhere)];
    Machine { libraries, rows: ROWS, ..Machine::this() }
}

#[test]
fn a_gpu_that_is_well_is_examined_whole() {
    let (mut steps, mut last) = (BTreeSet::new(), String::new());
    let report = examine_machine(&with_standin(), &in_seconds(ENOUGH), &mut |progress| {
        steps.insert(progress.step.to_owned());
        last = progress.to_string();
        assert!(progress.done <= progress.of, "{progress:?}");
    });
    let found = json(&report);
    let [cpu, gpu] = &found["devices"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!((&cpu["device"], &gpu["device"]), (&"CPU".into(), &"CUDA:0".into()));
    assert!(report.is_well(), "{report}");
    assert_eq!(gpu["images"], "sm_75");
    assert_eq!(gpu["kernels"]["loaded"], gpu["kernels"]["of"]);
    let images = gpu["kernels"]["images"].as_array().unwrap();
    assert_eq!(images.len() as u64, gpu["kernels"]["of"].as_u64().unwrap(), "each kernel with its time");
    let takes = gpu["kernels"]["registers_and_local_bytes"].as_array().unwrap();
    assert!(takes.len() == images.len() && takes.iter().all(|one| one[1] == 32 && one[2] == 0), "{takes:?}");
    assert!(report.to_string().contains("32 registers a lane at most"), "{report}");
    assert_eq!(gpu["equivalence"]["compared"], gpu["equivalence"]["of"]);
    assert!(gpu["memory"]["all"].as_u64().unwrap() > 0);
    let works = gpu["speed"]["works"].as_array().unwrap();
    for work in ["copy up", "copy down", "copy within", "take Int32, random"] {
        assert!(works.iter().any(|known| known["work"] == work), "{report}");
    }
    let small = gpu["speed"]["small"].as_array().unwrap();
    assert!(small.len() == 7 && small.iter().all(|one| one[1].as_f64().unwrap() > 0.0), "{small:?}");
    let copied = gpu["speed"]["pinned_and_pageable_up_and_down"].as_array().unwrap();
    assert!(copied.len() == 4 && copied.iter().all(|rate| rate.as_f64().unwrap() > 0.0), "{copied:?}");
    let gathered = gpu["speed"]["width_memory_and_rows_gathered"].as_array().unwrap();
    assert!(gathered[0][0] == 32 && gathered[0][2].as_f64().unwrap() > 0.0, "{gathered:?}");
    assert!(!gpu["speed"]["rows_copied_and_taken"].as_array().unwrap().is_empty(), "{report}");
    assert_eq!(found["libraries"][0]["devices"], 100_000);
    assert!(report.to_string().contains("100000, 99999 of which were not examined"), "{report}");
    assert_eq!(found["libraries"][1]["problem"]["state"], "no driver");
    for step in ["library", "opening", "self-tests", "kernels", "equivalence", "speed"] {
        assert!(steps.contains(step), "{steps:?}");
    }
    assert!(last.starts_with("CUDA:0: speed, "), "{last}");
}

/// Runs the shipped images, but skips the last block of every launch of one family.
#[derive(Debug)]
struct Liar {
    images: Images,
    family: &'static str,
}

impl Executor for Liar {
    fn run(&self, launch: &Execution<'_>, memory: &mut DeviceMemory<'_>) -> Result<(), String> {
        if launch.family != self.family {
            return self.images.run(launch, memory);
        }
        match launch.waves {
            // A block has 8 waves, which run together.
            0..=8 => Ok(()),
            waves => self.images.run(&Execution { waves: waves - 8, ..*launch }, memory),
        }
    }
}

#[test]
fn a_device_that_lies_is_found_out() {
    for family in ["filter", "take"] {
        let executor: Arc<dyn Executor> = Arc::new(Liar { images: Images::default(), family });
        let options = EmulatorOptions { executor: Some(executor), ..Default::default() };
        let emulated = EmulatedDevice::new(options).unwrap();
        let (device, page) = examined(emulated.device());
        assert_eq!(device["well"], false, "{family}: {page}");
        assert!(page.contains(&format!("WRONG: {family}")), "{family}: {page}");
        assert!(page.contains("Something is wrong"), "{page}");
        assert!(device["equivalence"]["wrong"].as_u64().unwrap() > 0, "{family}: {page}");
    }
}

#[test]
fn what_there_is_no_time_for_is_cut_and_named() {
    let report = examine_machine(&with_standin(), &in_seconds(0.05), &mut |_| ());
    assert!(report.is_well(), "{report}");
    let notes = json(&report)["devices"][1]["notes"].to_string();
    // The progress depends on which images other tests have inflated.
    assert!(notes.contains("equivalence cut: "), "{report}");
    assert!(report.to_string().contains("cut: "), "{report}");
}
