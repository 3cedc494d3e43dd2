//! A mask, read and counted on the device.

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::selection::{OFFSETS, Offsets, SELECT, Select, Sizes, sizes};

use super::Status;
use super::filter;
use crate::array::{Array, Bitmap};
use crate::pass::{Pass, Region, bits, validity};
use crate::{Result, Stream};

/// The rows that a filter keeps, on the device: a bit for each, and where each tile's rows go.
#[derive(Clone)]
pub(crate) struct Kept {
    /// Rows of the mask, at least one.
    pub rows: usize,
    pub sizes: Sizes,
    /// The mask, unless it and its validity became one region.
    values: Bitmap,
    combined: Option<Region>,
    pub offsets: Region,
    /// Rows kept in each tile, and in each group of them: what the offsets are made from.
    counts: Region,
    sums: Region,
}

/// A bitmap as kernels take it.
pub(crate) type Words = (In<u32>, u64);

impl Kept {
    /// Room for what is found out about a mask of booleans, of at least one row.
    pub fn of(pass: &mut Pass, mask: &Array) -> Result<Kept> {
        let (rows, sizes) = (mask.len(), sizes(mask.len() as u64));
        // A validity makes one bitmap of both; without one the mask is read as it is.
        let combined =
            mask.validity().is_some().then(|| pass.scratch::<u32>(sizes.words as usize)).transpose()?;
        Ok(Kept {
            rows,
            values: Bitmap { buffer: mask.buffers()[0].clone(), offset: mask.offset() },
            combined,
            counts: pass.scratch::<u32>(sizes.counts as usize)?,
            offsets: pass.scratch::<u64>(sizes.offsets as usize)?,
            sums: pass.zeroed(8 * sizes.groups as usize)?,
            sizes,
        })
    }

    /// A bit for each row. Built for each launch: several threads may share a selection, but a kernel's arguments belong to
    /// one thread.
    pub fn words(&self) -> Words {
        self.combined.as_ref().map_or_else(|| bits(&self.values), |words| (words.input(), 0))
    }

    /// The bytes of that which are zero at first.
    pub fn zeros(rows: usize) -> usize {
        8 * sizes(rows as u64).groups as usize
    }

    /// Finds the rows where it is true. `total` receives how many they are.
    pub fn find(&self, pass: &mut Pass, mask: &Array, total: Out<u64>) -> Result<()> {
        let ((mask, mask_offset), (valid, valid_offset)) = (bits(&self.values), validity(mask));
        let Kept { rows, sizes, combined, offsets, counts, sums, .. } = self;
        pass.launch(
            &SELECT[0],
            &Select {
                mask,
                mask_offset,
                valid,
                valid_offset,
                len: *rows as u64,
                counts: counts.out(),
                words: combined.as_ref().map_or_else(Out::absent, Region::out),
                sums: sums.out(),
            },
        )?;
        pass.launch(
            &OFFSETS[0],
            &Offsets {
                counts: counts.input(),
                sums: sums.input(),
                len: sizes.counts,
                offsets: offsets.out(),
                total,
            },
        )
    }
}

/// A mask prepared once; see [`crate::compute::Selection`].
pub(crate) struct Selection {
    /// With the mask, which may still be read.
    kept: Option<(Kept, Array)>,
    total: usize,
}

impl Selection {
    /// Synchronises once, for the number of rows.
    pub fn new(mask: &Array, stream: &Stream) -> Result<Selection> {
        if mask.is_empty() {
            return Ok(Selection { kept: None, total: 0 });
        }
        let mut pass = Pass::begin("filter", stream)?;
        pass.input(mask)?;
        let mut status = Status::new(&mut pass, 1, 0)?;
        let kept = Kept::of(&mut pass, mask)?;
        kept.find(&mut pass, mask, status.take(1).1)?;
        let total = pass.read(&status.region)?[0] as usize;
        pass.finish()?;
        Ok(Selection { kept: Some((kept, mask.clone())), total })
    }

    /// How many rows it keeps.
    pub fn len(&self) -> usize {
        self.total
    }

    /// The kept rows of arrays as long as the mask. Synchronises once where there are bitmaps or offsets.
    pub fn filter(&self, columns: &[&Array], stream: &Stream) -> Result<Vec<Array>> {
        let Some((kept, mask)) = &self.kept else {
            return Ok(columns.iter().copied().cloned().collect());
        };
        let mut pass = Pass::begin("filter", stream)?;
        pass.input(mask)?;
        kept.combined.iter().for_each(|words| pass.again(words));
        pass.again(&kept.offsets);
        let mut status = filter::status(&mut pass, columns)?;
        status.take(1);
        let filtered = filter::of(pass, kept.clone(), status, Some(self.total), columns, |_, _| Ok(()))?;
        Ok(filtered.wait()?.columns)
    }
}
