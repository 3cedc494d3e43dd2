//! What operations and copies take: one array, or all columns of a batch. Each is written once, over the arrays, and gives back
//! what it was given.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::batch::{Batch, Metadata};
use super::parts::Array;
use crate::{Error, Result};

/// An [`Array`] or a [`Batch`], which every operation and copy takes alike: the columns of a batch go together, in one pass.
///
/// | | `Array` | `Batch` |
/// | --- | --- | --- |
/// | `Target`: what a cast turns it into | [`DataType`] | [`SchemaRef`], a field for each column |
/// | `Counts`: a number for each column | `usize` | `Vec<usize>` |
///
/// The trait is sealed.
pub trait Columns: sealed::Columns {}

impl Columns for Array {}

impl Columns for Batch {}

/// What operations need of both; out of reach, so that it can change.
pub(crate) mod sealed {
    use super::*;

    pub trait Columns: Sized + Send + Sync + 'static {
        /// What a cast turns it into: a [`DataType`], or a schema with a field for each column.
        type Target: ?Sized;
        /// A number for each column: `usize`, or a `Vec` of them.
        type Counts: Send + 'static;
        /// What is left of it without its arrays.
        type Frame: Clone + Send + 'static;

        fn arrays(&self) -> &[Array];
        fn rows(&self) -> usize;
        fn frame(&self) -> Self::Frame;
        /// Its frame where its rows may have become null.
        fn nullable_frame(&self) -> Self::Frame;
        /// Its frame as something else, and the type of each array in that.
        fn target<'a>(&self, to: &'a Self::Target) -> Result<(Self::Frame, Vec<&'a DataType>)>;
        /// What the frame says of its arrays, if anything.
        fn schema(frame: &Self::Frame) -> Option<&Schema>;
        /// The frame with these arrays, as many as it had, of `rows` rows.
        fn framed(frame: Self::Frame, arrays: Vec<Array>, rows: usize) -> Result<Self>;
        /// The frame with what becomes of each array.
        fn each(
            &self,
            frame: Self::Frame,
            rows: usize,
            of: impl FnMut(&Array) -> Result<Array>,
        ) -> Result<Self>;
        fn counts(counts: Vec<usize>) -> Result<Self::Counts>;
    }
}

impl sealed::Columns for Array {
    type Target = DataType;
    type Counts = usize;
    type Frame = ();

    fn arrays(&self) -> &[Array] {
        std::slice::from_ref(self)
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn frame(&self) {}

    fn nullable_frame(&self) {}

    fn target<'a>(&self, to: &'a DataType) -> Result<((), Vec<&'a DataType>)> {
        Ok(((), vec![to]))
    }

    fn schema(_: &()) -> Option<&Schema> {
        None
    }

    fn framed(_: (), arrays: Vec<Array>, _: usize) -> Result<Array> {
        one(arrays)
    }

    // Without the allocation of a list of one: batches are small.
    fn each(&self, _: (), _: usize, mut of: impl FnMut(&Array) -> Result<Array>) -> Result<Array> {
        of(self)
    }

    fn counts(counts: Vec<usize>) -> Result<usize> {
        one(counts)
    }
}

impl sealed::Columns for Batch {
    type Target = SchemaRef;
    type Counts = Vec<usize>;
    type Frame = (SchemaRef, Metadata);

    fn arrays(&self) -> &[Array] {
        self.columns()
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn frame(&self) -> Self::Frame {
        (self.schema().clone(), self.metadata().clone())
    }

    fn nullable_frame(&self) -> Self::Frame {
        (nullable(self.schema()), self.metadata().clone())
    }

    fn target<'a>(&self, to: &'a SchemaRef) -> Result<(Self::Frame, Vec<&'a DataType>)> {
        if self.columns().len() != to.fields().len() {
            let problem = format!("{} columns to {} fields", self.columns().len(), to.fields().len());
            return Err(Error::invalid("cast", problem));
        }
        let types = to.fields().iter().map(|field| field.data_type()).collect();
        Ok(((to.clone(), self.metadata().clone()), types))
    }

    fn schema(frame: &Self::Frame) -> Option<&Schema> {
        Some(&frame.0)
    }

    fn framed((schema, metadata): Self::Frame, arrays: Vec<Array>, rows: usize) -> Result<Batch> {
        Ok(Batch::try_new(schema, arrays, rows)?.with_metadata(metadata))
    }

    fn each(
        &self,
        frame: Self::Frame,
        rows: usize,
        of: impl FnMut(&Array) -> Result<Array>,
    ) -> Result<Batch> {
        Self::framed(frame, self.columns().iter().map(of).collect::<Result<_>>()?, rows)
    }

    fn counts(counts: Vec<usize>) -> Result<Vec<usize>> {
        Ok(counts)
    }
}

/// The schema with every field nullable: that of batches whose rows are taken by indices that may be null.
pub fn nullable(schema: &SchemaRef) -> SchemaRef {
    if schema.fields().iter().all(|field| field.is_nullable()) {
        return schema.clone();
    }
    let fields = schema.fields().iter().map(|field| Field::clone(field).with_nullable(true));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

fn one<T>(mut of_one: Vec<T>) -> Result<T> {
    of_one.pop().ok_or_else(|| Error::invalid("columns", "no array"))
}
