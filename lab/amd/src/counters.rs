//! Tracks the memory accesses in flight, and the waits that complete them.
//!
//! Vector loads arrive in the order in which they were issued, so a wait for all but the last few completes
//! the earlier ones. Scalar loads arrive in any order, so only a wait for all of them completes any. On gfx9
//! stores count with the loads; later generations have a separate counter for stores, which no register waits
//! for. gfx12 has a counter for each kind; before, `lgkmcnt` counts two kinds.

use crate::instruction::Instruction;
use crate::table::{Action, Generation, Waits};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Loads,
    Scalars,
    Shared,
}

/// An access in flight, with the registers that it will write.
#[derive(Clone, Copy, Debug)]
struct Pending {
    queue: Queue,
    is_vector: bool,
    first: u16,
    count: u16,
}

/// The accesses of one wave that are in flight, oldest first.
#[derive(Default)]
pub(crate) struct Counters(Vec<Pending>);

impl Instruction {
    /// The numbers of loads, exports and scalar or shared accesses that may stay in flight, for a wait on all
    /// three.
    pub(crate) fn waits(&self) -> [u32; 3] {
        let word = self.immediate as u32;
        let of = |from: u32, len: u32| word >> from & ((1 << len) - 1);
        match self.target.generation {
            Generation::Gfx9 => [of(0, 4) | of(14, 2) << 4, of(4, 3), of(8, 4)],
            Generation::Gfx10 => [of(0, 4) | of(14, 2) << 4, of(4, 3), of(8, 6)],
            _ => [of(10, 6), of(0, 3), of(4, 6)],
        }
    }

    /// The largest counts: a wait with these waits for nothing.
    pub(crate) fn most_waits(&self) -> [u32; 3] {
        [63, 7, if self.target.generation == Generation::Gfx9 { 15 } else { 63 }]
    }

    /// The instruction's queue, and whether it returns a value to registers.
    fn queue(&self) -> Option<(Queue, bool)> {
        match &self.row.action {
            Action::Load { .. } => Some((Queue::Loads, true)),
            Action::Atomic { .. } if self.returns => Some((Queue::Loads, true)),
            Action::Atomic { .. } | Action::Store { .. } if self.target.generation == Generation::Gfx9 => {
                Some((Queue::Loads, false))
            }
            Action::ScalarLoad { .. } => Some((Queue::Scalars, true)),
            Action::Permute => Some((Queue::Shared, true)),
            _ => None,
        }
    }
}

impl Counters {
    /// Refuses an instruction that touches a register which an access in flight will write.
    pub(crate) fn check(&self, made: &Instruction) -> Result<(), String> {
        if self.0.iter().all(|pending| pending.count == 0) {
            return Ok(());
        }
        let own = made.queue().map(|(queue, _)| queue);
        for (is_vector, first, count, written) in &made.touches {
            for pending in self.0.iter().filter(|pending| pending.is_vector == *is_vector) {
                let apart = first + count <= pending.first || pending.first + pending.count <= *first;
                // A later access in the same ordered queue may write the same register.
                let ordered = *written && own == Some(pending.queue) && pending.queue != Queue::Scalars;
                if !apart && !ordered && pending.count > 0 {
                    let letter = if *is_vector { 'v' } else { 's' };
                    return Err(format!(
                        "{letter}{first} is used before what was loaded there was waited for"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Records the access that an instruction starts.
    pub(crate) fn issue(&mut self, made: &Instruction) {
        let Some((queue, returns)) = made.queue() else { return };
        let written = made.touches.iter().find(|(.., written)| *written && returns);
        let (is_vector, first, count) =
            written.map_or((true, 0, 0), |(v, first, count, _)| (*v, *first, *count));
        self.0.push(Pending { queue, is_vector, first, count });
    }

    pub(crate) fn wait(&mut self, made: &Instruction, waits: Waits) {
        let word = made.immediate as u32;
        match waits {
            Waits::Packed => {
                let [loads, _, others] = made.waits();
                self.arrive(&[Queue::Loads], loads);
                self.arrive(&[Queue::Scalars, Queue::Shared], others);
            }
            Waits::Loads => self.arrive(&[Queue::Loads], word & 63),
            Waits::Scalars => self.arrive(&[Queue::Scalars], word & 31),
            Waits::Shared => self.arrive(&[Queue::Shared], word & 63),
            Waits::LoadsAndShared => {
                self.arrive(&[Queue::Loads], word >> 8 & 63);
                self.arrive(&[Queue::Shared], word & 63);
            }
        }
    }

    /// Removes the accesses that have arrived once at most `left` are in flight.
    fn arrive(&mut self, queues: &[Queue], left: u32) {
        let counted = |pending: &Pending| queues.contains(&pending.queue);
        let all = self.0.iter().filter(|pending| counted(pending)).count();
        let any_order = self.0.iter().any(|pending| counted(pending) && pending.queue == Queue::Scalars);
        if left > 0 && any_order {
            return;
        }
        let mut arrived = all.saturating_sub(left as usize);
        self.0.retain(|pending| {
            let stays = !counted(pending) || arrived == 0;
            arrived -= usize::from(!stays);
            stays
        });
    }
}
