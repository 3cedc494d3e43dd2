//! A mask that is read once and filters any number of arrays; see [`crate::compute::Selection`].

use super::filter::filter_by;
use super::mask::{Mask, Source, Unread};
use crate::array::DeviceArray;
use crate::pass::{Pass, Pending, Requests, block_on};
use crate::{Result, Stream};

/// A mask whose kept rows are known.
pub(crate) struct Selection {
    /// `None` for an empty mask. The array is kept because kernels may still read it; an expression has none.
    mask: Option<(Mask, Option<DeviceArray>)>,
    total: usize,
}

impl Selection {
    /// Reads a mask. Synchronises once, for the number of rows.
    pub fn new(source: Source<'_>, stream: &Stream) -> Result<Selection> {
        if source.rows() == 0 {
            return Ok(Selection { mask: None, total: 0 });
        }
        let mut pass = Pass::begin("filter", stream)?;
        source.enter(&mut pass)?;
        let mut requests = Requests::default();
        let (total, unread) = (requests.sum(), Unread::new(&mut requests, source));
        let granted = requests.grant(&mut pass, 0)?;
        let read = unread.read(&mut pass, &granted, granted.counter(total))?;
        let words = block_on(pass.read(&[granted.counters()]))?;
        unread.outcome()(&words)?;
        pass.finish()?;
        let array = match source {
            Source::Array(mask) => Some(mask.clone()),
            Source::Program(_) => None,
        };
        Ok(Selection { mask: Some((read, array)), total: total.of(&words) as usize })
    }

    /// Returns the number of kept rows.
    pub fn len(&self) -> usize {
        self.total
    }

    /// Filters arrays as long as the mask. Reads counts once if any of them has bitmaps or offsets.
    pub fn filter(&self, columns: &[&DeviceArray], stream: &Stream) -> Result<Pending<Vec<DeviceArray>>> {
        let Some((read, mask)) = &self.mask else {
            return Ok(Pending::known(Ok(columns.iter().copied().cloned().collect())));
        };
        let mut pass = Pass::begin("filter", stream)?;
        mask.iter().try_for_each(|mask| pass.input(mask))?;
        read.reuse(&mut pass);
        Ok(filter_by(pass, read, self.total, columns)?.map(|filtered| Ok(filtered.columns)))
    }
}
