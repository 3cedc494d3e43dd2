//! Checks that the arguments that the host passes to every kernel are those that the shipped images declare.

use bowstring_amdi::{CodeObject, Program, Target};
use bowstring_kernels::every_entry;
use bowstring_kernels::target::{AnyEntry, Kind};

/// Families and architectures of the images for one maker's machines.
fn images(maker: &str) -> Vec<(&'static str, &'static str)> {
    let of_maker = |(_, architecture): &(&str, &str)| architecture.starts_with(maker);
    let found: Vec<_> = bowstring::images::names().filter(of_maker).collect();
    assert!(found.len() > 10, "the images were not found");
    found
}

#[test]
fn every_code_object_takes_what_the_host_passes() {
    for (family, architecture) in images("gfx") {
        let name = format!("{family}.{architecture}");
        let object = CodeObject::read(bowstring::images::find(family, architecture).unwrap()).expect(&name);
        assert_eq!(object.target, architecture, "{name}");
        let there = |entry: &&dyn AnyEntry| entry.family() == family && entry.makers().include(architecture);
        let entries: Vec<_> = every_entry().filter(there).collect();
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
            // One word for each argument, in order.
            let words: Vec<u64> =
                (1..).take(entry.arguments().len()).map(|i| i * 0x0101_0101_0101_0101).collect();
            let block: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(kernel.laid_out(&words), Ok(block), "{name}: {}", entry.name());
        }
    }
}

#[test]
fn arguments_that_do_not_fit_are_seen() {
    let whole = bowstring::images::find("bitmap", "gfx90a").unwrap();
    let object = CodeObject::read(whole).unwrap();
    let entry = every_entry().find(|entry| entry.name() == "null_count").unwrap();
    let words = vec![7; entry.arguments().len()];
    assert!(object.kernels["null_count"].laid_out(&words[1..]).is_err());
    for cut in [10, 64, whole.len() / 2, whole.len() - 1] {
        assert!(CodeObject::read(&whole[..cut]).is_none(), "cut off at {cut}");
    }
}

#[test]
fn every_instruction_of_every_code_object_is_known() {
    for (family, architecture) in images("gfx") {
        let object = CodeObject::read(bowstring::images::find(family, architecture).unwrap()).unwrap();
        let target = Target::named(&object.target).unwrap();
        for (name, kernel) in &object.kernels {
            let program = Program::decode(kernel, target);
            let program = program.unwrap_or_else(|error| panic!("{architecture}: {name}: {error}"));
            assert!(program.instructions().count() > 20, "{architecture}: {name}");
            assert_eq!(program.arguments(), 8 * kernel.arguments.len(), "{architecture}: {name}");
        }
    }
}

#[test]
fn every_ptx_entry_takes_a_word_for_each_argument() {
    for (family, architecture) in images("sm_") {
        let text = std::str::from_utf8(bowstring::images::find(family, architecture).unwrap()).unwrap();
        let module = bowstring_ptxi::Module::parse(text).unwrap();
        let there = |entry: &&dyn AnyEntry| entry.family() == family && entry.makers().include(architecture);
        for entry in every_entry().filter(there) {
            assert_eq!(module.params(entry.name()), Some(8 * entry.arguments().len()), "{}", entry.name());
        }
    }
}
