//! List views, and lists that become lists of fixed size. The range of each row's items is found; then the
//! items are shared, copied end to end, or taken.
//!
//! As in [`nested`](super::nested), unreferenced items are cast along if that cannot change the result;
//! otherwise the host reads the extent of the rows' items. Rows of list views may lie anywhere, so a kernel
//! computes that extent row by row.

use arrow_schema::{DataType, FieldRef};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::ranges::lists::{EXTENTS, Extents, ITEMS, Items, SIZED, Sized};
use bowstring_kernels::target::find;

use super::held::{Above, hold};
use super::inside::Cast;
use super::offsets::{do_not_fit, most, regular_offsets};
use crate::array::{Bitmap, DeviceArray, Parts, Slot, layout};
use crate::gpu::bitmap::{aligned, nulls_of};
use crate::gpu::parts::part_of;
use crate::gpu::ranges::{Planner, Rows};
use crate::gpu::ranges_copy::Found;
use crate::gpu::rows::{offsets_of, rows_of};
use crate::gpu::scan::tiles;
use crate::gpu::structure::unions::no_null;
use crate::gpu::take::finished;
use crate::gpu::{Outside, take_one};
use crate::pass::{BitPointer, Pass, Reach, Region, Requests, validity};
use crate::{Error, Result};

/// Rows described by offsets, or by offsets and sizes.
#[derive(Clone, Copy)]
pub(super) struct Described {
    offsets: In<u8>,
    sizes: In<u8>,
    /// The bytes of an offset.
    width: usize,
    pub rows: usize,
    /// The bound that offsets must not exceed.
    reach: Reach,
}

impl Described {
    /// Describes the rows of an array of lists, strings or bytes. It must have rows.
    pub fn of(pass: &mut Pass, array: &DeviceArray) -> Result<Described> {
        let reach = match array.children().first() {
            Some(items) => Reach::elements(items.len()),
            None => Reach::bytes(&array.buffers()[1]),
        };
        let rows = array.len();
        let (offsets, sizes, width) = match array.layout().slots().next() {
            Some(Slot::Offsets(width)) => {
                (aligned(pass, &offsets_of(array, width), width)?, In::absent(), width)
            }
            Some(Slot::Fixed(width)) => {
                let [offsets, sizes] =
                    [0, 1].map(|i| aligned(pass, &rows_of(array, &array.buffers()[i], width), width));
                (offsets?, sizes?, width)
            }
            _ => return Err(Error::invalid("cast", "lists without offsets")),
        };
        Ok(Described { offsets, sizes, width, rows, reach })
    }

    /// Describes rows of equal size, by offsets that the pass has written.
    fn regular(offsets: &Region, width: usize, rows: usize) -> Described {
        let reach = Reach::elements(i64::MAX as usize);
        Described { offsets: offsets.input(), sizes: In::absent(), width, rows, reach }
    }

    /// Finds the first item of each row, counted from `base`, and its number of items. `fault` receives the
    /// first row whose items are out of bounds, and `limits` the extent of all items.
    pub fn find(
        &self,
        pass: &mut Pass,
        base: u64,
        (starts, lens, width): (Out<u8>, Out<u8>, usize),
        (fault, limits): (Out<u64>, Out<u64>),
    ) -> Result<()> {
        let sums = pass.scratch::<u64>(tiles(self.rows))?;
        let args = Extents {
            offsets: self.offsets,
            sizes: self.sizes,
            valid: In::absent(),
            valid_offset: 0,
            rows: self.rows as u64,
            limit: self.reach.limit,
            end: self.reach.end,
            end_offset: self.reach.end_offset,
            base,
            starts,
            lens,
            sums: sums.out(),
            fault,
            limits,
        };
        let entry = find(EXTENTS, &[self.width as u32, width as u32]);
        pass.launch(entry.ok_or_else(|| pass.unsupported("lists"))?, &args)
    }

    /// As [`Described::find`], and reads the extent of all rows' items.
    pub async fn look(
        self,
        pass: &mut Pass,
        values: &DeviceArray,
        into: (Out<u8>, Out<u8>, usize),
    ) -> Result<(u64, u64)> {
        let found = pass.upload(&[u64::MAX; 3])?;
        self.find(pass, 0, into, (found.out(), found.out().skip(1)))?;
        let words = pass.read(&[&found]).await?;
        match words[0] {
            // If no row has items, `limits` keeps its initial values.
            u64::MAX => Ok((words[1].min(!words[2]), !words[2])),
            row => Err(outside(values.data_type(), row)),
        }
    }
}

/// Makes the error for a row whose items are out of bounds.
fn outside(from: &DataType, row: u64) -> Error {
    Error::out_of_spec(format!("offsets of {from}"), format!("the items of row {row} are not there"))
}

/// Reports such rows when the result is waited for.
pub(super) fn report(pass: &mut Pass, fault: &Region, from: &DataType) -> Result<()> {
    let from = from.clone();
    pass.report(fault, move |words| match words[0] {
        u64::MAX => Ok(()),
        row => Err(outside(&from, row)),
    })
}

fn offset_width(to: &DataType) -> Result<usize> {
    match layout(to).slots().next() {
        Some(Slot::Offsets(width) | Slot::Fixed(width)) => Ok(width),
        _ => Err(Error::invalid("cast", "lists without offsets")),
    }
}

/// Casts lists of any kind to list views. Synchronises if unreferenced items must not be cast.
pub(super) async fn to_views(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    item: &FieldRef,
) -> Result<DeviceArray> {
    if values.is_empty() {
        return cast.of_no_rows(values, to, item).await;
    }
    let mut pass = cast.begin(&[values])?;
    let (from, width, items) = (Described::of(&mut pass, values)?, offset_width(to)?, &values.children()[0]);
    let views = from.width == width && values.buffers().len() == 2;
    let narrow = width < from.width && items.len() as u64 > most(width);
    let look = narrow || cast.minds_unseen(items, item);
    let mut parts = pass.parts(to.clone(), values.len());
    let mut seen = items.clone();
    if views && !look {
        (parts.offset, parts.buffers) = (values.offset(), values.buffers().to_vec());
        (parts.validity, parts.null_count) = (values.validity().cloned(), values.known_null_count());
    } else {
        parts = nulls_of(&mut pass, values, parts)?;
        let mut base = 0;
        if look {
            let (first, last) = from.look(&mut pass, values, (Out::absent(), Out::absent(), width)).await?;
            if last - first > most(width) {
                return Err(do_not_fit(last - first, to));
            }
            (base, seen) = (first, items.slice(first as usize, (last - first) as usize)?);
        }
        let (starts, lens) = (pass.rows(from.rows, width)?, pass.rows(from.rows, width)?);
        let fault = pass.first_rows(1, from.rows)?;
        from.find(&mut pass, base, (starts.out(), lens.out(), width), (fault.out(), Out::absent()))?;
        report(&mut pass, &fault, values.data_type())?;
        parts.buffers = vec![starts.buffer(), lens.buffer()];
    }
    let seen = cast.cast(&seen, item.data_type()).await?;
    pass.input(&seen)?;
    hold(cast, &mut pass, &seen, item, None).await?;
    parts.children = vec![part_of(&pass, seen)?];
    pass.finish()?;
    DeviceArray::try_new(parts)
}

/// Writes the offsets and sizes of rows of `size` items each.
pub(super) fn regular_views(
    pass: &mut Pass,
    rows: usize,
    size: usize,
    width: usize,
    to: &DataType,
) -> Result<[Region; 2]> {
    let offsets = regular_offsets(pass, rows, size, width, to)?;
    let (starts, lens) = (pass.rows(rows, width)?, pass.rows(rows, width)?);
    if rows > 0 {
        let from = Described::regular(&offsets, width, rows);
        from.find(pass, 0, (starts.out(), lens.out(), width), (Out::absent(), Out::absent()))?;
    }
    Ok([starts, lens])
}

/// Casts list views to lists: the items are copied end to end. Synchronises to read their number.
pub(super) async fn to_lists(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    item: &FieldRef,
) -> Result<DeviceArray> {
    if values.is_empty() {
        return cast.of_no_rows(values, to, item).await;
    }
    let mut pass = cast.begin(&[values])?;
    let (rows, width) = (values.len(), offset_width(to)?);
    // The place of a row's first item is kept in an offset of the new lists.
    if width == 4 && u32::try_from(values.children()[0].len()).is_err() {
        return Err(pass.unsupported(values.data_type()));
    }
    let mut requests = Requests::default();
    let mut node =
        Planner { pass: &pass, requests: &mut requests, rows, in_order: false }.viewed(values, width)?;
    let granted = requests.grant(&mut pass, 0)?;
    node.find(&mut pass, &granted, Rows::Views(rows))?;
    let words = pass.read(&[granted.counters()]).await?;
    let mut built = pass.parts(to.clone(), rows);
    let items = node.build(&mut pass, Found { granted: &granted, words: &words }, rows, &mut built)?;
    let offsets = built.buffers;
    // The items must wait for this pass, so that their cast reports the errors of this pass.
    let items = finished(&mut pass, items)
        .await?
        .pop()
        .ok_or_else(|| Error::invalid("cast", "lists without items"))?;
    pass.finish()?;
    let casted = cast.cast(&items, item.data_type()).await?;
    let mut pass = cast.begin(&[values, &items, &casted])?;
    hold(cast, &mut pass, &casted, item, None).await?;
    let parts = pass.parts(to.clone(), rows);
    let mut parts = nulls_of(&mut pass, values, parts)?;
    (parts.buffers, parts.children) = (offsets, vec![part_of(&pass, casted)?]);
    let lists = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(lists)
}

/// The rows that are valid and have `size` elements, the first element of each of those rows (0 for others),
/// and each row's start and length. In a safe cast valid rows of another length become null; otherwise the
/// first one is an error when the result is waited for.
pub(super) struct OfOneSize {
    pub valid: Bitmap,
    pub kept: Region,
    pub starts: Region,
    pub lens: Region,
}

pub(super) fn of_one_size(
    cast: Cast,
    pass: &mut Pass,
    values: &DeviceArray,
    to: &DataType,
    size: usize,
) -> Result<OfOneSize> {
    let from = Described::of(pass, values)?;
    let [starts, lens, kept] = [(); 3].map(|()| pass.rows(from.rows, 8));
    let (starts, lens, kept) = (starts?, lens?, kept?);
    let (fault, wrong) = (pass.first_rows(1, from.rows)?, pass.first_rows(1, from.rows)?);
    from.find(pass, 0, (starts.out(), lens.out(), 8), (fault.out(), Out::absent()))?;
    report(pass, &fault, values.data_type())?;
    let (valid, valid_offset): BitPointer = validity(values);
    let good = pass.output(from.rows.div_ceil(32) * 4)?;
    let args = Sized {
        starts: starts.input(),
        lens: lens.input(),
        want: size as u64,
        valid,
        valid_offset,
        rows: from.rows as u64,
        out: good.out(),
        kept: kept.out(),
        fault: wrong.out(),
    };
    pass.launch(&SIZED[0], &args)?;
    if !cast.options.safe {
        let (from, to) = (values.data_type().clone(), to.clone());
        pass.report(&wrong, move |words| match words[0] {
            u64::MAX => Ok(()),
            row => {
                let problem = format!("its length is not {size}");
                Err(Error::Cast { row: row as usize, from, to, problem })
            }
        })?;
    }
    Ok(OfOneSize { valid: Bitmap { buffer: good.buffer(), offset: 0 }, kept, starts, lens })
}

/// Casts lists to lists of fixed size: rows of another length are null, or an error. Synchronises if the take
/// of the items does.
pub(super) async fn to_fixed(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    (item, size): (&FieldRef, usize),
) -> Result<DeviceArray> {
    if values.is_empty() {
        return cast.of_no_rows(values, to, item).await;
    }
    let mut pass = cast.begin(&[values])?;
    let rows = values.len();
    let len = pass.times(rows, size)?;
    let sized = of_one_size(cast, &mut pass, values, to, size)?;
    let numbers = pass.rows(len, 8)?;
    let (starts, lens) = (sized.starts.input(), sized.lens.input());
    let args = Items { starts, lens, want: size as u64, rows: rows as u64, out: numbers.out() };
    pass.launch(&ITEMS[0], &args)?;
    let numbers = Parts { buffers: vec![numbers.buffer()], ..pass.parts(DataType::UInt64, len) };
    let shown = Parts {
        buffers: vec![sized.valid.buffer.clone()],
        validity: Some(sized.valid.clone()),
        null_count: None,
        ..pass.parts(DataType::Boolean, rows)
    };
    let (numbers, shown) = (DeviceArray::try_new(numbers)?, DeviceArray::try_new(shown)?);
    pass.finish()?;
    // A row of another length gets null items, because fixed-size lists have items under null rows too.
    let taken = take_one(&values.children()[0], &numbers, Outside::NullBelow, cast.stream)?.await;
    // The items, and so the cast, fail if they are of a union without a null.
    let taken = taken.map_err(|error| match error == no_null() {
        true => Error::Arrow { operation: "cast", problem: error.to_string() },
        false => error,
    })?;
    // Taken list views keep all items of the source; unreferenced ones must not fail the cast.
    let taken = match taken.data_type() {
        DataType::ListView(below) | DataType::LargeListView(below) if cast.minds_unseen(&taken, item) => {
            to_lists(cast, &taken, &DataType::LargeList(below.clone()), below).await?
        }
        _ => taken,
    };
    let items = cast.cast(&taken, item.data_type()).await?;
    let mut pass = cast.begin(&[&shown, &items])?;
    hold(cast, &mut pass, &items, item, Some(Above { rows: &shown, each: size })).await?;
    let mut parts = pass.parts(to.clone(), rows);
    (parts.validity, parts.null_count) = (Some(sized.valid), None);
    parts.children = vec![part_of(&pass, items)?];
    let lists = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(lists)
}
