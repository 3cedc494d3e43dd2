//! The emulated device's memory, with checks of each access by an executor of kernels.

use bowstring_sim::at;

/// All allocations of one emulated device.
pub(super) type Memory = bowstring_sim::Memory<()>;

/// The emulated device's memory as an executor of kernels sees it, for one launch.
pub struct DeviceMemory<'a> {
    memory: &'a Memory,
    extents: &'a [(u64, u64, bool)],
}

/// Kernels read bitmaps by whole aligned words of up to this many bytes, parts of which may be outside the
/// bitmap.
const WORD: u64 = 16;

impl<'a> DeviceMemory<'a> {
    pub(super) fn new(memory: &'a Memory, extents: &'a [(u64, u64, bool)]) -> DeviceMemory<'a> {
        DeviceMemory { memory, extents }
    }

    /// Reads at an address that the kernel computed.
    pub fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        self.check(address, into.len(), false)?;
        // SAFETY: inside an allocation, or inside (or in the last word of) an extent of the launch.
        unsafe { at(address as usize).cast_const().copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Writes at an address that the kernel computed.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        self.check(address, from.len(), true)?;
        // SAFETY: as in `read`, and an output of the launch.
        unsafe { at(address as usize).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    /// Whether the bytes are in an allocation of the device, or in the last word of one. Imported memory is
    /// in none.
    pub fn allocated(&self, address: u64, bytes: usize) -> bool {
        let address = address as usize;
        let extent = self.memory.extent(address);
        let end = (address + extent).next_multiple_of(WORD as usize);
        extent > 0 && address.saturating_add(bytes) <= end
    }

    fn check(&self, address: u64, bytes: usize, write: bool) -> Result<(), String> {
        let end = address.wrapping_add(bytes as u64);
        let given = self.extents.iter().any(|(start, len, written)| {
            let (start, past) = (start / WORD * WORD, (start + len).next_multiple_of(WORD));
            (!write || *written) && address >= start && end <= past && end > address
        });
        // Memory that tables describe is not among the arguments; for it, the allocations decide. No
        // allocation is in the first page.
        match given
            || end > address && address >= 4096 && self.memory.may_touch(address as usize, bytes).is_ok()
        {
            true => Ok(()),
            false => Err(format!("{} {bytes} bytes at {address:#x}", if write { "writes" } else { "reads" })),
        }
    }
}
