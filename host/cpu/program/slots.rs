//! The results of a plan's nodes, for one chunk of rows.

use super::blocks::{CHUNK, View, inside};
use crate::cpu::memory;
use crate::expr::plan::Id;

/// The words of a bitmap over a chunk.
pub(super) const WORDS: usize = CHUNK / 64;

/// The results of all nodes of a plan, for one chunk.
pub(super) struct Scratch<'a> {
    pub(super) slots: Vec<Slot<'a>>,
}

/// The result of one node.
#[derive(Default)]
pub(super) struct Slot<'a> {
    /// The computed numbers; `shared` replaces them if they lie elsewhere.
    pub(super) own: Vec<u128>,
    pub(super) shared: Option<&'a [u8]>,
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

impl Slot<'_> {
    pub(super) fn view(&self) -> View<'_> {
        let bytes = self.shared.unwrap_or_else(|| memory::bytes_of(&self.own));
        View { bytes, constant: self.constant }
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
    pub(super) fn valid_as(&mut self, inputs: &[&Slot<'_>]) {
        self.all_valid = inputs.iter().all(|input| input.all_valid);
        if !self.all_valid {
            self.set_valid(|k| inputs.iter().fold(!0, |word, input| word & input.known(k)));
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

impl Scratch<'_> {
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

impl Slot<'_> {
    /// Combines the truths of two nodes, each word together with its mask of known truths.
    pub(super) fn logic(&mut self, of: &[&Slot<'_>; 2], f: impl Fn([u64; 2], [u64; 2]) -> [u64; 2]) {
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

impl Scratch<'_> {
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
