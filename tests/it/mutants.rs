//! Tests whether the suites would notice a wrong kernel. It changes one instruction of a shipped PTX image at
//! a time; the operations that run it must then fail or give another answer. `BOWSTRING_MUTANTS=1000` tries
//! that many changes instead of a few.
//!
//! Some mutants cannot be noticed (a bound that no input reaches, the second of two equal guards), so the
//! test demands only a share of them; it prints the others.

mod amd;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, TimeUnit};
use bowstring::compute::OutOfBounds;
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::from_arrow;
use bowstring::{Error, Stream};

use crate::support::operations::{Argument, Operation, operation};
use crate::support::ptx::{Images, image};
use crate::support::*;

/// The changes: a part of an instruction's name or guard, and its replacement.
const CHANGES: &[(&str, &str)] = &[
    ("setp.lt.", "setp.le."),
    ("setp.le.", "setp.lt."),
    ("setp.gt.", "setp.ge."),
    ("setp.ge.", "setp.gt."),
    ("setp.eq.", "setp.ne."),
    ("setp.ne.", "setp.eq."),
    ("add.s", "sub.s"),
    ("sub.s", "add.s"),
    ("and.b", "or.b"),
    ("or.b", "and.b"),
    ("and.pred", "or.pred"),
    ("or.pred", "and.pred"),
    ("xor.b", "and.b"),
    ("min.", "max."),
    ("max.", "min."),
    ("popc.b", "brev.b"),
    ("shfl.sync.up", "shfl.sync.down"),
    ("shfl.sync.down", "shfl.sync.up"),
    ("@%p", "@!%p"),
    ("@!%p", "@%p"),
    ("st.global", "// st.global"),
];

type Answer = Result<Vec<Value>, Error>;

/// An operation on an array, the right answer, and the entries that compute it.
struct Step {
    /// The array starts with rows that the step does not use: a slice of an array on the device keeps its odd
    /// bits.
    values: ArrayRef,
    offset: usize,
    operation: &'static Operation,
    argument: Argument,
    right: Answer,
    entries: BTreeSet<(String, String)>,
}

impl Step {
    /// The right answer is the CPU's, which the other suites compare with arrow-rs.
    fn new(values: &ArrayRef, offset: usize, operation: &'static str, argument: Argument) -> Step {
        let (values, operation) = (values.clone(), self::operation(operation));
        let mut step =
            Step { values, offset, operation, argument, right: Ok(vec![]), entries: BTreeSet::new() };
        step.right = step.run(&Stream::cpu());
        step
    }

    fn run(&self, stream: &Stream) -> Answer {
        self.answer(stream).map_err(|error| match error {
            // Only the CPU's error names the value.
            Error::Cast { row, from, to, .. } => Error::Cast { row, from, to, problem: String::new() },
            error => error,
        })
    }

    fn answer(&self, stream: &Stream) -> Answer {
        let longer = stream.upload(&from_arrow(&self.values)?)?;
        let values = longer.slice(self.offset, self.values.len() - self.offset)?;
        self.operation.run(&values, &self.argument, stream)?.read(stream)
    }
}

fn device(executor: Arc<Images>) -> EmulatedDevice {
    EmulatedDevice::new(EmulatorOptions { executor: Some(executor), ..Default::default() }).unwrap()
}

/// Lengths, and the rows before the slice: less than a wave, some tiles, more than one wave's part of the
/// tiles.
const SHAPES: &[(usize, usize)] = &[(29, 0), (2055, 7), (8199, 33), (70_001, 64)];

fn steps() -> Vec<Step> {
    let rng = &mut Random::new(42);
    let mut steps = vec![];
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let moved =
        [DataType::Int32, DataType::Int64, DataType::Boolean, DataType::Utf8, DataType::Utf8View, list];
    for of in moved.into_iter().chain([DataType::FixedSizeBinary(5), DataType::Decimal256(40, 2)]) {
        let long = if of.is_nested() { 3 } else { 4 };
        for &(len, offset) in &SHAPES[..long] {
            let values = array(&of, len + offset, Nulls::Some, rng);
            for (percent, run) in [(2.0, 1), (60.0, 3), (80.0, 3000)] {
                let nulls = if run < 1000 { Nulls::Some } else { Nulls::None };
                let keep = Mask { percent, run, nulls };
                let keep = Argument::Mask(Arc::new(mask(keep, len, rng)));
                steps.push(Step::new(&values, offset, "filter", keep));
            }
            let within = indices(&DataType::UInt32, len / 3, len, Nulls::Some, rng);
            let beyond = indices(&DataType::UInt32, len / 3, len + len / 50 + 2, Nulls::Some, rng);
            steps.push(Step::new(&values, offset, "take", Argument::Indices(within, OutOfBounds::Error)));
            steps.push(Step::new(
                &values,
                offset,
                "take",
                Argument::Indices(beyond.clone(), OutOfBounds::Error),
            ));
            steps.push(Step::new(&values, offset, "take", Argument::Indices(beyond, OutOfBounds::Null)));
            steps.push(Step::new(&values, offset, "is_null", Argument::Nothing));
        }
    }
    let casts = [
        (DataType::Int32, DataType::Int64),
        (DataType::Int64, DataType::Int16),
        (DataType::Float64, DataType::Int32),
        (DataType::Int64, DataType::Float32),
        (DataType::Int64, DataType::Decimal128(30, 2)),
        (DataType::Decimal128(38, 10), DataType::Decimal64(18, 3)),
        (DataType::Date32, DataType::Timestamp(TimeUnit::Nanosecond, None)),
        (DataType::Timestamp(TimeUnit::Nanosecond, None), DataType::Time32(TimeUnit::Millisecond)),
        (DataType::UInt8, DataType::Boolean),
    ];
    for (from, to) in casts {
        for &(len, offset) in SHAPES {
            let values = array(&from, len + offset, Nulls::Some, rng);
            let no_nulls = array(&from, len + offset, Nulls::None, rng);
            steps.push(Step::new(&values, offset, "cast", Argument::Type(to.clone(), true)));
            steps.push(Step::new(&no_nulls, offset, "cast", Argument::Type(to.clone(), true)));
            steps.push(Step::new(&values, offset, "cast", Argument::Type(to.clone(), false)));
        }
    }
    steps
}

/// The lines of an entry in an image.
fn lines_of(text: &str, entry: &str) -> std::ops::Range<usize> {
    let start = text.lines().position(|line| line.contains(&format!(".entry {entry}("))).expect("it has run");
    let len = text.lines().skip(start).position(|line| line == "}").expect("entries end");
    start..start + len
}

/// The text with one instruction of the entry changed, and that instruction after and before.
fn mutant(text: &str, entry: &str, rng: &mut Random) -> Option<(String, String)> {
    let range = lines_of(text, entry);
    let mut lines: Vec<&str> = text.lines().collect();
    let places: Vec<(usize, &(&str, &str))> = range
        .flat_map(|line| CHANGES.iter().map(move |change| (line, change)))
        .filter(|(line, (from, _))| lines[*line].contains(from))
        .collect();
    let (line, (from, to)) = places.get(rng.below(places.len().max(1)))?;
    let (before, after) = (lines[*line], lines[*line].replacen(from, to, 1));
    lines[*line] = &after;
    Some((lines.join("\n"), format!("{}: {} for {}", line + 1, after.trim(), before.trim())))
}

/// Whether any step that runs an entry fails or gives another answer.
fn is_noticed(steps: &[Step], entry: &(String, String), device: impl Fn() -> EmulatedDevice) -> bool {
    let wrong = |step: &Step| {
        let device = device();
        let run = || device.device().stream().and_then(|stream| step.run(&stream));
        // An impossible total trips the library's own checks.
        let answer = catch_unwind(AssertUnwindSafe(run));
        answer.map_or(true, |answer| answer != step.right) || !device.faults().is_empty()
    };
    steps.iter().filter(|step| step.entries.contains(entry)).any(wrong)
}

#[test]
fn a_changed_instruction_is_noticed() {
    let mut steps = steps();
    for step in &mut steps {
        let images = Arc::new(Images::default());
        let device = device(images.clone());
        let answer = step.run(&device.device().stream().unwrap());
        assert!(
            answer == step.right,
            "{} with {:?}: {:?}",
            step.values.data_type(),
            step.argument,
            answer.err()
        );
        assert_eq!(device.faults(), []);
        step.entries = images.ran().into_keys().collect();
    }
    let entries: BTreeSet<_> = steps.iter().flat_map(|step| step.entries.clone()).collect();
    let entries: Vec<_> = entries.into_iter().collect();
    assert!(entries.len() > 20, "{entries:?}");
    let tries = std::env::var("BOWSTRING_MUTANTS").map_or(24, |tries| tries.parse().expect("a number"));
    let rng = &mut Random::new(7);
    let (mut tried, mut unnoticed) = (0, vec![]);
    while tried < tries {
        let (family, entry) = &entries[rng.below(entries.len())];
        let Some((text, what)) = mutant(image(family), entry, rng) else { continue };
        let images = Images::default();
        if images.replace(family, &text).is_err() {
            continue; // Not an instruction of the subset any more.
        }
        tried += 1;
        let images = Arc::new(images);
        if !is_noticed(&steps, &(family.clone(), entry.clone()), || device(images.clone())) {
            unnoticed.push(format!("{family} {entry} {what}"));
        }
    }
    println!("mutants: {} of {tried} noticed, in {} entries; not:", tried - unnoticed.len(), entries.len());
    unnoticed.iter().for_each(|mutant| println!("  {mutant}"));
    assert!(unnoticed.len() * 5 <= tried * 2, "{} of {tried} mutants unnoticed", unnoticed.len());
}
