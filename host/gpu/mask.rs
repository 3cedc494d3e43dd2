//! A mask as kernels read it: a bit for each row, and the output offset of each tile's kept rows.

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::select::selection::{OFFSETS, Offsets, SELECT, Select, Sizes, sizes};

use super::program::Loaded;
use crate::Result;
use crate::array::{Bitmap, DeviceArray};
use crate::pass::{BitPointer, Counter, Granted, Pass, Region, Request, Requests, bits, validity};

/// The rows that a mask of booleans keeps, on the device.
#[derive(Clone)]
pub(crate) struct Mask {
    /// The length of the mask, at least 1.
    pub rows: usize,
    pub sizes: Sizes,
    words: Words,
    /// `None` if the kernels that read the mask count for themselves.
    offsets: Option<Region>,
}

/// A bit for each row: the mask's own values, or a bitmap written for this pass (values and validity
/// combined, or the result of an expression).
#[derive(Clone)]
enum Words {
    Mask(Bitmap),
    Own(Region),
}

/// The source of a mask.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Array(&'a DeviceArray),
    Program(&'a Loaded),
}

impl Source<'_> {
    /// Returns the length of the mask.
    pub fn rows(self) -> usize {
        match self {
            Source::Array(mask) => mask.len(),
            Source::Program(program) => program.rows,
        }
    }

    /// Makes the source readable in a pass.
    pub fn enter(self, pass: &mut Pass) -> Result<()> {
        match self {
            Source::Array(mask) => pass.input(mask),
            Source::Program(program) => program.enter(pass),
        }
    }
}

/// A mask whose kept rows are not yet found.
pub(crate) struct Unread<'a> {
    source: Source<'a>,
    sizes: Sizes,
    /// Receives the first row at which an expression fails. `None` if it cannot fail.
    pub failed: Option<Counter>,
    combined: Option<Request>,
    offsets: Option<Request>,
    /// The rows kept in each tile, and in each group of tiles; the offsets are computed from them. `None` if
    /// no kernel needs them.
    counts: Option<(Request, Request)>,
}

impl<'a> Unread<'a> {
    /// Requests what reading a mask of at least one row needs.
    pub fn new(requests: &mut Requests, source: Source<'a>) -> Unread<'a> {
        Unread::of(requests, source, true)
    }

    /// As [`Unread::new`], for kernels that count the kept rows by themselves.
    pub fn uncounted(requests: &mut Requests, source: Source<'a>) -> Unread<'a> {
        Unread::of(requests, source, false)
    }

    fn of(requests: &mut Requests, source: Source<'a>, counted: bool) -> Unread<'a> {
        let sizes = sizes(source.rows() as u64);
        let bytes = |values: u64, width: usize| values as usize * width;
        // A validity and the values are combined into one bitmap. Without a validity the mask is read as it
        // is.
        let (own, failed) = match source {
            Source::Array(mask) => (mask.validity().is_some(), None),
            Source::Program(program) => (true, program.failure(requests)),
        };
        Unread {
            source,
            failed,
            combined: own.then(|| requests.scratch(bytes(sizes.words, 4))),
            offsets: counted.then(|| requests.scratch(bytes(sizes.offsets, 8))),
            counts: (counted || own)
                .then(|| (requests.scratch(bytes(sizes.counts, 4)), requests.zeros(bytes(sizes.groups, 8)))),
            sizes,
        }
    }

    /// Returns a check of the counters: it reports the row at which an expression failed.
    pub fn outcome(&self) -> impl Fn(&[u64]) -> Result<()> + Send + use<> {
        let failure = match (self.source, self.failed) {
            (Source::Program(program), Some(failed)) => Some((program.outcome(), failed)),
            _ => None,
        };
        move |words| failure.as_ref().map_or(Ok(()), |(outcome, failed)| outcome(failed.of(words)))
    }

    /// Finds the rows that the mask keeps. `total` receives their number, if they are counted.
    pub fn read(&self, pass: &mut Pass, granted: &Granted, total: Out<u64>) -> Result<Mask> {
        let own = self.combined.map(|words| granted[words].clone());
        let values = |mask: &DeviceArray| Bitmap { buffer: mask.buffers()[0].clone(), offset: mask.offset() };
        let (rows, sizes) = (self.source.rows(), self.sizes);
        let (counts, sums) = match (self.counts, self.source) {
            (Some((counts, sums)), _) => (&granted[counts], &granted[sums]),
            (None, Source::Array(mask)) => {
                return Ok(Mask { rows, sizes, words: Words::Mask(values(mask)), offsets: None });
            }
            (None, Source::Program(_)) => return Err(pass.unsupported("an expression without counts")),
        };
        let words = match self.source {
            Source::Array(mask) => {
                let values = values(mask);
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
        let offsets = self.offsets.map(|offsets| granted[offsets].clone());
        if let Some(offsets) = &offsets {
            let (counts, sums, offsets) = (counts.input(), sums.input(), offsets.out());
            pass.launch(&OFFSETS[0], &Offsets { counts, sums, len: sizes.counts, offsets, total })?;
        }
        Ok(Mask { rows, sizes, words, offsets })
    }
}

impl Mask {
    /// Returns a bit for each row. It is built anew for each launch: threads may share a selection, but a
    /// kernel's arguments belong to one thread.
    pub fn words(&self) -> BitPointer {
        match &self.words {
            Words::Mask(values) => bits(values),
            Words::Own(words) => (words.input(), 0),
        }
    }

    /// The first output row of each tile, and after them the total; absent if kernels count by themselves.
    pub fn offsets(&self) -> In<u64> {
        self.offsets.as_ref().map_or(In::absent(), Region::input)
    }

    /// Makes what an earlier pass on the same stream wrote readable in this one. The mask array's own buffer
    /// is not included.
    pub fn reuse(&self, pass: &mut Pass) {
        let own = match &self.words {
            Words::Mask(_) => None,
            Words::Own(words) => Some(words),
        };
        own.into_iter().chain(&self.offsets).for_each(|region| pass.reuse(region));
    }
}
