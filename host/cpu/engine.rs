//! The host's engine: operations run inside the call, large ones among the pool's threads.

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;

use arrow_cast::CastOptions;
use arrow_schema::{DataType, SchemaRef, SortOptions};
use bowstring_kernels::map::functions::FunctionCall;

use super::assembly;
use super::indices::Indices;
use super::selection::{PARALLEL, Selection};
use super::{
    admitted, all_admitted, cast, concat, filter, group, hashed, join, logical, map, memory, nulls, program,
    sort, take, text,
};
use crate::array::{Bitmap, DeviceArray, Parts, Side};
use crate::engine::{
    Assembly, Engine, Filtered, Frames, GroupFold, Groups, HashPartitions, Later, NullCheck, OutOfBounds,
    Selected, Table, Ties, Valid,
};
use crate::expr::Fold;
use crate::expr::plan::{Plan, TextTest};
use crate::threads::among_threads;
use crate::{Error, Pending, Result, Stream};

/// The number of rows of a stream that are grouped together: enough for all threads.
const TOGETHER: usize = 1 << 20;

/// The engine for host memory.
pub(crate) struct Cpu;

/// Waits for all arrays before threads share the work, so that no thread has to wait.
fn wait(arrays: &[DeviceArray]) -> Result<()> {
    arrays.iter().try_for_each(DeviceArray::wait)
}

/// Keeps the selected rows of each column.
fn kept(columns: &[DeviceArray], selection: &Selection, stream: &Stream) -> Result<Vec<DeviceArray>> {
    let pool = stream.device().host_pool();
    columns.iter().map(|column| filter::filter(&*admitted(column)?, selection, pool)).collect()
}

fn filtered(columns: &[DeviceArray], selection: &Selection, stream: &Stream) -> Result<Filtered> {
    Ok(Filtered { columns: kept(columns, selection, stream)?, rows: selection.len() })
}

/// Makes booleans without nulls.
fn booleans(bits: Bitmap, len: usize) -> Result<DeviceArray> {
    let parts =
        Parts { offset: bits.offset, buffers: vec![bits.buffer], ..Parts::new(DataType::Boolean, len) };
    DeviceArray::made(parts, true)
}

impl Engine for Cpu {
    fn admit<'a>(&self, array: &'a DeviceArray, _: &Stream) -> Result<Cow<'a, DeviceArray>> {
        admitted(array)
    }

    fn filter(
        &self,
        columns: &[DeviceArray],
        mask: &DeviceArray,
        stream: &Stream,
    ) -> Result<Pending<Filtered>> {
        let mask = &*admitted(mask)?;
        wait(columns)?;
        Ok(Pending::known(among_threads(mask.len() >= PARALLEL, |_| {
            filtered(columns, &Selection::of_mask(mask, stream.device().host_pool())?, stream)
        })))
    }

    fn select(&self, mask: &DeviceArray, stream: &Stream) -> Result<Pending<Box<dyn Selected>>> {
        let selection = Selection::of_mask(&*admitted(mask)?, stream.device().host_pool())?;
        Ok(Pending::known(Ok(Box::new(selection))))
    }

    fn take(
        &self,
        columns: &[DeviceArray],
        rows: usize,
        indices: &DeviceArray,
        out_of_bounds: OutOfBounds,
        stream: &Stream,
    ) -> Result<Pending<Vec<DeviceArray>>> {
        let indices = &*admitted(indices)?;
        wait(columns)?;
        Ok(Pending::known(among_threads(indices.len() >= take::SHARED, |_| {
            let pool = stream.device().host_pool();
            let mut prepared = Indices::new(indices, pool)?;
            if out_of_bounds == OutOfBounds::Null {
                prepared = prepared.null_out_of_bounds(rows, pool)?;
            } else if columns.is_empty() {
                prepared.check(rows)?;
            }
            columns.iter().map(|column| take::take(&*admitted(column)?, &prepared, pool)).collect()
        })))
    }

    fn cast(
        &self,
        columns: &[(&DeviceArray, &DataType)],
        options: &CastOptions<'_>,
        stream: &Stream,
    ) -> Result<Pending<Vec<DeviceArray>>> {
        let pool = stream.device().host_pool();
        let casted = columns.iter().map(|(values, to)| cast::cast(&*admitted(values)?, to, options, pool));
        Ok(Pending::known(casted.collect()))
    }

    fn concat(
        &self,
        arrays: &[&DeviceArray],
        _: &'static dyn Engine,
        stream: &Stream,
    ) -> Result<Pending<DeviceArray>> {
        let arrays = arrays.iter().map(|array| admitted(array).map(Cow::into_owned));
        let arrays = arrays.collect::<Result<Vec<DeviceArray>>>()?;
        Ok(Pending::known(concat::concat(&arrays, stream.device().host_pool())))
    }

    fn map(
        &self,
        operation: &'static str,
        values: &DeviceArray,
        call: FunctionCall,
        stream: &Stream,
    ) -> Result<DeviceArray> {
        let values = &*admitted(values)?;
        let mapped = map::map(&call, values, values.data_type(), true, stream.device().host_pool())?;
        mapped.map_err(|row| Error::invalid(operation, format!("row {row} does not fit")))
    }

    fn null_counts(&self, arrays: &[DeviceArray], _: &Stream) -> Result<Pending<Vec<usize>>> {
        let count = |values: &DeviceArray| {
            let values = &*admitted(values)?;
            match (values.known_null_count(), values.validity()) {
                (_, None) => Ok(0),
                (Some(known), _) => Ok(known),
                (None, Some(bits)) => Ok(values.len() - nulls::count_valid(bits, values.len())?),
            }
        };
        Ok(Pending::known(arrays.iter().map(count).collect()))
    }

    fn check_null_counts(
        &self,
        arrays: Vec<DeviceArray>,
        check: NullCheck,
        stream: &Stream,
    ) -> Result<Vec<DeviceArray>> {
        let nulls = self.null_counts(&arrays, stream)?.wait()?;
        check(&nulls.into_iter().map(|nulls| nulls as u64).collect::<Vec<_>>())?;
        Ok(arrays)
    }

    fn logical_validity(
        &self,
        operation: &'static str,
        values: &DeviceArray,
        stream: &Stream,
    ) -> Result<Valid> {
        logical::validity(operation, &*admitted(values)?, stream.device().host_pool())
    }

    fn inverted(&self, values: &DeviceArray, bits: &Bitmap, stream: &Stream) -> Result<DeviceArray> {
        let buffer = nulls::inverted(bits, values.len(), stream.device().host_pool())?;
        booleans(Bitmap { buffer, offset: 0 }, values.len())
    }

    fn filled(&self, _: &'static str, bit: bool, len: usize, stream: &Stream) -> Result<DeviceArray> {
        let buffer = nulls::filled(bit, len, stream.device().host_pool())?;
        booleans(Bitmap { buffer, offset: 0 }, len)
    }

    fn row_numbers(
        &self,
        _: &'static str,
        values: &DeviceArray,
        valid: Bitmap,
        stream: &Stream,
    ) -> Result<DeviceArray> {
        let (len, bytes) = (values.len(), values.len().saturating_mul(8));
        let mut numbers = stream.device().host_pool().alloc(bytes)?;
        for (number, row) in memory::values_mut::<u64>(&mut numbers)[..len].iter_mut().zip(0..) {
            *number = row;
        }
        let buffers = vec![numbers.freeze(bytes)];
        let parts = Parts::new(DataType::UInt64, len);
        DeviceArray::made(Parts { validity: Some(valid), null_count: None, buffers, ..parts }, true)
    }

    fn evaluate(
        &self,
        plan: &Plan,
        columns: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Vec<DeviceArray>> {
        program::evaluate(plan, columns, rows, stream.device().host_pool())
    }

    fn select_where(
        &self,
        plan: &Plan,
        columns: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Pending<Box<dyn Selected>>> {
        let selection = program::select(plan, columns, rows, stream.device().host_pool())?;
        Ok(Pending::known(Ok(Box::new(selection))))
    }

    fn filter_where(
        &self,
        plan: &Plan,
        columns: &[DeviceArray],
        arrays: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Pending<Filtered>> {
        wait(arrays)?;
        // The evaluation and the filter run on the same threads, as one operation.
        Ok(Pending::known(among_threads(rows >= PARALLEL, |_| {
            let selection = program::select(plan, columns, rows, stream.device().host_pool())?;
            filtered(arrays, &selection, stream)
        })))
    }

    fn aggregate(
        &self,
        plan: &Plan,
        kinds: &[Fold],
        columns: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Pending<Vec<Vec<u64>>>> {
        let words = program::aggregate(plan, kinds, columns, rows, stream.device().host_pool())?;
        Ok(Pending::known(Ok(vec![words])))
    }

    fn test_text<'a>(
        &self,
        test: TextTest,
        left: Side<'a>,
        right: Side<'a>,
        rows: usize,
        stream: &'a Stream,
    ) -> Later<'a, DeviceArray> {
        Box::pin(ready(text::test(test, left, right, rows, stream.device().host_pool())))
    }

    fn substring<'a>(
        &'a self,
        values: &'a DeviceArray,
        start: i64,
        count: Option<u64>,
        stream: &'a Stream,
    ) -> Later<'a, DeviceArray> {
        let pool = stream.device().host_pool();
        Box::pin(ready(admitted(values).and_then(|values| text::substring(&values, start, count, pool))))
    }

    fn sort_to_indices(
        &self,
        columns: &[(&DeviceArray, SortOptions)],
        limit: Option<usize>,
        stream: &Stream,
    ) -> Result<Pending<DeviceArray>> {
        let admit =
            |(column, options): &(&DeviceArray, SortOptions)| Ok((admitted(column)?.into_owned(), *options));
        let columns = columns.iter().map(admit).collect::<Result<Vec<_>>>()?;
        let columns: Vec<_> = columns.iter().map(|(column, options)| (column, *options)).collect();
        Ok(Pending::known(sort::sort_to_indices(&columns, limit, stream.device().host_pool())))
    }

    fn rank(
        &self,
        values: &DeviceArray,
        options: SortOptions,
        ties: Ties,
        stream: &Stream,
    ) -> Result<Pending<DeviceArray>> {
        Ok(Pending::known(sort::ranks(&*admitted(values)?, options, ties, stream.device().host_pool())))
    }

    fn partition(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>> {
        let columns = all_admitted(columns)?;
        Ok(Pending::known(sort::partition(&columns, stream.device().host_pool())))
    }

    fn partition_by_hash(
        &self,
        columns: &[DeviceArray],
        parts: usize,
        stream: &Stream,
    ) -> Result<Pending<HashPartitions>> {
        let columns = all_admitted(columns)?;
        let rows = columns.first().map_or(0, DeviceArray::len);
        let (order, starts) = hashed::partition_by_hash(&columns, parts, stream.device().host_pool())?;
        Ok(Pending::known(Ok(HashPartitions { order: DeviceArray::uint32(order, rows)?, starts })))
    }

    fn hash_rows(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>> {
        let columns = all_admitted(columns)?;
        let rows = columns.first().map_or(0, DeviceArray::len);
        let hashes = hashed::hash_rows(&columns, stream.device().host_pool())?;
        let parts = Parts { buffers: vec![hashes], ..Parts::new(DataType::UInt64, rows) };
        Ok(Pending::known(DeviceArray::made(parts, true)))
    }

    fn numbers(&self, rows: usize, stream: &Stream) -> Result<DeviceArray> {
        group::numbers(rows, stream.device().host_pool())
    }

    fn group(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<Groups>> {
        group::group(columns, stream)
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
        group::frame_ends(spans, by, after, stream.device().host_pool())
    }

    fn fold_frames(&self, folds: &[GroupFold], frames: &Frames, stream: &Stream) -> Result<Vec<DeviceArray>> {
        group::fold_frames(folds, frames, stream.device().host_pool())
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
        join::table(keys, nulls_equal, stream)
    }

    fn mark(&self, of: &DeviceArray, rows: usize, stream: &Stream) -> Result<DeviceArray> {
        join::mark(of, rows, stream)
    }

    fn longest_list(&self) -> usize {
        usize::MAX
    }

    fn batches_ahead(&self) -> usize {
        0
    }

    fn rows_together(&self) -> Option<usize> {
        Some(TOGETHER)
    }

    fn assembly(&self, schema: &SchemaRef, target: usize) -> Option<Box<dyn Assembly>> {
        Some(Box::new(assembly::InPlace::new(schema, target)))
    }
}

impl Selected for Selection {
    fn len(&self) -> usize {
        Selection::len(self)
    }

    fn filter(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<Vec<DeviceArray>>> {
        wait(columns)?;
        let large = self.rows() >= PARALLEL;
        Ok(Pending::known(among_threads(large, |_| kept(columns, self, stream))))
    }
}
