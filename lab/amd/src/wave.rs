//! A wave: its registers, and the effect of one instruction on them.

mod reach;
mod vectors;

pub(crate) use reach::{ARGUMENTS, Reach};

use crate::counters::Counters;
use crate::instruction::{EXEC, Instruction, Operand, VCC};
use crate::table::{Action, Kind, Scalar, Sources, WIDE, When, Wide};
use crate::{Memory, Target};

/// A vector register: one word for each lane.
type Lanes = [u32; WIDE];

/// The registers of one wave.
#[derive(Clone)]
pub struct State {
    /// The vector registers; a wave of 32 uses the first half of each.
    pub vectors: Vec<Lanes>,
    /// The scalar registers, with `vcc` at 106, `m0` at 124 and `exec` at 126.
    pub scalars: [u32; 128],
    /// The condition code (`scc`).
    pub condition: bool,
}

/// Buffers for the inputs and outputs of a vector operation; reused, because they are large.
pub(crate) struct Scratch {
    from: Sources,
    to: [Wide; 2],
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch { from: [[0; WIDE]; 4], to: [[0; WIDE]; 2] }
    }
}

/// The next instruction of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Continues with the following instruction.
    On,
    /// Jumps to the target of the branch.
    Jump,
    End,
}

pub(crate) struct Wave<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) counters: &'a mut Counters,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) target: Target,
}

impl State {
    fn pair(&self, first: u8) -> u64 {
        u64::from(self.scalars[usize::from(first)]) | u64::from(self.scalars[usize::from(first) + 1]) << 32
    }

    /// Reads one bit for each lane from scalar registers.
    fn mask(&self, first: u8, lanes: u32) -> u64 {
        if lanes == 64 { self.pair(first) } else { self.scalars[usize::from(first)].into() }
    }

    /// The mask of active lanes.
    pub(crate) fn exec(&self, lanes: u32) -> u64 {
        self.mask(EXEC, lanes)
    }

    fn set(&mut self, to: Operand, bits: u32, value: u64) {
        let Operand::Scalar(first) = to else { return };
        let first = usize::from(first);
        self.scalars[first] = value as u32;
        if bits == 64 {
            self.scalars[first + 1] = (value >> 32) as u32;
        }
    }

    /// Reads a scalar operand.
    fn scalar(&self, operand: Operand, bits: u32, lanes: u32) -> u64 {
        match operand {
            Operand::Scalar(first) if bits == 64 => self.pair(first),
            Operand::Scalar(first) => self.scalars[usize::from(first)].into(),
            Operand::NoVcc => u64::from(self.mask(VCC, lanes) == 0),
            Operand::NoExec => u64::from(self.exec(lanes) == 0),
            Operand::Condition => self.condition.into(),
            constant => constant.constant(if bits == 64 { Kind::B64 } else { Kind::B32 }).unwrap_or(0),
        }
    }
}

impl Wave<'_> {
    fn lanes(&self) -> u32 {
        self.target.lanes
    }

    /// Runs one instruction and returns the next place.
    pub(crate) fn step<M: Memory>(
        &mut self,
        made: &Instruction,
        reach: &mut Reach<'_, M>,
    ) -> Result<Next, String> {
        self.counters.check(made)?;
        match &made.row.action {
            Action::Scalar(scalar) => self.scalar(made, scalar),
            Action::SaveExec(bits, run) => {
                let old = self.state.scalar(Operand::Scalar(EXEC), *bits, self.lanes());
                let new = run(self.state.scalar(made.from[0], *bits, self.lanes()), old);
                self.state.set(made.to, *bits, old);
                self.state.set(Operand::Scalar(EXEC), *bits, new);
                self.state.condition = new != 0;
            }
            Action::Branch(when) => {
                let taken = match when {
                    When::Always => true,
                    When::Condition(set) => self.state.condition == *set,
                    When::Vcc(any) => (self.state.mask(VCC, self.lanes()) != 0) == *any,
                    When::Exec(any) => (self.state.exec(self.lanes()) != 0) == *any,
                };
                return Ok(if taken { Next::Jump } else { Next::On });
            }
            Action::End => return Ok(Next::End),
            Action::Nothing => {}
            Action::Wait(waits) => self.counters.wait(made, *waits),
            Action::Vector(_) => self.vector(made),
            Action::FirstLane => {
                let exec = self.state.exec(self.lanes());
                let lane = if exec == 0 { 0 } else { exec.trailing_zeros() };
                self.one_lane(made, lane as usize);
            }
            Action::OneLane => {
                let lane = self.state.scalar(made.from[1], 32, self.lanes()) as u32 % self.lanes();
                self.one_lane(made, lane as usize);
            }
            Action::IntoLane => {
                let [value, lane] = [0, 1].map(|i| self.state.scalar(made.from[i], 32, self.lanes()) as u32);
                let lane = (lane % self.lanes()) as usize;
                if let Operand::Vector(to) = made.to {
                    self.state.vectors[usize::from(to)][lane] = value;
                }
            }
            Action::Permute => self.permute(made),
            Action::ScalarLoad { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Atomic { .. } => {
                self.reach(made, reach)?;
            }
        }
        self.counters.issue(made);
        Ok(Next::On)
    }

    fn scalar(&mut self, made: &Instruction, scalar: &Scalar) {
        let [a, b] = [0, 1].map(|i| match scalar.from[i] {
            0 => 0,
            bits => self.state.scalar(made.from[i], bits, self.lanes()),
        });
        let (value, condition) = (scalar.run)(a, b, self.state.condition);
        self.state.set(made.to, scalar.to, value);
        if let Some(condition) = condition {
            self.state.condition = condition;
        }
    }

    fn one_lane(&mut self, made: &Instruction, lane: usize) {
        let value = match made.from[0] {
            Operand::Vector(register) => self.state.vectors[usize::from(register)][lane].into(),
            other => self.state.scalar(other, 32, self.lanes()),
        };
        self.state.set(made.to, 32, value);
    }

    /// An inactive source lane gives 0.
    fn permute(&mut self, made: &Instruction) {
        let exec = self.state.exec(self.lanes());
        let [Operand::Vector(address), Operand::Vector(data), _] = made.from else { return };
        let Operand::Vector(to) = made.to else { return };
        let data = self.state.vectors[usize::from(data)];
        for lane in (0..self.lanes() as usize).filter(|lane| exec >> lane & 1 != 0) {
            let address = self.state.vectors[usize::from(address)][lane].wrapping_add(made.immediate as u32);
            let from = address / 4 % self.lanes();
            // Each lane reads its address before it writes its result, so both may use the same register.
            self.state.vectors[usize::from(to)][lane] =
                if exec >> from & 1 != 0 { data[from as usize] } else { 0 };
        }
    }
}
