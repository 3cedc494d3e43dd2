//! What the nodes of a plan came to, of a chunk of rows.

use super::blocks::{CHUNK, View, inside};
use crate::cpu::memory;
use crate::expr::plan::Id;

/// Words of a chunk.
pub(super) const WORDS: usize = CHUNK / 64;

/// The results of the nodes of a plan, of a chunk.
pub(super) struct Scratch<'a> {
    pub(super) slots: Vec<Slot<'a>>,
}

/// A node's.
#[derive(Default)]
pub(super) struct Slot<'a> {
    /// Numbers that were computed, or where they are.
    pub(super) own: Vec<u128>,
    pub(super) shared: Option<&'a [u8]>,
    pub(super) constant: bool,
    pub(super) width: usize,
    /// Words of truths.
    pub(super) truth: Vec<u64>,
    /// Which are valid, or known; unless all are.
    pub(super) valid: Vec<u64>,
    pub(super) all_valid: bool,
}

/// What a node came to.
pub(super) enum Values<'a> {
    Truth(&'a [u64], Option<&'a [u64]>),
    /// With the width of a value.
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

    /// Which are valid is what `f` makes of each word.
    pub(super) fn set_valid(&mut self, f: impl Fn(usize) -> u64) {
        self.all_valid = false;
        self.valid.iter_mut().enumerate().for_each(|(k, word)| *word = f(k));
    }

    /// Valid where all of these are.
    pub(super) fn valid_as(&mut self, inputs: &[&Slot<'_>]) {
        self.all_valid = inputs.iter().all(|input| input.all_valid);
        if !self.all_valid {
            self.set_valid(|k| inputs.iter().fold(!0, |word, input| word & input.known(k)));
        }
    }

    /// Nobody looks at it, but for truths, which are false then.
    pub(super) fn skipped(&mut self) {
        self.truth.fill(0);
        self.all_valid = true;
    }

    pub(super) fn known(&self, k: usize) -> u64 {
        if self.all_valid { !0 } else { self.valid[k] }
    }
}

impl Scratch<'_> {
    /// The truths of a node, and which are known.
    pub fn truth(&self, id: Id) -> (&[u64], Option<&[u64]>) {
        (&self.slots[id].truth, self.slots[id].valid())
    }

    /// What a node came to.
    pub fn values(&self, id: Id) -> Values<'_> {
        let slot = &self.slots[id];
        if slot.width == 0 {
            return Values::Truth(&slot.truth, slot.valid());
        }
        Values::Numbers(slot.view(), slot.width, slot.valid())
    }
}

impl Slot<'_> {
    /// Truths of two, each with whether it is known.
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

    /// What is not known is not true.
    pub(super) fn masked(&mut self) {
        if !self.all_valid {
            self.truth.iter_mut().zip(&self.valid).for_each(|(truth, known)| *truth &= known);
        }
    }
}

impl Scratch<'_> {
    /// The numbers of a node, and which of its rows are valid and meet the condition.
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
