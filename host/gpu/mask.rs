//! A mask as kernels read it: a bit for each row, and where the kept rows of each tile go.

use bowstring_kernels::memory::Out;
use bowstring_kernels::selection::{OFFSETS, Offsets, SELECT, Select, Sizes, sizes};

use crate::Result;
use crate::array::{Array, Bitmap};
use crate::pass::{BitPointer, Granted, Pass, Region, Request, Requests, bits, validity};

/// The rows that a mask of booleans keeps, on the device.
#[derive(Clone)]
pub(crate) struct Mask {
    /// Rows of the mask, at least one.
    pub rows: usize,
    pub sizes: Sizes,
    /// The mask, unless it and its validity became one region.
    values: Bitmap,
    combined: Option<Region>,
    pub offsets: Region,
}

/// A mask whose rows are still to be found.
pub(crate) struct Unread<'a> {
    mask: &'a Array,
    sizes: Sizes,
    combined: Option<Request>,
    offsets: Request,
    /// Rows kept in each tile, and in each group of them: what the offsets are made from.
    counts: Request,
    sums: Request,
}

impl<'a> Unread<'a> {
    /// Asks for what it takes to read a mask of at least one row.
    pub fn new(requests: &mut Requests, mask: &'a Array) -> Unread<'a> {
        let sizes = sizes(mask.len() as u64);
        let bytes = |values: u64, width: usize| values as usize * width;
        Unread {
            mask,
            // A validity makes one bitmap of both; without one the mask is read as it is.
            combined: mask.validity().map(|_| requests.scratch(bytes(sizes.words, 4))),
            offsets: requests.scratch(bytes(sizes.offsets, 8)),
            counts: requests.scratch(bytes(sizes.counts, 4)),
            sums: requests.zeros(bytes(sizes.groups, 8)),
            sizes,
        }
    }

    /// Finds the rows where it is true. `total` receives how many they are.
    pub fn read(&self, pass: &mut Pass, granted: &Granted, total: Out<u64>) -> Result<Mask> {
        let mask = Mask {
            rows: self.mask.len(),
            sizes: self.sizes,
            values: Bitmap { buffer: self.mask.buffers()[0].clone(), offset: self.mask.offset() },
            combined: self.combined.map(|words| granted[words].clone()),
            offsets: granted[self.offsets].clone(),
        };
        let ((values, values_offset), (valid, valid_offset)) = (bits(&mask.values), validity(self.mask));
        let (counts, sums) = (&granted[self.counts], &granted[self.sums]);
        let select = Select {
            mask: values,
            mask_offset: values_offset,
            valid,
            valid_offset,
            len: mask.rows as u64,
            counts: counts.out(),
            words: mask.combined.as_ref().map_or_else(Out::absent, Region::out),
            sums: sums.out(),
        };
        pass.launch(&SELECT[0], &select)?;
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
        self.combined.as_ref().map_or_else(|| bits(&self.values), |words| (words.input(), 0))
    }

    /// Makes what an earlier pass on the same stream has read readable here, but for the mask's own buffer.
    pub fn reuse(&self, pass: &mut Pass) {
        self.combined.iter().chain([&self.offsets]).for_each(|region| pass.reuse(region));
    }
}
