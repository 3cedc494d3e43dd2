//! Sorting by keys of which one is text: from the first key on, and of rows that are equal so far.
//!
//! The one idea: see [`bowstring_kernels::sort::ties`]. The host looks twice for each word: at the bits in
//! which it differs, and at the number of rows that go on.

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::sort::ties::{
    BYTES, NARROW, Narrow, SCATTER, Scatter, TEXT_WORDS, TIES, TextWords, Ties,
};

use super::digits::{Placements, entry, reorder};
use super::keys::{Key, Part};
use crate::Result;
use crate::array::{DeviceArray, all_inside};
use crate::gpu::structure::Marked;
use crate::gpu::structure::counted;
use crate::gpu::text::text_column;
use crate::pass::{Looks, Pass, Region, Table};

/// The rows that are not yet told apart, in the order so far.
struct Rest {
    rows: usize,
    order: Region,
    /// The rows' places among all rows, and their groups. `None` if all rows are here, and in one group.
    within: Option<(Region, Region)>,
    /// One more than the greatest group.
    groups: usize,
}

/// The words that the rest is sorted by.
struct Step {
    key: Key,
    differs: Region,
    /// The bits that are flipped in words of text; `None` for other words.
    text: Option<u64>,
    /// Whether no key follows, so that rows whose text ends are in order.
    last: bool,
}

/// The result of a step.
struct Left {
    rest: Option<Rest>,
    /// The number of rows whose text goes on.
    more: u64,
}

/// Returns rows, at least one, in the order of their keys.
pub(super) async fn sorted(pass: &mut Pass, parts: &[Part<'_>], rows: usize) -> Result<Region> {
    let mut all = counted(pass, 0, rows, 4)?;
    let mut rest = Some(Rest { rows, order: all.clone(), within: None, groups: 1 });
    for (i, part) in parts.iter().enumerate() {
        let last = i + 1 == parts.len();
        match part {
            Part::Words(source) => {
                let Some(now) = rest else { break };
                let mut own = now.pass(pass, &all)?;
                let differs = own.zeroed(8)?;
                let mut key = source.key(&mut own, rows, differs.out())?;
                if i > 0 {
                    let words = own.rows(now.rows, key.width)?;
                    reorder(&mut own, key, &now.order, now.rows, &words)?;
                    key.words = words.input();
                }
                let step = Step { key, differs, text: None, last };
                rest = now.sort(&mut own, step, &mut all).await?.rest;
                own.finish()?;
            }
            Part::Text(values, flip) => {
                let fault = pass.first_rows(1, rows)?;
                let column = described(pass, values).await?;
                // The steps have passes of their own, which read what was uploaded here.
                pass.send()?;
                let mut from = 0;
                while let Some(now) = rest {
                    let mut own = now.pass(pass, &all)?;
                    own.reuse(&column);
                    own.reuse(&fault);
                    let (words, differs) = (own.rows(now.rows, 8)?, own.zeroed(8)?);
                    let args = TextWords {
                        column: column.input(),
                        order: now.order.input(),
                        from,
                        flip: *flip,
                        rows: now.rows as u64,
                        words: words.out(),
                        differs: differs.out(),
                        fault: fault.out(),
                    };
                    let make = entry(&own, TEXT_WORDS, &[])?;
                    own.launch(make, &args)?;
                    if from == 0 {
                        // Later words are of the same texts.
                        pass.report(&fault, all_inside)?;
                    }
                    let step = Step {
                        key: Key { words: words.input(), width: 8 },
                        differs,
                        text: Some(*flip),
                        last,
                    };
                    let left = now.sort(&mut own, step, &mut all).await?;
                    own.finish()?;
                    rest = left.rest;
                    if left.more == 0 {
                        break;
                    }
                    from += BYTES;
                }
            }
        }
    }
    pass.reuse(&all);
    Ok(all)
}

/// Returns a table of the one column of text.
async fn described(pass: &mut Pass, values: &DeviceArray) -> Result<Region> {
    let mut table = Table::default();
    table.push(&text_column(pass, values).await?);
    pass.upload(table.words())
}

impl Rest {
    /// Begins a pass for one step. Text may take any number of steps, and each releases what it used.
    fn pass(&self, of: &Pass, all: &Region) -> Result<Pass> {
        let mut own = Pass::begin(of.operation(), of.stream())?;
        own.reuse(all);
        own.reuse(&self.order);
        if let Some((places, groups)) = &self.within {
            own.reuse(places);
            own.reuse(groups);
        }
        Ok(own)
    }

    /// Sorts the rows by a word, within their groups, and writes them to their places among all rows.
    async fn sort(self, pass: &mut Pass, step: Step, all: &mut Region) -> Result<Left> {
        let differs = pass.read(&[&step.differs]).await?[0];
        let (mut key, mut order) = (step.key, self.order);
        if differs != 0 {
            let mut placements = Placements::new(pass, self.rows, 8)?;
            placements.sort(pass, key, differs)?;
            if let Some((_, groups)) = &self.within {
                let bits = u64::MAX >> (self.groups as u64 - 1).leading_zeros().min(63);
                let groups = Key { words: groups.input(), width: 4 };
                placements.sort(pass, groups, if self.groups > 1 { bits } else { 0 })?;
            }
            if let Some(by) = placements.order() {
                let (words, rows) = (pass.rows(self.rows, key.width)?, pass.rows(self.rows, 4)?);
                reorder(pass, key, by, self.rows, &words)?;
                reorder(pass, Key { words: order.input(), width: 4 }, by, self.rows, &rows)?;
                (key.words, order) = (words.input(), rows);
            }
            match &self.within {
                None => *all = order.clone(),
                Some((places, _)) => {
                    let (places, rows) = (places.input(), self.rows as u64);
                    let scatter = entry(pass, SCATTER, &[])?;
                    let args = Scatter { places, order: order.input(), rows, out: all.out() };
                    pass.launch(scatter, &args)?;
                }
            }
        }
        if step.last && step.text.is_none() {
            return Ok(Left { rest: None, more: 0 });
        }
        let bytes = self.rows.div_ceil(32) * 4;
        let (begins, goes_on, more) = (pass.output(bytes)?, pass.output(bytes)?, pass.zeroed(8)?);
        let args = Ties {
            words: key.words,
            groups: self.within.as_ref().map_or(In::absent(), |(_, groups)| groups.input()),
            flip: step.text.unwrap_or(0),
            only_more: step.last.into(),
            rows: self.rows as u64,
            begins: begins.out(),
            goes_on: goes_on.out(),
            more: if step.text.is_some() { more.out() } else { Out::absent() },
        };
        let ties = entry(pass, TIES, &[key.width as u32])?;
        pass.launch(ties, &args)?;
        let (begins, goes_on) =
            (Marked::new(pass, self.rows, &begins)?, Marked::new(pass, self.rows, &goes_on)?);
        let mut looks = Looks::default();
        let [first, second, third] =
            [begins.counters(), goes_on.counters(), &more].map(|region| looks.at([region]));
        let words = looks.read(pass).await?;
        let (groups, rows) = (begins.total(&words[&first]), goes_on.total(&words[&second]));
        let more = words[&third][0];
        if rows == 0 {
            return Ok(Left { rest: None, more });
        }
        let [places, order_after, groups_after] =
            [pass.rows(rows, 4)?, pass.rows(rows, 4)?, pass.rows(rows, 4)?];
        let args = Narrow {
            begins: begins.mask.words().0,
            begins_offsets: begins.mask.offsets(),
            goes_on: goes_on.mask.words().0,
            goes_on_offsets: goes_on.mask.offsets(),
            places: self.within.as_ref().map_or(In::absent(), |(places, _)| places.input()),
            order: order.input(),
            rows: self.rows as u64,
            out_places: places.out(),
            out_order: order_after.out(),
            out_groups: groups_after.out(),
        };
        let narrow = entry(pass, NARROW, &[])?;
        pass.launch(narrow, &args)?;
        let within = Some((places, groups_after));
        Ok(Left { rest: Some(Rest { rows, order: order_after, within, groups }), more })
    }
}
