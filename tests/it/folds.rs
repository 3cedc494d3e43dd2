//! Compares the case-folding table of characters with that of the regex crate, which arrow-string's patterns
//! use.

use bowstring_kernels::text::search::folds::{FOLDS, Fold};
use bowstring_kernels::text::search::like::Folds;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/src/text/search/folds.rs");

/// The least character of a character's folding class.
fn least(character: char) -> char {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
    class.try_case_fold_simple().unwrap();
    class.ranges()[0].start()
}

fn table() -> Vec<Fold> {
    let mut table: Vec<Fold> = vec![];
    for character in '\u{80}'..=char::MAX {
        let (code, by) = (character as u32, least(character) as i32 - character as i32);
        if by == 0 {
            continue;
        }
        let step = table.last().map_or(0, |last| code - last.last);
        match table.last_mut() {
            Some(last) if last.by == by && step <= 2 && (last.first == last.last || last.step == step) => {
                (last.last, last.step) = (code, step);
            }
            _ => table.push(Fold { first: code, last: code, step: 1, by }),
        }
    }
    table
}

#[test]
fn the_table_is_the_regex_crates() {
    let source = std::fs::read_to_string(SOURCE).unwrap();
    let (before, _) = source.split_once("pub const FOLDS: &[Fold] = &[\n").unwrap();
    let line =
        |fold: &Fold| format!("    fold({:#x}, {:#x}, {}, {}),\n", fold.first, fold.last, fold.step, fold.by);
    let lines: String = table().iter().map(line).collect();
    let made = format!("{before}pub const FOLDS: &[Fold] = &[\n{lines}];\n");
    if std::env::var_os("BOWSTRING_BLESS").is_some() {
        std::fs::write(SOURCE, &made).unwrap();
    }
    assert!(made == std::fs::read_to_string(SOURCE).unwrap(), "stale: tools/bless folds");
}

#[test]
fn every_character_folds_to_the_least_of_its_class() {
    for character in '\0'..=char::MAX {
        assert_eq!(FOLDS.fold(character as u32), least(character) as u32, "{character:?}");
    }
}
