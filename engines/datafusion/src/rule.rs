//! The rule that puts our operators into plans.

use std::sync::Arc;

use bowstring::Device;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

use crate::chain::nodes;
use crate::config::DeviceOptions;
use crate::cost::pays;
use crate::device::open;
use crate::exec::DeviceExec;

/// Makes chains of filters, projections and aggregates without groups operators of ours, where they can be translated whole and it pays.
///
/// It comes after DataFusion's own rules: what they have pushed into scans stays there, and nothing moves our operators.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceRule;

impl DeviceRule {
    /// The rule; what it does a session's configuration says.
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

/// A plan with our operators where they pay, from the top down: the longest chain first.
fn below(
    plan: Arc<dyn ExecutionPlan>,
    device: &Device,
    options: &DeviceOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is::<DeviceExec>() {
        return Ok(plan);
    }
    let found = nodes(&plan);
    for length in (1..=found.len()).rev() {
        let Some(ours) = DeviceExec::of(&found[..length], device, options)? else { continue };
        if pays(&ours.program().shape, ours.input(), device, options) {
            let input = ours.input().clone();
            return with_children(Arc::new(ours), vec![input], device, options);
        }
    }
    let children = plan.children().into_iter().cloned().collect();
    with_children(plan, children, device, options)
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
    // Our operators say of themselves what those they stand for said.
    plan.replace_children(made, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}
