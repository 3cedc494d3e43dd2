//! Collects the memory that an operation needs while it plans (counters, zeroed bitmaps, outputs and
//! scratch), and allocates all of it at once when the plan is complete.
//!
//! The one idea: a request returns a number, not memory. So one walk over the types determines what is needed
//! and by which part, without a counting pass before it, and launches find their memory by that number.

use std::ops::Index;

use bowstring_kernels::memory::Out;

use super::Pass;
use super::reads::{Looks, Seen};
use super::region::Region;
use crate::Result;

/// Larger outputs have blocks of their own. For a small column, taking a block from the pool and returning it
/// costs the host more than it saves in memory.
const SMALL_OUTPUT: usize = 128 << 10;
/// The alignment of outputs in a shared block; the same as that of the pool's blocks.
const OUTPUT_ALIGNMENT: usize = 256;
/// The most bytes of zeros that are uploaded. Beyond this a call fills several bitmaps on the device at once.
const SENT_ZEROS: usize = 16 << 10;
const SMALL_ZEROS: usize = 512 << 10;
/// The alignment of zeroed memory: consumers read whole words up to this boundary.
const ZEROS_ALIGNMENT: usize = 64;
/// The most waves for which adding to memory of the host takes less time than copying it.
const FEW_WAVES: u64 = 2;
/// The size limit of shared blocks: a block stays allocated for as long as any part of it.
const LARGEST_SHARED: usize = 1 << 20;

/// The requests so far.
#[derive(Default)]
pub(crate) struct Requests {
    /// The initial values of the counters.
    counters: Vec<u64>,
    /// The number of rows that kernels count, if it is known.
    rows: Option<usize>,
    /// Whether many waves add to one of the counters.
    often: bool,
    zeros: Vec<usize>,
    outputs: Vec<usize>,
    scratch: Vec<usize>,
}

/// A number that kernels write for the host: a sum, or the first row that fails.
#[derive(Clone, Copy)]
pub(crate) struct Counter(usize);

/// A request for memory. It identifies the granted memory.
#[derive(Clone, Copy)]
pub(crate) enum Request {
    Zeros(usize),
    Output(usize),
    Scratch(usize),
}

/// The memory for all requests.
pub(crate) struct Granted {
    counters: Option<Region>,
    zeros: Vec<Region>,
    outputs: Vec<Region>,
    scratch: Vec<Region>,
}

impl Counter {
    /// The counter that is `places` after this one.
    pub fn plus(self, places: usize) -> Counter {
        Counter(self.0 + places)
    }

    /// Its value among the words that were read.
    pub fn of(self, words: &[u64]) -> u64 {
        words[self.0]
    }
}

impl Requests {
    /// Requests of an operation over `rows` rows. Kernels write their counters where the host reads them, if
    /// the rows are few and no sum is [often](Requests::sums) added to.
    pub fn over(rows: usize) -> Requests {
        Requests { rows: Some(rows), ..Requests::default() }
    }

    /// Requests a sum, which starts at zero.
    pub fn sum(&mut self) -> Counter {
        self.sums(1)
    }

    /// Requests consecutive sums, and returns the first.
    pub fn sums(&mut self, count: usize) -> Counter {
        self.often |= count > 0;
        self.seldom_sums(count)
    }

    /// Requests consecutive sums, each of which `waves` waves add to, and returns the first.
    pub fn sums_of(&mut self, count: usize, waves: u64) -> Counter {
        match waves <= FEW_WAVES {
            true => self.seldom_sums(count),
            false => self.sums(count),
        }
    }

    /// Requests consecutive sums that hardly a wave adds to, and returns the first.
    pub fn seldom_sums(&mut self, count: usize) -> Counter {
        let first = Counter(self.counters.len());
        self.counters.resize(first.0 + count, 0);
        first
    }

    /// Requests a counter for the first of some rows. It starts beyond all rows, and kernels lower it.
    pub fn first_row(&mut self) -> Counter {
        self.counters.push(u64::MAX);
        Counter(self.counters.len() - 1)
    }

    /// Requests zeroed memory, for an output array or for scratch.
    pub fn zeros(&mut self, bytes: usize) -> Request {
        self.zeros.push(bytes);
        Request::Zeros(self.zeros.len() - 1)
    }

    /// Requests memory for an output array.
    pub fn output(&mut self, bytes: usize) -> Request {
        self.outputs.push(bytes);
        Request::Output(self.outputs.len() - 1)
    }

    /// Requests memory that is not used after the pass.
    pub fn scratch(&mut self, bytes: usize) -> Request {
        self.scratch.push(bytes);
        Request::Scratch(self.scratch.len() - 1)
    }

    /// Allocates everything. `tables` is the size of the tables that the pass uploads next; they travel with
    /// the counters.
    pub fn grant(self, pass: &mut Pass, tables: usize) -> Result<Granted> {
        let are_sent = padded(&self.zeros, ZEROS_ALIGNMENT) <= SENT_ZEROS;
        let sent = if are_sent { &self.zeros[..] } else { &[] };
        pass.reserve([size_of_val(&self.counters[..]), tables].into_iter().chain(sent.iter().copied()));
        let counters = match self.rows.filter(|_| !self.often) {
            _ if self.counters.is_empty() => None,
            None => Some(pass.upload(&self.counters)?),
            Some(rows) => Some(pass.seldom_used(&self.counters, rows)?),
        };
        let zeros = match are_sent {
            true => sent.iter().map(|bytes| pass.zeroed(*bytes)).collect::<Result<_>>()?,
            false => shared(&self.zeros, SMALL_ZEROS, ZEROS_ALIGNMENT, |bytes| pass.cleared(bytes))?,
        };
        let mut blocks =
            |sizes: &[usize]| shared(sizes, SMALL_OUTPUT, OUTPUT_ALIGNMENT, |bytes| pass.output(bytes));
        Ok(Granted { counters, zeros, outputs: blocks(&self.outputs)?, scratch: blocks(&self.scratch)? })
    }
}

/// Allocates regions of these sizes. Small ones become parts of shared blocks.
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

/// The total size of these pieces in a shared block.
fn padded<'a>(sizes: impl IntoIterator<Item = &'a usize>, alignment: usize) -> usize {
    let padded = |bytes: &usize| bytes.checked_next_multiple_of(alignment).unwrap_or(usize::MAX);
    sizes.into_iter().map(padded).fold(0, usize::saturating_add)
}

impl Granted {
    /// The output through which kernels write a counter.
    pub fn counter(&self, counter: Counter) -> Out<u64> {
        self.counters.as_ref().map_or(Out::absent(), |region| region.out().skip(counter.0 as u64))
    }

    /// Whether any counter was requested.
    pub fn has_counters(&self) -> bool {
        self.counters.is_some()
    }

    /// All counters, for reading them. Panics if none was requested.
    pub fn counters(&self) -> &Region {
        self.counters.as_ref().expect("counters were asked for")
    }

    /// Adds the counters, if there are any, to what is read.
    pub fn look(&self, looks: &mut Looks) -> Seen {
        looks.at(&self.counters)
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
