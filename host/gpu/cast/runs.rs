//! Runs: equal neighbouring rows become one run, and a run's value becomes the value of each of its rows.

use arrow_schema::{DataType, FieldRef};

use super::held::hold;
use super::inside::Cast;
use crate::Result;
use crate::array::{DeviceArray, Parts};
use crate::gpu::parts::{check_end_as_arrow, none};
use crate::gpu::structure::alike::stretches;
use crate::gpu::structure::{Marked, runs};
use crate::gpu::{Outside, take_one};
use crate::rules::of_any_length;

/// Casts runs to plain rows, or to runs with other ends or values. The latter casts only the runs that rows
/// use, and reads which they are; a take of text values reads too.
pub(super) async fn cast_from(cast: Cast<'_>, values: &DeviceArray, to: &DataType) -> Result<DeviceArray> {
    let DataType::RunEndEncoded(ends, of) = to else {
        let found = runs::of_rows("cast", values, cast.stream)?;
        let runs = &values.children()[1];
        if *of_any_length(runs.data_type()) == *to && runs.data_type() != to {
            // Views of a run's rows share its text.
            return take_one(&cast.cast(runs, to).await?, &found, Outside::Refused, cast.stream)?.await;
        }
        // A cast that unwraps lists of one item shows the item whether or not its list is null.
        let listed = matches!(runs.data_type(), DataType::FixedSizeList(..));
        let outside = if listed { Outside::NullBelow } else { Outside::Refused };
        return cast.cast(&take_one(runs, &found, outside, cast.stream)?.await?, to).await;
    };
    if values.is_empty() {
        return none(cast.begin(&[values])?, to);
    }
    check_end_as_arrow("cast", values.len(), ends.data_type())?;
    let mut pass = cast.begin(&[values])?;
    let (old, of_runs) = runs::of_slice(&mut pass, values).await?;
    let casted = cast.cast(&of_runs, of.data_type()).await?;
    let new = cast.cast(&old, ends.data_type()).await?;
    pass.input(&casted)?;
    pass.input(&new)?;
    hold(cast, &mut pass, &casted, of, None).await?;
    // Every end fits because the last one does.
    runs::built(pass, to, values.len(), without_nulls(new)?, casted)
}

/// Encodes values as runs of equal neighbours. Reads the number of runs, and what the take of the values
/// reads.
pub(super) async fn cast_to(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    (ends, of): (&FieldRef, &FieldRef),
) -> Result<DeviceArray> {
    let casted = cast.cast(values, of.data_type()).await?;
    if casted.is_empty() {
        return none(cast.begin(&[&casted])?, to);
    }
    check_end_as_arrow("cast", casted.len(), ends.data_type())?;
    let mut pass = cast.begin(&[&casted])?;
    let bits = stretches(&mut pass, &casted).await?;
    let marked = Marked::new(&mut pass, casted.len(), &bits)?;
    let total = marked.total(&pass.read(&[marked.counters()]).await?);
    let (ends, rows) = runs::ends_and_rows(&mut pass, &marked.mask, total, None, ends.data_type())?;
    let taken = take_one(&casted, &rows, Outside::Refused, cast.stream)?.await?;
    pass.input(&taken)?;
    hold(cast, &mut pass, &taken, of, None).await?;
    runs::built(pass, to, casted.len(), ends, taken)
}

/// Drops the bitmap: run ends have none.
fn without_nulls(ends: DeviceArray) -> Result<DeviceArray> {
    let parts = ends.into_parts();
    DeviceArray::try_new(Parts { validity: None, null_count: Some(0), ..parts })
}
