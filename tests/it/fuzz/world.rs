//! Where a case runs: the CPU and an emulated GPU of each width, made once a thread; and what a case reached, which tells the
//! driver whether an input is like any before it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use bowstring::device::testing::{Alive, EmulatedDevice, EmulatorOptions, drain};
use bowstring::{Device, Error, Stream};

/// What a case may have, of each memory: enough for all that is honest, so that what is not shows as an error.
const MEMORY: usize = 256 << 20;

/// How long a device may take to let go of what nobody has any more.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a stream keeps for itself: a block for outputs that nobody wants.
const KEPT: usize = 1;

/// The devices.
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

    /// Runs a case, and fails where a device was misused or something was left on it.
    pub fn with<T>(case: impl FnOnce(&World) -> T) -> T {
        // A case that fails leaves none behind: the next has devices of its own.
        let world = WORLD.with(|world| world.borrow_mut().take()).unwrap_or_else(World::new);
        let result = case(&world);
        for (emulated, stream) in world.emulated.iter().zip(&world.streams[1..]) {
            stream.synchronise().expect("a device that works");
            // A stream's thread may have a last piece of work in its hands.
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

/// Takes down that a case got here.
pub fn reached(what: impl Hash) {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    REACHED.with(|reached| reached.borrow_mut().insert(hasher.finish()));
}

/// All that was reached since the last call.
pub fn all_reached() -> HashSet<u64> {
    REACHED.with(|reached| std::mem::take(&mut *reached.borrow_mut()))
}

/// What an error says, without the numbers in it.
pub fn outline(error: &Error) -> String {
    let words = error.to_string();
    words.chars().filter(|c| c.is_ascii_lowercase() || *c == ' ').take(60).collect()
}

/// Takes down what came of something, and gives on what there is.
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
