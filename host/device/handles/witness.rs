//! Witnesses, for diagnosis. A witness sees every launch on a device, after all earlier work of the stream
//! and before all later work, and can read the device's memory then. See `testing::set_witness`.

use super::OwnedStream;
use crate::Result;
use crate::array::Place;
use crate::device::driver::Launch;

/// A launch, as a [`Witness`] sees it.
pub struct Witnessed<'a> {
    /// The device on which the kernel runs.
    pub place: Place,
    /// The architecture whose images the device runs; `None` if it runs none.
    pub architecture: Option<&'static str>,
    /// The family, which names the kernel's image.
    pub family: &'static str,
    /// The entry in it.
    pub entry: &'static str,
    /// The arguments, eight bytes each.
    pub words: Vec<u64>,
    /// The number of waves, in blocks of 256 threads.
    pub waves: u64,
    /// The memory that the arguments describe: first address, bytes, and whether the kernel writes it. Memory
    /// that tables point to is not included.
    pub extents: Vec<(u64, u64, bool)>,
    stream: &'a OwnedStream,
}

/// Observes the launches on a device, each before and after it has run.
pub trait Witness: Send + Sync {
    /// Observes a launch whose inputs are ready. It must call `run` once, which launches, and blocks until
    /// the launch has passed.
    fn see(&self, launch: &Witnessed<'_>, run: &mut dyn FnMut());
}

impl Witnessed<'_> {
    /// Reads memory as it is now; `false` if the runtime does not know some of it.
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let (driver, raw, address) = (self.stream.driver(), self.stream.raw(), address as usize);
        // SAFETY: any address will do.
        let known = |at: usize| unsafe { driver.classify(at) }.is_ok_and(|place| place.is_some());
        let Some(last) = into.len().checked_sub(1) else { return true };
        if !known(address) || !known(address.saturating_add(last)) {
            return false;
        }
        // SAFETY: both ends are in memory that the runtime knows, and the launch's arguments are alive until
        // it has passed; the copy has passed before `into` is used again.
        let queued = unsafe { driver.copy_out(into.as_mut_ptr(), address, into.len(), raw) };
        queued.is_ok() && self.stream.synchronise().is_ok()
    }
}

/// Shows a launch on a stream to a witness; `run` queues it.
pub(crate) fn witnessed(
    witness: &dyn Witness,
    launch: &Launch<'_>,
    stream: &OwnedStream,
    run: &dyn Fn() -> Result<()>,
) -> Result<()> {
    let (driver, mut outcome) = (stream.driver(), Ok(()));
    let seen = Witnessed {
        place: driver.place(),
        architecture: driver.architecture(),
        family: launch.kernel.family(),
        entry: launch.kernel.name(),
        words: launch.args.words(),
        waves: launch.waves,
        extents: launch.args.extents(),
        stream,
    };
    stream.synchronise()?;
    witness.see(&seen, &mut || outcome = run().and_then(|()| stream.synchronise()));
    outcome
}
