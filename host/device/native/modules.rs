//! The images that a runtime has loaded, each once in the life of the process, because loading is slow: CUDA
//! compiles.

use std::collections::HashMap;
use std::time::Instant;

use super::table::Word;
use crate::device::driver::LoadFailure;
use crate::device::loaded::LoadedImage;
use crate::device::lock;
use crate::device::sync::Mutex;

/// The loaded images, by name and in order.
#[derive(Default)]
pub(super) struct Modules(Mutex<Loaded>);

#[derive(Default)]
struct Loaded {
    by_name: HashMap<&'static str, Word>,
    in_order: Vec<LoadedImage>,
}

impl Modules {
    /// The images loaded so far, in order.
    pub fn loaded(&self) -> Vec<LoadedImage> {
        lock(&self.0).in_order.clone()
    }

    /// The image of this name; `load` loads it at its first use.
    pub fn get(
        &self,
        family: &'static str,
        name: &'static str,
        load: impl FnOnce() -> Result<Word, LoadFailure>,
    ) -> Result<Word, LoadFailure> {
        // Held during the load, so that another thread does not load the same image a second time.
        let mut modules = lock(&self.0);
        if let Some(module) = modules.by_name.get(name) {
            return Ok(*module);
        }
        let start = Instant::now();
        let module = load()?;
        modules.by_name.insert(name, module);
        modules.in_order.push(LoadedImage { family, name, time: start.elapsed() });
        Ok(module)
    }
}
