//! Computes the points at which diverged lanes reconverge.
//!
//! The one idea: lanes wait for each other at a block that every path to the end leads through, as NVIDIA's
//! compiler arranges it (it puts a convergence barrier there). Such a block is nearer to the root of the
//! post-dominator tree than the blocks that it waits for, so the deepest block in that tree runs first. A
//! block's position in the image does not matter: rarely executed code is placed last.

use crate::module::{Instruction, Op};

/// The depth of each instruction in the post-dominator tree. Code that never reaches the end is at the root.
pub(crate) fn depths(code: &[Instruction]) -> Vec<u32> {
    let blocks = Blocks::of(code);
    let over = blocks.dominators();
    let depth = |block: usize| {
        let above = |block: &usize| over[*block].filter(|over| over != block);
        std::iter::successors(Some(block), above).count() as u32 - 1
    };
    let of_block: Vec<u32> = (0..blocks.starts.len()).map(depth).collect();
    blocks.of_instruction.iter().map(|block| of_block[*block]).collect()
}

/// The control flow between a kernel's blocks; an extra block after the last one stands for the end.
struct Blocks {
    starts: Vec<usize>,
    of_instruction: Vec<usize>,
    next: Vec<Vec<usize>>,
}

impl Blocks {
    fn of(code: &[Instruction]) -> Blocks {
        let mut starts = vec![0, code.len()];
        for (at, instruction) in code.iter().enumerate() {
            if let Some(targets) = targets(instruction) {
                starts.push(at + 1);
                starts.extend(targets);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        let end = starts.len() - 1;
        let block = |at: usize| starts.partition_point(|start| *start <= at) - 1;
        let next = (0..end).map(|i| {
            let last = starts[i + 1] - 1;
            let Some(targets) = targets(&code[last]) else { return vec![i + 1] };
            let mut next: Vec<usize> = targets.iter().map(|target| block(*target)).collect();
            next.extend((code[last].guard.is_some()).then_some(i + 1));
            next.extend(matches!(code[last].op, Op::Exit | Op::Trap).then_some(end));
            next
        });
        let next = next.chain([vec![]]).collect();
        Blocks { of_instruction: (0..code.len()).map(block).collect(), next, starts }
    }

    /// For each block the nearest post-dominator, the nearest block that all paths to the end lead through.
    /// The end is its own; `None` for a block without a path to the end.
    fn dominators(&self) -> Vec<Option<usize>> {
        let end = self.next.len() - 1;
        let mut before = vec![vec![]; self.next.len()];
        self.next.iter().enumerate().for_each(|(i, next)| next.iter().for_each(|to| before[*to].push(i)));
        // Visits blocks backwards from the end, so that most successors of a block are known when it is
        // visited.
        let (mut order, mut number) = (vec![], vec![usize::MAX; self.next.len()]);
        let (mut seen, mut stack) = (vec![false; self.next.len()], vec![(end, 0)]);
        seen[end] = true;
        while let Some((block, at)) = stack.pop() {
            let Some(from) = before[block].get(at) else {
                number[block] = order.len();
                order.push(block);
                continue;
            };
            stack.push((block, at + 1));
            if !std::mem::replace(&mut seen[*from], true) {
                stack.push((*from, 0));
            }
        }
        let mut over = vec![None; self.next.len()];
        over[end] = Some(end);
        loop {
            let mut changed = false;
            for block in order.iter().rev().skip(1) {
                let known = self.next[*block].iter().copied().filter(|next| over[*next].is_some());
                let found = known.reduce(|mut a, mut b| {
                    while a != b {
                        let lower = if number[a] < number[b] { &mut a } else { &mut b };
                        *lower = over[*lower].expect("its block is known");
                    }
                    a
                });
                changed |= found != over[*block];
                over[*block] = found;
            }
            if !changed {
                return over;
            }
        }
    }
}

/// The other places to which an instruction that ends a block may jump; `None` for other instructions.
fn targets(instruction: &Instruction) -> Option<&[usize]> {
    match &instruction.op {
        Op::Branch { target } => Some(std::slice::from_ref(target)),
        Op::BranchTable { targets, .. } => Some(targets),
        Op::Exit | Op::Trap => Some(&[]),
        _ => None,
    }
}
