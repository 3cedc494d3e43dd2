//! Checks the README's table of supported operations against the devices' answers. `tools/bless readme`
//! writes it.

use arrow_cast::can_cast_types;
use arrow_schema::DataType;

use crate::support::refusals::{kind, kinds_of_devices, of_one_type, refused_casts, refused_types};
use crate::support::{Target, generated, types};

/// The table's rows: kinds of types with the same answers, and their name for readers.
const ROWS: &[(&str, &[&str])] = &[
    ("Boolean", &["Boolean"]),
    ("integers", &["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]),
    ("floats", &["Float16", "Float32", "Float64"]),
    ("decimals", &["Decimal32", "Decimal64", "Decimal128", "Decimal256"]),
    (
        "dates, times, timestamps, durations, intervals",
        &["Date32", "Date64", "Time32", "Time64", "Timestamp", "Duration", "Interval"],
    ),
    ("text: Utf8, LargeUtf8, Utf8View", &["Utf8", "LargeUtf8", "Utf8View"]),
    ("bytes: Binary, LargeBinary, BinaryView", &["Binary", "LargeBinary", "BinaryView"]),
    ("FixedSizeBinary", &["FixedSizeBinary"]),
    ("lists: of all five layouts", &["List", "LargeList", "ListView", "LargeListView", "FixedSizeList"]),
    ("Struct, Map", &["Struct", "Map"]),
    ("Null", &["Null"]),
    ("Dictionary", &["Dictionary"]),
    ("Union", &["Union"]),
    ("RunEndEncoded", &["RunEndEncoded"]),
];

/// The operations and types that one kind of device refuses.
struct Answers {
    device: &'static str,
    /// The refused kinds of types, by operation.
    kinds: Vec<Vec<String>>,
    casts: Vec<(DataType, DataType)>,
}

fn answers() -> Vec<Answers> {
    let of = |(device, targets): (&'static str, Vec<Target>)| {
        let alike = |what: &str, same: bool| assert!(same, "{device}s differ in {what}");
        let kinds = of_one_type().map(|operation| {
            let refused: Vec<_> = targets.iter().map(|target| refused_types(target, operation)).collect();
            alike(operation.name, refused.windows(2).all(|pair| pair[0] == pair[1]));
            refused[0].iter().map(kind).collect()
        });
        let kinds = kinds.collect();
        let mut casts: Vec<_> = targets.iter().map(refused_casts).collect();
        alike("cast", casts.windows(2).all(|pair| pair[0] == pair[1]));
        Answers { device, kinds, casts: casts.swap_remove(0) }
    };
    kinds_of_devices().into_iter().map(of).collect()
}

/// The text of a cell: the devices that support the operation.
fn shown(devices: &[&str], of: usize) -> String {
    match devices.len() {
        0 => "–".into(),
        all if all == of => "✓".into(),
        _ => devices.join(", "),
    }
}

/// The pairs of types that arrow-rs casts.
fn pairs() -> Vec<(DataType, DataType)> {
    let to = |from: DataType| types().into_iter().map(move |to| (from.clone(), to));
    types().into_iter().flat_map(to).filter(|(from, to)| can_cast_types(from, to)).collect()
}

/// The cell of a row and an operation. All kinds of the row must have the same answer.
fn cell(answers: &[Answers], operation: usize, kinds: &[&str]) -> String {
    let of = |kind: &str| {
        let does = |one: &&Answers| !one.kinds[operation].iter().any(|refused| refused == kind);
        let devices: Vec<_> = answers.iter().filter(does).map(|one| one.device).collect();
        shown(&devices, answers.len())
    };
    let cell = of(kinds[0]);
    assert!(kinds.iter().all(|kind| of(kind) == cell), "{kinds:?} need rows of their own");
    cell
}

/// The cell of a row for casts: the number of pairs from its types that the least capable device supports.
fn cell_of_casts(answers: &[Answers], kinds: &[&str]) -> String {
    let from = |pairs: &[(DataType, DataType)]| {
        pairs.iter().filter(|(from, _)| kinds.contains(&kind(from).as_str())).count()
    };
    let all = from(&pairs());
    match answers.iter().map(|one| all - from(&one.casts)).min() {
        Some(least) if least < all => format!("{least} of {all}"),
        _ => "✓".into(),
    }
}

/// Types by rows, operations by columns; operations with the same cells share a column.
fn table() -> String {
    let answers = answers();
    for data_type in types() {
        let rows = ROWS.iter().filter(|(_, kinds)| kinds.contains(&kind(&data_type).as_str()));
        assert_eq!(rows.count(), 1, "{data_type} has one row");
    }
    let mut columns: Vec<(String, Vec<String>)> = vec![];
    for (i, operation) in of_one_type().enumerate() {
        let cells: Vec<_> = ROWS.iter().map(|(_, kinds)| cell(&answers, i, kinds)).collect();
        let name = format!("`{}`", operation.name);
        match columns.iter_mut().find(|(_, known)| *known == cells) {
            Some((names, _)) => *names += &format!("<br>{name}"),
            None => columns.push((name, cells)),
        }
    }
    let casts: Vec<_> = ROWS.iter().map(|(_, kinds)| cell_of_casts(&answers, kinds)).collect();
    let has_numbers = casts.iter().any(|cell| cell != "✓");
    columns.push(("`cast` from it".into(), casts));
    let names: Vec<_> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut table = format!("| type | {} |\n| --- |{}\n", names.join(" | "), " :-: |".repeat(names.len()));
    for (row, (name, _)) in ROWS.iter().enumerate() {
        let cells: Vec<_> = columns.iter().map(|(_, cells)| cells[row].as_str()).collect();
        table += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    let (all, (first, rest)) = (pairs().len(), answers.split_first().expect("there is the CPU"));
    assert!(first.casts.is_empty() && rest.len() == 1, "the line below the table says so");
    let counts = answers.iter().map(|one| format!("{} on the {}", all - one.casts.len(), one.device));
    table += &format!(
        "\n`cast`: of the {all} pairs of {} representative types that arrow-rs casts, {}.",
        types().len(),
        counts.collect::<Vec<_>>().join(", "),
    );
    if has_numbers {
        table += " In the column: how many of the pairs from that type the ";
        table += &format!("{} casts.", rest[0].device);
    }
    table + "\n"
}

#[test]
fn the_support_table_is_what_the_devices_answer() {
    generated::compare("README.md", "readme", &table());
}
