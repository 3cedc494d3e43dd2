//! Sorts, groups and joins of readers, of which memory need not hold all rows.

use std::sync::Arc;

use bowstring::array::{Batches, Place};
use bowstring::compute::batches::{join_batches, sort_batches};
use bowstring::compute::{JoinOptions, Query, SortOptions};
use bowstring::{DeviceBatch, Error};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::groups::{beside, by_keys, grouped, join_keys, join_kind, kept_of_right};
use super::order::places;
use crate::device::{Stream, default_stream};
use crate::error::{detached, ours};
use crate::expressions::options;
use crate::reader::BatchReader;
use crate::source::Source;

impl BatchReader {
    /// Gives the source away to a reader of the sorted rows.
    pub fn sorted(
        &self,
        py: Python<'_>,
        by: Option<&Bound<'_, PyAny>>,
        options: SortOptions,
        (limit, memory): (Option<usize>, Option<usize>),
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        let by = places(&self.schema, by, options)?;
        self.mapped(py, stream, |batches, on| sort_batches(batches, &by, limit, memory, on))
    }

    /// Gives the source away to a reader of the rows of both sides that have equal keys. The arguments are
    /// checked first.
    pub fn joined(
        &self,
        right: &Bound<'_, PyAny>,
        (keys, right_keys): (&Bound<'_, PyAny>, Option<&Bound<'_, PyAny>>),
        (join_type, nulls_equal, suffix): (&str, bool, &str),
        memory: Option<usize>,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        let py = right.py();
        let (reader, made);
        let right = match right.cast::<BatchReader>() {
            Ok(right) => {
                reader = right;
                reader.get()
            }
            Err(_) => {
                made = BatchReader::of(right, None)?;
                &made
            }
        };
        if std::ptr::eq(self, right) {
            return Err(PyValueError::new_err("right: a reader has its rows once, and no others to join"));
        }
        let keys = join_keys([&self.schema, &right.schema], keys, right_keys)?;
        let (kind, sides) = join_kind(join_type)?;
        let options = JoinOptions { kind, nulls_equal, ..JoinOptions::default() };
        let rights = right.schema.fields().len();
        let kept = kept_of_right(kind, rights, &keys[1]);
        let [left_keys, right_keys] = &keys;
        let without_rows =
            |reader: &BatchReader| Batches::new(reader.schema.clone(), Place::CPU, std::iter::empty());
        let none = [without_rows(right), without_rows(self)];
        let here = default_stream(Place::CPU)?;
        let none = detached(py, || join_batches(none, [right_keys, left_keys], &options, None, &here))?;
        // The columns of the right side come first, and some of them are not returned.
        let returned: Vec<usize> = kept.iter().copied().chain(rights..none.schema().fields().len()).collect();
        let arranged = match sides {
            [true, true] => Some(ours(|| {
                let plain = none.schema().project(&returned);
                let plain =
                    plain.map_err(|error| Error::Arrow { operation: "join", problem: error.to_string() })?;
                Ok::<_, Error>(Arc::new(beside(&plain, kept.len(), &self.schema, suffix)?))
            })?),
            _ => None,
        };
        [self, right].into_iter().try_for_each(|side| side.is_there(py))?;
        let (left, right) = (self.give(py)?, right.give(py)?);
        let on = self.stream(stream, &left)?;
        let (left, left_raised) = left.interruptible().take_apart();
        let (right, right_raised) = right.interruptible().take_apart();
        let joined =
            detached(py, || join_batches([right, left], [right_keys, left_keys], &options, memory, &on))?;
        let joined = match arranged {
            Some(schema) => {
                let (to, place) = (schema.clone(), joined.place());
                let order = [&returned[kept.len()..], &returned[..kept.len()]].concat();
                let batches = joined.map(move |batch| {
                    let batch = batch?;
                    let columns = order.iter().map(|column| batch.columns()[*column].clone()).collect();
                    DeviceBatch::try_new(to.clone(), columns, batch.len())
                });
                Batches::new(schema, place, batches)
            }
            None => joined,
        };
        Ok(BatchReader::over(Source::of(joined, left_raised.and(right_raised))))
    }
}

/// The rows of a reader in groups of equal keys, made by `BatchReader.group_by`.
#[pyclass(frozen, module = "bowstring")]
pub struct ReaderGroupBy {
    reader: Py<BatchReader>,
    keys: Query,
}

impl ReaderGroupBy {
    /// Reads keys, as for a batch.
    pub fn of(
        reader: &Bound<'_, BatchReader>,
        keys: &Bound<'_, PyAny>,
        sets: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<ReaderGroupBy> {
        let keys = by_keys(&reader.get().schema, keys, sets)?;
        Ok(ReaderGroupBy { reader: reader.clone().unbind(), keys })
    }
}

#[pymethods]
impl ReaderGroupBy {
    /// Lets the cycle collector visit the reader, which breaks cycles.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)
    }

    /// Return a reader of the groups, and use up the reader that is grouped.
    ///
    /// The arguments are those of `GroupBy.aggregate`. The rows are read when the first batch of groups is.
    /// With `memory`, groups that take more than so many bytes wait in host memory, and come in several
    /// batches, each in the order of its groups' first rows. Each set of keys has batches of its own.
    #[pyo3(signature = (
        aggregations = None, r#where = None, *, overflow = "error", division_by_zero = "error",
        floats = "total", memory = None, stream = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn aggregate(
        &self,
        py: Python<'_>,
        aggregations: Option<&Bound<'_, PyAny>>,
        r#where: Option<&Bound<'_, PyAny>>,
        overflow: &str,
        division_by_zero: &str,
        floats: &str,
        memory: Option<usize>,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<BatchReader> {
        let (options, reader) = (options(overflow, division_by_zero, floats)?, self.reader.get());
        let query = grouped(&reader.schema, &self.keys, aggregations, r#where)?;
        let query = memory.into_iter().fold(query, Query::group_limit);
        let bound = ours(|| query.bind(&reader.schema, &options))?;
        reader.mapped(py, stream, |batches, on| bound.run_batches(batches, on))
    }
}
