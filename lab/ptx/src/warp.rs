//! Runs a launch: one warp after another, in a random order if asked, each with 32 lanes that have their own
//! program counters.

mod collective;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bowstring_watch::{Drawn, Touch, Touched};

use crate::Memory;
use crate::alu::{low, signed};
use crate::module::{CONSTANTS, Entry, Error, Instruction, Module, Op, Operand, Place, Special};

const LANES: usize = 32;
/// The most instructions that one warp may run: far more than a kernel's tile needs.
const MOST_STEPS: u64 = 50_000_000;

/// A launch of one kernel.
pub struct Launch<'a> {
    /// The image that contains the kernel.
    pub module: &'a Module,
    /// The name of the kernel.
    pub entry: &'a str,
    /// The parameters as bytes, in PTX's layout.
    pub params: &'a [u8],
    /// The number of blocks.
    pub blocks: u32,
    /// The number of threads in a block, a multiple of 32.
    pub block_size: u32,
    /// Runs warps, and lanes in a warp, in a random order with this seed; `None` runs warps by number, and
    /// those lanes first that others wait for, as hardware does.
    pub seed: Option<u64>,
    /// Whether unordered accesses to one byte are errors.
    pub races: bool,
}

/// The numbers of instructions that a launch ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Instructions, each counted once for each lane.
    pub lanes: u64,
    /// Instructions, each counted once for the lanes that ran it together: the number that a processor
    /// issues.
    pub warps: u64,
}

/// Extends up to eight little-endian bytes to a word, with their sign if asked.
fn extended(bytes: &[u8], with_sign: bool) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let value = u64::from_le_bytes(word);
    if with_sign { signed(value, bytes.len() as u32 * 8) as u64 } else { value }
}

struct Warp<'a, M: Memory> {
    module: &'a Module,
    entry: &'a Entry,
    params: &'a [u8],
    memory: &'a mut M,
    touched: Option<&'a mut Touched>,
    registers: Vec<[u64; LANES]>,
    carry: [bool; LANES],
    counter: [usize; LANES],
    done: u32,
    random: Option<Drawn>,
    block: [u32; 3],
    first_thread: u32,
    ran: Ran,
    /// How often each instruction was issued.
    issued: &'a mut [u64],
}

impl Launch<'_> {
    /// Runs the launch to its end, and returns the numbers of instructions.
    pub fn run<M: Memory>(&self, memory: &mut M) -> Result<Ran, Error> {
        self.run_by_line(memory, &mut BTreeMap::new())
    }

    /// As [`Launch::run`]. Adds to `lines` how often warps ran the instruction of each line of the PTX.
    pub fn run_by_line<M: Memory>(
        &self,
        memory: &mut M,
        lines: &mut BTreeMap<u32, u64>,
    ) -> Result<Ran, Error> {
        let fail = |reason: String| Error::new(0, reason);
        let entry =
            self.module.entries.get(self.entry).ok_or_else(|| fail(format!("no kernel {}", self.entry)))?;
        if self.params.len() != entry.params {
            return Err(fail(format!(
                "{} takes {} bytes of parameters, not {}",
                self.entry,
                entry.params,
                self.params.len()
            )));
        }
        if !self.block_size.is_multiple_of(LANES as u32) {
            return Err(fail(format!("a block of {} threads", self.block_size)));
        }
        let mut touched = self.races.then(Touched::default);
        let mut total = Ran::default();
        let mut issued = vec![0; entry.code.len()];
        let of_block =
            |block| (0..self.block_size).step_by(LANES).map(move |first_thread| (block, first_thread));
        let mut warps: Vec<(u32, u32)> = (0..self.blocks).flat_map(of_block).collect();
        if let Some(seed) = self.seed {
            Drawn::new(seed, warps.len() as u64).shuffle(&mut warps);
        }
        for (block, first_thread) in warps {
            let warp = u64::from(block) << 32 | u64::from(first_thread);
            let mut warp = Warp {
                module: self.module,
                entry,
                params: self.params,
                memory,
                touched: touched.as_mut(),
                registers: vec![[0; LANES]; entry.registers],
                carry: [false; LANES],
                counter: [0; LANES],
                done: 0,
                random: self.seed.map(|seed| Drawn::new(seed, warp)),
                block: [block, self.block_size, self.blocks],
                first_thread,
                ran: Ran::default(),
                issued: &mut issued,
            };
            warp.run()?;
            total.lanes += warp.ran.lanes;
            total.warps += warp.ran.warps;
        }
        for (instruction, times) in entry.code.iter().zip(issued).filter(|(_, times)| *times > 0) {
            *lines.entry(instruction.line).or_default() += times;
        }
        Ok(total)
    }
}

impl<M: Memory> Warp<'_, M> {
    fn run(&mut self) -> Result<(), Error> {
        // The lanes at a `.sync` instruction that wait for others.
        let mut waiting = 0u32;
        while self.done != !0 {
            let ready = !(self.done | waiting);
            if ready == 0 {
                let lane = (!self.done).trailing_zeros() as usize;
                let line = self.entry.code[self.counter[lane]].line;
                return Err(Error::new(line, "lanes wait here for lanes that never come"));
            }
            let place = self.choose(ready);
            let group = (0..LANES)
                .filter(|l| ready >> l & 1 != 0 && self.counter[*l] == place)
                .fold(0u32, |g, l| g | 1 << l);
            let Some(instruction) = self.entry.code.get(place) else {
                return Err(Error::new(0, "ran past the end of the kernel"));
            };
            self.ran.lanes += u64::from(group.count_ones());
            self.ran.warps += 1;
            self.issued[place] += 1;
            if self.ran.lanes > MOST_STEPS {
                return Err(Error::new(instruction.line, "the kernel does not end"));
            }
            let active = self.active(instruction, group);
            match self.collective_mask(instruction, active)? {
                None => self.step(instruction, group, active)?,
                Some(mask) => {
                    // Lanes disabled by the guard pass; the others wait until all lanes in the mask are here.
                    self.advance(group & !active);
                    let arrived = (0..LANES)
                        .filter(|l| (waiting | active) >> l & 1 != 0 && self.counter[*l] == place)
                        .fold(0u32, |g, l| g | 1 << l);
                    if arrived & mask == mask {
                        waiting &= !mask;
                        self.collective(instruction, mask)?;
                        self.advance(mask);
                    } else if mask & self.done != 0 {
                        return Err(Error::new(
                            instruction.line,
                            format!("lanes {:#x} have ended", mask & self.done),
                        ));
                    } else {
                        waiting |= active;
                    }
                }
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> Option<u64> {
        self.random.as_mut().map(Drawn::draw)
    }

    /// The program counter of the lanes that run next.
    fn choose(&mut self, ready: u32) -> usize {
        let lanes = (0..LANES).filter(|l| ready >> l & 1 != 0);
        match self.draw() {
            None => {
                let order = |place: &usize| (Reverse(self.entry.depths.get(*place)), *place);
                lanes.map(|l| self.counter[l]).min_by_key(order).expect("a lane is ready")
            }
            Some(random) => {
                let nth = random as usize % ready.count_ones() as usize;
                self.counter[lanes.clone().nth(nth).expect("so many are ready")]
            }
        }
    }

    fn active(&self, instruction: &Instruction, group: u32) -> u32 {
        match instruction.guard {
            None => group,
            Some((register, not)) => {
                let set = self.registers[register as usize]
                    .iter()
                    .enumerate()
                    .fold(0, |m, (l, v)| m | ((*v & 1) as u32) << l);
                group & if not { !set } else { set }
            }
        }
    }

    fn advance(&mut self, lanes: u32) {
        for l in 0..LANES {
            self.counter[l] += (lanes >> l & 1) as usize;
        }
    }

    fn value(&self, operand: Operand, lane: usize) -> u64 {
        match operand {
            Operand::Register(register) => self.registers[register as usize][lane],
            Operand::Immediate(value) => value,
            Operand::Special(special) => u64::from(match special {
                Special::Lane => lane as u32,
                Special::Thread => self.first_thread + lane as u32,
                Special::Block => self.block[0],
                Special::BlockSize => self.block[1],
                Special::Blocks => self.block[2],
                Special::LanesEqual => 1 << lane,
                Special::LanesBelow => (1 << lane) - 1,
                Special::LanesUpTo => ((2u64 << lane) - 1) as u32,
                Special::LanesAbove => !((2u64 << lane) - 1) as u32,
                Special::Zero => 0,
                Special::One => 1,
            }),
        }
    }

    fn thread(&self, lane: usize) -> u64 {
        u64::from(self.block[0]) << 32 | u64::from(self.first_thread + lane as u32)
    }

    /// Runs an instruction that needs no other lanes, and advances the group.
    fn step(&mut self, instruction: &Instruction, group: u32, active: u32) -> Result<(), Error> {
        self.advance(group);
        if matches!(instruction.op, Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. }) {
            self.memory.next();
        }
        let mut lanes: Vec<usize> = (0..LANES).filter(|l| active >> l & 1 != 0).collect();
        if let Some(random) = self.draw() {
            // The result must not depend on the order of the lanes' accesses.
            let by = random as usize % lanes.len().max(1);
            lanes.rotate_left(by);
        }
        for lane in lanes {
            self.lane(&instruction.op, lane).map_err(|reason| {
                Error::new(
                    instruction.line,
                    format!("block {} thread {}: {reason}", self.block[0], self.first_thread + lane as u32),
                )
            })?;
        }
        Ok(())
    }

    fn lane(&mut self, op: &Op, lane: usize) -> Result<(), String> {
        match op {
            Op::Alu { function, to, from } => {
                let from = from.map(|operand| self.value(operand, lane));
                self.registers[*to as usize][lane] = function(&from);
            }
            Op::Carry { bits, subtract, takes, leaves, to, from } => {
                let [a, b] = from.map(|operand| u128::from(low(self.value(operand, lane), *bits)));
                // A subtraction adds the complement, so the flag means "no borrow"; a later addition reads it
                // as it is.
                let b = if *subtract { u128::from(low(!b as u64, *bits)) } else { b };
                let carry = u128::from(if *takes { self.carry[lane] } else { *subtract });
                let result = a + b + carry;
                self.registers[*to as usize][lane] = low(result as u64, *bits);
                if *leaves {
                    self.carry[lane] = result >> bits & 1 != 0;
                }
            }
            Op::Pack { to, from, bits } => {
                let parts = from.iter().map(|operand| low(self.value(*operand, lane), *bits));
                self.registers[*to as usize][lane] = parts.rev().fold(0, |all, part| all << bits | part);
            }
            Op::Unpack { to, from, bits } => {
                let from = self.value(*from, lane);
                for (i, to) in to.iter().enumerate() {
                    if let Some(to) = to {
                        self.registers[*to as usize][lane] = low(from >> (i as u32 * bits), *bits);
                    }
                }
            }
            Op::Param { to, offset, bytes, signed: with_sign } => {
                let from = self.params.get(*offset..offset + bytes).ok_or("past the parameters")?;
                self.registers[*to as usize][lane] = extended(from, *with_sign);
            }
            Op::Load { to, at, bytes, signed: with_sign, atomic } => {
                let mut buffer = [0; 32];
                let buffer = &mut buffer[..to.len() * bytes];
                let touch = if *atomic { Touch::Atomic } else { Touch::Read(self.thread(lane)) };
                self.read(self.address(at, lane, buffer.len())?, buffer, touch)?;
                for (to, from) in to.iter().zip(buffer.chunks(*bytes)) {
                    if let Some(to) = to {
                        self.registers[*to as usize][lane] = extended(from, *with_sign);
                    }
                }
            }
            Op::Store { from, at, bytes } => {
                let mut buffer = [0; 32];
                for (operand, to) in from.iter().zip(buffer.chunks_mut(*bytes)) {
                    to.copy_from_slice(&self.value(*operand, lane).to_le_bytes()[..*bytes]);
                }
                let len = from.len() * bytes;
                let address = self.address(at, lane, len)?;
                self.touch(address, len, Touch::Written(self.thread(lane)))?;
                self.memory.write(address, &buffer[..len])?;
            }
            Op::Atomic { function, to, at, from, bytes } => {
                let address = self.address(at, lane, *bytes)?;
                self.touch(address, *bytes, Touch::Atomic)?;
                let mut word = [0; 8];
                self.memory.read(address, &mut word[..*bytes])?;
                let old = u64::from_le_bytes(word);
                let [a, b] = from.map(|operand| self.value(operand, lane));
                self.memory.write(address, &function(&[old, a, b, 0]).to_le_bytes()[..*bytes])?;
                if let Some(to) = to {
                    self.registers[*to as usize][lane] = old;
                }
            }
            Op::Branch { target } => self.counter[lane] = *target,
            Op::BranchTable { index, targets } => {
                let index = low(self.value(*index, lane), 32) as usize;
                self.counter[lane] = *targets.get(index).ok_or("a jump past its table")?;
            }
            Op::Exit => self.done |= 1 << lane,
            Op::Trap => return Err("trap".into()),
            Op::Vote { .. } | Op::Shuffle { .. } | Op::SyncWarp { .. } => {
                unreachable!("collectives run together")
            }
        }
        Ok(())
    }

    fn address(&self, at: &Place, lane: usize, bytes: usize) -> Result<u64, String> {
        let address = self.value(at.base, lane).wrapping_add(at.offset);
        match address.is_multiple_of(bytes as u64) {
            true => Ok(address),
            false => Err(format!("{bytes} bytes at {address:#x} are misaligned")),
        }
    }

    fn read(&mut self, address: u64, into: &mut [u8], touch: Touch) -> Result<(), String> {
        if let Some(start) = address.checked_sub(CONSTANTS)
            && start < self.module.constants.len() as u64
        {
            let from = self.module.constants.get(start as usize..start as usize + into.len());
            into.copy_from_slice(from.ok_or("past the image's constants")?);
            return Ok(());
        }
        self.touch(address, into.len(), touch)?;
        self.memory.read(address, into)
    }

    /// Records an access, and refuses one that races with another lane's.
    fn touch(&mut self, address: u64, bytes: usize, now: Touch) -> Result<(), String> {
        self.touched.as_mut().map_or(Ok(()), |touched| touched.touch(address, bytes, now))
    }
}
