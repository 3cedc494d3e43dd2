//! Compares every launch on a GPU with the interpreter of its image, if `BOWSTRING_WITNESS` names a folder.
//! The first launch that differs is written to a file there, with the memory that it read, before and after
//! it.
//!
//! The one idea: the interpreter runs first, on memory that it fetches from the device on demand. So a file
//! contains exactly what the launch has read, and the same launch can be repeated anywhere with this test
//! binary.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bowstring::Device;
use bowstring::device::testing::{Execution, Witness, Witnessed, set_witness};
use bowstring_amdi::Target;
use bowstring_watch::Memory;

use super::amd::Objects;
use super::ptx::Images;

/// Launches with more memory than this are not interpreted.
const LIMIT: u64 = 1 << 20;

/// Installs a witness for a device's launches, if the environment asks for it.
pub fn witnessed(device: Device) -> Device {
    if let Some(folder) = std::env::var_os("BOWSTRING_WITNESS") {
        // All handles of a device share the counts, and decode each image once.
        static WITNESS: OnceLock<Arc<Interpreted>> = OnceLock::new();
        let (counts, interpreters) = Default::default();
        let witness = || Arc::new(Interpreted { folder: folder.into(), counts, interpreters });
        set_witness(&device, WITNESS.get_or_init(witness).clone());
    }
    device
}

/// The parts of a device's memory that a launch has seen: for each first address, the bytes before the
/// launch, and the bytes now.
#[derive(Default)]
struct Pieces(BTreeMap<u64, Piece>);

#[derive(Clone, Debug, PartialEq)]
struct Piece {
    before: Vec<u8>,
    now: Vec<u8>,
}

impl Pieces {
    fn add(&mut self, address: u64, before: Vec<u8>) {
        self.0.insert(address, Piece { now: before.clone(), before });
    }

    fn at(&mut self, address: u64) -> Option<&mut u8> {
        let (start, piece) = self.0.range_mut(..=address).next_back()?;
        piece.now.get_mut((address - start) as usize)
    }
}

/// This memory for an interpreter, with a function that fetches more.
struct Seen<'a> {
    pieces: Pieces,
    fetch: &'a dyn Fn(u64, &mut [u8]) -> bool,
}

impl Seen<'_> {
    /// Fetches the bytes that are not known yet. A kernel may read a whole word of which only the first bytes
    /// exist.
    fn know(&mut self, address: u64, bytes: usize) -> Result<(), String> {
        let end = address.checked_add(bytes as u64).ok_or("the end of all addresses is passed")?;
        let unknown: Vec<u64> = (address..end).filter(|at| self.pieces.at(*at).is_none()).collect();
        let mut whole = vec![0; unknown.len()];
        if unknown.len() == bytes && (self.fetch)(address, &mut whole) {
            self.pieces.add(address, whole);
            return Ok(());
        }
        for at in &unknown {
            let mut byte = [0];
            if (self.fetch)(*at, &mut byte) {
                self.pieces.add(*at, byte.into());
            }
        }
        self.pieces
            .at(address)
            .map(drop)
            .ok_or_else(|| format!("{bytes} bytes at {address:#x} are not there"))
    }
}

impl Memory for Seen<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        self.know(address, into.len())?;
        for (at, byte) in (address..).zip(into) {
            *byte = self.pieces.at(at).map_or(0, |known| *known);
        }
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        self.know(address, from.len())?;
        (address..).zip(from).try_for_each(|(at, byte)| {
            *self.pieces.at(at).ok_or_else(|| format!("a byte at {at:#x} is not there"))? = *byte;
            Ok(())
        })
    }
}

/// The images of one architecture, interpreted.
enum Interpreter {
    Ptx(Box<Images>),
    Amd(Box<Objects>),
}

impl Interpreter {
    fn of(architecture: &str) -> Interpreter {
        match Target::named(architecture) {
            Some(target) => Interpreter::Amd(Box::new(Objects::new(target))),
            None => Interpreter::Ptx(Box::default()),
        }
    }

    fn run(&self, launch: &Execution<'_>, memory: &mut Seen<'_>) -> Result<(), String> {
        match self {
            Interpreter::Ptx(images) => images.interpret(launch, memory).map(drop),
            Interpreter::Amd(objects) => objects.interpret(launch, memory).map(drop),
        }
    }
}

/// Describes the first word of memory that differs between interpreter and device.
fn first_difference(entry: &str, words: &[u64], interpreted: &Pieces, device: &Pieces) -> Option<String> {
    for ((start, ours), theirs) in interpreted.0.iter().zip(device.0.values()) {
        let Some(at) = ours.now.iter().zip(&theirs.now).position(|(a, b)| a != b) else { continue };
        let address = start + at as u64;
        let word = |bytes: &[u8]| {
            let from = at / 8 * 8;
            let bytes = &bytes[from..bytes.len().min(from + 8)];
            bytes.iter().rev().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
        };
        let (was, ours, theirs) = (word(&ours.before), word(&ours.now), word(&theirs.now));
        // The argument that points to this memory; memory referenced by a table belongs to no argument.
        let of = words
            .iter()
            .enumerate()
            .filter(|(_, word)| (*start..=address).contains(*word))
            .max_by_key(|(_, word)| **word);
        let behind = of.map_or(String::new(), |(i, word)| {
            let entry = bowstring_kernels::every_entry().find(|known| known.name() == entry);
            let name = entry.and_then(|entry| entry.arguments().get(i)).map_or("?", |argument| argument.name);
            format!(", byte {} from where {name} begins", address - word)
        });
        return Some(format!(
            "the word {ours} at {address:#x}{behind}, is {theirs} on the device; it was {was}"
        ));
    }
    None
}

/// The numbers of launches that were equal, different, or too large.
type Counts = [AtomicU64; 3];

/// Runs each launch in the interpreter before the device, and compares.
struct Interpreted {
    folder: PathBuf,
    counts: Counts,
    interpreters: Mutex<BTreeMap<&'static str, Arc<Interpreter>>>,
}

impl Witness for Interpreted {
    fn see(&self, launch: &Witnessed<'_>, run: &mut dyn FnMut()) {
        let Some(architecture) = launch.architecture else { return run() };
        let mut extents: Vec<(u64, u64)> =
            launch.extents.iter().map(|(start, bytes, _)| (*start, *bytes)).collect();
        extents.sort_unstable();
        if extents.iter().map(|(_, bytes)| bytes).sum::<u64>() > LIMIT {
            run();
            return self.count(2, launch);
        }
        let mut pieces = Pieces::default();
        let mut end = 0;
        for (start, bytes) in extents {
            let (start, past) = (start.max(end), start + bytes);
            let mut before = vec![0; past.saturating_sub(start) as usize];
            if !before.is_empty() && launch.read(start, &mut before) {
                pieces.add(start, before);
                end = past;
            }
        }
        let fetch = |address, into: &mut [u8]| launch.read(address, into);
        let mut seen = Seen { pieces, fetch: &fetch };
        let mut interpreters = self.interpreters.lock().unwrap_or_else(PoisonError::into_inner);
        let interpreter = interpreters
            .entry(architecture)
            .or_insert_with(|| Arc::new(Interpreter::of(architecture)))
            .clone();
        drop(interpreters);
        let (family, entry, words) = (launch.family, launch.entry, &launch.words);
        let execution = Execution { family, entry, words, waves: launch.waves };
        let refused = interpreter.run(&execution, &mut seen).err();
        run();
        let mut device = Pieces::default();
        for (address, piece) in &seen.pieces.0 {
            let mut now = piece.before.clone();
            launch.read(*address, &mut now);
            device.0.insert(*address, Piece { before: piece.before.clone(), now });
        }
        let refused = refused.map(|why| format!("the interpreter does not run it: {why}"));
        let verdict = refused.or_else(|| first_difference(entry, words, &seen.pieces, &device));
        if let Some(verdict) = &verdict {
            let about = format!(
                "device {}\nimages {architecture}\nfamily {family}\nentry {entry}\nwaves {}\n",
                launch.place, launch.waves
            );
            self.write(entry, &about, words, &device, verdict);
        }
        self.count(usize::from(verdict.is_some()), launch);
    }
}

impl Interpreted {
    fn count(&self, which: usize, launch: &Witnessed<'_>) {
        self.counts[which].fetch_add(1, Ordering::Relaxed);
        let [same, other, large] = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        let text = format!(
            "{same} launches as interpreted, {other} otherwise, {large} with more than {LIMIT} bytes not looked at; the last on {}\n",
            launch.place
        );
        let _ = fs::write(self.folder.join("launches.txt"), text);
    }

    /// Writes the first difference; later ones may only follow from it.
    fn write(&self, entry: &str, about: &str, words: &[u64], device: &Pieces, verdict: &str) {
        static WRITTEN: AtomicBool = AtomicBool::new(false);
        if WRITTEN.swap(true, Ordering::Relaxed) {
            return;
        }
        let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let words: Vec<String> = words.iter().map(|word| format!("{word:x}")).collect();
        let mut text = format!("{about}words {}\nverdict {verdict}\n", words.join(" "));
        for (address, Piece { before, now }) in &device.0 {
            let _ = writeln!(
                text,
                "memory {address:x} {} {}",
                hex(before),
                if before == now { "same".into() } else { hex(now) }
            );
        }
        let path = self.folder.join(format!("wrong-launch-{entry}.txt"));
        let written = fs::write(&path, text);
        eprintln!("{entry}: {verdict}; in {}: {written:?}", path.display());
    }
}

/// Runs the launch in a file again, and reports whether the interpreter agrees with the device.
pub fn replay(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = || text.lines().filter_map(|line| line.split_once(' '));
    let line =
        |name: &str| lines().find(|(key, _)| *key == name).map(|(_, rest)| rest).ok_or(format!("no {name}"));
    let number = |text: &str| u64::from_str_radix(text, 16).map_err(|error| format!("{text}: {error}"));
    let bytes = |text: &str| -> Result<Vec<u8>, String> {
        (0..text.len() / 2)
            .map(|i| number(text.get(2 * i..2 * i + 2).unwrap_or("?")).map(|byte| byte as u8))
            .collect()
    };
    let words = line("words")?.split(' ').map(number).collect::<Result<Vec<_>, _>>()?;
    let (mut seen, mut device) =
        (Seen { pieces: Pieces::default(), fetch: &|_, _| false }, Pieces::default());
    for (_, rest) in lines().filter(|(key, _)| *key == "memory") {
        let mut parts = rest.split(' ');
        let mut part = || parts.next().ok_or(format!("half a line: {rest}"));
        let (address, before) = (number(part()?)?, bytes(part()?)?);
        let now = match part()? {
            "same" => before.clone(),
            now => bytes(now)?,
        };
        seen.pieces.add(address, before.clone());
        device.0.insert(address, Piece { before, now });
    }
    let (family, entry, images) = (line("family")?, line("entry")?, line("images")?);
    let waves = line("waves")?.parse().map_err(|error| format!("waves: {error}"))?;
    let launch = Execution { family, entry, words: &words, waves };
    let what = format!("{entry} of {family} for {images}, {waves} waves, as {} ran it", line("device")?);
    Ok(match Interpreter::of(images).run(&launch, &mut seen) {
        Err(why) => format!("{what}: the interpreter does not run it: {why}"),
        Ok(()) => match first_difference(entry, &words, &seen.pieces, &device) {
            Some(difference) => format!("{what}: differs: {difference}"),
            None => format!("{what}: the same"),
        },
    })
}
