//! Vector operations: reads operands as values for each lane, runs the operation, and stores the results.

use super::{State, Wave};
use crate::Target;
use crate::instruction::{Dpp, EXEC, Instruction, Operand, Sdwa, VCC};
use crate::table::{Action, Format, Generation, Kind, Output, Packed, Sources, Vector, Wide};

/// The bit offset and width of a numbered part of a word: a byte, a half or all.
fn part(number: u8) -> (u32, u32) {
    match number {
        0..=3 => (8 * u32::from(number), 8),
        4 | 5 => (16 * (u32::from(number) - 4), 16),
        _ => (0, 32),
    }
}

/// Reads an operand's value in each lane.
fn read(state: &State, operand: Operand, kind: Kind, half: u32, target: Target, into: &mut Wide) {
    let lanes = target.lanes as usize;
    match (operand, kind) {
        (Operand::Vector(first), _) => {
            let low = &state.vectors[usize::from(first)];
            if kind.bits() == 64 {
                let high = &state.vectors[usize::from(first) + 1];
                for lane in 0..lanes {
                    into[lane] = u64::from(low[lane]) | u64::from(high[lane]) << 32;
                }
            } else {
                let shift = if kind == Kind::B16 { 16 * half } else { 0 };
                for lane in 0..lanes {
                    into[lane] = u64::from(low[lane] >> shift);
                }
            }
        }
        (_, Kind::Mask) => {
            let mask = state.scalar(operand, target.lanes, target.lanes);
            for (lane, value) in into.iter_mut().enumerate().take(lanes) {
                *value = mask >> lane & 1;
            }
        }
        (constant, _) => {
            let value = match constant.constant(kind) {
                Some(value) => value,
                None => state.scalar(constant, kind.bits(), target.lanes),
            };
            let shift = if kind == Kind::B16 { 16 * half } else { 0 };
            into[..lanes].fill(value >> shift);
        }
    }
}

/// Moves values between lanes for DPP; returns the mask of lanes that are written.
fn from_below(dpp: Dpp, exec: u64, lanes: usize, values: &mut Wide) -> u64 {
    let (mut writes, own) = (0u64, *values);
    for (lane, value) in values.iter_mut().enumerate().take(lanes) {
        let is_on = dpp.rows >> (lane / 16) & 1 != 0 && dpp.banks >> (lane % 16 / 4) & 1 != 0;
        let source = lane.wrapping_sub(dpp.shift.into());
        let has_source = lane % 16 >= usize::from(dpp.shift) && exec >> source & 1 != 0;
        *value = if has_source { own[source] } else { 0 };
        writes |= u64::from(is_on && (has_source || dpp.zero)) << lane;
    }
    writes
}

fn changed(made: &Instruction, i: usize, kind: Kind, lanes: usize, values: &mut Wide) {
    if let Some(sdwa) = made.sdwa.filter(|_| i < 2 && kind != Kind::Mask) {
        let (from, bits) = part(sdwa.from[i]);
        for value in &mut values[..lanes] {
            let taken = ((*value as u32) >> from) << (32 - bits);
            *value = u64::from(if sdwa.signed[i] {
                (taken as i32 >> (32 - bits)) as u32
            } else {
                taken >> (32 - bits)
            });
        }
    }
    // Packed, both halves change their signs.
    let both = if made.row.format == Format::Vop3p { 1 << 31 } else { 0 };
    let sign = 1u64 << (kind.bits() - 1) | both;
    if made.absolute >> i & 1 != 0 {
        values[..lanes].iter_mut().for_each(|value| *value &= !sign);
    }
    if made.negated >> i & 1 != 0 {
        values[..lanes].iter_mut().for_each(|value| *value ^= sign);
    }
}

/// Runs a packed operation on the halves that the instruction selects.
fn run_packed(packed: Packed, made: &Instruction, from: &Sources, lanes: usize, to: &mut Wide) {
    let most = (1u64 << packed.half) - 1;
    let half = |value: u64, choice: u8, i: usize| value >> (packed.half * u32::from(choice >> i & 1)) & most;
    for (lane, to) in to.iter_mut().enumerate().take(lanes) {
        let (a, b) = (from[0][lane], from[1][lane]);
        let (low, high) = match packed.moves {
            true => (half(a, made.halves, 0), half(b, made.halves, 1)),
            false => (
                (packed.run)(half(a, made.halves, 0), half(b, made.halves, 1)),
                (packed.run)(half(a, made.high_halves, 0), half(b, made.high_halves, 1)),
            ),
        };
        *to = low & most | (high & most) << packed.half;
    }
}

impl Wave<'_> {
    pub(super) fn vector(&mut self, made: &Instruction) {
        // Both instructions of a pair read before either writes.
        let first = self.compute(made, 0);
        let second = made.pair.as_ref().map(|pair| (pair, self.compute(pair, 1)));
        self.keep(made, 0, first);
        if let Some((pair, second)) = second {
            self.keep(pair, 1, second);
        }
    }

    /// Computes values (in the scratch) and bits; returns the bits, and the mask of lanes to write.
    fn compute(&mut self, made: &Instruction, which: usize) -> (u64, u64) {
        let Action::Vector(vector) = &made.row.action else { return (0, 0) };
        let (lanes, exec) = (self.lanes() as usize, self.state.exec(self.lanes()));
        let mut writes = exec;
        for (i, kind) in vector.from.iter().enumerate() {
            let values = &mut self.scratch.from[i];
            let kind = match (kind, vector.to) {
                (Kind::Lane, _) => {
                    (0..lanes).for_each(|lane| values[lane] = lane as u64);
                    continue;
                }
                (Kind::Vcc, _) => {
                    read(self.state, Operand::Scalar(VCC), Kind::Mask, 0, self.target, values);
                    continue;
                }
                (Kind::Result, Output::Lanes(kind)) => kind,
                _ => *kind,
            };
            // With SDWA, the whole register is read first.
            let whole = if made.sdwa.is_some() && kind == Kind::B16 { Kind::B32 } else { kind };
            read(self.state, made.from[i], whole, u32::from(made.halves >> i & 1), self.target, values);
            if let (0, Some(dpp)) = (i, made.dpp) {
                writes &= from_below(dpp, exec, lanes, values);
            }
            if made.sdwa.is_some() || made.absolute | made.negated != 0 {
                changed(made, i, kind, lanes, values);
            }
        }
        let to = &mut self.scratch.to[which];
        let bits = match (vector, made.clamp) {
            (Vector { packed: Some(packed), .. }, _) => {
                run_packed(*packed, made, &self.scratch.from, lanes, to);
                0
            }
            (Vector { clamped: Some(run), .. }, true) => run(&self.scratch.from, lanes, to),
            (vector, _) => (vector.run)(&self.scratch.from, lanes, to),
        };
        (bits, writes)
    }

    fn keep(&mut self, made: &Instruction, which: usize, (bits, writes): (u64, u64)) {
        let Action::Vector(vector) = &made.row.action else { return };
        let width = self.lanes();
        match vector.to {
            Output::Lanes(kind) => self.keep_lanes(made, which, kind, writes),
            Output::Both(kind) => {
                self.keep_lanes(made, which, kind, writes);
                self.state.set(made.bits_to, width, bits & writes);
            }
            Output::Mask => self.state.set(made.bits_to, width, bits & writes),
            Output::Exec => self.state.set(Operand::Scalar(EXEC), width, bits & writes),
        }
    }

    fn keep_lanes(&mut self, made: &Instruction, which: usize, kind: Kind, writes: u64) {
        let Operand::Vector(to) = made.to else { return };
        let (to, lanes) = (usize::from(to), self.lanes() as usize);
        let (values, vectors) = (&self.scratch.to[which], &mut self.state.vectors);
        let all = writes == !0 >> (64 - lanes);
        if kind.bits() == 32 && made.sdwa.is_none() && all {
            for lane in 0..lanes {
                vectors[to][lane] = values[lane] as u32;
            }
            return;
        }
        for lane in (0..lanes).filter(|lane| writes >> lane & 1 != 0) {
            let (value, old) = (values[lane], vectors[to][lane]);
            vectors[to][lane] = match (made.sdwa, kind) {
                (Some(sdwa), _) => merged(sdwa, value as u32, old),
                // Half a register: the oldest generation clears the rest, the others keep it.
                (None, Kind::B16) if made.target.generation == Generation::Gfx9 => value as u32 & 0xffff,
                (None, Kind::B16) => {
                    let shift = 16 * (made.halves >> 3 & 1);
                    old & !(0xffff << shift) | (value as u32 & 0xffff) << shift
                }
                _ => value as u32,
            };
            if kind.bits() == 64 {
                vectors[to + 1][lane] = (value >> 32) as u32;
            }
        }
    }
}

/// Replaces a part of a word, and fills the rest as the instruction says.
fn merged(sdwa: Sdwa, value: u32, old: u32) -> u32 {
    let (from, bits) = part(sdwa.to);
    let mask = (((1u64 << bits) - 1) as u32) << from;
    let placed = value << from & mask;
    match sdwa.rest {
        0 => placed,
        1 => ((placed << (32 - from - bits)) as i32 >> (32 - from - bits)) as u32,
        _ => old & !mask | placed,
    }
}
