//! Lists of fixed size, taken so that null rows have null items.
//!
//! Any other take of such lists is a take of ranges, and leaves arbitrary items under a null row. Casts are
//! the only operation that reads those.

use arrow_schema::DataType;
use bowstring_kernels::ranges::lists::{SPACED, Spaced};

use crate::array::{Buffer, DeviceArray, Parts};
use crate::gpu::draft::Pick;
use crate::gpu::indices::Indices;
use crate::gpu::parts::part_of;
use crate::pass::{Pass, Requests, validity};
use crate::{Error, Result, Stream};

/// Returns the lists as rows of zero bytes, which carry nothing but their validity.
pub(crate) fn without_items(array: &DeviceArray) -> Result<DeviceArray> {
    DeviceArray::try_new(Parts {
        data_type: DataType::FixedSizeBinary(0),
        buffers: vec![Buffer::empty()],
        children: vec![],
        ..array.clone().into_parts()
    })
}

/// Taken lists of fixed size, without their items.
pub(crate) struct TakenLists {
    data_type: DataType,
    without_items: DeviceArray,
    pub items: Pick,
}

/// Finds the items of lists, of at least one item each, by at least one index. `without_items` are the taken
/// rows of [`without_items`].
pub(crate) fn taken(rows: &Pick, without_items: DeviceArray, stream: &Stream) -> Result<TakenLists> {
    let Pick { array, indices, outside } = rows;
    let DataType::FixedSizeList(_, size) = array.data_type() else {
        return Err(Error::invalid("take", "an array without lists of fixed size"));
    };
    let mut pass = Pass::begin("take", stream)?;
    pass.input(indices)?;
    pass.input(&without_items)?;
    let len = pass.times(indices.len(), *size as usize)?;
    let mut requests = Requests::default();
    let by = Indices::new(&mut requests, indices, array.len(), *outside)?;
    let granted = requests.grant(&mut pass, 0)?;
    let (arguments, out) = (by.arguments(&mut pass, &granted)?, pass.rows(len, 8)?);
    let (valid, valid_offset) = validity(&without_items);
    let args = Spaced {
        indices: arguments.indices,
        width: arguments.width.into(),
        valid,
        valid_offset,
        rows: arguments.len,
        limit: arguments.limit,
        size: *size as u64,
        out: out.out(),
    };
    pass.launch(&SPACED[0], &args)?;
    let numbers = pass.array(DataType::UInt64, len, &out)?;
    pass.finish()?;
    let items = Pick { array: array.child_rows(0)?, indices: numbers, outside: *outside };
    Ok(TakenLists { data_type: array.data_type().clone(), without_items, items })
}

impl TakenLists {
    /// Adds the taken items.
    pub fn build(self, items: DeviceArray, stream: &Stream) -> Result<DeviceArray> {
        let mut pass = Pass::begin("take", stream)?;
        pass.input(&items)?;
        pass.input(&self.without_items)?;
        let mut parts = pass.parts(self.data_type, self.without_items.len());
        parts.validity = self.without_items.validity().cloned();
        parts.null_count = self.without_items.known_null_count();
        parts.children = vec![part_of(&pass, items)?];
        let taken = DeviceArray::try_new(parts)?;
        pass.finish()?;
        Ok(taken)
    }
}
