//! `EXPLAIN` in a session with our rule: it also says which operators are left to DataFusion, and why.
//!
//! The one idea: operators print themselves, and a rule cannot add to that. The session's planner can, since
//! it also makes the plan that is explained.

use std::fmt::Write;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{LogicalPlan, PlanType, StringifiedPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner as _};

use crate::why::why_not;

/// A session's planner, or DataFusion's if it has none, with more to explain.
#[derive(Debug)]
pub(crate) struct Explained {
    pub planner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
}

impl Explained {
    async fn planned(&self, query: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        match &self.planner {
            Some(planner) => planner.create_physical_plan(query, session).await,
            None => DefaultPhysicalPlanner::default().create_physical_plan(query, session).await,
        }
    }
}

#[async_trait]
impl QueryPlanner for Explained {
    async fn create_physical_plan(
        &self,
        query: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let made = self.planned(query, session).await?;
        let (LogicalPlan::Explain(of), Some(theirs)) = (query, made.downcast_ref::<ExplainExec>()) else {
            return Ok(made);
        };
        let mut shown = theirs.stringified_plans().to_vec();
        if let Some(last) = shown.iter_mut().find(|text| text.plan_type == PlanType::FinalPhysicalPlan) {
            let plan = self.planned(&of.plan, session).await?;
            let left = left_to_datafusion(&plan, session.config_options())?;
            *last = StringifiedPlan::new(PlanType::FinalPhysicalPlan, format!("{}{left}", last.plan));
        }
        Ok(Arc::new(ExplainExec::new(made.schema(), shown, theirs.verbose())))
    }
}

/// The operators of a finished plan that are left to DataFusion, each on a line with the reason; empty if
/// there are none, or if the device is off.
pub fn left_to_datafusion(plan: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<String> {
    let mut text = String::new();
    for declined in why_not(plan, config)? {
        if text.is_empty() {
            text += "left to DataFusion:\n";
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {declined}");
    }
    Ok(text)
}
