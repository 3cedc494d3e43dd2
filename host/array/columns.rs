//! The common interface of arrays and batches. Operations and copies are written once, over arrays, and
//! return the kind of value that they were given.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

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
/// | `Given<T>`: an argument for each column | `T` | `[Option<T>]`; columns without one stay as they are |
///
/// The trait is sealed.
pub trait Columns: sealed::Columns {}

impl Columns for DeviceArray {}

impl Columns for DeviceBatch {}

/// The interface that operations use. It is private, so that it can change.
pub(crate) mod sealed {
    use super::*;

    pub trait Columns: Clone + Send + Sync + 'static {
        /// The target of a cast: a [`DataType`], or a schema with a field for each column.
        type Target: ?Sized;
        /// One number for each column: `usize`, or a `Vec` of them.
        type Counts: Send + 'static;
        /// An argument for each column: a `T`, or a slice with one for some of the columns.
        type Given<T>: ?Sized;
        /// Everything but the arrays: a batch's schema and metadata.
        type Frame: Clone + Send + 'static;

        fn arrays(&self) -> &[DeviceArray];
        fn rows(&self) -> usize;
        fn frame(&self) -> Self::Frame;
        /// The frame for a result whose rows may be null even if these are not.
        fn nullable_frame(&self) -> Self::Frame;
        /// The frame for a boolean for each value. Metadata of fields describes the values, and is left out.
        fn boolean_frame(&self) -> Self::Frame;
        /// The frame for these rows and those of others. Returns an error if their columns differ.
        fn joined_frame(&self, others: &[&Self]) -> Result<Self::Frame>;
        /// The arguments in the order of the arrays.
        fn given<'a, T>(
            &self,
            operation: &'static str,
            given: &'a Self::Given<T>,
        ) -> Result<Vec<Option<&'a T>>>;
        /// The frame of the cast's result, and the target type of each array.
        fn target<'a>(&self, to: &'a Self::Target) -> Result<(Self::Frame, Vec<&'a DataType>)>;
        /// The schema in a frame; `None` for a single array.
        fn schema(frame: &Self::Frame) -> Option<&Schema>;
        /// Combines the frame with as many arrays as before, of `rows` rows each.
        fn framed(frame: Self::Frame, arrays: Vec<DeviceArray>, rows: usize) -> Result<Self>;
        /// The same names for as many other arrays, of `rows` rows each, which may have other types.
        fn with_arrays(&self, arrays: Vec<DeviceArray>, rows: usize) -> Result<Self>;
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
    type Given<T> = T;
    type Frame = ();

    fn arrays(&self) -> &[DeviceArray] {
        std::slice::from_ref(self)
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn frame(&self) {}

    fn nullable_frame(&self) {}

    fn boolean_frame(&self) {}

    fn joined_frame(&self, others: &[&DeviceArray]) -> Result<()> {
        match others.iter().find(|other| other.data_type() != self.data_type()) {
            None => Ok(()),
            Some(other) => {
                let problem = format!("{} after {}", other.data_type(), self.data_type());
                Err(Error::invalid("concat", problem))
            }
        }
    }

    fn given<'a, T>(&self, _: &'static str, given: &'a T) -> Result<Vec<Option<&'a T>>> {
        Ok(vec![Some(given)])
    }

    fn target<'a>(&self, to: &'a DataType) -> Result<((), Vec<&'a DataType>)> {
        Ok(((), vec![to]))
    }

    fn schema(_: &()) -> Option<&Schema> {
        None
    }

    fn framed(_: (), arrays: Vec<DeviceArray>, _: usize) -> Result<DeviceArray> {
        one(arrays)
    }

    fn with_arrays(&self, arrays: Vec<DeviceArray>, _: usize) -> Result<DeviceArray> {
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
    type Given<T> = [Option<T>];
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

    fn boolean_frame(&self) -> Self::Frame {
        let fields = self.schema().fields().iter();
        let fields: Vec<Field> =
            fields.map(|field| Field::new(field.name(), DataType::Boolean, true)).collect();
        let schema = Schema::new_with_metadata(fields, self.schema().metadata().clone());
        (Arc::new(schema), self.metadata().clone())
    }

    fn joined_frame(&self, others: &[&DeviceBatch]) -> Result<Self::Frame> {
        let first = self.schema();
        let mut fields: Vec<Field> = first.fields().iter().map(|field| Field::clone(field)).collect();
        for (i, other) in others.iter().enumerate() {
            let other = other.schema();
            let same = |(one, other): (&Field, &FieldRef)| {
                one.name() == other.name() && one.data_type() == other.data_type()
            };
            if fields.len() != other.fields().len() || !fields.iter().zip(other.fields()).all(same) {
                let (here, there) = (written(other), written(first));
                let problem = format!("batch {} has {here}, and batch 0 {there}", i + 1);
                return Err(Error::invalid("concat", problem));
            }
            for (field, other) in fields.iter_mut().zip(other.fields()) {
                field.set_nullable(field.is_nullable() || other.is_nullable());
            }
        }
        // Metadata of batches describes single batches.
        let schema = Schema::new_with_metadata(fields, first.metadata().clone());
        Ok((Arc::new(schema), Metadata::default()))
    }

    fn given<'a, T>(&self, operation: &'static str, given: &'a [Option<T>]) -> Result<Vec<Option<&'a T>>> {
        match given.len() == self.columns().len() {
            true => Ok(given.iter().map(Option::as_ref).collect()),
            false => {
                let problem = format!("{} values for {} columns", given.len(), self.columns().len());
                Err(Error::invalid(operation, problem))
            }
        }
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

    fn with_arrays(&self, arrays: Vec<DeviceArray>, rows: usize) -> Result<DeviceBatch> {
        let fields = self.schema().fields().iter().zip(&arrays);
        let fields = fields.map(|(old, new)| Field::clone(old).with_data_type(new.data_type().clone()));
        let metadata = self.schema().metadata().clone();
        let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata);
        Self::framed((Arc::new(schema), self.metadata().clone()), arrays, rows)
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

/// Names and types of columns, for people to read.
fn written(schema: &Schema) -> String {
    let fields = schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
    fields.collect::<Vec<_>>().join(", ")
}

fn one<T>(mut of_one: Vec<T>) -> Result<T> {
    of_one.pop().ok_or_else(|| Error::invalid("columns", "no array"))
}
