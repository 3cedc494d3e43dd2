//! Tests the device images that are checked in: each has every kernel that the host can request on that
//! machine, with the arguments that the host passes, and no others. Other suites test the kernels' results.

use std::collections::{BTreeMap, BTreeSet};

use bowstring::images::ARCHITECTURES;
use bowstring_kernels::every_entry;

/// The bytes of each entry's arguments, by name.
type Entries = BTreeMap<String, usize>;

/// Extracts the entries from an image.
type Reader = fn(&[u8]) -> Option<Entries>;

/// The entries of a complete PTX text; `None` if the text is cut off.
fn of_ptx(text: &str) -> Option<Entries> {
    let mut entries = Entries::new();
    let mut rest = text;
    while let Some((_, from)) = rest.split_once(".visible .entry ") {
        let (name, from) = from.split_once('(')?;
        let (arguments, body) = from.split_once(')')?;
        let words = arguments.lines().filter(|line| line.contains(".param .u64 ")).count();
        let others = arguments.lines().filter(|line| line.contains(".param ")).count() - words;
        (others == 0).then_some(())?;
        entries.insert(name.to_owned(), 8 * words);
        // The end of a body is a line of its own.
        rest = body.split_once("\n}\n")?.1;
    }
    Some(entries)
}

/// The entries of a complete code object, an ELF file: functions with a descriptor. `None` if the file is cut
/// off, if a function has no descriptor, or if a descriptor has no function.
fn of_code_object(file: &[u8]) -> Option<Entries> {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let from = file.get(at..at.checked_add(bytes)?)?;
        Some(from.iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte)))
    };
    file.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let (table, size, count) = (number(40, 8)?, number(58, 2)?, number(60, 2)?);
    file.get(table..table + size * count)?;
    let section = |i: usize| table + i * size;
    // The dynamic symbols, which are the only ones, and their names.
    const DYNAMIC_SYMBOLS: usize = 11;
    let symbols = (0..count).find(|i| number(section(*i) + 4, 4) == Some(DYNAMIC_SYMBOLS))?;
    let names = number(section(number(section(symbols) + 40, 4)?) + 24, 8)?;
    let (start, bytes) = (number(section(symbols) + 24, 8)?, number(section(symbols) + 32, 8)?);
    let (mut functions, mut descriptors) = (BTreeSet::new(), Entries::new());
    for symbol in (start..start + bytes).step_by(24) {
        let name: Vec<u8> =
            file.get(names + number(symbol, 4)?..)?.iter().copied().take_while(|byte| *byte != 0).collect();
        let name = String::from_utf8(name).ok()?;
        let (home, address) = (number(symbol + 6, 2)?, number(symbol + 8, 8)?);
        match name.strip_suffix(".kd") {
            Some(entry) => {
                // The descriptor's place in the file; the size of the arguments follows the sizes of two
                // kinds of memory there.
                let (loaded, at) = (number(section(home) + 16, 8)?, number(section(home) + 24, 8)?);
                let at = address.checked_sub(loaded)? + at;
                file.get(at..at + 64)?;
                descriptors.insert(entry.to_owned(), number(at + 8, 4)?);
            }
            None if home != 0 => drop(functions.insert(name)),
            None => {}
        }
    }
    (functions.len() == descriptors.len() && functions.iter().all(|name| descriptors.contains_key(name)))
        .then_some(descriptors)
}

/// The entries that the host can request on machines of an architecture, by family.
fn wanted(architecture: &str) -> BTreeMap<&'static str, Entries> {
    let mut wanted: BTreeMap<&str, Entries> = BTreeMap::new();
    for entry in every_entry().filter(|entry| entry.makers().include(architecture)) {
        let bytes = 8 * entry.arguments().len();
        let known = wanted.entry(entry.family()).or_default().insert(entry.name().to_owned(), bytes);
        assert_eq!(known, None, "two entries are called {}", entry.name());
    }
    wanted
}

fn read(family: &str, architecture: &str) -> (&'static [u8], Reader) {
    let image = bowstring::images::find(family, architecture);
    let image = image.unwrap_or_else(|| panic!("there is no {family} for {architecture}"));
    let ptx: Reader = |file| of_ptx(std::str::from_utf8(file).ok()?);
    (image, if architecture.starts_with("sm_") { ptx } else { of_code_object })
}

#[test]
fn every_image_has_what_the_host_can_ask_for() {
    for architecture in ARCHITECTURES.iter().map(|architecture| architecture.name) {
        for (family, wanted) in wanted(architecture) {
            let (file, entries) = read(family, architecture);
            let there = entries(file);
            let there = there.unwrap_or_else(|| panic!("{family}.{architecture} is not a whole image"));
            for (name, bytes) in &wanted {
                let found = there.get(name);
                assert_eq!(found, Some(bytes), "bytes of arguments of {name} in {family}.{architecture}");
            }
            assert_eq!(there.len(), wanted.len(), "{family}.{architecture} has entries that nobody asks for");
        }
    }
}

#[test]
fn there_are_no_other_images() {
    for (family, architecture) in bowstring::images::names() {
        assert!(wanted(architecture).contains_key(family), "{family}.{architecture}: which kernels?");
    }
}

/// The list of architectures agrees with ptx/README.md, and with the interpreter of code objects.
#[test]
fn architectures_are_the_same_everywhere() {
    let readme = include_str!("../../ptx/README.md");
    let said: Vec<&str> = readme.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |of: &bowstring::images::Architecture| {
        let (major, minor) = of.since;
        format!("| `{}` | {} | {} | {major}.{minor} |", of.name, of.machines, of.lanes)
    };
    assert_eq!(said, ARCHITECTURES.iter().map(row).collect::<Vec<_>>());
    let run = bowstring_amdi::Target::ALL.map(|target| (target.name, target.lanes));
    let built = ARCHITECTURES.iter().filter(|of| !of.gpus.is_empty());
    assert_eq!(run.to_vec(), built.map(|of| (of.name, of.lanes)).collect::<Vec<_>>());
}

/// Checks that the readers above detect incomplete images.
#[test]
fn a_part_of_an_image_is_none() {
    for architecture in ["sm_75", "gfx90a", "gfx12-generic"] {
        let (file, entries) = read("offsets", architecture);
        let all = entries(file).unwrap().len();
        for part in [0, 1, 63, 64, 1000, file.len() / 2, file.len() - 300, file.len() - 1] {
            let found = entries(&file[..part]).map_or(0, |entries| entries.len());
            assert!(found < all, "{part} of {} bytes of {architecture}", file.len());
        }
    }
}
