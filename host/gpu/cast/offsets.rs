//! Offsets that casts write: converted to another width, or for rows that all have the same number of
//! elements.

use arrow_schema::DataType;
use bowstring_kernels::memory::In;
use bowstring_kernels::ranges::offsets::{CONVERT, Convert, OFFENDER, Offender, REGULAR, Regular};
use bowstring_kernels::target::find;

use crate::array::DeviceArray;
use crate::pass::{Pass, Reach, Region};
use crate::{Error, Result};

/// Returns the greatest offset of `width` bytes.
pub(crate) fn most(width: usize) -> u64 {
    if width == 4 { i32::MAX as u64 } else { i64::MAX as u64 }
}

pub(super) fn do_not_fit(elements: u64, to: &DataType) -> Error {
    Error::too_long("cast", format_args!("{elements} elements"), to)
}

/// Offsets to be converted to another width.
pub(super) struct Offsets {
    pub offsets: In<u8>,
    /// The bytes of one offset.
    pub width: usize,
    /// The number of rows they delimit, one less than offsets.
    pub rows: usize,
    /// The bound that offsets must not exceed.
    pub reach: Reach,
    /// Subtracted from each offset.
    pub base: u64,
}

/// Converts offsets to `width` bytes. Bad offsets, and offsets that do not fit, are errors when the result is
/// waited for.
pub(super) fn convert_offsets(
    pass: &mut Pass,
    from: &Offsets,
    width: usize,
    values: &DeviceArray,
    to: &DataType,
) -> Result<Region> {
    let out = pass.rows(from.rows + 1, width)?;
    let faults = pass.first_rows(2, from.rows)?;
    let entry = find(CONVERT, &[from.width as u32, width as u32]).ok_or_else(|| pass.unsupported(to))?;
    let rows = from.rows as u64;
    let args = Convert {
        offsets: from.offsets,
        rows,
        limit: from.reach.limit,
        end: from.reach.end,
        end_offset: from.reach.end_offset,
        base: from.base,
        most: most(width),
        out: out.out(),
        faults: faults.out(),
    };
    pass.launch(entry, &args)?;
    let (at, to) = (format!("offsets of {}", values.data_type()), to.clone());
    pass.report(&faults, move |words| match (words[0], words[1]) {
        (u64::MAX, u64::MAX) => Ok(()),
        (u64::MAX, row) => {
            Err(Error::too_long("cast", format_args!("the elements of rows up to {row}"), &to))
        }
        (row, _) => {
            let problem = format!("row {row} ends before it begins, or beyond what there is");
            Err(Error::OutOfSpec { at, problem })
        }
    })?;
    Ok(out)
}

/// Writes the offsets of `rows` rows of `size` elements each, `width` bytes an offset.
pub(super) fn regular_offsets(
    pass: &mut Pass,
    rows: usize,
    size: usize,
    width: usize,
    to: &DataType,
) -> Result<Region> {
    let elements = (rows as u64).saturating_mul(size as u64);
    if elements > most(width) {
        return Err(do_not_fit(elements, to));
    }
    let out = pass.rows(rows + 1, width)?;
    let entry = find(REGULAR, &[width as u32]).ok_or_else(|| pass.unsupported(to))?;
    let args = Regular { rows: rows as u64, first: 0, size: size as u64, out: out.out() };
    pass.launch(entry, &args)?;
    Ok(out)
}

/// Reads the offsets of some rows.
pub(super) async fn read_offsets(
    pass: &mut Pass,
    offsets: In<u8>,
    width: usize,
    rows: &[u64],
) -> Result<Vec<u64>> {
    let (places, out) = (pass.upload(rows)?, pass.zeroed(8 * rows.len())?);
    let entry = find(OFFENDER, &[width as u32]).ok_or_else(|| pass.unsupported("offsets"))?;
    for i in 0..rows.len() {
        let (row, index) = (places.part(8 * i, 8 * i + 8), out.out().skip(i as u64));
        pass.launch(entry, &Offender { indices: offsets, row, index })?;
    }
    pass.read(&[&out]).await
}
