//! The devices that cases run on: the CPU and an emulated GPU of each width, made once a thread. It also
//! records what a case reached, which tells the driver whether an input is new.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use bowstring::device::testing::{Alive, EmulatedDevice, EmulatorOptions, drain};
use bowstring::{Device, Error, Stream};

/// The most bytes that a case may have in each memory: enough for honest input, so that dishonest input shows
/// as an error.
const MEMORY: usize = 256 << 20;

/// How long a device may take to release memory that is no longer used.
const PATIENCE: Duration = Duration::from_secs(30);

/// The allocations that a stream keeps for itself: a block for discarded outputs.
const KEPT: usize = 1;

/// The devices, and a stream of each.
pub struct World {
    emulated: Vec<EmulatedDevice>,
    pub streams: Vec<Stream>,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
    static REACHED: RefCell<HashSet<u64>> = RefCell::default();
}

impl World {
    fn new() -> World {
        Device::cpu().set_memory_limit(MEMORY);
        let emulated = [32, 64].map(|width| {
            let options = EmulatorOptions { width, keep: Some(0), memory: MEMORY, ..Default::default() };
            EmulatedDevice::new(options).expect("an emulator needs only threads")
        });
        let stream = |emulated: &EmulatedDevice| emulated.device().stream().expect("an emulator has streams");
        let streams = [Stream::cpu()].into_iter().chain(emulated.iter().map(stream)).collect();
        World { emulated: emulated.into(), streams }
    }

    /// Runs a case, and fails if it misused a device or left something on it.
    pub fn with<T>(case: impl FnOnce(&World) -> T) -> T {
        // A case that panics leaves no world: the next case makes new devices.
        let world = WORLD.with(|world| world.borrow_mut().take()).unwrap_or_else(World::new);
        let result = case(&world);
        for (emulated, stream) in world.emulated.iter().zip(&world.streams[1..]) {
            stream.synchronise().expect("a device that works");
            // A stream's thread may still hold its last piece of work.
            let begun = Instant::now();
            let left = loop {
                drain(emulated.device());
                let Alive { allocations, .. } = emulated.alive();
                if allocations <= KEPT || begun.elapsed() > PATIENCE {
                    break allocations;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            assert!(left <= KEPT, "{left} allocations left of a device's memory");
            let faults = emulated.faults();
            assert!(faults.is_empty(), "faults of a device: {faults:?}");
        }
        WORLD.with(|slot| *slot.borrow_mut() = Some(world));
        result
    }
}

/// Records that a case got here.
pub fn reached(what: impl Hash) {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    REACHED.with(|reached| reached.borrow_mut().insert(hasher.finish()));
}

/// Takes everything that was reached since the last call.
pub fn all_reached() -> HashSet<u64> {
    REACHED.with(|reached| std::mem::take(&mut *reached.borrow_mut()))
}

/// An error's message without its numbers.
pub fn outline(error: &Error) -> String {
    let words = error.to_string();
    words.chars().filter(|c| c.is_ascii_lowercase() || *c == ' ').take(60).collect()
}

/// Records the outcome of a call, and returns the value if it has one.
pub fn outcome<T>(what: impl Hash, result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(result) => {
            reached((what, "right"));
            Some(result)
        }
        Err(error) => {
            reached((what, outline(&error)));
            None
        }
    }
}
