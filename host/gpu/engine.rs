//! A device's engine: operations launch kernels on the stream, and wait only for numbers that they need.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_cast::CastOptions;
use arrow_schema::{DataType, SchemaRef, SortOptions};
use bowstring_kernels::map::functions::FunctionCall;
use bowstring_kernels::program::code::AGGREGATES;

use super::map::{Column, map};
use super::parts::own;
use super::program::{self, Loaded};
use super::structure::logical;
use super::{
    Outside, Source, cast, concat, filter, group, join, nulls, selection, sort, substring, take, text,
};
use crate::array::{Bitmap, DeviceArray, Side};
use crate::engine::{
    Assembly, Engine, Filtered, Frames, GroupFold, Groups, HashPartitions, Later, NullCheck, OutOfBounds,
    Selected, Table, Ties, Valid,
};
use crate::expr::Fold;
use crate::expr::plan::{Plan, TextTest};
use crate::pass::{all, readable};
use crate::{Error, Pending, Result, Stream};

/// The engine for devices, real and emulated.
pub(crate) struct Gpu;

/// The longest list whose values a program compares one by one; longer lists are searched.
const LISTED: usize = 256;

/// The number of batches of a stream that are begun in advance: the device counts the rows of the next
/// batches while the host waits for those of the first.
const AHEAD: usize = 2;

impl Engine for Gpu {
    fn admit<'a>(&self, array: &'a DeviceArray, stream: &Stream) -> Result<Cow<'a, DeviceArray>> {
        let place = stream.device().place();
        Ok(match array.place() == place {
            true => Cow::Borrowed(array),
            false => Cow::Owned(array.seen_from(place)),
        })
    }

    fn filter(
        &self,
        columns: &[DeviceArray],
        mask: &DeviceArray,
        stream: &Stream,
    ) -> Result<Pending<Filtered>> {
        let columns = own(columns, stream);
        filter::filter(&columns.iter().collect::<Vec<_>>(), Source::Array(mask), stream)
    }

    fn select(&self, mask: &DeviceArray, stream: &Stream) -> Result<Pending<Box<dyn Selected>>> {
        selection::select(Source::Array(mask), stream)
    }

    fn take(
        &self,
        columns: &[DeviceArray],
        rows: usize,
        indices: &DeviceArray,
        out_of_bounds: OutOfBounds,
        stream: &Stream,
    ) -> Result<Pending<Vec<DeviceArray>>> {
        let outside = match out_of_bounds {
            OutOfBounds::Error => Outside::Refused,
            OutOfBounds::Null => Outside::Null,
        };
        let columns = own(columns, stream);
        take::take(&columns.iter().collect::<Vec<_>>(), rows, indices, outside, stream)
    }

    fn cast(
        &self,
        columns: &[(&DeviceArray, &DataType)],
        options: &CastOptions<'_>,
        stream: &Stream,
    ) -> Result<Pending<Vec<DeviceArray>>> {
        let arrays = columns.iter().map(|(values, _)| self.admit(values, stream));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let columns: Vec<_> = arrays.iter().zip(columns).map(|(values, (_, to))| (&**values, *to)).collect();
        cast::cast(&columns, options, stream)
    }

    fn concat(
        &self,
        arrays: &[&DeviceArray],
        host: &'static dyn Engine,
        stream: &Stream,
    ) -> Result<Pending<DeviceArray>> {
        let place = stream.device().place();
        let arrays: Vec<DeviceArray> = arrays.iter().map(|array| array.seen_from(place)).collect();
        let joined = concat::concat(&arrays.iter().collect::<Vec<_>>(), stream)?;
        let on = stream.clone();
        Ok(Pending::begin(stream, async move {
            match joined.await? {
                Some(joined) => Ok(joined),
                None => merged(&arrays, host, &on).await,
            }
        }))
    }

    fn map(
        &self,
        operation: &'static str,
        values: &DeviceArray,
        call: FunctionCall,
        stream: &Stream,
    ) -> Result<DeviceArray> {
        let column = Column { values, to: values.data_type(), call: Some(call) };
        let mapped = map(operation, &[column], true, stream)?.pop();
        mapped.ok_or_else(|| Error::invalid(operation, "no array"))
    }

    fn null_counts(&self, arrays: &[DeviceArray], stream: &Stream) -> Result<Pending<Vec<usize>>> {
        let known = |values: &DeviceArray| match values.validity() {
            None => Some(0),
            Some(_) => values.known_null_count(),
        };
        let counts: Vec<Option<usize>> = arrays.iter().map(known).collect();
        let unknown = arrays.iter().zip(&counts).filter(|(_, known)| known.is_none());
        let unknown: Vec<(&DeviceArray, &Bitmap)> =
            unknown.filter_map(|(values, _)| Some((values, values.validity()?))).collect();
        Ok(nulls::null_counts(&unknown, stream)?.map(move |counted| {
            let mut counted = counted.into_iter();
            let of_each = counts.into_iter().map(|known| known.or_else(|| counted.next()).unwrap_or(0));
            Ok(of_each.collect())
        }))
    }

    fn check_null_counts(
        &self,
        arrays: Vec<DeviceArray>,
        check: NullCheck,
        stream: &Stream,
    ) -> Result<Vec<DeviceArray>> {
        nulls::with_null_counts_checked(&arrays, check, stream)
    }

    fn logical_validity(
        &self,
        operation: &'static str,
        values: &DeviceArray,
        stream: &Stream,
    ) -> Result<Valid> {
        logical::valid(operation, values, stream)
    }

    fn inverted(&self, values: &DeviceArray, bits: &Bitmap, stream: &Stream) -> Result<DeviceArray> {
        nulls::is_null(values, bits, stream)
    }

    fn filled(&self, operation: &'static str, bit: bool, len: usize, stream: &Stream) -> Result<DeviceArray> {
        nulls::filled(operation, bit, len, stream)
    }

    fn row_numbers(
        &self,
        operation: &'static str,
        values: &DeviceArray,
        valid: Bitmap,
        stream: &Stream,
    ) -> Result<DeviceArray> {
        nulls::numbers(operation, values, valid, stream)
    }

    fn evaluate(
        &self,
        plan: &Plan,
        columns: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Vec<DeviceArray>> {
        program::evaluate(plan, columns, rows, stream)
    }

    fn select_where(
        &self,
        plan: &Plan,
        columns: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Pending<Box<dyn Selected>>> {
        selection::select(Source::Program(&Loaded::selection(plan, columns, rows, stream)?), stream)
    }

    fn filter_where(
        &self,
        plan: &Plan,
        columns: &[DeviceArray],
        arrays: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Pending<Filtered>> {
        let program = Loaded::selection(plan, columns, rows, stream)?;
        let arrays = own(arrays, stream);
        filter::filter(&arrays.iter().collect::<Vec<_>>(), Source::Program(&program), stream)
    }

    fn aggregate(
        &self,
        plan: &Plan,
        kinds: &[Fold],
        columns: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Pending<Vec<Vec<u64>>>> {
        // Each launch computes as many aggregates as lanes have room for.
        let launched =
            kinds.chunks(AGGREGATES).zip(plan.outputs.chunks(AGGREGATES)).map(|(kinds, outputs)| {
                program::aggregate(&plan.part(plan.condition, outputs), kinds, columns, rows, stream)
            });
        let launched = launched.collect::<Result<Vec<_>>>()?;
        Ok(Pending::begin(stream, all(launched)))
    }

    fn test_text<'a>(
        &self,
        test: TextTest,
        left: Side<'a>,
        right: Side<'a>,
        rows: usize,
        stream: &'a Stream,
    ) -> Later<'a, DeviceArray> {
        Box::pin(text::test(test, left, right, rows, stream))
    }

    fn substring<'a>(
        &'a self,
        values: &'a DeviceArray,
        start: i64,
        count: Option<u64>,
        stream: &'a Stream,
    ) -> Later<'a, DeviceArray> {
        Box::pin(async move {
            let views = substring::views(values, start, count, stream).await?;
            if views.data_type() == values.data_type() {
                return Ok(views);
            }
            let moved = self.cast(&[(&views, values.data_type())], &CastOptions::default(), stream)?;
            moved.await?.pop().ok_or_else(|| Error::invalid("substring", "no array"))
        })
    }

    fn sort_to_indices(
        &self,
        columns: &[(&DeviceArray, SortOptions)],
        limit: Option<usize>,
        stream: &Stream,
    ) -> Result<Pending<DeviceArray>> {
        let arrays = columns.iter().map(|(column, _)| self.admit(column, stream));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let columns: Vec<_> = arrays.iter().zip(columns).map(|(column, (_, by))| (&**column, *by)).collect();
        sort::sort_to_indices(&columns, limit, stream)
    }

    fn rank(
        &self,
        values: &DeviceArray,
        options: SortOptions,
        ties: Ties,
        stream: &Stream,
    ) -> Result<Pending<DeviceArray>> {
        sort::rank(&*self.admit(values, stream)?, options, ties, stream)
    }

    fn partition(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>> {
        sort::partition(&own(columns, stream), stream)
    }

    fn partition_by_hash(
        &self,
        columns: &[DeviceArray],
        parts: usize,
        stream: &Stream,
    ) -> Result<Pending<HashPartitions>> {
        group::partition_by_hash(&own(columns, stream), parts, stream)
    }

    fn hash_rows(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>> {
        group::hash_rows(&own(columns, stream), stream)
    }

    fn numbers(&self, rows: usize, stream: &Stream) -> Result<DeviceArray> {
        sort::row_numbers(rows, stream)
    }

    fn group(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<Groups>> {
        group::group(&own(columns, stream), stream)
    }

    fn fold_groups(
        &self,
        folds: &[GroupFold],
        groups: &Groups,
        stream: &Stream,
    ) -> Result<Pending<Vec<DeviceArray>>> {
        group::fold_groups(folds, groups, stream)
    }

    fn frame_ends(
        &self,
        spans: [&DeviceArray; 2],
        by: Option<i64>,
        after: bool,
        stream: &Stream,
    ) -> Result<DeviceArray> {
        group::frame_ends(spans, by, after, stream)
    }

    fn fold_frames(&self, folds: &[GroupFold], frames: &Frames, stream: &Stream) -> Result<Vec<DeviceArray>> {
        group::fold_frames(folds, frames, stream)
    }

    fn divide_sums(
        &self,
        sums: &DeviceArray,
        counts: &DeviceArray,
        up: u32,
        scale: i8,
        safe: bool,
        stream: &Stream,
    ) -> Result<DeviceArray> {
        group::divide_sums(sums, counts, up, scale, safe, stream)
    }

    fn roots(&self, of: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
        group::roots(of, stream)
    }

    fn table(
        &self,
        keys: &[DeviceArray],
        nulls_equal: bool,
        stream: &Stream,
    ) -> Result<Pending<Arc<dyn Table>>> {
        join::table(&own(keys, stream), nulls_equal, stream)
    }

    fn mark(&self, of: &DeviceArray, rows: usize, stream: &Stream) -> Result<DeviceArray> {
        join::mark(of, rows, stream)
    }

    fn longest_list(&self) -> usize {
        LISTED
    }

    fn batches_ahead(&self) -> usize {
        AHEAD
    }

    fn rows_together(&self) -> Option<usize> {
        None
    }

    fn assembly(&self, _: &SchemaRef, _: usize) -> Option<Box<dyn Assembly>> {
        None
    }
}

/// Concatenates in host memory: only arrow-select merges equal values of dictionaries.
async fn merged(arrays: &[DeviceArray], host: &'static dyn Engine, stream: &Stream) -> Result<DeviceArray> {
    let here = arrays.iter().map(|array| stream.download_later(array)).collect::<Result<_>>()?;
    let here = all(here).await?;
    readable(&here).await;
    let joined = host.concat(&here.iter().collect::<Vec<_>>(), host, &Stream::cpu())?;
    stream.upload(&joined.wait()?)
}
