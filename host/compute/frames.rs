//! Aggregates of the rows around each row.

use super::arrays::fold_groups;
use super::grouped::Grouped;
use super::windows::{Inner, Windows};
use super::{TakeOptions, engine, take};
use crate::engine::{Frames, GroupFold, Groups};
use crate::expr::{Aggregation, Fold, Options, Reduction};
use crate::{DeviceArray, DeviceBatch, Pending, Result};

/// One end of a [`WindowFrame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameBound {
    /// The first or the last row of the partition.
    Unbounded,
    /// The row that is so many places after the row itself, or before it if the number is negative; 0 is the
    /// row itself.
    Row(i64),
    /// The first or the last of the rows that are equal to the row in the order.
    Peers,
}

/// A window frame: the rows of its partition that an aggregate covers for a row, both ends included. A frame
/// may have no rows.
///
/// The default is SQL's: all rows up to the last one that is equal to the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFrame {
    /// The first row of the frame, unless the partition begins later.
    pub start: FrameBound,
    /// The last row of the frame, unless the partition ends earlier.
    pub end: FrameBound,
}

impl WindowFrame {
    /// All rows up to the row itself.
    pub const RUNNING: WindowFrame = WindowFrame { start: FrameBound::Unbounded, end: FrameBound::Row(0) };

    /// The rows from one distance from the row to another, as SQL's `ROWS BETWEEN` has them.
    pub fn rows(start: i64, end: i64) -> WindowFrame {
        WindowFrame { start: FrameBound::Row(start), end: FrameBound::Row(end) }
    }

    /// The length that no frame exceeds, among so many rows.
    fn longest(self, rows: usize) -> usize {
        match (self.start, self.end) {
            (FrameBound::Row(start), FrameBound::Row(end)) => {
                let len = (i128::from(end) - i128::from(start) + 1).max(0);
                usize::try_from(len).map_or(rows, |len| len.min(rows))
            }
            _ => rows,
        }
    }
}

impl Default for WindowFrame {
    fn default() -> WindowFrame {
        WindowFrame { start: FrameBound::Unbounded, end: FrameBound::Peers }
    }
}

impl Windows {
    /// Aggregates the frame of each row: running sums, moving means, and the like. The batch has as many
    /// rows, and the results are in the rows' own order. A frame without values has null, or a count of 0.
    ///
    /// Frames have `sum`, `mean`, `count`, `min`, `max`, `bool_and`, `bool_or`, `first`, `last`,
    /// `first_value` and `last_value`, also with filters; other aggregates are an error. Sums of integers and
    /// decimals are exact. Floats are added in an order that is the same on every device: sixteen places in
    /// the order of all partitions make a node, sixteen nodes make one of the next level, and a frame adds
    /// the values up to its first whole node, then nodes, and at last the values after its last node.
    ///
    /// ```
    /// use arrow_array::{Int64Array, record_batch};
    /// use bowstring::compute::{SortColumn, SortOptions, WindowFrame, Windows};
    /// use bowstring::exchange::{batch_from_arrow, to_arrow};
    /// use bowstring::{Stream, expr::{Options, col, sum}};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stream = Stream::cpu();
    /// let batch = batch_from_arrow(&record_batch!(
    ///     ("k", Utf8, ["a", "b", "a", "a"]),
    ///     ("day", Int32, [3, 1, 1, 2]),
    ///     ("x", Int64, [30, 5, 10, 20])
    /// )?)?;
    /// let day = [SortColumn::new(&batch.columns()[1], SortOptions::default())];
    /// let windows = Windows::new(&batch.columns()[..1], &day, 4, &stream).wait()?;
    /// let (frame, options) = (WindowFrame::RUNNING, Options::default());
    /// let running = windows.aggregate_frames(&batch, frame, [sum(col("x"))], &options);
    /// let running = to_arrow(&running.wait()?.columns()[0])?;
    /// assert_eq!(running.as_ref(), &Int64Array::from(vec![60, 5, 10, 30]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn aggregate_frames(
        &self,
        batch: &DeviceBatch,
        frame: WindowFrame,
        aggregations: impl IntoIterator<Item: Into<Aggregation>>,
        options: &Options,
    ) -> Pending<DeviceBatch> {
        let aggregations: Vec<Aggregation> = aggregations.into_iter().map(Into::into).collect();
        let (batch, options) = (batch.clone(), *options);
        self.begin(move |this| async move {
            this.check(&batch)?;
            let grouped = Grouped::bind(&[], &aggregations, batch.schema(), &options)?;
            grouped.check_frames()?;
            let frames = this.frames(frame).await?;
            let read = grouped.read(&batch)?;
            let made = grouped.framed(read, &this.order, &frames, &this.stream).await?;
            take(&made, &this.places, &TakeOptions::default(), &this.stream).await
        })
    }
}

impl Inner {
    /// Returns the frame of each place.
    async fn frames(&self, frame: WindowFrame) -> Result<Frames> {
        let (rows, on, plain) = (self.order.len(), &self.stream, TakeOptions::default());
        let [firsts, counts] = [&self.starts, &self.counts].map(|of| take(of, &self.order, &plain, on));
        let part = [firsts.await?, counts.await?];
        let peers = match [frame.start, frame.end].contains(&FrameBound::Peers) {
            true => Some(self.spans_of_peers().await?),
            false => None,
        };
        // Farther than any row is as good as that far.
        let most = rows as i64 + 1;
        let end = |bound: FrameBound, after: bool| {
            let (span, by) = match (bound, &peers) {
                (FrameBound::Peers, Some(peers)) => (peers, None),
                (FrameBound::Row(by), _) => (&part, Some(by.clamp(-most, most))),
                _ => (&part, None),
            };
            engine(on).frame_ends(span.each_ref(), by, after, on)
        };
        let (starts, ends) = (end(frame.start, false)?, end(frame.end, true)?);
        Ok(Frames { starts, ends, longest: frame.longest(rows) })
    }

    /// Returns the first place of the rows that are equal to the one at each place, and their number.
    async fn spans_of_peers(&self) -> Result<[DeviceArray; 2]> {
        let (on, plain) = (&self.stream, TakeOptions::default());
        let peers = self.peers().await?;
        let ids = take(peers.ids(), &self.order, &plain, on).await?;
        let sorted = Groups { ids, firsts: peers.firsts().clone() };
        let fold = |fold| GroupFold { fold, values: None, wraps: false };
        let folds = [Reduction::First, Reduction::Fold(Fold::Count)].map(fold);
        let folded = fold_groups(&folds, &sorted, on).await?;
        let [firsts, counts] = [0, 1].map(|i: usize| take(&folded[i], &sorted.ids, &plain, on));
        Ok([firsts.await?, counts.await?])
    }
}
