//! The images that a runtime was given, each once in the life of the process: loading one is what takes long, for CUDA
//! compiles it.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::Mutex;
use std::time::Instant;

use super::table::{Code, Word};
use super::{Native, Runtime, failure};
use crate::device::driver::LoadFailure;
use crate::device::loaded::LoadedImage;
use crate::device::lock;

/// There is no image for the device.
pub(super) const NO_IMAGE: Code = 209;
/// Options of loading: where the compiler writes what is wrong with an image, and how much it may write.
pub(super) const ERROR_LOG: i32 = 5;
pub(super) const ERROR_LOG_BYTES: i32 = 6;

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
}

impl<R: Runtime> Native<R> {
    /// The image that has an entry, loaded at its first use.
    ///
    /// # Safety
    ///
    /// The images that are built in must be whole.
    pub(super) unsafe fn module(
        &self,
        family: &'static str,
        entry: &'static str,
    ) -> Result<Word, LoadFailure> {
        let name = self.runtime.image_name(family, entry);
        // Held while it loads: who wants the same meanwhile would load it a second time.
        let mut modules = lock(&self.modules.0);
        if let Some(module) = modules.by_name.get(name) {
            return Ok(*module);
        }
        let start = Instant::now();
        let image = self.runtime.image(family, entry);
        let image = image.ok_or_else(|| failure(self.functions().load.name, NO_IMAGE))?;
        // SAFETY: the caller's promise.
        let module = unsafe { self.load(&image) }?;
        modules.by_name.insert(name, module);
        modules.in_order.push(LoadedImage { family, name, time: start.elapsed() });
        Ok(module)
    }

    /// Loads an image. It is the runtime that says what is wrong with one, and it does so in words.
    ///
    /// # Safety
    ///
    /// It must be whole: the library reads as far as the image itself says.
    pub(super) unsafe fn load(&self, image: &[u8]) -> Result<Word, LoadFailure> {
        let (mut module, mut log) = (0, vec![0u8; 4096]);
        let mut options = [ERROR_LOG, ERROR_LOG_BYTES];
        let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
        // SAFETY: the log has the bytes that the second option says; the rest is the caller's promise.
        let made = unsafe {
            self.make(&self.functions().load, |f| {
                f(&mut module, image.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
            })
        };
        made.map(|()| module).map_err(|failure| {
            let said = CStr::from_bytes_until_nul(&log).unwrap_or_default();
            LoadFailure { failure, log: said.to_string_lossy().trim().to_owned() }
        })
    }
}
