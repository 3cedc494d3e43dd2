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
use crate::chained::Chained;
use crate::config::DeviceOptions;
use crate::cost::pays;
use crate::device::{is_host, open};
use crate::exec::{DeviceExec, is_on_device};
use crate::operator::Operator;
use crate::steps::in_two_steps;
use crate::top::{Top, all_columns};

/// Replaces chains of filters, projections and aggregates by our operators, if a chain can be translated whole and it pays.
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
            Some(device) => Rewrite { device, options }.below(plan),
        }
    }

    fn name(&self) -> &str {
        "bowstring_device"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The device and the options of a plan that is being rewritten.
struct Rewrite {
    device: Device,
    options: DeviceOptions,
}

impl Rewrite {
    /// Replaces chains where it pays, from the top down, longest chain first.
    fn below(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        if plan.is::<DeviceExec>() {
            return Ok(plan);
        }
        if let Some(ours) = self.longest(&plan, None)? {
            return self.with_children(self.node(ours));
        }
        if let Some(merged) = in_two_steps(&plan)?
            && let [partial] = merged.children()[..]
            && let Some(ours) = self.longest(partial, None)?
            && ours.program().shape.groups
        {
            let partial = self.node(ours.with_first_added());
            let partial = self.with_children(partial)?;
            return over(merged, vec![partial]);
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>()
            && !is_host(&self.device)
            && let Some(top) = Top::of(sort)
            && let Some(ours) = self.first_rows(sort.input(), &top)?
        {
            let first = self.with_children(self.node(ours))?;
            return over(plan, vec![first]);
        }
        self.with_children(plan)
    }

    /// The longest chain from this node downwards that can be translated and pays.
    fn longest(&self, plan: &Arc<dyn ExecutionPlan>, top: Option<&Top>) -> Result<Option<Chained>> {
        let found = nodes(plan);
        for length in (1..=found.len()).rev() {
            let Some(ours) = Chained::of(&found[..length], top, is_host(&self.device))? else { continue };
            let input = ours.input();
            let there = is_on_device(input, &self.device);
            if pays(&ours.program().shape, input, there, &self.device, &self.options) {
                return Ok(Some(ours));
            }
        }
        Ok(None)
    }

    /// The operator below a sort that keeps only the first rows.
    fn first_rows(&self, input: &Arc<dyn ExecutionPlan>, top: &Top) -> Result<Option<Chained>> {
        match self.longest(input, Some(top))? {
            Some(ours) => Ok(Some(ours)),
            None => {
                let all = self.longest(&all_columns(input)?, Some(top))?;
                Ok(all.map(Chained::with_first_added))
            }
        }
    }

    fn node(&self, operator: impl Operator + 'static) -> Arc<dyn ExecutionPlan> {
        Arc::new(DeviceExec::new(Arc::new(operator), &self.device, &self.options))
    }

    fn with_children(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let made = plan.children().into_iter().map(|child| self.below(child.clone()));
        over(plan.clone(), made.collect::<Result<_>>()?)
    }
}

/// Puts a node over other children. Ours report the same properties as those that they replace.
fn over(
    plan: Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.children().into_iter().zip(&children).all(|(old, new)| Arc::ptr_eq(old, new)) {
        return Ok(plan);
    }
    plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}
