//! The results of groups.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, new_null_array};
use arrow_schema::{DataType, Field};

use super::kept::{counted, quantiles};
use super::lists::lists;
use super::partial::Partial;
use crate::compute::arrays::computed;
use crate::compute::{CastOptions, cast, engine};
use crate::exchange::from_arrow;
use crate::expr::{Literal, if_else, nth};
use crate::{DeviceArray, Result, Stream};

/// The name and type of an aggregate's result, and its origin.
#[derive(Clone, Debug)]
pub(super) struct Results {
    pub field: Field,
    pub made: Made,
}

/// The states and kept rows from which a result is made.
#[derive(Clone, Debug)]
pub(super) enum Made {
    /// A state, converted to the result's type.
    State(usize),
    /// A sum divided by a count. The point of a decimal's mean moves by `up` digits.
    Mean { sum: usize, count: usize, up: u32 },
    /// The sum of squared distances, divided by the number of values less `ddof`, or the root of that.
    Variance { squares: usize, count: usize, ddof: u32, root: bool },
    /// The number of kept rows.
    Distinct(usize),
    /// A quantile of kept rows.
    Quantile(usize, f64),
    /// The list of kept rows.
    List(usize),
}

/// The columns of the row of results without rows: counts are zero, and all else is null.
pub(super) fn of_nothing(results: &[Results], stream: &Stream) -> Result<Vec<DeviceArray>> {
    let column = |one: &Results| {
        let none: ArrayRef = match one.field.is_nullable() {
            true => new_null_array(one.field.data_type(), 1),
            false => Arc::new(Int64Array::from(vec![0])),
        };
        stream.upload(&from_arrow(&none)?)
    };
    results.iter().map(column).collect()
}

/// Makes the result of each group.
pub(super) async fn result(
    one: &Results,
    made: &Partial,
    options: &CastOptions<'_>,
    stream: &Stream,
) -> Result<DeviceArray> {
    let to = one.field.data_type();
    let state = |number: usize| &made.states[number];
    match &one.made {
        Made::Mean { sum, count, up } => match to {
            DataType::Decimal128(_, scale) => {
                engine(stream).divide_sums(state(*sum), state(*count), *up, *scale, options.safe, stream)
            }
            _ => {
                let both = vec![state(*sum).clone(), state(*count).clone()];
                computed(nth(0) / nth(1).cast(DataType::Float64), both, stream).await
            }
        },
        Made::State(number) => {
            let state = state(*number);
            match to {
                _ if state.data_type() == to => Ok(state.clone()),
                // Integers become durations as they are.
                DataType::Duration(_) => {
                    let whole = cast(state, &DataType::Int64, options, stream).await?;
                    cast(&whole, to, options, stream).await
                }
                _ => cast(state, to, options, stream).await,
            }
        }
        Made::Variance { squares, count, ddof, root } => {
            let both = vec![state(*squares).clone(), state(*count).clone()];
            let degrees = (nth(1) - *ddof as i64).cast(DataType::Float64);
            let some = nth(1).gt(*ddof as i64);
            let variance = if_else(some, nth(0) / degrees, Literal::null(DataType::Float64));
            let variance = computed(variance, both, stream).await?;
            if *root { engine(stream).roots(&variance, stream) } else { Ok(variance) }
        }
        Made::Distinct(number) => counted(&made.kept[*number], stream).await,
        Made::List(number) => lists(&made.kept[*number], made.keys.columns().len(), to, stream).await,
        Made::Quantile(number, part) => quantiles(&made.kept[*number], *part, stream).await,
    }
}
