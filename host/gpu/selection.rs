//! A mask that is read once and filters any number of arrays; see [`crate::compute::Selection`].

use super::filter::filter_by;
use super::mask::{Mask, Source, Unread};
use super::parts::own;
use crate::array::DeviceArray;
use crate::engine::Selected;
use crate::pass::{Pass, Pending, Requests};
use crate::{Result, Stream};

/// A mask whose kept rows are known.
struct Selection {
    /// `None` for an empty mask. The array is kept because kernels may still read it; an expression has none.
    mask: Option<(Mask, Option<DeviceArray>)>,
    total: usize,
}

/// Reads a mask. Reads the number of kept rows.
pub(crate) fn select(source: Source<'_>, stream: &Stream) -> Result<Pending<Box<dyn Selected>>> {
    if source.rows() == 0 {
        return Ok(Pending::known(Ok(Box::new(Selection { mask: None, total: 0 }))));
    }
    let mut pass = Pass::begin("filter", stream)?;
    source.enter(&mut pass)?;
    let mut requests = Requests::over(source.rows());
    let (total, unread) = (requests.seldom_sums(1), Unread::new(&mut requests, source));
    let granted = requests.grant(&mut pass, 0)?;
    let outcome = unread.outcome();
    let read = unread.read(&mut pass, &granted, granted.counter(total))?;
    let array = match source {
        Source::Array(mask) => Some(mask.clone()),
        Source::Program(_) => None,
    };
    Ok(Pending::begin(stream, async move {
        let words = pass.read_last(&[granted.counters()]).await?;
        outcome(&words)?;
        let selection = Selection { mask: Some((read, array)), total: total.of(&words) as usize };
        Ok(Box::new(selection) as Box<dyn Selected>)
    }))
}

impl Selected for Selection {
    fn len(&self) -> usize {
        self.total
    }

    /// Reads counts once if any column has bitmaps or offsets.
    fn filter(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<Vec<DeviceArray>>> {
        let columns = own(columns, stream);
        let Some((read, mask)) = &self.mask else {
            return Ok(Pending::known(Ok(columns.into_owned())));
        };
        let mut pass = Pass::begin("filter", stream)?;
        mask.iter().try_for_each(|mask| pass.input(mask))?;
        read.reuse(&mut pass);
        Ok(filter_by(pass, read, self.total, &columns.iter().collect::<Vec<_>>())?
            .map(|filtered| Ok(filtered.columns)))
    }
}
