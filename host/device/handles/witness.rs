//! For diagnosis: a witness is shown every launch on a device, between what was put on the stream before it and what
//! comes after, with a way to read the device's memory then. See `testing::set_witness`.

use super::OwnedStream;
use crate::Result;
use crate::array::Place;
use crate::device::driver::Launch;

/// A launch, as a [`Witness`] is shown it.
pub struct Witnessed<'a> {
    /// The device.
    pub place: Place,
    /// Whose images the device runs; `None` where it runs none.
    pub architecture: Option<&'static str>,
    /// The image.
    pub family: &'static str,
    /// The entry in it.
    pub entry: &'static str,
    /// The arguments, eight bytes each.
    pub words: Vec<u64>,
    /// How many waves, in blocks of 256 threads.
    pub waves: u64,
    /// The memory that the arguments give: first address, bytes, and whether it is written. What tables in
    /// that memory point to is not among it.
    pub extents: Vec<(u64, u64, bool)>,
    stream: &'a OwnedStream,
}

/// Sees launches.
pub trait Witness: Send + Sync {
    /// Shown a launch whose inputs are ready. It must call `run`, once: that launches, and blocks until the
    /// launch has passed.
    fn see(&self, launch: &Witnessed<'_>, run: &mut dyn FnMut());
}

impl Witnessed<'_> {
    /// Reads memory as it is now; false where some of it is not known to the runtime.
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let (driver, raw, address) = (&self.stream.driver, self.stream.raw, address as usize);
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

/// Has a witness see a launch on a stream, which `run` puts there.
pub(crate) fn witnessed(
    witness: &dyn Witness,
    launch: &Launch<'_>,
    stream: &OwnedStream,
    run: &dyn Fn() -> Result<()>,
) -> Result<()> {
    let (driver, mut outcome) = (&stream.driver, Ok(()));
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
