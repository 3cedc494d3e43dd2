//! The cost rule: decides when a chain is worth taking over.

use std::sync::Arc;

use bowstring::Device;
use datafusion::common::JoinType;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};

use crate::config::DeviceOptions;
use crate::device::is_host;
use crate::program::Shape;
use crate::reason::Reason;
use crate::types::has_fixed_width;

/// The options for a plan, which the session's configuration has. If a scan has enough rows for a device,
/// small inputs are for it as well: their rows meet those of the scan, and it can keep the whole plan.
pub(crate) fn options_of(plan: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> DeviceOptions {
    let options = DeviceOptions::of(config);
    let device_min_rows = match most_rows(plan) < options.device_min_rows {
        true => options.device_min_rows,
        false => 0,
    };
    DeviceOptions { device_min_rows, ..options }
}

/// The rows of the largest scan, as far as they are estimated.
fn most_rows(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let children = plan.children();
    match children.is_empty() {
        true => rows(plan).unwrap_or(0),
        false => children.into_iter().map(most_rows).max().unwrap_or(0),
    }
}

/// Why operators on a device do not read these inputs, if one of them never ends: they wait until there are
/// many rows to upload, and the next one may never come. On the CPU they take batches as they come.
pub(crate) fn against_endless(inputs: &[&Arc<dyn ExecutionPlan>], device: &Device) -> Option<Reason> {
    let endless = inputs.iter().any(|input| input.boundedness().is_unbounded());
    (endless && !is_host(device)).then_some(Reason::Endless)
}

/// Why a program is expected to be slower than the chain that it replaces; `None` if it pays.
///
/// On the CPU no data moves, because both sides share the columns. Aggregates without keys pay, with a
/// condition or without; for those with keys see [`crate::first_step`]. A filter pays if it tests
/// and moves only columns of fixed width. Views of text come with dozens of buffers for 8,192 rows, and
/// converting them took five times as long as DataFusion's filter (10 ms against 2 ms, for 750,000 rows of
/// which 4 % are kept). So DataFusion's kernels handle text (`masked.rs`), and a filter needs a part that is
/// not text, or a pattern for which those run a regular expression. A projection alone only saves the
/// intermediate passes, so it must compute at least two columns.
///
/// On a device all rows have to be uploaded, unless they are `there`. This pays for aggregates, which return
/// one row or one for each group, and for filters, but not if the input is estimated to have fewer rows than
/// `device_min_rows`; see [`options_of`]. If the rows are there, what comes down are fewer rows or columns;
/// to compute some there does not cost more.
pub(crate) fn against(
    shape: &Shape,
    input: &Arc<dyn ExecutionPlan>,
    there: bool,
    device: &Device,
    options: &DeviceOptions,
) -> Option<Reason> {
    if let Some(reason) = against_endless(&[input], device) {
        return Some(reason);
    }
    let reduces = shape.aggregates || shape.filters;
    if options.always {
        let works = reduces || shape.computed > 0 || shape.top || there;
        return (!works).then_some(Reason::ComputesNothing);
    }
    if is_host(device) {
        return (!on_the_host(shape)).then_some(Reason::Cpu);
    }
    few_rows(&[input], options).or_else(|| (!reduces && !there).then_some(Reason::OnTheHost))
}

/// Why a join is not for a device: an input never ends, neither is large, or the device is the CPU, where
/// only inner and outer joins are ours that return no text.
pub(crate) fn against_join(join: &HashJoinExec, device: &Device, options: &DeviceOptions) -> Option<Reason> {
    let inputs = &join.children();
    if let Some(reason) = against_endless(inputs, device) {
        return Some(reason);
    }
    match is_host(device) {
        _ if options.always => None,
        true => (!is_of_numbers(join)).then_some(Reason::Cpu),
        false => few_rows(inputs, options),
    }
}

/// Whether an inner or outer join returns only columns of fixed width, by keys of fixed width.
fn is_of_numbers(join: &HashJoinExec) -> bool {
    let left = join.left().schema();
    let pairs =
        matches!(join.join_type(), JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full);
    pairs
        && join.filter().is_none()
        && join.schema().fields().iter().all(|field| has_fixed_width(field.data_type()))
        && join.on().iter().all(|(key, _)| key.data_type(&left).is_ok_and(|of| has_fixed_width(&of)))
}

/// The estimate of the largest input, if no input is large.
fn few_rows(inputs: &[&Arc<dyn ExecutionPlan>], options: &DeviceOptions) -> Option<Reason> {
    let estimates = inputs.iter().map(|input| rows(input)).collect::<Option<Vec<_>>>()?;
    let (rows, least) = (estimates.into_iter().max().unwrap_or(0), options.device_min_rows);
    (rows < least).then_some(Reason::FewRows { rows, least })
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
