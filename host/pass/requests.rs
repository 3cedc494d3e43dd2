//! What an operation asks for while it plans, and is granted all at once when its plan is complete: counters, bitmaps of
//! zeros, outputs and scratch.
//!
//! The one idea: to ask gives a number, not memory. So one walk over the types finds out what is needed and notes who needs
//! it, nothing has to be counted before it, and launches find their memory by that number.

use std::ops::Index;

use bowstring_kernels::memory::Out;

use super::Pass;
use super::region::Region;
use crate::Result;

/// Outputs that are larger have blocks of their own: to take a block from the pool and give it back costs the host more than
/// a small column's bytes are worth.
const SMALL_OUTPUT: usize = 128 << 10;
/// Where outputs start in a shared block, as blocks of the pool do.
const OUTPUT_ALIGNMENT: usize = 256;
/// More zeros than these are not sent: a call makes them there, of several bitmaps at once.
const SENT_ZEROS: usize = 16 << 10;
const SMALL_ZEROS: usize = 512 << 10;
/// Where zeros start: as far apart as consumers' reads of whole words reach.
const ZEROS_ALIGNMENT: usize = 64;
/// No shared block is larger: it stays for as long as anything in it.
const LARGEST_SHARED: usize = 1 << 20;

/// What has been asked for so far.
#[derive(Default)]
pub(crate) struct Requests {
    /// What the counters start at.
    counters: Vec<u64>,
    zeros: Vec<usize>,
    outputs: Vec<usize>,
    scratch: Vec<usize>,
}

/// A number that kernels leave for the host: a sum, or the first row that something is wrong with.
#[derive(Clone, Copy)]
pub(crate) struct Counter(usize);

/// Memory that was asked for: what was granted is found by it.
#[derive(Clone, Copy)]
pub(crate) enum Request {
    Zeros(usize),
    Output(usize),
    Scratch(usize),
}

/// What was asked for.
pub(crate) struct Granted {
    counters: Option<Region>,
    zeros: Vec<Region>,
    outputs: Vec<Region>,
    scratch: Vec<Region>,
}

impl Counter {
    /// The one so many places after this one.
    pub fn plus(self, places: usize) -> Counter {
        Counter(self.0 + places)
    }

    /// Its value among those that were read.
    pub fn of(self, words: &[u64]) -> u64 {
        words[self.0]
    }
}

impl Requests {
    /// A sum, which starts at zero.
    pub fn sum(&mut self) -> Counter {
        self.sums(1)
    }

    /// The first of so many sums, one after the other.
    pub fn sums(&mut self, count: usize) -> Counter {
        let first = Counter(self.counters.len());
        self.counters.resize(first.0 + count, 0);
        first
    }

    /// The first of some rows: it starts beyond all of them, and is lowered.
    pub fn first_row(&mut self) -> Counter {
        self.counters.push(u64::MAX);
        Counter(self.counters.len() - 1)
    }

    /// So many zero bytes, of an array that is made or of scratch.
    pub fn zeros(&mut self, bytes: usize) -> Request {
        self.zeros.push(bytes);
        Request::Zeros(self.zeros.len() - 1)
    }

    /// So many bytes of an array that is made.
    pub fn output(&mut self, bytes: usize) -> Request {
        self.outputs.push(bytes);
        Request::Output(self.outputs.len() - 1)
    }

    /// So many bytes that are not seen after the pass.
    pub fn scratch(&mut self, bytes: usize) -> Request {
        self.scratch.push(bytes);
        Request::Scratch(self.scratch.len() - 1)
    }

    /// Gets all of it. Tables of so many bytes that the pass uploads next travel with the counters.
    pub fn grant(self, pass: &mut Pass, tables: usize) -> Result<Granted> {
        let are_sent = padded(&self.zeros, ZEROS_ALIGNMENT) <= SENT_ZEROS;
        let sent = if are_sent { &self.zeros[..] } else { &[] };
        pass.reserve([size_of_val(&self.counters[..]), tables].into_iter().chain(sent.iter().copied()));
        let counters = (!self.counters.is_empty()).then(|| pass.upload(&self.counters)).transpose()?;
        let zeros = match are_sent {
            true => sent.iter().map(|bytes| pass.zeroed(*bytes)).collect::<Result<_>>()?,
            false => shared(&self.zeros, SMALL_ZEROS, ZEROS_ALIGNMENT, |bytes| pass.cleared(bytes))?,
        };
        let mut blocks =
            |sizes: &[usize]| shared(sizes, SMALL_OUTPUT, OUTPUT_ALIGNMENT, |bytes| pass.output(bytes));
        Ok(Granted { counters, zeros, outputs: blocks(&self.outputs)?, scratch: blocks(&self.scratch)? })
    }
}

/// Regions of these sizes, of which the small ones are parts of shared blocks.
fn shared(
    sizes: &[usize],
    small: usize,
    alignment: usize,
    mut block: impl FnMut(usize) -> Result<Region>,
) -> Result<Vec<Region>> {
    let is_small = |bytes: &usize| (1..=small).contains(bytes);
    let mut left = padded(sizes.iter().filter(|bytes| is_small(bytes)), alignment);
    let mut open: Option<(Region, usize)> = None;
    let mut place = |bytes: usize| {
        if !is_small(&bytes) {
            return block(bytes);
        }
        let needed = bytes.next_multiple_of(alignment);
        let (region, used) = match open.take().filter(|(open, used)| open.bytes() - used >= needed) {
            Some(open) => open,
            None => (block(left.min(LARGEST_SHARED))?, 0),
        };
        left -= needed;
        let piece = region.piece(used, bytes);
        open = Some((region, used + needed));
        Ok(piece)
    };
    sizes.iter().map(|bytes| place(*bytes)).collect()
}

/// How much of a block they take together.
fn padded<'a>(sizes: impl IntoIterator<Item = &'a usize>, alignment: usize) -> usize {
    let padded = |bytes: &usize| bytes.checked_next_multiple_of(alignment).unwrap_or(usize::MAX);
    sizes.into_iter().map(padded).fold(0, usize::saturating_add)
}

impl Granted {
    /// Where kernels leave a number.
    pub fn counter(&self, counter: Counter) -> Out<u64> {
        self.counters.as_ref().map_or(Out::absent(), |region| region.out().skip(counter.0 as u64))
    }

    /// Whether any counter was asked for.
    pub fn has_counters(&self) -> bool {
        self.counters.is_some()
    }

    /// All counters, to be read: some were asked for.
    pub fn counters(&self) -> &Region {
        self.counters.as_ref().expect("counters were asked for")
    }
}

impl Index<Request> for Granted {
    type Output = Region;

    fn index(&self, request: Request) -> &Region {
        match request {
            Request::Zeros(i) => &self.zeros[i],
            Request::Output(i) => &self.outputs[i],
            Request::Scratch(i) => &self.scratch[i],
        }
    }
}
