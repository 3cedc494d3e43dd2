//! L6: what operations ask of the place where the data is. [`cpu`](crate::cpu) and [`gpu`](crate::gpu) each
//! have an engine that answers.
//!
//! The one idea: an operation checks its arguments, chooses an engine once, and then only asks. So it is
//! written once, and the two implementations have whatever differs between the host and a device.

mod groups;

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use arrow_cast::CastOptions;
use arrow_schema::{DataType, SchemaRef, SortOptions};
use bowstring_kernels::map::functions::FunctionCall;

use crate::array::{Bitmap, DeviceArray, DeviceBatch, Side};
use crate::expr::Fold;
use crate::expr::plan::{Plan, TextTest};
use crate::{Pending, Result, Stream};
pub(crate) use groups::{Frames, GroupFold};
pub use groups::{Groups, HashPartitions};

/// A result that is computed when it is awaited.
pub(crate) type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The check of null counts, one for each array.
pub(crate) type NullCheck = Box<dyn FnOnce(&[u64]) -> Result<()> + Send>;

/// The operations on one kind of memory. The stream's device reaches all arrays: callers have checked that.
pub(crate) trait Engine: Sync {
    /// Returns the array in the form in which the engine reads it: in memory of the stream's device, also if
    /// that only shares the memory. On the host this waits for its event.
    fn admit<'a>(&self, array: &'a DeviceArray, stream: &Stream) -> Result<Cow<'a, DeviceArray>>;

    /// Keeps the rows of columns at which a mask of their length is true.
    fn filter(
        &self,
        columns: &[DeviceArray],
        mask: &DeviceArray,
        stream: &Stream,
    ) -> Result<Pending<Filtered>>;

    /// Finds the rows at which a mask is true.
    fn select(&self, mask: &DeviceArray, stream: &Stream) -> Result<Pending<Box<dyn Selected>>>;

    /// Takes the rows at `indices` from columns of `rows` rows.
    fn take(
        &self,
        columns: &[DeviceArray],
        rows: usize,
        indices: &DeviceArray,
        out_of_bounds: OutOfBounds,
        stream: &Stream,
    ) -> Result<Pending<Vec<DeviceArray>>>;

    /// Casts each array to its type. The types are known to be castable.
    fn cast(
        &self,
        columns: &[(&DeviceArray, &DataType)],
        options: &CastOptions<'_>,
        stream: &Stream,
    ) -> Result<Pending<Vec<DeviceArray>>>;

    /// Concatenates several arrays of one type. `host` is the engine for work that no device does.
    fn concat(
        &self,
        arrays: &[&DeviceArray],
        host: &'static dyn Engine,
        stream: &Stream,
    ) -> Result<Pending<DeviceArray>>;

    /// Applies a function to every value. A value that does not fit becomes null.
    fn map(
        &self,
        operation: &'static str,
        values: &DeviceArray,
        call: FunctionCall,
        stream: &Stream,
    ) -> Result<DeviceArray>;

    /// Counts the nulls in the arrays' own validity bitmaps. Known counts are reused.
    fn null_counts(&self, arrays: &[DeviceArray], stream: &Stream) -> Result<Pending<Vec<usize>>>;

    /// Returns the arrays with a check of their null counts: at once if the engine counts at once, otherwise
    /// for the first caller that waits for one of them. All arrays have a validity bitmap.
    fn check_null_counts(
        &self,
        arrays: Vec<DeviceArray>,
        check: NullCheck,
        stream: &Stream,
    ) -> Result<Vec<DeviceArray>>;

    /// Finds out which rows of a union, of runs, or of a dictionary are valid.
    fn logical_validity(
        &self,
        operation: &'static str,
        values: &DeviceArray,
        stream: &Stream,
    ) -> Result<Valid>;

    /// Makes the complement of a bitmap of `values`, as booleans.
    fn inverted(&self, values: &DeviceArray, bits: &Bitmap, stream: &Stream) -> Result<DeviceArray>;

    /// Makes booleans that all have the same value.
    fn filled(&self, operation: &'static str, bit: bool, len: usize, stream: &Stream) -> Result<DeviceArray>;

    /// Makes the numbers of all rows of `values`, from 0 on, null wherever `valid` is unset.
    fn row_numbers(
        &self,
        operation: &'static str,
        values: &DeviceArray,
        valid: Bitmap,
        stream: &Stream,
    ) -> Result<DeviceArray>;

    /// Evaluates the outputs of a plan to arrays.
    fn evaluate(
        &self,
        plan: &Plan,
        columns: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Vec<DeviceArray>>;

    /// Finds the rows at which the condition of a plan is true.
    fn select_where(
        &self,
        plan: &Plan,
        columns: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Pending<Box<dyn Selected>>>;

    /// Keeps the rows of `arrays` at which the condition of a plan over `columns` is true.
    fn filter_where(
        &self,
        plan: &Plan,
        columns: &[DeviceArray],
        arrays: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Pending<Filtered>>;

    /// Aggregates the outputs of a plan, over the rows at which its condition is true. Yields the partial
    /// aggregates of each launch.
    fn aggregate(
        &self,
        plan: &Plan,
        kinds: &[Fold],
        columns: &[DeviceArray],
        rows: usize,
        stream: &Stream,
    ) -> Result<Pending<Vec<Vec<u64>>>>;

    /// Tests each row of text. No side is a dictionary.
    fn test_text<'a>(
        &self,
        test: TextTest,
        left: Side<'a>,
        right: Side<'a>,
        rows: usize,
        stream: &'a Stream,
    ) -> Later<'a, DeviceArray>;

    /// Returns at most `count` characters of each text from character `start` on, counted from the end if
    /// negative. The text is no dictionary.
    fn substring<'a>(
        &'a self,
        values: &'a DeviceArray,
        start: i64,
        count: Option<u64>,
        stream: &'a Stream,
    ) -> Later<'a, DeviceArray>;

    /// Returns the rows of columns of one length in their order, the first `limit` of them, as UInt32. Equal
    /// rows stay in order.
    fn sort_to_indices(
        &self,
        columns: &[(&DeviceArray, SortOptions)],
        limit: Option<usize>,
        stream: &Stream,
    ) -> Result<Pending<DeviceArray>>;

    /// Returns the rank of each row, as UInt32, from 1 on.
    fn rank(
        &self,
        values: &DeviceArray,
        options: SortOptions,
        ties: Ties,
        stream: &Stream,
    ) -> Result<Pending<DeviceArray>>;

    /// Returns the rows, as UInt32, that differ from the row before them, and the first row.
    fn partition(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>>;

    /// Orders the rows of plain columns, of which there is at least one, by the part that a hash of their
    /// keys chooses. All engines have the same hashes.
    fn partition_by_hash(
        &self,
        columns: &[DeviceArray],
        parts: usize,
        stream: &Stream,
    ) -> Result<Pending<HashPartitions>>;

    /// The hashes by which [`partition_by_hash`](Engine::partition_by_hash) chooses parts: a UInt64 array of
    /// memory of its own, without nulls. Needs at least one row.
    fn hash_rows(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>>;

    /// The numbers from 0 on, of so many rows, as UInt32.
    fn numbers(&self, rows: usize, stream: &Stream) -> Result<DeviceArray>;

    /// Numbers the groups of equal rows in columns of one length, of which there is at least one.
    fn group(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<Groups>>;

    /// Folds the values of each group; see [`GroupFold`] for the types.
    fn fold_groups(
        &self,
        folds: &[GroupFold],
        groups: &Groups,
        stream: &Stream,
    ) -> Result<Pending<Vec<DeviceArray>>>;

    /// Finds one end of the frame of each place, as UInt32: at a distance from the place, or the end of a
    /// span, which it does not leave. `after` asks for the place after the last. Spans are the first place,
    /// as UInt32, and the number of places, as Int64, without nulls.
    fn frame_ends(
        &self,
        spans: [&DeviceArray; 2],
        by: Option<i64>,
        after: bool,
        stream: &Stream,
    ) -> Result<DeviceArray>;

    /// Folds the values of each frame. Frames are of places, in whose order the values are, and there is at
    /// least one. Results are as those of groups; without values, a frame has null.
    fn fold_frames(&self, folds: &[GroupFold], frames: &Frames, stream: &Stream) -> Result<Vec<DeviceArray>>;

    /// Divides sums, of type Decimal256, by counts, of type Int64, after moving the point by `up` digits.
    /// Truncates. A quotient of more than 38 digits is [`Error::Invalid`](crate::Error::Invalid), or null if
    /// `safe`. The result is a Decimal128 of this scale.
    fn divide_sums(
        &self,
        sums: &DeviceArray,
        counts: &DeviceArray,
        up: u32,
        scale: i8,
        safe: bool,
        stream: &Stream,
    ) -> Result<DeviceArray>;

    /// The square roots of numbers, a Float64 array.
    fn roots(&self, of: &DeviceArray, stream: &Stream) -> Result<DeviceArray>;

    /// Makes a table of rows, of at least one key each, that others find by their keys. Rows with a null
    /// match nothing unless nulls are equal.
    fn table(
        &self,
        keys: &[DeviceArray],
        nulls_equal: bool,
        stream: &Stream,
    ) -> Result<Pending<Arc<dyn Table>>>;

    /// Marks the rows, of so many, whose numbers are in `of`, a UInt32 array.
    fn mark(&self, of: &DeviceArray, rows: usize, stream: &Stream) -> Result<DeviceArray>;

    /// The length of the longest list whose values a plan compares one by one.
    fn longest_list(&self) -> usize;

    /// The number of batches of a stream that are begun in advance.
    fn batches_ahead(&self) -> usize;

    /// The number of rows of a stream that are grouped together; `None` if those of each batch are.
    fn rows_together(&self) -> Option<usize>;

    /// Begins batches of `target` rows that rows are filtered straight into; `None` if the engine moves kept
    /// rows twice.
    fn assembly(&self, schema: &SchemaRef, target: usize) -> Option<Box<dyn Assembly>>;
}

/// The kept rows of columns.
pub(crate) struct Filtered {
    pub columns: Vec<DeviceArray>,
    /// The length of each column.
    pub rows: usize,
}

/// Rows that were selected once, to filter any number of columns.
pub(crate) trait Selected: Send + Sync {
    /// The number of rows.
    fn len(&self) -> usize;

    /// Keeps these rows of columns that are as long as the mask was.
    fn filter(&self, columns: &[DeviceArray], stream: &Stream) -> Result<Pending<Vec<DeviceArray>>>;
}

/// Rows that others find by their keys. Any number of threads may use it.
pub(crate) trait Table: Send + Sync {
    /// The group of equal keys of each of its rows, as UInt32; null for those that match nothing.
    fn ids(&self) -> &DeviceArray;

    /// The number of groups.
    fn groups(&self) -> usize;

    /// Whether each row is a group of its own, which has its number.
    fn is_unique(&self) -> bool;

    /// Finds the group that each row's keys have, as UInt32; null for rows that match none.
    fn find(self: Arc<Self>, keys: &[DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>>;

    /// Returns pairs, a row of the table and one of `found`, as UInt32: for each row that was found, all rows
    /// of its group in their order. With `outer`, a row that was not found has one pair, with null. The rows
    /// of `found` are numbered from `first` on. More than `most` pairs are
    /// [`TooManyPairs`](crate::Error::TooManyPairs), before any memory is taken for them.
    fn pairs(
        &self,
        found: &DeviceArray,
        first: usize,
        outer: bool,
        most: u64,
        stream: &Stream,
    ) -> Result<Pending<[DeviceArray; 2]>>;
}

/// A batch under construction.
pub(crate) trait Assembly: Send {
    /// The number of rows so far.
    fn rows(&self) -> usize;

    /// Adds all rows of a batch. They fit.
    fn push(&mut self, batch: &DeviceBatch, stream: &Stream) -> Result<()>;

    /// Adds the rows at which a mask is true. Each batch that has all its rows is passed to `completed`.
    fn push_filtered(
        &mut self,
        batch: &DeviceBatch,
        mask: &DeviceArray,
        completed: &mut (dyn FnMut(Vec<DeviceArray>) -> Result<()> + Send),
        stream: &Stream,
    ) -> Result<()>;

    /// Returns the columns of the batch, and begins the next one. All columns finish before an error is
    /// returned, so that none keeps rows that others have lost.
    fn finish(&mut self, stream: &Stream) -> Result<Vec<DeviceArray>>;
}

/// The logical validity of rows.
pub(crate) enum Valid {
    /// No row is null.
    All,
    /// Every row is null.
    None,
    /// Booleans without nulls, true for valid rows.
    These(DeviceArray),
}

/// The rank of rows that are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The highest of their places, as `arrow_ord::rank` has it: 1, 3, 3, 4.
    #[default]
    Highest,
    /// The lowest of their places, as SQL's `RANK()` has it: 1, 2, 2, 4.
    Lowest,
    /// One more than that of the rows before them, as SQL's `DENSE_RANK()` has it: 1, 2, 2, 3.
    Dense,
}

/// The result for an index that is out of bounds: negative, or not less than the number of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfBounds {
    /// Returns [`IndexOutOfBounds`](crate::Error::IndexOutOfBounds) with the first such row.
    #[default]
    Error,
    /// Makes the row null.
    Null,
}
