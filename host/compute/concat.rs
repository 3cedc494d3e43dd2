//! The `concat` operation: appends arrays or batches to each other.

use super::{Columns, engine, reach_all, together};
use crate::array::rows_of;
use crate::{DeviceArray, Error, Pending, Result, Stream};

/// Concatenates arrays of one type, such as the chunks of a foreign stream, in their order, or batches with
/// the same columns. On the CPU, arrays that are not known to be valid are validated first.
///
/// On a GPU this synchronises once for each level of text, lists, or run-end encoded arrays in lists, for all
/// columns together, to learn how much of their data the rows refer to. Offsets, keys and views that are out
/// of bounds are an error for the first caller that waits for the result. If the key type of a dictionary
/// cannot index all values, the values are deduplicated in host memory.
///
/// Copies all contents, except for the data that views point into and a dictionary that all arrays share. A
/// single array or batch is returned without a copy.
///
/// The columns of batches have the same names and types in the same order. A field of the result is nullable
/// if it is in any batch. The other metadata of the schema is the first batch's; the metadata of the batches
/// themselves is left out.
pub fn concat<C: Columns>(parts: &[&C], stream: &Stream) -> Pending<C> {
    Pending::begun(|| begin(parts, stream))
}

fn begin<C: Columns>(parts: &[&C], stream: &Stream) -> Result<Pending<C>> {
    let _current = stream.enter()?;
    let Some((first, others)) = parts.split_first() else {
        return Err(Error::invalid("concat", "no parts"));
    };
    let frame = C::joined_frame(first, others)?;
    let rows = rows_of("concat", parts.iter().map(|part| part.rows()))?;
    parts.iter().try_for_each(|part| reach_all("concat", part.arrays(), stream))?;
    if others.is_empty() {
        return Ok(Pending::known(Ok((*first).clone())));
    }
    let column = |i: usize| parts.iter().map(|part| &part.arrays()[i]).collect::<Vec<&DeviceArray>>();
    let joined = |i: usize| engine(stream).concat(&column(i), engine(&Stream::cpu()), stream);
    Ok(together(frame, (0..first.arrays().len()).map(joined).collect::<Result<_>>()?, rows, stream))
}
