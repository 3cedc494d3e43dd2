//! Counts the memory accesses of interpreted launches.

use std::collections::HashSet;

use bowstring::device::testing::DeviceMemory;
use bowstring_watch::Memory;

/// The smallest unit of a GPU's memory accesses, in bytes.
pub const SECTOR: u64 = 32;

/// The costs of launches, all lanes together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub launches: u64,
    pub waves: u64,
    /// Instructions, each counted once for each lane.
    pub instructions: u64,
    /// Instructions, each counted once for the lanes of a wave that ran it together.
    pub issued: u64,
    /// Issued instructions that a wave runs once for all its lanes.
    pub scalar: u64,
    /// Sectors of [`SECTOR`] bytes, each counted once for each instruction of a wave that accessed it.
    pub asked: u64,
    /// Sectors, each counted once for each launch that read it, and once for each that wrote it.
    pub touched: u64,
    pub loads: u64,
    /// Loads that lanes of a wave ran together, by their width: 1, 2, 4, 8 and 16 bytes for each lane.
    pub loads_of: [u64; 5],
    /// Loads beside those: of one sector that the launch had loaded before, as of tables and code.
    pub loads_again: u64,
    pub bytes_loaded: u64,
    pub stores: u64,
    pub bytes_stored: u64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.launches += other.launches;
        self.waves += other.waves;
        self.instructions += other.instructions;
        self.issued += other.issued;
        self.scalar += other.scalar;
        self.asked += other.asked;
        self.touched += other.touched;
        self.loads += other.loads;
        (0..5).for_each(|i| self.loads_of[i] += other.loads_of[i]);
        self.loads_again += other.loads_again;
        self.bytes_loaded += other.bytes_loaded;
        self.stores += other.stores;
        self.bytes_stored += other.bytes_stored;
    }
}

/// A device's memory for an interpreter, which counts reads and writes.
pub struct Counted<'a, 'b> {
    memory: &'a mut DeviceMemory<'b>,
    /// Whether kernels may access only the device's own memory.
    own: bool,
    pub cost: Cost,
    /// The sectors that the current instruction has accessed.
    together: Vec<u64>,
    /// The index in `loads_of` that the current instruction was counted under.
    load: Option<usize>,
    /// Whether the current instruction has accessed a sector that none did before.
    first: bool,
    loaded: HashSet<u64>,
    stored: HashSet<u64>,
}

impl<'a, 'b> Counted<'a, 'b> {
    pub fn new(memory: &'a mut DeviceMemory<'b>, own: bool) -> Counted<'a, 'b> {
        let (loaded, stored) = (HashSet::new(), HashSet::new());
        Counted {
            memory,
            own,
            cost: Cost::default(),
            together: vec![],
            load: None,
            first: false,
            loaded,
            stored,
        }
    }
}

impl Counted<'_, '_> {
    fn check(&self, address: u64, bytes: usize) -> Result<(), String> {
        match self.own && !self.memory.allocated(address, bytes) {
            true => Err(format!("{bytes} bytes at {address:#x} are not the device's")),
            false => Ok(()),
        }
    }

    fn count(&mut self, address: u64, bytes: usize, store: bool) {
        for sector in address / SECTOR..(address + bytes as u64).div_ceil(SECTOR) {
            if self.together.contains(&sector) {
                continue;
            }
            self.together.push(sector);
            self.cost.asked += 1;
            let all = if store { &mut self.stored } else { &mut self.loaded };
            let first = all.insert(sector);
            self.first |= first;
            self.cost.touched += u64::from(first);
        }
    }
}

impl Memory for Counted<'_, '_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        self.check(address, into.len())?;
        self.cost += Cost { loads: 1, bytes_loaded: into.len() as u64, ..Cost::default() };
        if self.together.is_empty() {
            let of_width = into.len().trailing_zeros() as usize;
            self.cost.loads_of[of_width] += 1;
            self.load = Some(of_width);
        }
        self.count(address, into.len(), false);
        self.memory.read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        self.check(address, from.len())?;
        self.cost += Cost { stores: 1, bytes_stored: from.len() as u64, ..Cost::default() };
        // An atomic update whose old value is not used.
        if let Some(of_width) = self.load.take() {
            self.cost.loads_of[of_width] -= 1;
        }
        self.count(address, from.len(), true);
        self.memory.write(address, from)
    }

    fn next(&mut self) {
        if let (Some(of_width), [_], false) = (self.load.take(), &self.together[..], self.first) {
            self.cost.loads_of[of_width] -= 1;
            self.cost.loads_again += 1;
        }
        self.together.clear();
        self.first = false;
    }
}
