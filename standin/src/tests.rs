//! What the shipped images themselves say of every kernel's arguments, against what the host passes.

use std::fs;
use std::path::{Path, PathBuf};

use bowstring_amdi::{CodeObject, Program, Target};
use bowstring_kernels::every_entry;
use bowstring_kernels::target::Kind;

fn images(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ptx");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    assert!(paths.len() > 10, "the images were not found");
    paths
}

#[test]
fn every_code_object_takes_what_the_host_passes() {
    for path in images("hsaco") {
        // FAMILY.ARCHITECTURE.hsaco
        let name = path.file_stem().unwrap().to_str().unwrap();
        let (family, architecture) = name.split_once('.').unwrap();
        let object = CodeObject::read(&fs::read(&path).unwrap()).expect(name);
        assert_eq!(object.target, architecture, "{name}");
        let entries: Vec<_> = every_entry().filter(|entry| entry.family() == family).collect();
        assert_eq!(object.kernels.len(), entries.len(), "{name}: as many as the host can ask for");
        for entry in entries {
            let kernel =
                object.kernels.get(entry.name()).unwrap_or_else(|| panic!("{name}: no {}", entry.name()));
            assert_eq!(kernel.width, if architecture.starts_with("gfx9") { 64 } else { 32 }, "{name}");
            assert_eq!(kernel.arguments.len(), entry.arguments().len(), "{name}: {}", entry.name());
            for (theirs, ours) in kernel.arguments.iter().zip(entry.arguments()) {
                let is_pointer = ours.kind != Kind::Word;
                assert_eq!(theirs.is_pointer, is_pointer, "{name}: {}: {}", entry.name(), ours.name);
            }
            // A word each, one behind the other.
            let words: Vec<u64> =
                (1..).take(entry.arguments().len()).map(|i| i * 0x0101_0101_0101_0101).collect();
            let block: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(kernel.laid_out(&words), Ok(block), "{name}: {}", entry.name());
        }
    }
}

#[test]
fn arguments_that_do_not_fit_are_seen() {
    let path = images("hsaco").into_iter().find(|path| path.ends_with("bitmap.gfx90a.hsaco")).unwrap();
    let whole = fs::read(path).unwrap();
    let object = CodeObject::read(&whole).unwrap();
    let entry = every_entry().find(|entry| entry.name() == "null_count").unwrap();
    let words = vec![7; entry.arguments().len()];
    assert!(object.kernels["null_count"].laid_out(&words[1..]).is_err());
    for cut in [10, 64, whole.len() / 2, whole.len() - 1] {
        assert!(CodeObject::read(&whole[..cut]).is_none(), "cut off at {cut}");
    }
}

#[test]
fn every_instruction_of_every_code_object_is_known() {
    for path in images("hsaco") {
        let object = CodeObject::read(&fs::read(&path).unwrap()).unwrap();
        let target = Target::named(&object.target).unwrap();
        for (name, kernel) in &object.kernels {
            let program = Program::decode(kernel, target);
            let program = program.unwrap_or_else(|error| panic!("{path:?}: {name}: {error}"));
            assert!(program.instructions().count() > 20, "{path:?}: {name}");
            assert_eq!(program.arguments(), 8 * kernel.arguments.len(), "{path:?}: {name}");
        }
    }
}

#[test]
fn every_ptx_entry_takes_a_word_for_each_argument() {
    for path in images("ptx") {
        let module = bowstring_ptxi::Module::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        let family = path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap();
        for entry in every_entry().filter(|entry| entry.family() == family) {
            assert_eq!(module.params(entry.name()), Some(8 * entry.arguments().len()), "{}", entry.name());
        }
    }
}
