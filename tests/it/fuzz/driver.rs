//! Makes inputs: it changes a corpus at random until the time is over. It does not know the coverage. Instead
//! each target records what it reached (which operation on which type had which outcome), and an input that
//! reached something new stays.
//!
//! The one idea for failures: before an input runs, it is written to a file. A panic is caught, made small
//! and printed. If anything else ends the process, or nothing ever does, the file has the input.

use std::collections::{BTreeMap, HashSet};
use std::io::{Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::world::all_reached;
use crate::support::Random;

/// One format: a function that accepts any bytes, and inputs that show what it does.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    pub corpus: &'static str,
}

/// How long one case may take.
const CASE: Duration = Duration::from_secs(300);

/// The largest corpus of a target in the repository, in bytes before they become hexadecimal digits.
const KEPT: usize = 16 << 10;

/// The longest input that changes may make.
const LONGEST: usize = 600;

/// The number of cases so far, and the message of the last panic.
static CASES: AtomicU64 = AtomicU64::new(0);
static SAID: Mutex<String> = Mutex::new(String::new());

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn from_hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("two hexadecimal digits");
    (0..text.len() / 2).map(|i| digit(2 * i)).collect()
}

/// An input that is kept for what it reached.
struct Seed {
    bytes: Vec<u8>,
    reached: HashSet<u64>,
}

pub struct Driver {
    targets: Vec<(&'static Target, Vec<Seed>)>,
    seen: HashSet<u64>,
    rng: Random,
    state: Option<std::fs::File>,
    /// For each place of a panic, the smallest input that shows it.
    failed: BTreeMap<String, (String, Vec<u8>)>,
}

impl Driver {
    pub fn new(targets: Vec<&'static Target>, seed: u64, state: Option<PathBuf>) -> Driver {
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let words = info.payload_as_str().unwrap_or("no words");
            let mut said = SAID.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            *said = format!("{place}: {}", words.chars().take(2000).collect::<String>());
        }));
        std::thread::spawn(watch);
        Driver {
            targets: targets.into_iter().map(|target| (target, vec![])).collect(),
            seen: HashSet::new(),
            rng: Random::new(seed),
            state: state.map(|path| std::fs::File::create(path).expect("a file for what runs")),
            failed: BTreeMap::new(),
        }
    }

    /// Runs the corpora, then changes them until the time is over.
    pub fn run(&mut self, time: Duration) {
        let begun = Instant::now();
        for which in 0..self.targets.len() {
            let target = self.targets[which].0;
            for line in [""].into_iter().chain(target.corpus.lines()) {
                self.one(which, from_hex(line));
            }
        }
        println!("fuzz: the corpora took {:.1} s", begun.elapsed().as_secs_f32());
        let mut which = 0;
        while begun.elapsed() < time {
            for _ in 0..20 {
                let input = self.input(which);
                self.one(which, input);
            }
            which = (which + 1) % self.targets.len();
        }
        let kept: usize = self.targets.iter().map(|(_, seeds)| seeds.len()).sum();
        let (cases, reached) = (CASES.load(Ordering::Relaxed), self.seen.len());
        println!(
            "fuzz: {cases} cases, {reached} outcomes, {kept} inputs kept, {} failures",
            self.failed.len()
        );
    }

    /// The failures, and how to run each again.
    pub fn report(&self) -> String {
        let one = |(target, bytes): &(String, Vec<u8>), words: &String| {
            // The input comes last: of long words only the end is printed.
            format!("{words}\n    BOWSTRING_FUZZ_INPUT='{target} {}'", hex(bytes))
        };
        self.failed.iter().map(|(words, failed)| one(failed, words)).collect::<Vec<_>>().join("\n")
    }

    /// Runs an input and returns whether it failed; if so, the message is in [`SAID`].
    fn fails(&mut self, which: usize, input: &[u8]) -> bool {
        let target = self.targets[which].0;
        if let Some(state) = &mut self.state {
            let line = format!("{} {}\n", target.name, hex(input));
            state
                .seek(SeekFrom::Start(0))
                .and_then(|_| state.write_all(line.as_bytes()))
                .expect("room for a line");
        }
        CASES.fetch_add(1, Ordering::Relaxed);
        catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err()
    }

    fn one(&mut self, which: usize, input: Vec<u8>) {
        let failed = self.fails(which, &input);
        let reached = all_reached();
        if failed {
            return self.failure(which, input);
        }
        if reached.iter().any(|what| !self.seen.contains(what)) {
            self.seen.extend(&reached);
            self.targets[which].1.push(Seed { bytes: input, reached });
        }
    }

    /// Makes a failing input as small as a few tries can, and records it, once for each place.
    fn failure(&mut self, which: usize, mut input: Vec<u8>) {
        let place = |words: &str| words.split(": ").next().unwrap_or_default().to_owned();
        let mut words = SAID.lock().unwrap().clone();
        let here = place(&words);
        if self.failed.keys().any(|known| place(known) == here) {
            return;
        }
        println!("fuzz: {} {}\n    {words}", self.targets[which].0.name, hex(&input));
        let begun = Instant::now();
        let mut size = input.len().next_power_of_two();
        while size > 0 && begun.elapsed() < Duration::from_secs(10) {
            let mut at = 0;
            while at < input.len() {
                let end = (at + size).min(input.len());
                let mut cut = input.clone();
                cut.drain(at..end);
                let mut zeroed = input.clone();
                zeroed[at..end].fill(0);
                let smaller = [cut, zeroed].into_iter().find(|one| {
                    *one != input && { self.fails(which, one) && place(&SAID.lock().unwrap()) == here }
                });
                match smaller {
                    Some(smaller) => {
                        input = smaller;
                        words = SAID.lock().unwrap().clone();
                        at += usize::from(input.len() > at) * size;
                    }
                    None => at += size,
                }
            }
            size /= 2;
        }
        all_reached();
        self.failed.insert(words, (self.targets[which].0.name.into(), input));
    }

    /// A new input: usually a kept one with changes, sometimes random bytes.
    fn input(&mut self, which: usize) -> Vec<u8> {
        let (seeds, rng) = (&self.targets[which].1, &mut self.rng);
        if seeds.is_empty() || rng.percent(4.0) {
            let len = rng.below(200);
            return rng.bytes(len);
        }
        let newest = seeds.len() - rng.below(seeds.len().min(50)) - 1;
        let one = if rng.percent(40.0) { newest } else { rng.below(seeds.len()) };
        let mut bytes = seeds[one].bytes.clone();
        for _ in 0..1 + rng.below(4) {
            let (at, len) = (rng.below(bytes.len() + 1), rng.below(16));
            let end = (at + len).min(bytes.len());
            match rng.below(9) {
                0 | 1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
                2 | 3 if at < bytes.len() => bytes[at] = rng.bits() as u8,
                // Most choices are between the tame and the rare, and rare ones have high bytes.
                4 if at < bytes.len() => bytes[at] = 255 - rng.below(12) as u8,
                5 => drop(bytes.drain(at..end)),
                6 => drop(bytes.splice(at..at, rng.bytes(len))),
                7 => {
                    let again = bytes[at..end].to_vec();
                    drop(bytes.splice(at..at, again));
                }
                _ => {
                    let other = &seeds[rng.below(seeds.len())].bytes;
                    let from = rng.below(other.len() + 1);
                    bytes.truncate(at);
                    bytes.extend(&other[from..]);
                }
            }
        }
        bytes.truncate(LONGEST);
        bytes
    }

    /// The corpora in the form to keep: the shortest inputs that together reach all that has been reached, up
    /// to a size.
    pub fn kept(&self) -> Vec<(&'static str, String)> {
        let kept = |seeds: &[Seed]| {
            let mut sorted: Vec<&Seed> = seeds.iter().collect();
            sorted.sort_by_key(|seed| seed.bytes.len() * 100 / (seed.reached.len() + 1));
            let (mut seen, mut size, mut lines) = (HashSet::<u64>::new(), 0, vec![]);
            for seed in sorted {
                if seed.reached.iter().any(|what| !seen.contains(what)) && size + seed.bytes.len() < KEPT {
                    seen.extend(&seed.reached);
                    size += seed.bytes.len() + 1;
                    lines.push(hex(&seed.bytes));
                }
            }
            lines.sort();
            lines.join("\n") + "\n"
        };
        self.targets.iter().map(|(target, seeds)| (target.name, kept(seeds))).collect()
    }
}

/// Ends the process if a case does not end.
fn watch() {
    let mut last = (0, Instant::now());
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let cases = CASES.load(Ordering::Relaxed);
        if cases != last.0 {
            last = (cases, Instant::now());
        } else if last.1.elapsed() > CASE {
            println!("fuzz: case {cases} does not end");
            std::process::abort();
        }
    }
}
