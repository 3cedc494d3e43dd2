//! Sorting: the order of rows, sorted rows, ranks, and groups of equal rows.

pub use arrow_schema::SortOptions;

use super::{Columns, TakeOptions, check_columns, engine, reach, reach_all, take};
pub use crate::engine::Ties;
use crate::{DeviceArray, Error, Pending, Stream};

/// A column to sort by, and its direction.
#[derive(Clone, Debug)]
pub struct SortColumn<'a> {
    /// The values, as many as there are rows to sort.
    pub values: &'a DeviceArray,
    /// The direction, and the place of nulls.
    pub options: SortOptions,
}

impl<'a> SortColumn<'a> {
    /// Sorts by values in a direction.
    pub fn new(values: &'a DeviceArray, options: SortOptions) -> SortColumn<'a> {
        SortColumn { values, options }
    }
}

/// Returns the rows of an array in the order of their values, as UInt32: the first `limit` of them, or all.
/// Rows that are equal stay in their order, which arrow-rs does not promise. With a limit of
/// at most a sixteenth of the rows, the CPU does not sort the others, unless many begin alike. More rows than
/// `u32::MAX` are an error.
///
/// All types have an order, that of arrow-rs:
///
/// - Nulls come first or last, as [`SortOptions::nulls_first`] says, also if the order is descending, and
///   also inside of nested values.
/// - Floats have the total order of IEEE 754: a negative NaN is the least, a positive one the greatest, and
///   -0.0 comes before 0.0.
/// - Decimals, dates, times and durations order as their integers; intervals by months, then days, then the
///   rest of the day. Text orders by its bytes.
/// - Rows of dictionaries and runs order as the values that they refer to. Null values are nulls, and stay in
///   order with null keys.
/// - Lists order by their first item that differs; a list that begins like another and is longer comes after
///   it. Maps are lists of entries. Structs order by their first field that differs.
/// - Rows of unions order by type number, then by value. All rows of type Null are equal.
///
/// `arrow_ord::sort` does not sort structs, maps, unions, FixedSizeBinary in lists and the like; there the
/// order is that of `arrow_row`, with one exception: its descending order of unions turns around the types,
/// but not the values of a type; ours turns around both.
///
/// With a limit, devices sort all rows. On devices, lists cost a sort of their items, and unions and
/// dictionaries of nested values a sort of the values.
///
/// ```
/// use bowstring::{Stream, compute::{SortOptions, sort_to_indices}, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let values = from_arrow(&arrow_array::Int32Array::from(vec![Some(3), None, Some(1), Some(3)]))?;
/// let descending = SortOptions { descending: true, nulls_first: false };
/// let order = to_arrow(&sort_to_indices(&values, descending, None, &Stream::cpu()).wait()?)?;
/// assert_eq!(order.as_ref(), &arrow_array::UInt32Array::from(vec![0, 3, 2, 1]));
/// # Ok(())
/// # }
/// ```
pub fn sort_to_indices(
    values: &DeviceArray,
    options: SortOptions,
    limit: Option<usize>,
    stream: &Stream,
) -> Pending<DeviceArray> {
    lexsort_to_indices(&[SortColumn { values, options }], limit, stream)
}

/// Returns the rows of columns in the order of the first column in which they differ, as
/// [`sort_to_indices`] does for a column. No columns, and columns of different lengths, are an error.
pub fn lexsort_to_indices(
    columns: &[SortColumn<'_>],
    limit: Option<usize>,
    stream: &Stream,
) -> Pending<DeviceArray> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        let values: Vec<&DeviceArray> = columns.iter().map(|column| column.values).collect();
        check_columns("sort_to_indices", &values, stream)?;
        let columns: Vec<_> = columns.iter().map(|column| (column.values, column.options)).collect();
        engine(stream).sort_to_indices(&columns, limit, stream)
    })
}

/// Sorts the rows of an array or a batch by columns, which need not be the batch's own: the first `limit` of
/// the rows, or all. See [`sort_to_indices`] for the order.
///
/// ```
/// use arrow_array::{Int32Array, RecordBatch, StringArray, record_batch};
/// use bowstring::compute::{SortColumn, SortOptions, sort_by};
/// use bowstring::exchange::{batch_from_arrow, batch_to_arrow};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let batch = batch_from_arrow(&record_batch!(("n", Int32, [2, 1, 2]), ("s", Utf8, ["b", "c", "a"]))?)?;
/// let by = [0, 1].map(|i| SortColumn::new(&batch.columns()[i], SortOptions::default()));
/// let sorted = batch_to_arrow(&sort_by(&batch, &by, None, &bowstring::Stream::cpu()).wait()?)?;
/// assert_eq!(sorted, record_batch!(("n", Int32, [1, 2, 2]), ("s", Utf8, ["c", "a", "b"]))?);
/// # Ok(())
/// # }
/// ```
pub fn sort_by<C: Columns + Clone>(
    values: &C,
    by: &[SortColumn<'_>],
    limit: Option<usize>,
    stream: &Stream,
) -> Pending<C> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        reach_all("sort_by", values.arrays(), stream)?;
        if let Some(by) = by.iter().find(|by| by.values.len() != values.rows()) {
            let problem = format!("{} rows by {}", values.rows(), by.values.len());
            return Err(Error::invalid("sort_by", problem));
        }
        let order = lexsort_to_indices(by, limit, stream);
        let (values, on) = (values.clone(), stream.clone());
        Ok(Pending::begin(stream, async move {
            let order = order.await?;
            take(&values, &order, &TakeOptions::default(), &on).await
        }))
    })
}

/// Sorts an array: [`sort_to_indices`], and [`take`] of its result.
pub fn sort(values: &DeviceArray, options: SortOptions, stream: &Stream) -> Pending<DeviceArray> {
    sort_by(values, &[SortColumn { values, options }], None, stream)
}

/// Returns the rank of each row in the order of [`sort_to_indices`], as UInt32, from 1 on. Nulls have ranks
/// like values. [`Ties`] tells the rank of rows that are equal.
///
/// ```
/// use bowstring::{Stream, compute::{SortOptions, Ties, rank}, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let values = from_arrow(&arrow_array::StringArray::from(vec!["foo", "bar", "foo"]))?;
/// let ranks = to_arrow(&rank(&values, SortOptions::default(), Ties::Lowest, &Stream::cpu()).wait()?)?;
/// assert_eq!(ranks.as_ref(), &arrow_array::UInt32Array::from(vec![2, 1, 2]));
/// # Ok(())
/// # }
/// ```
pub fn rank(values: &DeviceArray, options: SortOptions, ties: Ties, stream: &Stream) -> Pending<DeviceArray> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        reach("rank", values, stream)?;
        engine(stream).rank(values, options, ties, stream)
    })
}

/// Returns the rows, as UInt32, at which a group of equal rows starts: row 0, and each row that differs from
/// the row before it in any column. Sort the columns first, or equal rows may be in several groups. Nulls are
/// equal. No columns, and columns of different lengths, are an error.
///
/// ```
/// use bowstring::{Stream, compute::partition, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let values = from_arrow(&arrow_array::Int32Array::from(vec![None, Some(1), Some(1), Some(4)]))?;
/// let starts = to_arrow(&partition(&[values], &Stream::cpu()).wait()?)?;
/// assert_eq!(starts.as_ref(), &arrow_array::UInt32Array::from(vec![0, 1, 3]));
/// # Ok(())
/// # }
/// ```
pub fn partition(columns: &[DeviceArray], stream: &Stream) -> Pending<DeviceArray> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        check_columns("partition", &columns.iter().collect::<Vec<_>>(), stream)?;
        engine(stream).partition(columns, stream)
    })
}
