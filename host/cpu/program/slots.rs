//! The results of a plan's nodes, for one chunk of rows.

use super::blocks::{BLOCK, CHUNK, View, inside};
use crate::device::HostMemory;
use crate::expr::plan::Id;

/// The words of a bitmap over a chunk.
pub(super) const WORDS: usize = CHUNK / 64;

/// The results of all nodes of a plan, for one chunk. `'a` is of the columns, `'o` of the outputs.
pub(super) struct Scratch<'a, 'o> {
    pub(super) slots: Vec<Slot<'a, 'o>>,
}

/// The result of one node.
#[derive(Default)]
pub(super) struct Slot<'a, 'o> {
    /// Memory for the computed numbers; `shared` replaces them if they lie elsewhere. Unspecified at first.
    pub(super) own: Option<HostMemory>,
    pub(super) shared: Option<&'a [u8]>,
    /// An output's memory for this chunk, which replaces `own`.
    pub(super) output: Option<&'o mut [u8]>,
    pub(super) constant: bool,
    pub(super) width: usize,
    /// The truths, a bit for each row.
    pub(super) truth: Vec<u64>,
    /// The rows that are valid or, for truths, known. Ignored if `all_valid` is set.
    pub(super) valid: Vec<u64>,
    pub(super) all_valid: bool,
}

/// A node's result, as roots are stored: values, and validity unless all rows are valid.
pub(super) enum Values<'a> {
    Truth(&'a [u64], Option<&'a [u64]>),
    /// Numbers, with the width of a value in bytes.
    Numbers(View<'a>, usize, Option<&'a [u64]>),
}

impl Slot<'_, '_> {
    pub(super) fn view(&self) -> View<'_> {
        let own = || match (&self.output, &self.own) {
            (Some(output), _) => &**output,
            (None, own) => own.as_ref().map_or(&[][..], HostMemory::bytes),
        };
        View { bytes: self.shared.unwrap_or_else(own), constant: self.constant }
    }

    /// The memory for the computed numbers.
    pub(super) fn numbers(&mut self) -> &mut [u8] {
        match &mut self.output {
            Some(output) => output,
            None => self.own.as_mut().map_or(&mut [], HostMemory::bytes_mut),
        }
    }

    pub(super) fn valid(&self) -> Option<&[u64]> {
        (!self.all_valid).then_some(&self.valid[..])
    }

    /// Sets each validity word to what `f` returns for it.
    pub(super) fn set_valid(&mut self, f: impl Fn(usize) -> u64) {
        self.all_valid = false;
        self.valid.iter_mut().enumerate().for_each(|(k, word)| *word = f(k));
    }

    /// Sets the validity to the intersection of the inputs' validity.
    pub(super) fn valid_as(&mut self, inputs: &[&Slot<'_, '_>]) {
        self.all_valid = true;
        for input in inputs.iter().filter(|input| !input.all_valid) {
            if self.all_valid {
                self.valid.copy_from_slice(&input.valid);
            } else {
                self.valid.iter_mut().zip(&input.valid).for_each(|(own, other)| *own &= other);
            }
            self.all_valid = false;
        }
    }

    /// Marks a result that is not needed. Truths must be false then, because later steps may read them.
    pub(super) fn skipped(&mut self) {
        self.truth.fill(0);
        self.all_valid = true;
    }

    pub(super) fn known(&self, k: usize) -> u64 {
        if self.all_valid { !0 } else { self.valid[k] }
    }
}

impl<'o> Scratch<'_, 'o> {
    /// Lets a node write its numbers for the next chunk into the memory of an output, which must have whole
    /// blocks. Returns the memory if the node does not compute numbers, or has such memory already.
    pub fn lend(&mut self, id: Id, output: &'o mut [u8]) -> Option<&'o mut [u8]> {
        let slot = &mut self.slots[id];
        let computes = slot.own.is_some() && !slot.constant;
        if !computes || slot.output.is_some() || !output.len().is_multiple_of(BLOCK * slot.width) {
            return Some(output);
        }
        slot.output = Some(output);
        None
    }

    /// Takes back what [`lend`](Scratch::lend) gave: it has the node's numbers now.
    pub fn take_back(&mut self, id: Id) {
        let slot = &mut self.slots[id];
        if let Some(output) = slot.output.take()
            && slot.constant
        {
            let (first, others) = output.split_at_mut(slot.width);
            others.chunks_mut(slot.width).for_each(|other| other.copy_from_slice(first));
        }
    }
}

impl Scratch<'_, '_> {
    /// Returns the truths of a node, and the mask of known ones unless all are known.
    pub fn truth(&self, id: Id) -> (&[u64], Option<&[u64]>) {
        (&self.slots[id].truth, self.slots[id].valid())
    }

    /// Returns the result of a node.
    pub fn values(&self, id: Id) -> Values<'_> {
        let slot = &self.slots[id];
        if slot.width == 0 {
            return Values::Truth(&slot.truth, slot.valid());
        }
        Values::Numbers(slot.view(), slot.width, slot.valid())
    }
}

impl Slot<'_, '_> {
    /// Combines the truths of two nodes, each word together with its mask of known truths.
    pub(super) fn logic(&mut self, of: &[&Slot<'_, '_>; 2], f: impl Fn([u64; 2], [u64; 2]) -> [u64; 2]) {
        let [a, b] = of;
        let mut all = true;
        for k in 0..WORDS {
            let [truth, known] = f([a.truth[k], a.known(k)], [b.truth[k], b.known(k)]);
            (self.truth[k], self.valid[k]) = (truth & known, known);
            all &= known == !0;
        }
        self.all_valid = all;
    }

    /// Clears the truths that are not known.
    pub(super) fn masked(&mut self) {
        if !self.all_valid {
            self.truth.iter_mut().zip(&self.valid).for_each(|(truth, known)| *truth &= known);
        }
    }
}

impl Scratch<'_, '_> {
    /// Returns the numbers of a node, and the mask of rows that are valid and meet the condition.
    pub fn counted<'t>(
        &'t self,
        id: Id,
        condition: Option<Id>,
        count: usize,
        there: &'t mut [u64; WORDS],
    ) -> (View<'t>, &'t [u64]) {
        let slot = &self.slots[id];
        let words = count.div_ceil(64);
        for (k, word) in there[..words].iter_mut().enumerate() {
            let meets = condition.map_or(!0, |id| self.slots[id].truth[k] & self.slots[id].known(k));
            *word = slot.known(k) & meets & inside(count, k);
        }
        (slot.view(), &there[..words])
    }
}
