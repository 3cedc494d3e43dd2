//! Substrings on a GPU: one launch makes views of the texts' own bytes. A column with offsets then moves the
//! bytes, as a cast from views does.

use arrow_schema::DataType;
use bowstring_kernels::text::rows::TextColumn;
use bowstring_kernels::text::substring::{ALL, SUBSTRING, Substring};

use super::parts::none;
use super::text::{text_column, view_buffers};
use crate::array::{DeviceArray, Slot, outside};
use crate::gpu::bitmap::nulls_of;
use crate::pass::{Pass, Table};
use crate::transfer::sized_buffers;
use crate::{Error, Result, Stream};

/// Makes views of the substrings of text.
pub(super) async fn views(
    values: &DeviceArray,
    start: i64,
    count: Option<u64>,
    stream: &Stream,
) -> Result<DeviceArray> {
    let mut pass = Pass::begin("substring", stream)?;
    let rows = values.len();
    if rows == 0 {
        pass.input(values)?;
        return none(pass, &DataType::Utf8View);
    }
    let column: Table<TextColumn> = [text_column(&mut pass, values).await?].into_iter().collect();
    let column = pass.upload(column.words())?;
    let data = &values.buffers()[1..];
    let (shift, buffers) = match values.layout().slots().next() {
        Some(Slot::Views) => (0, data.to_vec()),
        // The size of the bytes decides the number of data buffers.
        _ => match &sized_buffers(&mut pass, data).await?[..] {
            [bytes] => view_buffers(bytes),
            _ => return Err(pass.unsupported(values.data_type())),
        },
    };
    let views = pass.rows(rows, 16)?;
    let faults = pass.first_rows(2, rows)?;
    let args = Substring {
        column: column.input(),
        len: rows as u64,
        start: start as u64,
        count: count.unwrap_or(ALL),
        shift,
        views: views.out(),
        faults: faults.out(),
    };
    pass.launch(&SUBSTRING[0], &args)?;
    pass.report(&faults, |words| match (words[0], words[1]) {
        (u64::MAX, u64::MAX) => Ok(()),
        (u64::MAX, row) => Err(Error::invalid("substring", format!("row {row} is too long for a view"))),
        (row, _) => Err(outside(row as usize)),
    })?;
    let parts = pass.parts(DataType::Utf8View, rows);
    let mut parts = nulls_of(&mut pass, values, parts)?;
    parts.buffers = [views.buffer()].into_iter().chain(buffers).collect();
    let made = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(made)
}
