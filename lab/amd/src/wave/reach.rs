//! Memory accesses: scalar loads, and loads, stores and updates of lanes.

use bowstring_watch::{Drawn, Touch, Touched};

use super::Wave;
use crate::Memory;
use crate::instruction::{Instruction, Operand};
use crate::table::{Action, Part};

/// The virtual address of the argument block; no host allocation lies there.
pub(crate) const ARGUMENTS: u64 = 0x00fe_0000_0000_0000;

/// The memory that a wave accesses, and the wave's identity in the checks.
pub(crate) struct Reach<'a, M: Memory> {
    pub memory: &'a mut M,
    pub touched: Option<&'a mut Touched>,
    pub arguments: &'a [u8],
    pub random: Option<&'a mut Drawn>,
    /// The work-group, and the number of the wave's first thread in it.
    pub block: u32,
    pub first_thread: u32,
}

impl<M: Memory> Reach<'_, M> {
    fn thread(&self, lane: usize) -> u64 {
        u64::from(self.block) << 32 | u64::from(self.first_thread + lane as u32)
    }

    fn touch(&mut self, address: u64, bytes: usize, now: Touch) -> Result<(), String> {
        self.touched.as_mut().map_or(Ok(()), |touched| touched.touch(address, bytes, now))
    }

    /// Reads memory; `by` is the reading thread, or the whole wave if the threads cannot be told apart.
    fn read(&mut self, address: u64, into: &mut [u8], by: Touch) -> Result<(), String> {
        if let Some(start) = address.checked_sub(ARGUMENTS)
            && start < self.arguments.len() as u64
        {
            let from = self.arguments.get(start as usize..start as usize + into.len());
            into.copy_from_slice(from.ok_or("past the arguments")?);
            return Ok(());
        }
        self.touch(address, into.len(), by)?;
        self.memory.read(address, into)
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte))
}

fn long(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

impl Wave<'_> {
    pub(super) fn reach<M: Memory>(
        &mut self,
        made: &Instruction,
        reach: &mut Reach<'_, M>,
    ) -> Result<(), String> {
        reach.memory.next();
        if let Action::ScalarLoad { words } = made.row.action {
            return self.scalar_load(made, words.into(), reach);
        }
        let exec = self.state.exec(self.lanes());
        let lanes = self.lanes() as usize;
        // The result must not depend on the order of the lanes' accesses.
        let (turn, backwards) = match &mut reach.random {
            Some(random) => (random.below(lanes), random.below(2) == 1),
            None => (0, false),
        };
        for i in 0..lanes {
            let lane = (turn + if backwards { lanes - 1 - i } else { i }) % lanes;
            if exec >> lane & 1 != 0 {
                self.reach_lane(made, lane, reach).map_err(|reason| {
                    format!("block {} thread {}: {reason}", reach.block, reach.first_thread + lane as u32)
                })?;
            }
        }
        Ok(())
    }

    /// A scalar load treats memory as constant during the launch: no lane may write the bytes that it reads.
    fn scalar_load<M: Memory>(
        &mut self,
        made: &Instruction,
        words: usize,
        reach: &mut Reach<'_, M>,
    ) -> Result<(), String> {
        let (Operand::Scalar(base), Operand::Scalar(to)) = (made.from[0], made.to) else {
            return Err("no registers".into());
        };
        let more = match made.from[1] {
            Operand::Scalar(offset) => u64::from(self.state.scalars[usize::from(offset)]),
            _ => 0,
        };
        let address = self.state.pair(base).wrapping_add(made.immediate as i64 as u64).wrapping_add(more);
        if !address.is_multiple_of(4) {
            return Err(format!("{address:#x} is misaligned"));
        }
        let mut buffer = [0; 64];
        let buffer = &mut buffer[..words * 4];
        // Reads word by word, because a large load may be less aligned than it is long.
        for (i, bytes) in buffer.chunks_mut(4).enumerate() {
            reach.read(address.wrapping_add(4 * i as u64), bytes, Touch::ReadByMany)?;
        }
        for (i, bytes) in buffer.chunks(4).enumerate() {
            self.state.scalars[usize::from(to) + i] = word(bytes);
        }
        Ok(())
    }

    fn address(&self, made: &Instruction, lane: usize) -> u64 {
        let vector = |operand, more: usize| match operand {
            Operand::Vector(first) => u64::from(self.state.vectors[usize::from(first) + more][lane]),
            _ => 0,
        };
        let offset = made.immediate as i64 as u64;
        let start = match made.from[2] {
            Operand::None => vector(made.from[0], 0) | vector(made.from[0], 1) << 32,
            base => self.state.scalar(base, 64, self.lanes()).wrapping_add(vector(made.from[0], 0)),
        };
        start.wrapping_add(offset)
    }

    fn reach_lane<M: Memory>(
        &mut self,
        made: &Instruction,
        lane: usize,
        reach: &mut Reach<'_, M>,
    ) -> Result<(), String> {
        let address = self.address(made, lane);
        let thread = reach.thread(lane);
        let register = |operand| match operand {
            Operand::Vector(first) => usize::from(first),
            _ => usize::MAX,
        };
        let (to, data) = (register(made.to), register(made.from[1]));
        let vectors = &mut self.state.vectors;
        let (bytes, aligned) = match made.row.action {
            // Under HSA waves run in unaligned access mode. LLVM relies on that when it joins byte stores.
            Action::Load { bytes, .. } if made.is_atomic_load() => (bytes.into(), bytes),
            Action::Load { bytes, .. } | Action::Store { bytes, .. } => (bytes.into(), 1),
            Action::Atomic { bytes, .. } => (bytes.into(), bytes),
            _ => (0usize, 1),
        };
        if !address.is_multiple_of(aligned.into()) {
            return Err(format!("{bytes} bytes at {address:#x} are misaligned"));
        }
        let mut buffer = [0; 16];
        let buffer = &mut buffer[..bytes];
        match made.row.action {
            Action::Load { signed, into, .. } => {
                let atomic = made.first_look || made.is_atomic_load();
                let touch = if atomic { Touch::Atomic } else { Touch::Read(thread) };
                reach.read(address, buffer, touch)?;
                if bytes < 4 {
                    let unused = 32 - 8 * bytes as u32;
                    let value = word(buffer) << unused;
                    let value = if signed { (value as i32 >> unused) as u32 } else { value >> unused };
                    let old = vectors[to][lane];
                    vectors[to][lane] = match into {
                        Part::Whole => value,
                        Part::Low => old & 0xffff_0000 | value & 0xffff,
                        Part::High => old & 0xffff | value << 16,
                    };
                } else {
                    for (i, bytes) in buffer.chunks(4).enumerate() {
                        vectors[to + i][lane] = word(bytes);
                    }
                }
            }
            Action::Store { high, .. } => {
                if bytes < 4 {
                    let value = vectors[data][lane] >> if high { 16 } else { 0 };
                    buffer.copy_from_slice(&value.to_le_bytes()[..bytes]);
                } else {
                    for (i, bytes) in buffer.chunks_mut(4).enumerate() {
                        bytes.copy_from_slice(&vectors[data + i][lane].to_le_bytes());
                    }
                }
                reach.touch(address, bytes, Touch::Written(thread))?;
                reach.memory.write(address, buffer)?;
            }
            Action::Atomic { run, operands, .. } => {
                reach.touch(address, bytes, Touch::Atomic)?;
                reach.memory.read(address, buffer)?;
                let old = long(buffer);
                let value = |i: usize| {
                    let first = data + i * bytes / 4;
                    let high = if bytes == 8 { u64::from(vectors[first + 1][lane]) << 32 } else { 0 };
                    u64::from(vectors[first][lane]) | high
                };
                let new = run(old, [value(0), if operands == 2 { value(1) } else { 0 }]);
                reach.memory.write(address, &new.to_le_bytes()[..bytes])?;
                if made.returns {
                    vectors[to][lane] = old as u32;
                    if bytes == 8 {
                        vectors[to + 1][lane] = (old >> 32) as u32;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
