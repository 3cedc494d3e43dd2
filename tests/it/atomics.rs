//! Atomics that return, in the images themselves: what every order of waves and lanes leaves.

use bowstring_amdi::{CodeObject, Launch as AmdLaunch, Program, Target};
use bowstring_kernels::target::{Args, BLOCK, Entry};
use bowstring_ptxi::{Launch, Module};
use bowstring_watch::Memory;

use crate::support::{amd, ptx};
use orders::Machine;

#[path = "../../kernels/tests/fixed_width/orders.rs"]
mod orders;

/// The seeds of the orders that each architecture runs in.
const SEEDS: std::ops::Range<u64> = 0..6;

/// The memory of a launch's arguments, and nothing else: addresses are the host's.
struct Arguments(Vec<(u64, u64, bool)>);

impl Arguments {
    fn place(&self, address: u64, bytes: usize, written: bool) -> Result<*mut u8, String> {
        let inside = |(start, len, out): &(u64, u64, bool)| {
            *start <= address && address + bytes as u64 <= start + len && (*out || !written)
        };
        match self.0.iter().any(inside) {
            true => Ok(std::ptr::with_exposed_provenance_mut(address as usize)),
            false => Err(format!("{bytes} bytes at {address:#x} are outside")),
        }
    }
}

impl Memory for Arguments {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        let from = self.place(address, into.len(), false)?;
        // SAFETY: inside an argument, whose memory the test keeps.
        unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        let to = self.place(address, from.len(), true)?;
        // SAFETY: as in `read`; the argument is an output.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }
}

fn packed<A: Args>(args: &A) -> (Vec<u64>, Arguments) {
    let (mut words, mut extents) = (vec![0; A::ARGUMENTS.len()], vec![]);
    args.pack(&mut words);
    args.extents(&mut |start, bytes, written| extents.push((start, bytes, written)));
    (words, Arguments(extents))
}

fn blocks<A: Args>(entry: &Entry<A>, args: &A, width: u32) -> u32 {
    (entry.waves)(args, width).div_ceil(u64::from(BLOCK / width)) as u32
}

struct Ptx<'a>(&'a Module, u64);

impl Machine for Ptx<'_> {
    fn width(&self) -> u32 {
        32
    }

    fn run<A: Args>(&self, entry: &'static Entry<A>, args: A) {
        let (words, mut memory) = packed(&args);
        let params: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let launch = Launch {
            module: self.0,
            entry: entry.name,
            params: &params,
            blocks: blocks(entry, &args, 32),
            block_size: BLOCK,
            seed: Some(self.1),
            races: true,
        };
        launch.run(&mut memory).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
    }
}

#[test]
fn in_ptx() {
    let module = Module::parse(ptx::image("selftest")).unwrap();
    orders::in_orders(SEEDS, |seed| Ptx(&module, seed));
}

struct Amd<'a>(Target, &'a CodeObject, u64);

impl Machine for Amd<'_> {
    fn width(&self) -> u32 {
        self.0.lanes
    }

    fn run<A: Args>(&self, entry: &'static Entry<A>, args: A) {
        let (words, mut memory) = packed(&args);
        let kernel = &self.1.kernels[entry.name];
        let launch = AmdLaunch {
            program: &Program::decode(kernel, self.0)
                .unwrap_or_else(|error| panic!("{}: {error}", entry.name)),
            arguments: &kernel.laid_out(&words).unwrap(),
            blocks: blocks(entry, &args, self.0.lanes),
            block_size: BLOCK,
            seed: self.2,
            any_order: true,
            races: true,
        };
        launch.run(&mut memory).unwrap_or_else(|error| panic!("{} for {}: {error}", entry.name, self.0.name));
    }
}

#[test]
fn in_amd_code_objects() {
    for target in amd::targets() {
        let object = amd::object(target, "selftest");
        orders::in_orders(SEEDS, |seed| Amd(target, &object, seed));
    }
}
