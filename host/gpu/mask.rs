//! A mask as kernels read it: a bit for each row, and where the kept rows of each tile go.

use bowstring_kernels::memory::Out;
use bowstring_kernels::selection::{OFFSETS, Offsets, SELECT, Select, Sizes, sizes};

use super::program::Loaded;
use crate::Result;
use crate::array::{Array, Bitmap};
use crate::pass::{BitPointer, Counter, Granted, Pass, Region, Request, Requests, bits, validity};

/// The rows that a mask of booleans keeps, on the device.
#[derive(Clone)]
pub(crate) struct Mask {
    /// Rows of the mask, at least one.
    pub rows: usize,
    pub sizes: Sizes,
    words: Words,
    pub offsets: Region,
}

/// A bit for each row: the mask itself, or what was made of it and its validity, or of an expression.
#[derive(Clone)]
enum Words {
    Mask(Bitmap),
    Own(Region),
}

/// Where a mask comes from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// An array of booleans.
    Array(&'a Array),
    /// An expression.
    Program(&'a Loaded),
}

impl Source<'_> {
    /// How many rows it is of.
    pub fn rows(self) -> usize {
        match self {
            Source::Array(mask) => mask.len(),
            Source::Program(program) => program.rows,
        }
    }

    /// Makes it readable in a pass.
    pub fn enter(self, pass: &mut Pass) -> Result<()> {
        match self {
            Source::Array(mask) => pass.input(mask),
            Source::Program(program) => program.enter(pass),
        }
    }
}

/// A mask whose rows are still to be found.
pub(crate) struct Unread<'a> {
    source: Source<'a>,
    sizes: Sizes,
    /// Where the first row is left that an expression fails at, if it can.
    pub failed: Option<Counter>,
    combined: Option<Request>,
    offsets: Request,
    /// Rows kept in each tile, and in each group of them: what the offsets are made from.
    counts: Request,
    sums: Request,
}

impl<'a> Unread<'a> {
    /// Asks for what it takes to read a mask of at least one row.
    pub fn new(requests: &mut Requests, source: Source<'a>) -> Unread<'a> {
        let sizes = sizes(source.rows() as u64);
        let bytes = |values: u64, width: usize| values as usize * width;
        // A validity makes one bitmap of both; without one the mask is read as it is.
        let (own, failed) = match source {
            Source::Array(mask) => (mask.validity().is_some(), None),
            Source::Program(program) => (true, program.failure(requests)),
        };
        Unread {
            source,
            failed,
            combined: own.then(|| requests.scratch(bytes(sizes.words, 4))),
            offsets: requests.scratch(bytes(sizes.offsets, 8)),
            counts: requests.scratch(bytes(sizes.counts, 4)),
            sums: requests.zeros(bytes(sizes.groups, 8)),
            sizes,
        }
    }

    /// Of the counters that were read: the error of a row at which an expression failed.
    pub fn outcome(&self) -> impl Fn(&[u64]) -> Result<()> + Send + use<> {
        let failure = match (self.source, self.failed) {
            (Source::Program(program), Some(failed)) => Some((program.outcome(), failed)),
            _ => None,
        };
        move |words| failure.as_ref().map_or(Ok(()), |(outcome, failed)| outcome(failed.of(words)))
    }

    /// Finds the rows where it is true. `total` receives how many they are.
    pub fn read(&self, pass: &mut Pass, granted: &Granted, total: Out<u64>) -> Result<Mask> {
        let (counts, sums) = (&granted[self.counts], &granted[self.sums]);
        let own = self.combined.map(|words| granted[words].clone());
        let words = match self.source {
            Source::Array(mask) => {
                let values = Bitmap { buffer: mask.buffers()[0].clone(), offset: mask.offset() };
                let ((bits, mask_offset), (valid, valid_offset)) = (bits(&values), validity(mask));
                let select = Select {
                    mask: bits,
                    mask_offset,
                    valid,
                    valid_offset,
                    len: mask.len() as u64,
                    counts: counts.out(),
                    words: own.as_ref().map_or_else(Out::absent, Region::out),
                    sums: sums.out(),
                };
                pass.launch(&SELECT[0], &select)?;
                own.map_or(Words::Mask(values), Words::Own)
            }
            Source::Program(program) => {
                let words = own.expect("asked for");
                program.select(pass, granted, self.failed, (&words, counts, sums))?;
                Words::Own(words)
            }
        };
        let mask = Mask {
            rows: self.source.rows(),
            sizes: self.sizes,
            words,
            offsets: granted[self.offsets].clone(),
        };
        let offsets = Offsets {
            counts: counts.input(),
            sums: sums.input(),
            len: self.sizes.counts,
            offsets: mask.offsets.out(),
            total,
        };
        pass.launch(&OFFSETS[0], &offsets)?;
        Ok(mask)
    }
}

impl Mask {
    /// A bit for each row. Built for each launch: several threads may share a selection, but a kernel's arguments belong to
    /// one thread.
    pub fn words(&self) -> BitPointer {
        match &self.words {
            Words::Mask(values) => bits(values),
            Words::Own(words) => (words.input(), 0),
        }
    }

    /// Makes what an earlier pass on the same stream has read readable here, but for the mask's own buffer.
    pub fn reuse(&self, pass: &mut Pass) {
        let own = match &self.words {
            Words::Mask(_) => None,
            Words::Own(words) => Some(words),
        };
        own.into_iter().chain([&self.offsets]).for_each(|region| pass.reuse(region));
    }
}
