//! Tests which operation checks the contents of foreign buffers, and which only passes them on: the devices'
//! answers make the table in DESIGN.md, in the documentation of import, in the C header and in Python's
//! README. `BOWSTRING_BLESS=1 cargo test --test it checked` writes it.
//!
//! The one idea: arrays with a single fault, in a row that every operation moves. The outcome is an error; a
//! result with the same fault, which validation finds; or a correct result.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use arrow_array::Array as _;
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, UnionFields};
use bowstring::compute::{
    CastOptions, DropOptions, Selection, TakeOptions, cast, concat, drop_nulls, filter, logical_null_count,
    take,
};
use bowstring::exchange::{from_arrow, to_arrow, validate, validate_on};
use bowstring::{DeviceArray, Error, Result};

use super::foreign::{RawArray, Releases, import_host, produce, schema, structs};
use crate::support::{Target, devices};

const ROWS: usize = 12;
/// The faulty row. In text, with rows of 26 bytes, one earlier row is null.
const BAD: usize = 5;
/// A null row, so that dropping nulls moves the others.
const NULL: usize = 3;

fn nulls() -> NullBuffer {
    (0..ROWS).map(|row| row != NULL).collect()
}

fn texts() -> StringArray {
    (0..ROWS).map(|row| (row != NULL).then(|| format!("much too long for a view {row}"))).collect()
}

fn list(large: bool) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(DataType::Int32, true));
    let items = Arc::new(Int32Array::from_iter_values(0..2 * ROWS as i32));
    let lengths = [2; ROWS];
    match large {
        true => {
            let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
            Arc::new(LargeListArray::new(item, offsets, items, Some(nulls())))
        }
        false => Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), items, Some(nulls()))),
    }
}

fn list_view() -> ArrayRef {
    let item = Arc::new(Field::new_list_field(DataType::Int32, true));
    let items = Arc::new(Int32Array::from_iter_values(0..2 * ROWS as i32));
    let offsets: ScalarBuffer<i32> = (0..ROWS as i32).map(|row| 2 * row).collect();
    Arc::new(ListViewArray::new(item, offsets, vec![2; ROWS].into(), items, Some(nulls())))
}

fn map() -> ArrayRef {
    let fields = vec![Field::new("key", DataType::Int32, false), Field::new("value", DataType::Int32, true)];
    let column = || Arc::new(Int32Array::from_iter_values(0..ROWS as i32)) as ArrayRef;
    let entries = StructArray::new(fields.into(), vec![column(), column()], None);
    let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths([1; ROWS]);
    Arc::new(MapArray::new(field, offsets, entries, Some(nulls()), false))
}

fn union(dense: bool) -> ArrayRef {
    let fields = UnionFields::try_new([2], [Field::new("a", DataType::Int32, true)]).unwrap();
    let values = Arc::new(Int32Array::new((0..ROWS as i32).collect(), Some(nulls())));
    let offsets = dense.then(|| (0..ROWS as i32).collect());
    Arc::new(UnionArray::try_new(fields, vec![2i8; ROWS].into(), offsets, vec![values]).unwrap())
}

/// Overwrites a number in a buffer that has this row.
fn write<T: Copy>(array: &mut RawArray, buffer: usize, row: usize, value: T) {
    // SAFETY: `produce` owns the buffer, which is writable and has that row.
    unsafe { array.buffer(buffer).cast_mut().cast::<T>().add(row).write_unaligned(value) };
}

/// An array, its fault, and the target type of a cast that must read the faulty value, if any.
type Case = (ArrayRef, fn(&mut RawArray), Option<DataType>);

/// The kinds of faults, each with the arrays that can have them.
fn kinds() -> Vec<(&'static str, Vec<Case>)> {
    let as_type = |to: DataType| arrow_cast::cast(&texts(), &to).unwrap();
    let text = || Arc::new(texts()) as ArrayRef;
    let views = || as_type(DataType::Utf8View);
    let item = || Arc::new(Field::new_list_field(DataType::Int32, true));
    let dictionary = || {
        let keys = Int32Array::new((0..ROWS as i32).collect(), Some(nulls()));
        Arc::new(DictionaryArray::<Int32Type>::new(keys, text())) as ArrayRef
    };
    let runs = || {
        let ends = Int32Array::from_iter_values([2, 4, 6, 12]);
        Arc::new(RunArray::<Int32Type>::try_new(&ends, &texts().slice(0, 4)).unwrap()) as ArrayRef
    };
    let numbers = || Arc::new(Int32Array::new((0..ROWS as i32).collect(), Some(nulls()))) as ArrayRef;
    let large_text = Some(DataType::LargeUtf8);
    let plain_text = Some(DataType::Utf8);
    let plain_list = Some(DataType::List(item()));
    vec![
        (
            "offsets between the first and the last",
            vec![
                (text(), |a| write(a, 1, BAD, 1i32 << 30), large_text.clone()),
                (text(), |a| write(a, 1, BAD, -1i32), large_text.clone()),
                (text(), |a| write(a, 1, BAD, 0i32), large_text.clone()),
                (as_type(DataType::LargeBinary), |a| write(a, 1, BAD, i64::MAX), Some(DataType::Binary)),
                (as_type(DataType::LargeUtf8), |a| write(a, 1, BAD, i64::MIN), plain_text.clone()),
                (list(false), |a| write(a, 1, BAD, 1i32 << 30), Some(DataType::LargeList(item()))),
                (list(false), |a| write(a, 1, BAD, -1i32), Some(DataType::LargeList(item()))),
                (list(true), |a| write(a, 1, BAD, i64::MAX), plain_list.clone()),
                (map(), |a| write(a, 1, BAD, 1i32 << 30), None),
            ],
        ),
        (
            "views",
            vec![
                // The buffer's number, the offset in it, the length.
                (views(), |a| write(a, 1, 4 * BAD + 2, 99i32), plain_text.clone()),
                (views(), |a| write(a, 1, 4 * BAD + 2, -1i32), plain_text.clone()),
                (views(), |a| write(a, 1, 4 * BAD + 3, i32::MAX), plain_text.clone()),
                (views(), |a| write(a, 1, 4 * BAD + 3, -1i32), plain_text.clone()),
                (views(), |a| write(a, 1, 4 * BAD, i32::MAX), plain_text.clone()),
                (as_type(DataType::BinaryView), |a| write(a, 1, 4 * BAD, -1i32), Some(DataType::Binary)),
                // The prefix bytes, which occur in the view and in the buffer.
                (views(), |a| write(a, 1, 4 * BAD + 1, 0i32), plain_text.clone()),
            ],
        ),
        (
            "list views",
            vec![
                (list_view(), |a| write(a, 1, BAD, 1000i32), plain_list.clone()),
                (list_view(), |a| write(a, 1, BAD, -1i32), plain_list.clone()),
                (list_view(), |a| write(a, 2, BAD, i32::MAX), plain_list.clone()),
                (list_view(), |a| write(a, 2, BAD, -1i32), plain_list),
            ],
        ),
        (
            "dictionary keys",
            vec![
                (dictionary(), |a| write(a, 1, BAD, ROWS as i32), plain_text.clone()),
                (dictionary(), |a| write(a, 1, BAD, i32::MAX), plain_text.clone()),
                (dictionary(), |a| write(a, 1, BAD, -1i32), plain_text.clone()),
            ],
        ),
        (
            "run ends before the last",
            vec![
                (runs(), |a| write(a.child(0), 1, 2, -7i32), plain_text.clone()),
                (runs(), |a| write(a.child(0), 1, 2, 0i32), plain_text.clone()),
                (runs(), |a| write(a.child(0), 1, 2, 4i32), plain_text.clone()),
                (runs(), |a| write(a.child(0), 1, 2, i32::MAX), plain_text.clone()),
            ],
        ),
        (
            "type ids of sparse unions",
            vec![
                (union(false), |a| write(a, 0, BAD, 9i8), None),
                (union(false), |a| write(a, 0, BAD, -1i8), None),
            ],
        ),
        (
            "type ids and offsets of dense unions",
            vec![
                (union(true), |a| write(a, 0, BAD, 9i8), None),
                (union(true), |a| write(a, 0, BAD, -1i8), None),
                (union(true), |a| write(a, 1, BAD, ROWS as i32), None),
                (union(true), |a| write(a, 1, BAD, i32::MAX), None),
                (union(true), |a| write(a, 1, BAD, -1i32), None),
            ],
        ),
        (
            "text that is not UTF-8",
            vec![
                (text(), |a| write(a, 2, 26 * BAD - 20, 0xffu8), Some(DataType::Int32)),
                (as_type(DataType::LargeUtf8), |a| write(a, 2, 26 * BAD - 20, 0xc3u8), Some(DataType::Int32)),
                (views(), |a| write(a, 2, 26 * BAD - 20, 0xffu8), plain_text),
            ],
        ),
        (
            "null counts",
            vec![
                (numbers(), |a| a.null_count = 0, Some(DataType::Int64)),
                (numbers(), |a| a.null_count = 7, Some(DataType::Int64)),
                (text(), |a| a.null_count = 0, large_text.clone()),
                (text(), |a| a.null_count = 2, large_text),
            ],
        ),
    ]
}

/// A foreign array with a fault, on the CPU: by itself, or inside a struct.
fn strange(data: &ArrayRef, bend: fn(&mut RawArray), inside: bool, misalignment: usize) -> DeviceArray {
    let data = match inside {
        false => data.to_data(),
        true => {
            let field = Field::new("a", data.data_type().clone(), true);
            StructArray::new(vec![field].into(), vec![data.clone()], Some(nulls())).to_data()
        }
    };
    let releases = Releases::default();
    let mut foreign = produce(&data, misalignment, &releases);
    bend(if inside { foreign.child(0) } else { &mut foreign });
    let ours = import_host(foreign.into_ours(), &schema(data.data_type())).map(|(_, array)| array);
    assert!(releases.count() == 0 && structs(&data) > 0);
    ours.unwrap_or_else(|error| panic!("import looks at the contents of {}: {error}", data.data_type()))
}

/// The outcome of an operation: an error; a result with the same fault, or a count computed without a check;
/// or a valid result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Error,
    PassedOn,
    Right,
}

fn outcome(result: Result<DeviceArray>, target: &Target, of: &str) -> Option<Outcome> {
    let waited = result.and_then(|array| array.wait().map(|()| array));
    match waited {
        Err(Error::Unsupported { .. }) if of != "cpu" => None,
        Err(Error::OutOfSpec { .. } | Error::Arrow { .. } | Error::Cast { .. }) => Some(Outcome::Error),
        Err(other) => panic!("{of}: {other:?}"),
        // If a device refuses to copy the result, it has the same fault.
        Ok(array) => Some(match validate_on(&array, &target.stream) {
            Ok(()) => Outcome::Right,
            Err(Error::OutOfSpec { .. }) => Outcome::PassedOn,
            Err(other) => panic!("{of}: {other:?}"),
        }),
    }
}

const OPERATIONS: [&str; 6] =
    ["`filter`", "`take`", "`drop_nulls`", "`concat`", "`cast` that follows it", "logical nulls"];

/// The outcome of each operation on an array of a device.
fn outcomes(values: &DeviceArray, to: Option<&DataType>, target: &Target) -> [Vec<Option<Outcome>>; 6] {
    let stream = &target.stream;
    let of = target.name.as_str();
    let on = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
    let masks = [|row: usize| row != 1, |row: usize| row == BAD || row == BAD + 1]
        .map(|keep| on(Arc::new(BooleanArray::from_iter((0..ROWS).map(|row| Some(keep(row)))))));
    let indices = on(Arc::new(Int32Array::from(vec![0, 5, 6, 3, 11, 5, 4])));
    let judge = |result| outcome(result, target, of);
    let filtered = masks.iter().flat_map(|mask| {
        [
            filter(values, mask, stream).wait(),
            Selection::of_mask(mask, stream).wait().and_then(|kept| kept.filter(values).wait()),
        ]
    });
    let taken = take(values, &indices, &TakeOptions::default(), stream).wait();
    let casted = to.map(|to| {
        [true, false]
            .map(|safe| cast(values, to, &CastOptions { safe, ..CastOptions::default() }, stream).wait())
    });
    let counted = match logical_null_count(values, stream).wait() {
        Ok(_) => Some(Outcome::PassedOn),
        Err(error) => judge(Err(error)),
    };
    [
        filtered.map(judge).collect(),
        vec![judge(taken)],
        vec![judge(drop_nulls(values, &DropOptions::default(), stream).wait())],
        vec![judge(concat(&[values, values], stream).wait())],
        casted.into_iter().flatten().map(judge).collect(),
        vec![counted],
    ]
}

fn said(outcomes: &BTreeSet<Outcome>) -> String {
    let words = outcomes.iter().map(|outcome| match outcome {
        Outcome::Error => "error",
        Outcome::PassedOn => "passed on",
        Outcome::Right => "right",
    });
    words.collect::<Vec<_>>().join(" or ")
}

fn table() -> String {
    let targets = devices();
    let mut table = format!("| what is wrong | {} |\n|{}\n", OPERATIONS.join(" | "), " --- |".repeat(7));
    for (kind, cases) in kinds() {
        // The outcomes on the CPU and on GPUs.
        let mut found = [const { [const { BTreeSet::new() }; 6] }; 2];
        for (i, (data, bend, to)) in cases.iter().enumerate() {
            for inside in [false, true] {
                let here = strange(data, *bend, inside, i % 2);
                assert!(matches!(validate(&here), Err(Error::OutOfSpec { .. })), "{kind}, {i}");
                if kind != "null counts" {
                    assert!(matches!(to_arrow(&here), Err(Error::OutOfSpec { .. })), "{kind}, {i}");
                }
                for target in &targets {
                    let there = target.stream.upload(&here).unwrap();
                    let to = to.as_ref().filter(|_| !inside);
                    let all = outcomes(&there, to, target);
                    let found = &mut found[usize::from(target.name != "cpu")];
                    for (found, outcomes) in found.iter_mut().zip(all) {
                        found.extend(outcomes.into_iter().flatten());
                    }
                }
            }
        }
        let cells = (0..6).map(|i| match [&found[0][i], &found[1][i]] {
            [cpu, _] if cpu.is_empty() => "-".into(),
            [cpu, gpu] if gpu.is_empty() || cpu == gpu => said(cpu),
            [cpu, gpu] => format!("{}; GPU: {}", said(cpu), said(gpu)),
        });
        table += &format!("| {kind} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    table
}

/// The places of the table, each with the prefix of its lines there.
const PLACES: [(&str, &str); 4] = [
    ("DESIGN.md", ""),
    ("host/exchange/import.rs", "/// "),
    ("capi/src/validate.rs", "/// "),
    ("python/README.md", ""),
];

#[test]
fn the_tables_say_what_the_devices_do() {
    let table = table();
    let mut stale = vec![];
    for (file, prefix) in PLACES {
        let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.iter().position(|line| line.starts_with(&format!("{prefix}| what is wrong |")));
        let first = first.unwrap_or_else(|| panic!("{file} has no place for the table"));
        let rows = lines[first..].iter().take_while(|line| line.starts_with(&format!("{prefix}|"))).count();
        let own: Vec<String> = table.lines().map(|line| format!("{prefix}{line}")).collect();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        if lines[first..first + rows] == own[..] {
            continue;
        }
        let fresh = [&lines[..first], &own, &lines[first + rows..]].concat();
        match std::env::var_os("BOWSTRING_BLESS") {
            Some(_) => fs::write(&path, fresh.join("\n") + "\n").unwrap(),
            None => stale.push(file),
        }
    }
    assert!(
        stale.is_empty(),
        "BOWSTRING_BLESS=1 cargo test --test it checked: {stale:?} should have\n{table}"
    );
}
