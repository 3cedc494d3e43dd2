//! The cost rule: decides when a chain is worth taking over.

use std::sync::Arc;

use bowstring::Device;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use crate::config::DeviceOptions;
use crate::device::is_host;
use crate::program::Shape;

/// Whether a program is expected to be no slower than the chain that it replaces.
///
/// On the CPU no data moves, because both sides share the columns. Aggregates without keys pay, with a
/// condition or without. Groups do not: DataFusion's one table for all batches of a partition took 0.4 to 1
/// times as long as our groups of each batch, merged (TPC-H's queries 17 and 18). A filter pays if it tests
/// and moves only columns of fixed width. Views of text come with dozens of buffers for 8,192 rows, and
/// converting them took five times as long as DataFusion's filter (10 ms against 2 ms, for 750,000 rows of
/// which 4 % are kept). So DataFusion's kernels handle text (`masked.rs`), and a filter needs a part that is
/// not text. A projection alone only saves the intermediate passes, so it must compute at least two columns.
///
/// On a device all rows have to be uploaded, unless they are `there`. This pays for aggregates, which return
/// one row or one for each group, and for filters, but not if the input is estimated to have fewer rows than
/// `device_min_rows`. If the rows are there, what comes down are fewer rows or columns; to compute some there
/// does not cost more.
pub(crate) fn pays(
    shape: &Shape,
    input: &Arc<dyn ExecutionPlan>,
    there: bool,
    device: &Device,
    options: &DeviceOptions,
) -> bool {
    if options.always {
        return shape.aggregates || shape.filters || shape.computed > 0 || shape.top || there;
    }
    if is_host(device) {
        return on_the_host(shape);
    }
    is_large(input, options) && (shape.aggregates || shape.filters || there)
}

/// Whether a join of two inputs is expected to be no slower on a device: if either is large. On the CPU it
/// is left to DataFusion.
pub(crate) fn join_pays(
    inputs: &[&Arc<dyn ExecutionPlan>],
    device: &Device,
    options: &DeviceOptions,
) -> bool {
    options.always || !is_host(device) && inputs.iter().any(|input| is_large(input, options))
}

fn is_large(input: &Arc<dyn ExecutionPlan>, options: &DeviceOptions) -> bool {
    rows(input).is_none_or(|rows| rows >= options.device_min_rows)
}

fn on_the_host(shape: &Shape) -> bool {
    if shape.aggregates {
        return !shape.groups;
    }
    if shape.filters {
        return shape.masked || !shape.condition_extra_passes && shape.other_moved == 0;
    }
    shape.computed >= 2 && !shape.extra_passes
}

/// The rows that an input is estimated to have.
fn rows(input: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let statistics = StatisticsContext::new().compute(input.as_ref(), &StatisticsArgs::new()).ok()?;
    statistics.num_rows.get_value().copied()
}
