//! The cost rule: decides when a chain is worth taking over.

use std::sync::Arc;

use bowstring::Device;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use crate::config::DeviceOptions;
use crate::device::is_host;
use crate::program::Shape;

/// Whether a program over an input is expected to be no slower than the chain that it was made of.
///
/// On the CPU nothing is moved: columns are shared both ways. Aggregates pay, with a condition or without. A
/// filter pays where what it tests and moves is of fixed width: views of text come with dozens of buffers for
/// 8,192 rows, and to bring those across took five times what DataFusion's filter did (10 ms for 2 ms,
/// 750,000 rows of which 4 % are kept). So text is left to its kernels (`masked.rs`), and a filter needs a
/// part that is not text. A projection alone has nothing to win but the passes in between, so it takes two
/// columns that are computed.
///
/// On a device each row has to go there: it is worth it for an aggregate, of which one row comes back, and
/// for a filter that computes; and not for fewer rows than `device_min_rows`, where their number is known.
pub(crate) fn pays(
    shape: &Shape,
    input: &Arc<dyn ExecutionPlan>,
    device: &Device,
    options: &DeviceOptions,
) -> bool {
    if options.always {
        return shape.aggregates || shape.filters || shape.computed > 0;
    }
    if is_host(device) {
        return on_the_host(shape);
    }
    let enough = rows(input).is_none_or(|rows| rows >= options.device_min_rows);
    enough && (shape.aggregates || shape.filters)
}

fn on_the_host(shape: &Shape) -> bool {
    if shape.aggregates {
        return true;
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
