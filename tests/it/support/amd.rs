//! Runs the shipped AMD code objects on an emulated device: the artefacts themselves, interpreted.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bowstring::device::testing::{DeviceMemory, EmulatedDevice, EmulatorOptions, Execution, Executor};
use bowstring_amdi::{CodeObject, Launch, Program, Ran, Target};
use bowstring_watch::Memory;

use super::counted::{Cost, Counted};

/// A decoded kernel, with the object that describes its argument block.
struct Loaded {
    object: Arc<CodeObject>,
    program: Program,
}

/// Interprets the images of an architecture.
pub struct Objects {
    pub target: Target,
    objects: Mutex<HashMap<String, Arc<CodeObject>>>,
    loaded: Mutex<HashMap<(String, String), Arc<Loaded>>>,
    /// Whether a kernel was changed: then kernels may access only the device's own memory.
    spoilt: bool,
    /// The costs of all launches so far, by family and entry.
    ran: Mutex<BTreeMap<(String, String), Cost>>,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the code objects for {}", self.target.name)
    }
}

/// The architectures of this run: all, or the one in `BOWSTRING_AMD_ARCH`.
pub fn targets() -> Vec<Target> {
    let only = std::env::var("BOWSTRING_AMD_ARCH").ok();
    let chosen = |target: &Target| only.as_ref().is_none_or(|only| only == target.name);
    let targets: Vec<Target> = Target::ALL.into_iter().filter(chosen).collect();
    assert!(!targets.is_empty(), "BOWSTRING_AMD_ARCH={only:?} is none of {:?}", Target::ALL.map(|t| t.name));
    targets
}

/// Reads a family's code object.
pub fn object(target: Target, family: &str) -> CodeObject {
    let image = bowstring::images::find(family, target.name);
    let image = image.unwrap_or_else(|| panic!("{family} has no image for {}", target.name));
    CodeObject::read(image).unwrap_or_else(|| panic!("{family} for {} is no code object", target.name))
}

impl Objects {
    pub fn new(target: Target) -> Objects {
        Objects {
            target,
            objects: Mutex::default(),
            loaded: Mutex::default(),
            spoilt: false,
            ran: Mutex::default(),
        }
    }

    /// The objects with one family replaced; an error if the entry cannot be decoded.
    pub fn spoilt(
        target: Target,
        family: &str,
        entry: &str,
        object: CodeObject,
    ) -> Result<Objects, bowstring_amdi::Error> {
        let objects = Objects { spoilt: true, ..Objects::new(target) };
        let program = Program::decode(&object.kernels[entry], target)?;
        let object = Arc::new(object);
        let loaded = Arc::new(Loaded { object: object.clone(), program });
        let key = (family.to_owned(), entry.to_owned());
        objects.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(key, loaded);
        objects.objects.lock().unwrap_or_else(PoisonError::into_inner).insert(family.to_owned(), object);
        Ok(objects)
    }

    /// An emulated device that runs these objects.
    pub fn device(self: Arc<Self>) -> EmulatedDevice {
        let width = self.target.lanes;
        EmulatedDevice::new(EmulatorOptions { width, executor: Some(self), ..Default::default() }).unwrap()
    }

    /// Takes the costs of all launches since the last call.
    pub fn ran(&self) -> BTreeMap<(String, String), Cost> {
        std::mem::take(&mut self.ran.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a launch on any memory.
    pub fn interpret(&self, launch: &Execution<'_>, memory: &mut impl Memory) -> Result<Ran, String> {
        let loaded = self.loaded(launch.family, launch.entry);
        let in_block = 256 / u64::from(self.target.lanes);
        let launch = Launch {
            program: &loaded.program,
            arguments: &loaded.object.kernels[launch.entry].laid_out(launch.words)?,
            blocks: launch.waves.div_ceil(in_block) as u32,
            block_size: 256,
            seed: 1,
            any_order: false,
            races: false,
        };
        launch.run(memory).map_err(|error| error.to_string())
    }

    /// A kernel, decoded once.
    fn loaded(&self, family: &str, entry: &str) -> Arc<Loaded> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let decode = || {
            let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
            let read = || Arc::new(object(self.target, family));
            let object = objects.entry(family.to_owned()).or_insert_with(read).clone();
            let program = Program::decode(&object.kernels[entry], self.target);
            let program = program.unwrap_or_else(|error| panic!("{family} {entry}: {error}"));
            Arc::new(Loaded { object, program })
        };
        loaded.entry((family.to_owned(), entry.to_owned())).or_insert_with(decode).clone()
    }
}

impl Executor for Objects {
    fn run(&self, launch: &Execution<'_>, memory: &mut DeviceMemory<'_>) -> Result<(), String> {
        let (what, waves) = ((launch.family.to_owned(), launch.entry.to_owned()), launch.waves);
        let mut given = Counted::new(memory, self.spoilt);
        let ran = self.interpret(launch, &mut given)?;
        let (instructions, issued, scalar) = (ran.lanes, ran.waves, ran.scalar);
        given.cost += Cost { launches: 1, waves, instructions, issued, scalar, ..Cost::default() };
        *self.ran.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += given.cost;
        Ok(())
    }
}
