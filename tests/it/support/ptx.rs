//! The shipped PTX images as what an emulated device runs: not the kernels' host build, the artefact itself, interpreted.

use std::collections::HashMap;
use std::sync::Mutex;

use bowstring::device::testing::{DeviceMemory, Execution, Executor};
use bowstring_ptxi::{Launch, Memory, Module};

/// Interprets `ptx/FAMILY.sm_75.ptx`.
#[derive(Default)]
pub struct Images {
    modules: Mutex<HashMap<String, &'static Module>>,
    /// What the lanes' order is drawn from; `None` for the plain one.
    pub seed: Option<u64>,
    /// Whether unordered accesses are errors.
    pub races: bool,
}

impl std::fmt::Debug for Images {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the PTX images")
    }
}

/// The text of a family's image: the checked-in one, or that in the folder `BOWSTRING_PTX_DIR`.
pub fn image(family: &str) -> String {
    let folder = std::env::var("BOWSTRING_PTX_DIR");
    let folder = folder.unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/ptx").into());
    let path = format!("{folder}/{family}.sm_75.ptx");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

impl Images {
    /// A family's image, parsed once in a process.
    fn module(&self, family: &str) -> &'static Module {
        let mut modules = self.modules.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        modules.entry(family.to_owned()).or_insert_with(|| {
            let module = Module::parse(&image(family)).unwrap_or_else(|error| panic!("{family}: {error}"));
            Box::leak(Box::new(module))
        })
    }
}

struct Given<'a, 'b>(&'a mut DeviceMemory<'b>);

impl Memory for Given<'_, '_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        self.0.read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        self.0.write(address, from)
    }
}

impl Executor for Images {
    fn run(&self, launch: &Execution<'_>, memory: &mut DeviceMemory<'_>) -> Result<(), String> {
        let params: Vec<u8> = launch.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let launch = Launch {
            module: self.module(launch.family),
            entry: launch.entry,
            params: &params,
            blocks: launch.waves.div_ceil(8) as u32,
            block_size: 256,
            seed: self.seed,
            races: self.races,
        };
        launch.run(&mut Given(memory)).map(drop).map_err(|error| error.to_string())
    }
}
