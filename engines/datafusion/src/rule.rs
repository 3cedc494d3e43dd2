//! The optimizer rule that puts our operators into plans.

use std::sync::Arc;

use bowstring::Device;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::chain::nodes;
use crate::config::DeviceOptions;
use crate::cost::pays;
use crate::device::{is_host, open};
use crate::exec::DeviceExec;
use crate::steps::in_two_steps;
use crate::top::{Top, all_columns};

/// Replaces chains of filters, projections and aggregates by our operators, if a chain can be
/// translated whole and it pays.
///
/// It runs after DataFusion's own rules: whatever they have pushed into scans stays there, and no rule moves
/// our operators.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceRule;

impl DeviceRule {
    /// Creates the rule; a session's configuration controls it.
    pub fn new() -> DeviceRule {
        DeviceRule
    }
}

impl PhysicalOptimizerRule for DeviceRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = DeviceOptions::of(config);
        match open(&options.device)? {
            None => Ok(plan),
            Some(device) => below(plan, &device, &options),
        }
    }

    fn name(&self) -> &str {
        "bowstring_device"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Replaces chains where it pays, from the top down, longest chain first.
fn below(
    plan: Arc<dyn ExecutionPlan>,
    device: &Device,
    options: &DeviceOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is::<DeviceExec>() {
        return Ok(plan);
    }
    if let Some(ours) = longest(&plan, None, device, options)? {
        let input = ours.input().clone();
        return with_children(Arc::new(ours), vec![input], device, options);
    }
    if let Some(merged) = in_two_steps(&plan)?
        && let [partial] = merged.children()[..]
        && longest(partial, None, device, options)?.is_some_and(|ours| ours.program().shape.groups)
    {
        let partial = partial.clone();
        return with_children(merged, vec![partial], device, options);
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>()
        && !is_host(device)
        && let Some(top) = Top::of(sort)
        && let Some(ours) = first_rows(sort.input(), &top, device, options)?
    {
        let input = ours.input().clone();
        let first = with_children(Arc::new(ours), vec![input], device, options)?;
        return plan.replace_children(vec![first], ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep));
    }
    let children = plan.children().into_iter().cloned().collect();
    with_children(plan, children, device, options)
}

/// The longest chain from this node downwards that can be translated and pays.
fn longest(
    plan: &Arc<dyn ExecutionPlan>,
    top: Option<&Top>,
    device: &Device,
    options: &DeviceOptions,
) -> Result<Option<DeviceExec>> {
    let found = nodes(plan);
    for length in (1..=found.len()).rev() {
        let Some(ours) = DeviceExec::of(&found[..length], top, device, options)? else { continue };
        if pays(&ours.program().shape, ours.input(), device, options) {
            return Ok(Some(ours));
        }
    }
    Ok(None)
}

/// The operator below a sort that keeps only the first rows.
fn first_rows(
    input: &Arc<dyn ExecutionPlan>,
    top: &Top,
    device: &Device,
    options: &DeviceOptions,
) -> Result<Option<DeviceExec>> {
    match longest(input, Some(top), device, options)? {
        Some(ours) => Ok(Some(ours)),
        None => longest(&all_columns(input)?, Some(top), device, options),
    }
}

fn with_children(
    plan: Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
    device: &Device,
    options: &DeviceOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut changed = false;
    let mut made = vec![];
    for child in children {
        let new = below(child.clone(), device, options)?;
        changed |= !Arc::ptr_eq(&new, &child);
        made.push(new);
    }
    if !changed {
        return Ok(plan);
    }
    // Our operators report the same properties as the operators that they replace.
    plan.replace_children(made, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}
