//! The images that a runtime has loaded, each once in the life of the process, because loading is slow: CUDA
//! compiles.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::table::Word;
use crate::device::driver::LoadFailure;
use crate::device::loaded::LoadedImage;
use crate::device::lock;
use crate::device::sync::Mutex;

/// The loaded images, by name and in order.
#[derive(Default)]
pub(super) struct Modules {
    by_name: Mutex<HashMap<&'static str, Arc<Mutex<Option<Word>>>>>,
    in_order: Mutex<Vec<LoadedImage>>,
}

impl Modules {
    /// The images loaded so far, in order.
    pub fn loaded(&self) -> Vec<LoadedImage> {
        lock(&self.in_order).clone()
    }

    /// The image of this name; `load` loads it at its first use. Threads load several images at a time.
    pub fn get(
        &self,
        family: &'static str,
        name: &'static str,
        load: impl FnOnce() -> Result<Word, LoadFailure>,
    ) -> Result<Word, LoadFailure> {
        let image = lock(&self.by_name).entry(name).or_default().clone();
        // Held during the load, so that another thread does not load the same image a second time.
        let mut image = lock(&image);
        if let Some(module) = *image {
            return Ok(module);
        }
        let start = Instant::now();
        let module = load()?;
        *image = Some(module);
        lock(&self.in_order).push(LoadedImage { family, name, time: start.elapsed() });
        Ok(module)
    }
}
