//! Streams of batches.

use std::fmt;

use arrow_schema::SchemaRef;

use super::{DeviceBatch, Place, nesting};
use crate::Result;

/// A stream of batches that share one schema and one memory: a foreign stream, or an iterator. Work starts
/// only when a batch is requested, and the stream ends after an error. Streams can wrap other streams up to
/// 200 deep; reading a deeper one returns an error.
///
/// ```
/// use bowstring::array::{Batches, Place};
/// use bowstring::{DeviceBatch, Stream, compute::batches::{column, filter_batches}};
/// use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
/// # use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let keep: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
/// let batch = DeviceBatch::try_from(&RecordBatch::try_from_iter([("keep", keep)])?)?;
/// let schema = batch.schema().clone();
/// let ten = (0..10).map(move |_| Ok(batch.clone()));
///
/// let batches = Batches::new(schema, Place::CPU, ten);
/// let kept = filter_batches(batches, column(0), &Stream::cpu());
/// assert_eq!(kept.map(|batch| Ok(batch?.len())).sum::<bowstring::Result<usize>>()?, 20);
/// # Ok(())
/// # }
/// ```
pub struct Batches {
    schema: SchemaRef,
    place: Place,
    /// `None` after the end or an error: the source is dropped then.
    items: Option<Items>,
}

type Items = Box<dyn Iterator<Item = Result<DeviceBatch>> + Send>;

impl Batches {
    /// Creates a stream from an iterator. This does not check that each batch has the given schema and place;
    /// consumers that rely on it must check, as the exports do.
    pub fn new(
        schema: SchemaRef,
        place: Place,
        items: impl Iterator<Item = Result<DeviceBatch>> + Send + 'static,
    ) -> Batches {
        Batches { schema, place, items: Some(Box::new(items)) }
    }

    /// The schema of all batches: names, types, nullability and metadata.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The memory that holds all batches.
    pub fn place(&self) -> Place {
        self.place
    }

    fn let_go(&mut self) {
        self.items.take().into_iter().for_each(nesting::let_go);
    }
}

impl Iterator for Batches {
    type Item = Result<DeviceBatch>;

    fn next(&mut self) -> Option<Result<DeviceBatch>> {
        let items = self.items.as_mut()?;
        let next = nesting::read(|| items.next()).unwrap_or_else(|error| Some(Err(error)));
        if !matches!(next, Some(Ok(_))) {
            self.let_go();
        }
        next
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("schema", &self.schema).field("place", &self.place).finish()
    }
}
