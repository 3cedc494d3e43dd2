//! The same test for AMD's code objects. It changes one bit of an instruction so that the result is still an
//! instruction, or removes a wait. Instructions that affect only the time (`s_nop`, `s_delay_alu`) stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowstring_amdi::{CodeObject, Instruction, Target};

use super::{Step, is_noticed, steps};
use crate::support::Random;
use crate::support::amd::{Objects, object, targets};

/// Instructions that have no effect here, and the words of an instruction's text about caches.
const HINTS: [&str; 8] = [
    "s_nop",
    "s_delay_alu",
    "s_clause",
    "s_wait_alu",
    "s_waitcnt_depctr",
    "s_inst_prefetch",
    "s_set_inst_prefetch_distance",
    "s_sendmsg",
];
const CACHES: [&str; 8] = [" glc", " slc", " dlc", " sc0", " sc1", " nt", " scc", " scope:"];

/// The encoding of `s_nop 0`, on every architecture.
const NOTHING: [u8; 4] = [0, 0, 0x80, 0xbf];

fn means(made: &Instruction) -> String {
    let text = made.to_string();
    let end = CACHES.iter().filter_map(|cache| text.find(cache)).min().unwrap_or(text.len());
    text[..end].to_owned()
}

/// The code object with an instruction of the entry changed, and a description of the change.
fn mutant(target: Target, family: &str, entry: &str, rng: &mut Random) -> Option<(CodeObject, String)> {
    let mut object = object(target, family);
    let code = &mut object.kernels.get_mut(entry)?.code;
    let (mut places, mut at) = (vec![], 0);
    while at < code.len() {
        let made = Instruction::decode(target, &code[at..]).ok()?;
        let (name, size) = (made.name(), made.size());
        if !HINTS.contains(&name.as_str()) {
            places.push((at, made));
        }
        at += size;
    }
    let (at, made) = &places[rng.below(places.len())];
    let changed = if made.name().starts_with("s_wait") {
        code[*at..at + 4].copy_from_slice(&NOTHING);
        "no wait".to_owned()
    } else {
        let bit = rng.below(8 * made.size());
        code[at + bit / 8] ^= 1 << (bit % 8);
        let now = Instruction::decode(target, &code[*at..]).ok()?;
        if now.size() != made.size() || means(&now) == means(made) || HINTS.contains(&now.name().as_str()) {
            return None;
        }
        now.to_string()
    };
    Some((object, format!("{at:#x}: {changed} for {made}")))
}

/// The steps, each with the entries that an architecture runs in it.
fn steps_on(target: Target) -> Vec<Step> {
    let mut steps = steps();
    let objects = Arc::new(Objects::new(target));
    for step in &mut steps {
        let device = objects.clone().device();
        let answer = step.run(&device.device().stream().unwrap());
        let what = format!("{} with {:?} on {}", step.values.data_type(), step.argument, target.name);
        assert!(answer == step.right, "{what}: {:?}, {:?}", answer.err(), device.faults());
        assert_eq!(device.faults(), [], "{what}");
        step.entries = objects.ran().into_keys().collect();
    }
    steps
}

#[test]
fn a_changed_instruction_of_a_code_object_is_noticed() {
    let tries = std::env::var("BOWSTRING_MUTANTS").map_or(24, |tries| tries.parse().expect("a number"));
    let rng = &mut Random::new(11);
    let (mut tried, mut unnoticed) = (0, vec![]);
    let targets = targets();
    let mut by_target = BTreeMap::new();
    for target in &targets {
        let steps = steps_on(*target);
        let mut entries: Vec<_> = steps.iter().flat_map(|step| step.entries.clone()).collect();
        entries.sort();
        entries.dedup();
        assert!(entries.len() > 20, "{entries:?}");
        let wanted = tries / targets.len() + usize::from(by_target.len() < tries % targets.len());
        let mut of_this = 0;
        while of_this < wanted {
            let (family, entry) = &entries[rng.below(entries.len())];
            let Some((object, what)) = mutant(*target, family, entry, rng) else { continue };
            // The change may leave no kernel: it may use a register that does not exist, or branch to no
            // instruction.
            let Ok(objects) = Objects::spoilt(*target, family, entry, object) else { continue };
            (of_this, tried) = (of_this + 1, tried + 1);
            let objects = Arc::new(objects);
            if !is_noticed(&steps, &(family.clone(), entry.clone()), || objects.clone().device()) {
                unnoticed.push(format!("{} {family} {entry} {what}", target.name));
            }
        }
        by_target.insert(target.name, of_this);
    }
    println!("mutants: {} of {tried} noticed, by architecture {by_target:?}; not:", tried - unnoticed.len());
    unnoticed.iter().for_each(|mutant| println!("  {mutant}"));
    // Among many mutants, a bit more than a third goes unnoticed (ends of rows that do not exist, bits that
    // are never read); among a few, half may.
    assert!(unnoticed.len() * 2 <= tried, "{} of {tried} mutants unnoticed", unnoticed.len());
}
