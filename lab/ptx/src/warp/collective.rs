//! Runs the operations that lanes do together: votes, shuffles, barriers.

use super::{LANES, Warp};
use crate::Memory;
use crate::alu::low;
use crate::module::{Error, Instruction, Op, Shuffle, Vote};

impl<M: Memory> Warp<'_, M> {
    /// The lanes that must run this instruction together; `None` if each can run it alone.
    pub(super) fn collective_mask(
        &self,
        instruction: &Instruction,
        active: u32,
    ) -> Result<Option<u32>, Error> {
        let (Op::Vote { mask, .. } | Op::Shuffle { mask, .. } | Op::SyncWarp { mask }) = &instruction.op
        else {
            return Ok(None);
        };
        let masks: Vec<u32> =
            (0..LANES).filter(|l| active >> l & 1 != 0).map(|l| self.value(*mask, l) as u32).collect();
        match masks.first() {
            None => Ok(Some(0)),
            Some(first) if masks.iter().all(|mask| mask == first) && active & !first == 0 => Ok(Some(*first)),
            Some(first) => {
                Err(Error::new(instruction.line, format!("lanes {active:#x} name {first:#x} or others")))
            }
        }
    }

    pub(super) fn collective(&mut self, instruction: &Instruction, mask: u32) -> Result<(), Error> {
        let lanes = (0..LANES).filter(|l| mask >> l & 1 != 0);
        match &instruction.op {
            Op::Vote { kind, to, from, not, .. } => {
                let says = |l: usize| (self.value(*from, l) & 1 != 0) != *not;
                let ballot = lanes.clone().filter(|l| says(*l)).fold(0u32, |b, l| b | 1 << l);
                let result = match kind {
                    Vote::Ballot => u64::from(ballot),
                    Vote::Any => u64::from(ballot != 0),
                    Vote::All => u64::from(ballot == mask),
                };
                lanes.for_each(|l| self.registers[*to as usize][l] = result);
            }
            Op::Shuffle { kind, to, found, from, by, clamp, .. } => {
                let mut results = vec![];
                for l in lanes {
                    let (by, clamp) = (self.value(*by, l) as u32 & 31, self.value(*clamp, l) as u32);
                    let (bound, segment) = (clamp & 31, clamp >> 8 & 31);
                    let lane = l as u32;
                    let (least, most) = (lane & segment, lane & segment | bound & !segment);
                    let (source, inside) = match kind {
                        Shuffle::Up => (lane.wrapping_sub(by), lane >= by + most),
                        Shuffle::Down => (lane + by, lane + by <= most),
                        Shuffle::Butterfly => (lane ^ by, lane ^ by <= most),
                        Shuffle::Index => (least | by & !segment, (least | by & !segment) <= most),
                    };
                    let source = if inside { source as usize } else { l };
                    if mask >> source & 1 == 0 {
                        return Err(Error::new(
                            instruction.line,
                            format!("lane {l} reads lane {source}, which is not in {mask:#x}"),
                        ));
                    }
                    results.push((l, low(self.value(*from, source), 32), inside));
                }
                for (l, value, inside) in results {
                    self.registers[*to as usize][l] = value;
                    if let Some(found) = found {
                        self.registers[*found as usize][l] = u64::from(inside);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
