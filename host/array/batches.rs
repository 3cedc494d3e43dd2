//! Batches that come one after another.

use std::fmt;

use arrow_schema::SchemaRef;

use super::{Batch, Place, nesting};
use crate::Result;

/// Batches that come one after another, all of one schema and in one memory: a foreign stream, or an
/// iterator. Nothing is done before a batch is asked for, and after an error nothing more comes. Streams
/// may be made of streams 200 deep; deeper ones are an error when they are read.
///
/// ```
/// use bowstring::array::{Batches, Place};
/// use bowstring::{Batch, Stream, compute::batches::{column, filter_batches}};
/// use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
/// # use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let keep: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
/// let batch = Batch::try_from(&RecordBatch::try_from_iter([("keep", keep)])?)?;
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
    /// `None` once there has been an end or an error: whatever made the batches is let go of then.
    items: Option<Items>,
}

type Items = Box<dyn Iterator<Item = Result<Batch>> + Send>;

impl Batches {
    /// What an iterator gives. That each batch has the schema and is in the place is for those to check who rely on it, as the
    /// exports do.
    pub fn new(
        schema: SchemaRef,
        place: Place,
        items: impl Iterator<Item = Result<Batch>> + Send + 'static,
    ) -> Batches {
        Batches { schema, place, items: Some(Box::new(items)) }
    }

    /// The names, types, nullability and metadata of all batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Which memory they are in.
    pub fn place(&self) -> Place {
        self.place
    }

    fn let_go(&mut self) {
        self.items.take().into_iter().for_each(nesting::let_go);
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
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
