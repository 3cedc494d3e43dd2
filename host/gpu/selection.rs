//! A mask that is read once and filters any number of arrays; see [`crate::compute::Selection`].

use super::filter::filter_by;
use super::mask::{Mask, Unread};
use crate::array::Array;
use crate::pass::{Pass, Requests};
use crate::{Result, Stream};

/// A mask, read.
pub(crate) struct Selection {
    /// With the array, which may still be read.
    mask: Option<(Mask, Array)>,
    total: usize,
}

impl Selection {
    /// Synchronises once, for the number of rows.
    pub fn new(mask: &Array, stream: &Stream) -> Result<Selection> {
        if mask.is_empty() {
            return Ok(Selection { mask: None, total: 0 });
        }
        let mut pass = Pass::begin("filter", stream)?;
        pass.input(mask)?;
        let mut requests = Requests::default();
        let (total, unread) = (requests.sum(), Unread::new(&mut requests, mask));
        let granted = requests.grant(&mut pass, 0)?;
        let read = unread.read(&mut pass, &granted, granted.counter(total))?;
        let total = total.of(&pass.read(granted.counters())?) as usize;
        pass.finish()?;
        Ok(Selection { mask: Some((read, mask.clone())), total })
    }

    /// How many rows it keeps.
    pub fn len(&self) -> usize {
        self.total
    }

    /// The kept rows of arrays as long as the mask. Synchronises once where there are bitmaps or offsets.
    pub fn filter(&self, columns: &[&Array], stream: &Stream) -> Result<Vec<Array>> {
        let Some((read, mask)) = &self.mask else {
            return Ok(columns.iter().copied().cloned().collect());
        };
        let mut pass = Pass::begin("filter", stream)?;
        pass.input(mask)?;
        read.reuse(&mut pass);
        Ok(filter_by(pass, read, self.total, columns)?.wait()?.columns)
    }
}
