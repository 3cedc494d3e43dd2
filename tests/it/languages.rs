//! Checks that C and Python have every operation of the table, by reading C's header and Python's stub and
//! module. Other tests check the header against the library, and the stub against the module; the package
//! exports everything in the module.

use std::fs;

use crate::support::operations::OPERATIONS;

/// The operations for which Python uses pyarrow's names.
const PYTHON: [(&str, &str); 4] = [
    ("is_not_null", "is_valid"),
    ("drop_nulls", "drop_null"),
    ("sort_to_indices", "sort_indices"),
    ("distinct", "unique"),
];

fn text(path: &str) -> String {
    fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The text between two other texts.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no `{before}`"));
    rest.split_once(after).unwrap_or_else(|| panic!("no `{after}` behind `{before}`")).0
}

#[test]
fn every_operation_is_there_for_c_and_python() {
    let header = text("capi/include/bowstring.h");
    let stub = text("python/bowstring/_bowstring.pyi");
    let module = text("python/src/lib.rs");
    let exported = between(&module, "use super::operations::{", "}");
    let exported: Vec<&str> = exported.split(',').map(str::trim).collect();
    let listed = between(&stub, "__all__ = [", "]");
    let mut missing = vec![];
    for name in OPERATIONS.iter().map(|operation| operation.name) {
        let python = PYTHON.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, theirs)| theirs);
        let places = [
            ("C's header", header.contains(&format!("\nBowstringStatus bowstring_{name}("))),
            ("the exports in python/src/lib.rs", exported.contains(&python)),
            ("Python's stub", stub.contains(&format!("\ndef {python}("))),
            ("the stub's `__all__`", listed.contains(&format!("\"{python}\""))),
        ];
        let lacking = places.iter().filter(|(_, has)| !has);
        missing.extend(lacking.map(|(place, _)| format!("{name}: not in {place}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
