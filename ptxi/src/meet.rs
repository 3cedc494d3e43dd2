//! Where lanes that have parted meet again.
//!
//! The one idea: a block that every way to the end leads through is where lanes wait for each other, as NVIDIA's compiler has it
//! (it puts a convergence barrier there). Such a block is nearer to the root of the tree of post-dominators than what it waits for;
//! so whoever stands deepest in that tree runs first. A block's place in the image says nothing: what is seldom run is put last.

use crate::module::{Instruction, Op};

/// How deep in the tree of post-dominators each instruction is. What never comes to an end is at the root.
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

/// The flow of a kernel between blocks; behind the last one stands the end.
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

    /// The nearest block that all ways from a block to the end lead through; of the end itself. `None` where none leads there.
    fn dominators(&self) -> Vec<Option<usize>> {
        let end = self.next.len() - 1;
        let mut before = vec![vec![]; self.next.len()];
        self.next.iter().enumerate().for_each(|(i, next)| next.iter().for_each(|to| before[*to].push(i)));
        // From the end backwards, so that most of what follows a block is known when it is come to.
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

/// Where an instruction that ends a block may go on elsewhere; `None` of others.
fn targets(instruction: &Instruction) -> Option<&[usize]> {
    match &instruction.op {
        Op::Branch { target } => Some(std::slice::from_ref(target)),
        Op::BranchTable { targets, .. } => Some(targets),
        Op::Exit | Op::Trap => Some(&[]),
        _ => None,
    }
}
