//! Sorting items by digits.
//!
//! The one idea: the highest digit in which items differ splits them into buckets that fit a cache, in a
//! pass that all threads share; then each bucket is one thread's. A bucket that is still large, or whose
//! rows agree in all that an item holds, is split again like the whole.

use std::sync::atomic::AtomicU64;

use crate::Result;
use crate::cpu::memory;
use crate::device::interrupt;
use crate::threads::{each_part, here};

use super::items::{Item, differing};
use super::keys::{Cursor, Keys};

/// The items that one thread makes or counts at a time.
pub(in crate::cpu) const CHUNK: usize = 16 * 1024;
/// The most items of a bucket that one thread sorts, unless it would be idle otherwise.
pub(super) const LEAF: usize = 64 * 1024;
/// The bits of the digit that splits items for all threads.
const SPLIT: u32 = 11;
/// The bits of a digit by which one thread sorts.
const DIGIT: u32 = 8;
/// From this many items on, digits are faster than comparisons.
const BY_DIGITS: usize = 192;
/// The most digits by which items are sorted: the highest ones in which they differ. Few items agree in all
/// of these, and are sorted by what is left.
const PASSES: u32 = 3;
/// So many items have that many digits, and fewer may have one less.
const MANY: usize = 32 * 1024;
/// The items that are asked for their digits.
const SAMPLE: usize = 1024;
/// The most rows with the same item that are compared one by one.
const FEW: usize = 20;

/// Items to split, in one of two places of memory.
struct Task {
    start: usize,
    end: usize,
    in_spare: bool,
    from: Cursor,
}

/// Sorts all rows: writes them to `out` in their order. `items` are those of [`Keys::begin`], in the order of
/// their rows; `spare` is as long.
pub(super) fn sort<I: Item>(
    keys: &Keys<'_>,
    items: &mut [I],
    spare: &mut [I],
    out: &mut [u32],
) -> Result<()> {
    if items.len() <= LEAF {
        return leaf(keys, Cursor::default(), items, spare, out);
    }
    let mut tasks = vec![Task { start: 0, end: items.len(), in_spare: false, from: Cursor::default() }];
    while let Some(task) = tasks.pop() {
        let Task { start, end, in_spare, from } = task;
        let (from_items, to_items) = match in_spare {
            false => (&mut items[start..end], &mut spare[start..end]),
            true => (&mut spare[start..end], &mut items[start..end]),
        };
        split(keys, from, from_items, to_items, &mut out[start..end], |range, from| {
            let (start, end) = (start + range.start, start + range.end);
            tasks.push(Task { start, end, in_spare: !in_spare, from });
        })?;
    }
    Ok(())
}

/// Sorts rows by what follows the first part of their keys, which says whether they are null, in one thread.
pub(super) fn after_nulls<I: Item>(
    keys: &Keys<'_>,
    items: &mut [I],
    spare: &mut [I],
    out: &mut [u32],
) -> Result<()> {
    let values = Cursor::of_part(1);
    keys.go_on(values, items)?;
    leaf(keys, values, items, spare, out)
}

/// Splits items by their highest digit into `to`, and sorts the small buckets. Calls `large` with the others.
fn split<I: Item>(
    keys: &Keys<'_>,
    mut from: Cursor,
    items: &mut [I],
    to: &mut [I],
    out: &mut [u32],
    mut large: impl FnMut(std::ops::Range<usize>, Cursor),
) -> Result<()> {
    let row_bits = keys.row_bits();
    let mut differ = all_differing(items)?.above(row_bits);
    // Rows that are equal so far are still in their order.
    while differ == I::default() {
        let Some(next) = keys.next(from, items[0]) else {
            for (out, items) in out.chunks_mut(CHUNK).zip(items.chunks(CHUNK)) {
                interrupt::check()?;
                write(keys, items, out);
            }
            return Ok(());
        };
        from = next;
        each_part(items.chunks_mut(CHUNK), |items| keys.go_on(from, items))?
            .into_iter()
            .collect::<Result<()>>()?;
        differ = all_differing(items)?.above(row_bits);
    }
    let top = I::BITS - differ.zeros().0;
    let digit_bits = top.min(SPLIT);
    let shift = row_bits + top - digit_bits;
    let starts = scatter(items, to, shift, digit_bits)?;

    // The buckets: some are left to the caller, the others are shared out in runs of a few.
    let most = (to.len() / (4 * here())).max(LEAF);
    let (mut buckets, mut rest) = (vec![], (items, to, out));
    for bucket in starts.windows(2) {
        let len = bucket[1] - bucket[0];
        let (items, others) = rest.0.split_at_mut(len);
        let (to, others_to) = rest.1.split_at_mut(len);
        let (out, others_out) = rest.2.split_at_mut(len);
        rest = (others, others_to, others_out);
        match len {
            0 => {}
            _ if len > most => large(bucket[0]..bucket[1], from),
            _ => buckets.push((to, items, out)),
        }
    }
    each_part(buckets, |(items, spare, out)| leaf(keys, from, items, spare, out))?.into_iter().collect()
}

/// Returns the bits in which many items differ.
fn all_differing<I: Item>(items: &[I]) -> Result<I> {
    let Some(first) = items.first() else { return Ok(I::default()) };
    let of_chunk = |items: &[I]| items[0].differing(*first).or(differing(items));
    Ok(each_part(items.chunks(CHUNK), of_chunk)?.into_iter().fold(I::default(), I::or))
}

/// Moves items to the places of their digits, in the same order within a digit. Returns where each digit
/// starts, and the end.
pub(super) fn scatter<I: Item>(items: &[I], to: &mut [I], shift: u32, digit_bits: u32) -> Result<Vec<usize>> {
    let digits = 1usize << digit_bits;
    let digit = |item: I| item.above(shift).low() as usize & (digits - 1);
    let len = items.len().div_ceil(4 * here()).max(CHUNK);
    let mut counts = each_part(items.chunks(len), |items| {
        let mut counts = vec![0usize; digits];
        items.iter().for_each(|item| counts[digit(*item)] += 1);
        counts
    })?;
    let mut starts = Vec::with_capacity(digits + 1);
    let mut start = 0;
    for digit in 0..digits {
        starts.push(start);
        for counts in &mut counts {
            (counts[digit], start) = (start, start + counts[digit]);
        }
    }
    starts.push(start);
    let to: &[AtomicU64] = memory::shared(to);
    each_part(items.chunks(len).zip(counts), |(items, mut places)| {
        for item in items {
            let place = &mut places[digit(*item)];
            item.store(to, *place);
            *place += 1;
        }
    })?;
    Ok(starts)
}

/// Sorts items in one thread, and writes their rows.
fn leaf<I: Item>(
    keys: &Keys<'_>,
    from: Cursor,
    items: &mut [I],
    spare: &mut [I],
    out: &mut [u32],
) -> Result<()> {
    sort_items(items, spare, keys.row_bits());
    if items.len() > 1 && !keys.ends::<I>(from) {
        refine(keys, from, items, spare)?;
    }
    write(keys, items, out);
    Ok(())
}

fn write<I: Item>(keys: &Keys<'_>, items: &[I], out: &mut [u32]) {
    let mask = (1 << keys.row_bits()) - 1;
    items.iter().zip(out).for_each(|(item, out)| *out = (item.low() & mask) as u32);
}

/// Sorts runs of equal items by what their keys go on with.
pub(super) fn refine<I: Item>(keys: &Keys<'_>, from: Cursor, items: &mut [I], spare: &mut [I]) -> Result<()> {
    let row_bits = keys.row_bits();
    let mut sorted = vec![(0, items.len(), from)];
    let mut looked = 0;
    while let Some((start, end, from)) = sorted.pop() {
        let mut first = start;
        while first < end {
            let key = items[first].above(row_bits);
            let same = items[first + 1..end].iter().take_while(|item| item.above(row_bits) == key).count();
            let run = first..first + 1 + same;
            first = run.end;
            if same == 0 {
                continue;
            }
            let Some(next) = keys.next(from, items[run.start]) else { continue };
            looked += run.len();
            if looked >= CHUNK {
                interrupt::check()?;
                looked = 0;
            }
            if run.len() <= FEW {
                let row = |item: &I| keys.row(*item);
                items[run].sort_by(|a, b| keys.compare(next, row(a), row(b)));
                continue;
            }
            keys.go_on(next, &mut items[run.clone()])?;
            sort_items(&mut items[run.clone()], &mut spare[run.clone()], row_bits);
            sorted.push((run.start, run.end, next));
        }
    }
    Ok(())
}

/// Sorts items whose lowest bits, their rows, ascend where their keys are equal.
fn sort_items<I: Item>(items: &mut [I], spare: &mut [I], row_bits: u32) {
    if items.len() < BY_DIGITS {
        return items.sort_unstable();
    }
    let differ = differing(items).above(row_bits);
    if differ == I::default() {
        return;
    }
    let (above, below) = differ.zeros();
    let bits = I::BITS - above - below;
    let passes = passes(items, row_bits + below, bits);
    let left = bits.saturating_sub(passes * DIGIT);
    let shift = row_bits + below + left;
    by_digits(items, spare, shift, passes as usize);
    if left == 0 {
        return;
    }
    let mut start = 0;
    while start < items.len() {
        let digits = items[start].above(shift);
        let same = items[start + 1..].iter().take_while(|item| item.above(shift) == digits).count();
        let run = start..start + 1 + same;
        if same > 0 {
            sort_items(&mut items[run.clone()], &mut spare[run.clone()], row_bits);
        }
        start = run.end;
    }
}

/// Returns the number of the highest digits, of so many bits from `shift` on, that tell most items apart.
fn passes<I: Item>(items: &[I], shift: u32, bits: u32) -> u32 {
    let all = bits.div_ceil(DIGIT).min(PASSES);
    if all < PASSES || items.len() >= MANY {
        return all;
    }
    // How many digits there are of the first two, in some of the items.
    let mut seen = [[false; 1 << DIGIT]; 2];
    let shift = shift + bits - 2 * DIGIT;
    for item in items.iter().step_by(items.len() / SAMPLE + 1) {
        let digits = item.above(shift).low() as usize;
        (seen[0][digits & 0xff], seen[1][digits >> DIGIT & 0xff]) = (true, true);
    }
    let [first, second] = seen.map(|seen| seen.into_iter().filter(|seen| *seen).count());
    if first * second >= 2 * items.len() { PASSES - 1 } else { PASSES }
}

/// Sorts by so many digits from a bit on, the lowest first. The order among equal digits stays.
fn by_digits<I: Item>(items: &mut [I], spare: &mut [I], shift: u32, passes: usize) {
    const DIGITS: usize = 1 << DIGIT;
    let mut counts = [[0u32; DIGITS]; PASSES as usize];
    let digit = |item: I, pass: usize| item.above(shift + pass as u32 * DIGIT).low() as usize % DIGITS;
    for item in items.iter() {
        let moved = item.above(shift).low();
        for (pass, counts) in counts[..passes].iter_mut().enumerate() {
            counts[(moved >> (pass as u32 * DIGIT)) as usize % DIGITS] += 1;
        }
    }
    let len = items.len();
    let (mut from, mut to) = (&mut *items, &mut *spare);
    let mut moved = false;
    for (pass, counts) in counts[..passes].iter_mut().enumerate() {
        if counts.iter().any(|count| *count as usize == len) {
            continue;
        }
        let mut start = 0;
        counts.iter_mut().for_each(|count| (*count, start) = (start, start + *count));
        for item in from.iter() {
            let place = &mut counts[digit(*item, pass)];
            to[*place as usize] = *item;
            *place += 1;
        }
        (from, to) = (to, from);
        moved = !moved;
    }
    if moved {
        items.copy_from_slice(spare);
    }
}
