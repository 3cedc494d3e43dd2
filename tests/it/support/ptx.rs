//! The shipped PTX images as what an emulated device runs: not the kernels' host build, the artefact itself, interpreted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bowstring::device::testing::{DeviceMemory, Execution, Executor};
use bowstring_ptxi::{Launch, Memory, Module};

/// Interprets the PTX of a family.
#[derive(Default)]
pub struct Images {
    modules: Mutex<HashMap<String, Arc<Module>>>,
    /// What the lanes' order is drawn from, and then unordered accesses are errors; `None` for the plain order.
    seed: Option<u64>,
    /// Whether images may have been spoilt: then they get only memory that is the device's own.
    spoilt: AtomicBool,
    /// What has run, by family and entry.
    ran: Mutex<BTreeMap<(String, String), Cost>>,
}

/// What a GPU's memory reads and writes at least.
pub const SECTOR: u64 = 32;

/// What launches did, all lanes together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub launches: u64,
    pub waves: u64,
    /// Instructions, each counted once for each lane.
    pub instructions: u64,
    /// Instructions, each counted once for the lanes of a wave that ran it together.
    pub issued: u64,
    /// Sectors of [`SECTOR`] bytes, each counted once for each instruction of a wave that read or wrote there.
    pub asked: u64,
    /// Sectors, each counted once for each launch that read there, and once for each that wrote.
    pub touched: u64,
    pub loads: u64,
    /// Loads that lanes of a wave ran together, of 1, 2, 4, 8 and 16 bytes a lane.
    pub loads_of: [u64; 5],
    pub bytes_loaded: u64,
    pub stores: u64,
    pub bytes_stored: u64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.launches += other.launches;
        self.waves += other.waves;
        self.instructions += other.instructions;
        self.issued += other.issued;
        self.asked += other.asked;
        self.touched += other.touched;
        self.loads += other.loads;
        (0..5).for_each(|i| self.loads_of[i] += other.loads_of[i]);
        self.bytes_loaded += other.bytes_loaded;
        self.stores += other.stores;
        self.bytes_stored += other.bytes_stored;
    }
}

impl std::fmt::Debug for Images {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the PTX images")
    }
}

/// The text of a family's image.
pub fn image(family: &str) -> &'static str {
    let text = bowstring_images::find(family, "sm_75").unwrap_or_else(|| panic!("{family} has no PTX"));
    std::str::from_utf8(text).expect("PTX is ASCII")
}

impl Images {
    /// Those whose lanes run in an order drawn from the seed.
    pub fn drawn(seed: u64) -> Images {
        Images { seed: Some(seed), ..Images::default() }
    }

    /// Takes this text for a family's image.
    pub fn replace(&self, family: &str, text: &str) -> Result<(), bowstring_ptxi::Error> {
        let module = Arc::new(Module::parse(text)?);
        self.spoilt.store(true, Ordering::Relaxed);
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).insert(family.to_owned(), module);
        Ok(())
    }

    /// What has run since this was last asked.
    pub fn ran(&self) -> BTreeMap<(String, String), Cost> {
        std::mem::take(&mut self.ran.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A family's image, parsed once.
    fn module(&self, family: &str) -> Arc<Module> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let parse = || Module::parse(image(family)).unwrap_or_else(|error| panic!("{family}: {error}"));
        modules.entry(family.to_owned()).or_insert_with(|| Arc::new(parse())).clone()
    }
}

struct Given<'a, 'b> {
    memory: &'a mut DeviceMemory<'b>,
    own: bool,
    cost: Cost,
    /// The sectors of the instruction that is being run.
    together: Vec<u64>,
    /// Which of the loads that instruction was counted as.
    load: Option<usize>,
    loaded: HashSet<u64>,
    stored: HashSet<u64>,
}

impl Given<'_, '_> {
    fn check(&self, address: u64, bytes: usize) -> Result<(), String> {
        match self.own && !self.memory.allocated(address, bytes) {
            true => Err(format!("{bytes} bytes at {address:#x} are not the device's")),
            false => Ok(()),
        }
    }

    fn count(&mut self, address: u64, bytes: usize, store: bool) {
        for sector in address / SECTOR..(address + bytes as u64).div_ceil(SECTOR) {
            if self.together.contains(&sector) {
                continue;
            }
            self.together.push(sector);
            self.cost.asked += 1;
            let all = if store { &mut self.stored } else { &mut self.loaded };
            self.cost.touched += u64::from(all.insert(sector));
        }
    }
}

impl Memory for Given<'_, '_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        self.check(address, into.len())?;
        self.cost += Cost { loads: 1, bytes_loaded: into.len() as u64, ..Cost::default() };
        if self.together.is_empty() {
            let of_width = into.len().trailing_zeros() as usize;
            self.cost.loads_of[of_width] += 1;
            self.load = Some(of_width);
        }
        self.count(address, into.len(), false);
        self.memory.read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        self.check(address, from.len())?;
        self.cost += Cost { stores: 1, bytes_stored: from.len() as u64, ..Cost::default() };
        // An atomic update, whose old value nobody waits for.
        if let Some(of_width) = self.load.take() {
            self.cost.loads_of[of_width] -= 1;
        }
        self.count(address, from.len(), true);
        self.memory.write(address, from)
    }

    fn next(&mut self) {
        self.together.clear();
        self.load = None;
    }
}

impl Executor for Images {
    fn run(&self, launch: &Execution<'_>, memory: &mut DeviceMemory<'_>) -> Result<(), String> {
        let params: Vec<u8> = launch.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let what = (launch.family.to_owned(), launch.entry.to_owned());
        let waves = launch.waves;
        let launch = Launch {
            module: &self.module(launch.family),
            entry: launch.entry,
            params: &params,
            blocks: launch.waves.div_ceil(8) as u32,
            block_size: 256,
            seed: self.seed,
            races: self.seed.is_some(),
        };
        let mut given = Given {
            memory,
            own: self.spoilt.load(Ordering::Relaxed),
            cost: Cost::default(),
            together: vec![],
            loaded: HashSet::new(),
            stored: HashSet::new(),
            load: None,
        };
        let ran = launch.run(&mut given).map_err(|error| error.to_string())?;
        let (instructions, issued) = (ran.lanes, ran.warps);
        given.cost += Cost { launches: 1, waves, instructions, issued, ..Cost::default() };
        *self.ran.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += given.cost;
        Ok(())
    }
}
