//! Decodes a kernel once and launches it: a few waves are in flight at a time, and a random draw selects the
//! next to run.

use std::collections::HashMap;

use bowstring_watch::{Drawn, Memory, Touched};

use crate::counters::Counters;
use crate::instruction::{EXEC, Instruction, Operand};
use crate::table::{Action, Generation, WIDE};
use crate::wave::{ARGUMENTS, Next, Reach, Scratch, State, Wave};
use crate::{Error, Kernel, Target};

/// The most instructions that one wave may run: far more than a kernel's tile needs.
const MOST_STEPS: u64 = 5_000_000;
/// The number of waves in flight at once.
const RESIDENT: usize = 4;
/// The register in which the newest generation passes the work-group's index.
const TTMP9: usize = 117;

/// The most instructions between the first read of an update and its compare-and-swap.
const UPDATE: usize = 64;

/// Whether a load is the first read of a compare-and-swap loop. If no instruction updates memory as needed,
/// LLVM reads the old value with a plain load and retries until the compare-and-swap succeeds. The plain load
/// is part of the update, so it does not race with other updates.
fn looks_first(load: &Instruction, later: &Instruction) -> bool {
    let (Action::Load { bytes, .. }, Action::Atomic { bytes: swapped, operands: 2, .. }) =
        (&load.row.action, &later.row.action)
    else {
        return false;
    };
    let [(address, base), (later_address, later_base)] =
        [load, later].map(|made| (made.from[0], made.from[2]));
    let same_base = base == later_base && (base != Operand::None || address == later_address);
    bytes == swapped && same_base && load.immediate == later.immediate
}

/// A kernel, decoded for one target.
pub struct Program {
    target: Target,
    code: Vec<Instruction>,
    /// The byte offset of each instruction.
    places: Vec<usize>,
    /// For each instruction, the index of its branch target.
    jumps: Vec<usize>,
    vectors: usize,
    arguments: usize,
    start: Start,
}

/// The initial contents of a wave's registers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Start {
    /// The scalar registers that hold the address of the arguments, and the work-group's index.
    arguments: usize,
    group: usize,
}

fn bits(word: u32, from: u32, len: u32) -> u32 {
    word >> from & ((1 << len) - 1)
}

/// Reads a kernel's descriptor, and refuses features that are not modelled.
fn start(kernel: &Kernel, target: Target) -> Result<Start, String> {
    let word = |at: usize| u32::from_le_bytes(kernel.descriptor[at..at + 4].try_into().expect("4 bytes"));
    let (first, second, properties) = (word(48), word(52), word(56));
    if word(0) != 0 || word(4) != 0 || properties >> 16 != 0 {
        return Err("local memory, scratch or arguments in registers".into());
    }
    // The mode must round to nearest and keep denormals.
    if bits(first, 12, 8) != 0b1111_0000 {
        return Err(format!("floats of mode {:#x}", bits(first, 12, 8)));
    }
    let wave32 = bits(properties, 10, 1) == 1;
    if wave32 != (target.lanes == 32) || kernel.width != target.lanes {
        return Err(format!("waves of {}", kernel.width));
    }
    // Only the first dimension of work-groups and work-items is modelled.
    if bits(second, 7, 4) != 1 || bits(second, 11, 2) != 0 {
        return Err("indices of other dimensions".into());
    }
    // These registers come first: the scratch resource, then the addresses of the dispatch and the queue.
    let before =
        [(0, 4), (1, 2), (2, 2)].map(|(bit, count)| bits(properties, bit, 1) * count).iter().sum::<u32>();
    if bits(properties, 3, 1) == 0 {
        return Err("no address of the arguments".into());
    }
    let group = if target.generation == Generation::Gfx12 { TTMP9 } else { bits(second, 1, 5) as usize };
    Ok(Start { arguments: before as usize, group })
}

impl Program {
    /// Decodes a kernel. An instruction outside the subset is an error here.
    pub fn decode(kernel: &Kernel, target: Target) -> Result<Program, Error> {
        let fail = |at, reason| Error { at, instruction: String::new(), reason };
        let start = start(kernel, target).map_err(|reason| fail(0, reason))?;
        let (mut code, mut places, mut at) = (vec![], vec![], 0);
        while at < kernel.code.len() {
            let made = Instruction::decode(target, &kernel.code[at..]).map_err(|reason| fail(at, reason))?;
            let limits = [kernel.scalar_registers.max(start.group as u32 + 1), kernel.vector_registers];
            for (is_vector, first, count, _) in &made.touches {
                let ordinary = *is_vector || *first < 106;
                if ordinary && u32::from(first + count) > limits[usize::from(*is_vector)] {
                    return Err(fail(at, format!("{made} uses a register that the kernel has not")));
                }
            }
            places.push(at);
            at += made.size();
            code.push(made);
        }
        for i in 0..code.len() {
            let near = &code[i + 1..code.len().min(i + 1 + UPDATE)];
            code[i].first_look = near.iter().any(|later| looks_first(&code[i], later));
        }
        let index: HashMap<usize, usize> = places.iter().enumerate().map(|(i, at)| (*at, i)).collect();
        let jumps = code.iter().zip(&places).map(|(made, at)| match made.row.action {
            Action::Branch(_) => {
                let target = (at + 4) as i64 + i64::from(made.immediate) * 4;
                let known = usize::try_from(target).ok().and_then(|target| index.get(&target));
                known.copied().ok_or_else(|| fail(*at, "a branch to no instruction".into()))
            }
            _ => Ok(0),
        });
        let jumps = jumps.collect::<Result<_, _>>()?;
        let (vectors, arguments) = (kernel.vector_registers as usize, kernel.bytes);
        Ok(Program { target, code, places, jumps, vectors, arguments, start })
    }

    /// The instructions, each with its byte offset.
    pub fn instructions(&self) -> impl Iterator<Item = (usize, &Instruction)> {
        self.places.iter().copied().zip(&self.code)
    }

    /// The size of the argument block in bytes.
    pub fn arguments(&self) -> usize {
        self.arguments
    }

    fn error(&self, at: usize, reason: String) -> Error {
        match self.code.get(at) {
            Some(made) => Error { at: self.places[at], instruction: made.to_string(), reason },
            None => Error { at: 0, instruction: String::new(), reason },
        }
    }
}

/// A launch of one kernel.
pub struct Launch<'a> {
    /// The kernel to run.
    pub program: &'a Program,
    /// The argument block, as [`Kernel::laid_out`] builds it.
    pub arguments: &'a [u8],
    /// The number of work-groups.
    pub blocks: u32,
    /// The number of work-items in a group, a multiple of the lanes in a wave.
    pub block_size: u32,
    /// The seed for the initial contents of registers, and for the order of waves and lanes.
    pub seed: u64,
    /// Whether waves and lanes run in a random order; if not, they run in the order of their numbers.
    pub any_order: bool,
    /// Whether unordered accesses to one byte are errors.
    pub races: bool,
}

/// The numbers of instructions that a launch ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Vector instructions, each counted once for each lane that ran it.
    pub lanes: u64,
    /// All instructions, each counted once for a wave.
    pub waves: u64,
    /// Scalar instructions among them, including waits and hints.
    pub scalar: u64,
}

/// A wave in flight.
struct Running {
    state: State,
    counters: Counters,
    at: usize,
    steps: u64,
    block: u32,
    first_thread: u32,
    random: Drawn,
}

impl Launch<'_> {
    /// Runs the launch to its end, and returns the numbers of instructions.
    pub fn run<M: Memory>(&self, memory: &mut M) -> Result<Ran, Error> {
        let (program, lanes) = (self.program, self.program.target.lanes);
        if self.arguments.len() != program.arguments || !self.block_size.is_multiple_of(lanes) {
            let (bytes, threads) = (self.arguments.len(), self.block_size);
            return Err(
                program.error(usize::MAX, format!("{bytes} bytes of arguments, {threads} work-items"))
            );
        }
        let per_block = self.block_size / lanes;
        let all = u64::from(self.blocks) * u64::from(per_block);
        let mut order = Drawn::new(self.seed, all);
        let mut waiting: Vec<u64> = (0..all).rev().collect();
        if self.any_order {
            order.shuffle(&mut waiting);
        }
        // A scalar load may read beyond its value, so the block fills whole cache lines, with random bytes at
        // the end.
        let mut arguments = self.arguments.to_vec();
        arguments.resize_with(self.arguments.len().next_multiple_of(64), || order.draw() as u8);
        let (mut running, mut scratch, mut ran) = (vec![], Scratch::default(), Ran::default());
        let mut touched = self.races.then(Touched::default);
        let resident = if self.any_order { RESIDENT } else { 1 };
        while !waiting.is_empty() || !running.is_empty() {
            while running.len() < resident
                && let Some(wave) = waiting.pop()
            {
                running.push(self.begin(wave, per_block));
            }
            let which = if self.any_order { order.below(running.len()) } else { 0 };
            let ended =
                self.go_on(&mut running[which], &arguments, memory, &mut touched, &mut scratch, &mut ran)?;
            if ended {
                running.swap_remove(which);
            }
        }
        Ok(ran)
    }

    /// Creates a wave with random registers, except for those that the descriptor defines.
    fn begin(&self, wave: u64, per_block: u32) -> Running {
        let (lanes, start) = (self.program.target.lanes, self.program.start);
        let (block, first_thread) = ((wave / u64::from(per_block)) as u32, wave as u32 % per_block * lanes);
        let mut random = Drawn::new(self.seed, wave);
        let mut vectors = vec![[0; WIDE]; self.program.vectors];
        for (i, lane) in vectors.iter_mut().flat_map(|register| &mut register[..lanes as usize]).enumerate() {
            *lane = random.draw() as u32 ^ i as u32;
        }
        let mut state = State { vectors, scalars: [0; 128], condition: random.below(2) == 1 };
        state.scalars.iter_mut().for_each(|register| *register = random.draw() as u32);
        state.scalars[start.arguments] = ARGUMENTS as u32;
        state.scalars[start.arguments + 1] = (ARGUMENTS >> 32) as u32;
        state.scalars[start.group] = block;
        state.scalars[usize::from(EXEC)] = !0;
        state.scalars[usize::from(EXEC) + 1] = if lanes == 64 { !0 } else { state.scalars[127] };
        if let Some(first) = state.vectors.first_mut() {
            (0..lanes).for_each(|lane| first[lane as usize] = first_thread + lane);
        }
        Running { state, counters: Counters::default(), at: 0, steps: 0, block, first_thread, random }
    }

    /// Runs a wave up to its next memory access, or all of it; returns whether it has ended.
    fn go_on<M: Memory>(
        &self,
        running: &mut Running,
        arguments: &[u8],
        memory: &mut M,
        touched: &mut Option<Touched>,
        scratch: &mut Scratch,
        ran: &mut Ran,
    ) -> Result<bool, Error> {
        let program = self.program;
        let Running { state, counters, at, steps, block, first_thread, random } = running;
        let random = self.any_order.then_some(random);
        let (block, first_thread) = (*block, *first_thread);
        let mut reach = Reach { memory, touched: touched.as_mut(), arguments, random, block, first_thread };
        let mut wave = Wave { state, counters, scratch, target: program.target };
        loop {
            let Some(made) = program.code.get(*at) else {
                return Err(program.error(program.code.len() - 1, "ran past the end of the kernel".into()));
            };
            *steps += 1;
            if *steps > MOST_STEPS {
                return Err(program.error(*at, "the kernel does not end".into()));
            }
            ran.waves += 1;
            if made.is_scalar() {
                ran.scalar += 1;
            } else {
                ran.lanes += u64::from(wave.state.exec(program.target.lanes).count_ones());
            }
            match wave.step(made, &mut reach).map_err(|reason| program.error(*at, reason))? {
                Next::On => *at += 1,
                Next::Jump => *at = program.jumps[*at],
                Next::End => return Ok(true),
            }
            let reaches =
                matches!(made.row.action, Action::Load { .. } | Action::Store { .. } | Action::Atomic { .. });
            if reaches && self.any_order {
                return Ok(false);
            }
        }
    }
}

impl Instruction {
    /// Runs the instruction alone, on the given registers and memory; returns whether it branched.
    pub fn run<M: Memory>(&self, state: &mut State, memory: &mut M) -> Result<bool, String> {
        let (mut counters, mut scratch) = (Counters::default(), Scratch::default());
        let mut reach =
            Reach { memory, touched: None, arguments: &[], random: None, block: 0, first_thread: 0 };
        let mut wave = Wave { state, counters: &mut counters, scratch: &mut scratch, target: self.target };
        Ok(wave.step(self, &mut reach)? == Next::Jump)
    }
}
