//! Runs the shipped PTX images on an emulated device: the artefact itself, interpreted, not the kernels' host
//! build.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bowstring::device::testing::{DeviceMemory, Execution, Executor};
use bowstring_ptxi::{Launch, Module, Ran};
use bowstring_watch::Memory;

use super::counted::{Cost, Counted};

/// Interprets the PTX of a family.
#[derive(Default)]
pub struct Images {
    modules: Mutex<HashMap<String, Arc<Module>>>,
    /// The seed of the order of lanes, which also makes unordered accesses errors; `None` for the plain
    /// order.
    seed: Option<u64>,
    /// Whether images may be faulty: then they may access only the device's own memory.
    spoilt: AtomicBool,
    /// The costs of all launches so far, by family and entry.
    ran: Mutex<BTreeMap<(String, String), Cost>>,
    /// How often waves ran each line of an entry, in all launches so far, by family and entry.
    lines: Mutex<BTreeMap<(String, String), Lines>>,
}

/// How often waves ran the instruction of each line of an image.
pub type Lines = BTreeMap<u32, u64>;

impl std::fmt::Debug for Images {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the PTX images")
    }
}

/// The text of a family's image.
pub fn image(family: &str) -> &'static str {
    let text = bowstring::images::find(family, "sm_75").unwrap_or_else(|| panic!("{family} has no PTX"));
    std::str::from_utf8(text).expect("PTX is ASCII")
}

impl Images {
    /// The images, with their lanes in a random order from this seed.
    pub fn drawn(seed: u64) -> Images {
        Images { seed: Some(seed), ..Images::default() }
    }

    /// Replaces a family's image by this text.
    pub fn replace(&self, family: &str, text: &str) -> Result<(), bowstring_ptxi::Error> {
        let module = Arc::new(Module::parse(text)?);
        self.spoilt.store(true, Ordering::Relaxed);
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).insert(family.to_owned(), module);
        Ok(())
    }

    /// Takes the costs of all launches since the last call.
    pub fn ran(&self) -> BTreeMap<(String, String), Cost> {
        std::mem::take(&mut self.ran.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the counts by line of all launches since the last call.
    pub fn lines(&self) -> BTreeMap<(String, String), Lines> {
        std::mem::take(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a launch on any memory.
    pub fn interpret(&self, launch: &Execution<'_>, memory: &mut impl Memory) -> Result<Ran, String> {
        let params: Vec<u8> = launch.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let what = (launch.family.to_owned(), launch.entry.to_owned());
        let launch = Launch {
            module: &self.module(launch.family),
            entry: launch.entry,
            params: &params,
            blocks: launch.waves.div_ceil(8) as u32,
            block_size: 256,
            seed: self.seed,
            races: self.seed.is_some(),
        };
        let mut lines = Lines::new();
        let ran = launch.run_by_line(memory, &mut lines).map_err(|error| error.to_string())?;
        let mut all = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.entry(what).or_default();
        lines.into_iter().for_each(|(line, times)| *all.entry(line).or_default() += times);
        Ok(ran)
    }

    /// A family's image, parsed once.
    fn module(&self, family: &str) -> Arc<Module> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let parse = || Module::parse(image(family)).unwrap_or_else(|error| panic!("{family}: {error}"));
        modules.entry(family.to_owned()).or_insert_with(|| Arc::new(parse())).clone()
    }
}

impl Executor for Images {
    fn run(&self, launch: &Execution<'_>, memory: &mut DeviceMemory<'_>) -> Result<(), String> {
        let (what, waves) = ((launch.family.to_owned(), launch.entry.to_owned()), launch.waves);
        let mut given = Counted::new(memory, self.spoilt.load(Ordering::Relaxed));
        let ran = self.interpret(launch, &mut given)?;
        let (instructions, issued) = (ran.lanes, ran.warps);
        given.cost += Cost { launches: 1, waves, instructions, issued, ..Cost::default() };
        *self.ran.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += given.cost;
        Ok(())
    }
}
