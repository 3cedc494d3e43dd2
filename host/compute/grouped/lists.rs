//! Lists of the values of groups.

use arrow_schema::DataType;

use crate::array::{Bitmap, Parts};
use crate::compute::arrays::{computed, fold_groups, null_unless_true};
use crate::compute::{SortOptions, TakeOptions, concat, engine, filter, group, sort_to_indices, take};
use crate::engine::{Frames, GroupFold};
use crate::expr::{Fold, Literal, Reduction, lit, nth};
use crate::{DeviceArray, DeviceBatch, Error, Result, Stream};

/// Returns the list of the values of each group of equal keys, which are the first columns; a value follows,
/// and a column that says which rows count, if not all do. The groups are in the order of their first rows,
/// as those of the rows that were not kept.
pub(super) async fn lists(
    rows: &DeviceBatch,
    keys: usize,
    to: &DataType,
    stream: &Stream,
) -> Result<DeviceArray> {
    let plain = TakeOptions::default();
    let groups = group(&rows.columns()[..keys], stream).await?;
    let (mut ids, mut values) = (groups.ids().clone(), rows.columns()[keys].clone());
    let counts = rows.columns().get(keys + 1);
    if let Some(counts) = counts {
        (ids, values) = (filter(&ids, counts, stream).await?, filter(&values, counts, stream).await?);
    }
    let (len, most) = (values.len(), i32::MAX as usize);
    if len > most {
        return Err(Error::invalid(
            "aggregate",
            format!("lists of {len} values, which are more than {most}"),
        ));
    }
    let order = sort_to_indices(&ids, SortOptions::default(), None, stream).await?;
    let values = take(&values, &order, &plain, stream).await?;

    // A list begins where the one before it ends: the running sum of their lengths.
    let counted = counts.map(null_unless_true).transpose()?;
    let count = GroupFold { fold: Reduction::Fold(Fold::Count), values: counted, wraps: false };
    let lengths = fold_groups(&[count], &groups, stream).await?.remove(0);
    let numbers = engine(stream).numbers(groups.len(), stream)?;
    let end = lit(Literal::of(DataType::UInt32, 1));
    let frames = Frames {
        starts: computed(nth(0) - nth(0), vec![numbers.clone()], stream).await?,
        ends: computed(nth(0) + end, vec![numbers], stream).await?,
        longest: groups.len(),
    };
    let sum = GroupFold { fold: Reduction::Fold(Fold::Sum), values: Some(lengths.clone()), wraps: true };
    let mut ends = match groups.is_empty() {
        true => lengths.clone(),
        false => engine(stream).fold_frames(&[sum], &frames, stream)?.remove(0),
    };
    ends = computed(nth(0).cast(DataType::Int32), vec![ends], stream).await?;
    let zero = engine(stream).numbers(1, stream)?;
    let zero = computed(nth(0).cast(DataType::Int32), vec![zero], stream).await?;
    let some = computed(nth(0).gt(0), vec![lengths], stream).await?;
    let offsets = concat(&[&zero, &ends], stream).await?;
    let mut parts = Parts::new(to.clone(), groups.len());
    parts.buffers = vec![offsets.buffers()[0].slice(offsets.offset() * 4, Some((groups.len() + 1) * 4))];
    parts.validity = Some(Bitmap { buffer: some.buffers()[0].clone(), offset: some.offset() });
    parts.null_count = None;
    parts.children = vec![values];
    (parts.place, parts.ready) = (offsets.place(), offsets.ready().cloned());
    DeviceArray::try_new(parts)
}
