//! The `cast` operation, with arrow-cast's semantics for every pair of types that arrow-cast supports.

use arrow_array::new_empty_array;
pub use arrow_cast::CastOptions;
pub use arrow_cast::display::{DurationFormat, FormatOptions};
use arrow_schema::DataType;

use super::{Columns, engine, nullability, reach_all};
use crate::array::{any_part, has_bad_parameter};
use crate::exchange::from_arrow;
pub use crate::rules::can_cast;
use crate::rules::unsupported;
use crate::{DeviceArray, Error, Pending, Result, Stream};

/// Casts an array to another type, or each column of a batch to the type of the field at its position, with
/// arrow-cast's semantics. A batch takes the names of the target schema.
///
/// If the options are `safe` (the default), a value that does not fit the target type becomes null. Otherwise
/// it is [`Error::Cast`] with the first such row: at once on the CPU, and on a GPU for the first caller that
/// waits for the array. A list that is cast to text contains the error message instead, whatever the options,
/// because arrow displays lists this way. Buffers are shared if the bits do not change.
///
/// Nulls under a field of a schema that is not nullable are [`Error::Invalid`], whether they were in the
/// batch already or a safe cast made them. The error is returned at once if the number of nulls is known or
/// the array is in host memory, and otherwise to the first caller that waits for that column. Visible nulls
/// under such a field inside of a nested type are an error in the same way, [`Error::Arrow`].
///
/// GPUs do not support custom text formats ([`CastOptions::format_options`]), texts that name a time zone
/// themselves, or lists of unions as text.
///
/// Synchronises only if a device must compute a size that depends on the data:
///
/// - the number of bytes of values as text, of the data behind views, and of bytes that become text
/// - the items of lists, in a cast that may fail or to a type with an inner field that is not nullable (then
///   also for lists of fixed size that may be null)
/// - the items of list views that become lists, and of lists that become text (these become text first)
/// - the number of runs or values in an array that becomes run-end encoded or a dictionary
///
/// If the moved values are strings or lists, this takes one more synchronisation, as in
/// [`take`](super::take). A dictionary is built in rounds, nearly always few enough for one synchronisation;
/// each synchronisation resolves at least some values. The columns of a batch synchronise together. On a GPU
/// all numeric columns are cast together, with one launch for each column that changes, and one event for all
/// of them. So a value that does not fit is an error for the first caller that waits for any of these.
pub fn cast<C: Columns>(
    values: &C,
    to: &C::Target,
    options: &CastOptions<'_>,
    stream: &Stream,
) -> Pending<C> {
    Pending::begun(|| begin(values, to, options, stream))
}

fn begin<C: Columns>(
    values: &C,
    to: &C::Target,
    options: &CastOptions<'_>,
    stream: &Stream,
) -> Result<Pending<C>> {
    let _current = stream.enter()?;
    let (frame, types) = values.target(to)?;
    reach_all("cast", values.arrays(), stream)?;
    let columns: Vec<(&DeviceArray, &DataType)> = values.arrays().iter().zip(types).collect();
    // Checks all columns before any work is done.
    for (values, to) in &columns {
        // arrow-cast would calculate with a negative size.
        if any_part(to, has_bad_parameter) {
            return Err(Error::invalid("cast", format!("{to} is not an Arrow type")));
        }
        if !can_cast(values.data_type(), to) {
            return Err(unsupported(values, to, stream.device().place().device_type));
        }
    }
    let (casted, on, rows) = (engine(stream).cast(&columns, options, stream)?, stream.clone(), values.rows());
    Ok(casted.map(move |mut casted| {
        if let Some(schema) = C::schema(&frame) {
            casted = nullability::held_to(schema, casted, &on)?;
        }
        C::framed(frame, casted, rows)
    }))
}

/// Whether the stream's device casts arrays of one type to another: the error that [`cast`] would return for
/// every array, before there is one. A planner asks this. Single values may still fail.
///
/// Casts an array without rows, so it takes as long as a small cast does.
///
/// ```
/// use arrow_schema::DataType::{Int32, Utf8};
/// use bowstring::{Device, compute::{CastOptions, check_cast}};
/// # fn main() -> bowstring::Result<()> {
/// let stream = Device::emulated().stream()?;
/// check_cast(&Int32, &Utf8, &CastOptions::default(), &stream)?;
/// # Ok(())
/// # }
/// ```
pub fn check_cast(from: &DataType, to: &DataType, options: &CastOptions<'_>, stream: &Stream) -> Result<()> {
    let none = from_arrow(&new_empty_array(from))?;
    cast(&stream.upload(&none)?, to, options, stream).wait()?.wait()
}
