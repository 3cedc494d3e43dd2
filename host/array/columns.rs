//! The common interface of arrays and batches. Operations and copies are written once, over arrays, and
//! return the kind of value that they were given.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::batch::{DeviceBatch, Metadata};
use super::parts::DeviceArray;
use crate::{Error, Result};

/// A [`DeviceArray`] or a [`DeviceBatch`]. Every operation and copy accepts both; the columns of a batch are
/// processed together, in one pass.
///
/// | | `DeviceArray` | `DeviceBatch` |
/// | --- | --- | --- |
/// | `Target`: what a cast turns it into | [`DataType`] | [`SchemaRef`], a field for each column |
/// | `Counts`: a number for each column | `usize` | `Vec<usize>` |
///
/// The trait is sealed.
pub trait Columns: sealed::Columns {}

impl Columns for DeviceArray {}

impl Columns for DeviceBatch {}

/// The interface that operations use. It is private, so that it can change.
pub(crate) mod sealed {
    use super::*;

    pub trait Columns: Sized + Send + Sync + 'static {
        /// The target of a cast: a [`DataType`], or a schema with a field for each column.
        type Target: ?Sized;
        /// One number for each column: `usize`, or a `Vec` of them.
        type Counts: Send + 'static;
        /// Everything but the arrays: a batch's schema and metadata.
        type Frame: Clone + Send + 'static;

        fn arrays(&self) -> &[DeviceArray];
        fn rows(&self) -> usize;
        fn frame(&self) -> Self::Frame;
        /// The frame for a result whose rows may be null even if these are not.
        fn nullable_frame(&self) -> Self::Frame;
        /// The frame of the cast's result, and the target type of each array.
        fn target<'a>(&self, to: &'a Self::Target) -> Result<(Self::Frame, Vec<&'a DataType>)>;
        /// The schema in a frame; `None` for a single array.
        fn schema(frame: &Self::Frame) -> Option<&Schema>;
        /// Combines the frame with as many arrays as before, of `rows` rows each.
        fn framed(frame: Self::Frame, arrays: Vec<DeviceArray>, rows: usize) -> Result<Self>;
        /// Applies `of` to each array and puts the results into the frame.
        fn each(
            &self,
            frame: Self::Frame,
            rows: usize,
            of: impl FnMut(&DeviceArray) -> Result<DeviceArray>,
        ) -> Result<Self>;
        fn counts(counts: Vec<usize>) -> Result<Self::Counts>;
    }
}

impl sealed::Columns for DeviceArray {
    type Target = DataType;
    type Counts = usize;
    type Frame = ();

    fn arrays(&self) -> &[DeviceArray] {
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

    fn framed(_: (), arrays: Vec<DeviceArray>, _: usize) -> Result<DeviceArray> {
        one(arrays)
    }

    // Avoids allocating a list of one: batches are small.
    fn each(
        &self,
        _: (),
        _: usize,
        mut of: impl FnMut(&DeviceArray) -> Result<DeviceArray>,
    ) -> Result<DeviceArray> {
        of(self)
    }

    fn counts(counts: Vec<usize>) -> Result<usize> {
        one(counts)
    }
}

impl sealed::Columns for DeviceBatch {
    type Target = SchemaRef;
    type Counts = Vec<usize>;
    type Frame = (SchemaRef, Metadata);

    fn arrays(&self) -> &[DeviceArray] {
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

    fn framed((schema, metadata): Self::Frame, arrays: Vec<DeviceArray>, rows: usize) -> Result<DeviceBatch> {
        Ok(DeviceBatch::try_new(schema, arrays, rows)?.with_metadata(metadata))
    }

    fn each(
        &self,
        frame: Self::Frame,
        rows: usize,
        of: impl FnMut(&DeviceArray) -> Result<DeviceArray>,
    ) -> Result<DeviceBatch> {
        Self::framed(frame, self.columns().iter().map(of).collect::<Result<_>>()?, rows)
    }

    fn counts(counts: Vec<usize>) -> Result<Vec<usize>> {
        Ok(counts)
    }
}

/// A copy of the schema in which every field is nullable. [`take`](crate::compute::take) returns batches of
/// this schema if its indices may be null.
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
