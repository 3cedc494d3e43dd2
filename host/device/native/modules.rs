//! The images that a runtime was given, each once in the life of the process: loading one is what takes long, for CUDA
//! compiles it.

use std::collections::HashMap;
use std::time::Instant;

use super::table::Word;
use crate::device::driver::LoadFailure;
use crate::device::loaded::LoadedImage;
use crate::device::lock;
use crate::device::sync::Mutex;

/// Loaded images by name, and how long each took.
#[derive(Default)]
pub(super) struct Modules(Mutex<Loaded>);

#[derive(Default)]
struct Loaded {
    by_name: HashMap<&'static str, Word>,
    in_order: Vec<LoadedImage>,
}

impl Modules {
    /// All of them, the first first.
    pub fn loaded(&self) -> Vec<LoadedImage> {
        lock(&self.0).in_order.clone()
    }

    /// The image of a name, which `load` loads where it is not there yet.
    pub fn get(
        &self,
        family: &'static str,
        name: &'static str,
        load: impl FnOnce() -> Result<Word, LoadFailure>,
    ) -> Result<Word, LoadFailure> {
        // Held while it loads: a thread that wants the same meanwhile would load it a second time.
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
