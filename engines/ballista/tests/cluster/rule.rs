//! Rules that fail in every way that a rule can: the query is answered without them.

use std::sync::Arc;

use bowstring_ballista::DeviceExecutionEngine;
use datafusion::common::exec_err;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::answers::agrees;
use crate::cluster::{Cluster, own};

type Plan = Arc<dyn ExecutionPlan>;

/// A rule that applies a function to each stage's plan.
#[derive(Debug)]
struct Rule(fn(Plan) -> Result<Plan>);

impl PhysicalOptimizerRule for Rule {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        self.0(plan)
    }

    fn name(&self) -> &str {
        "a rule that fails"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Checks that query 6 is answered although no task could use the rule.
async fn is_survived(rule: fn(Plan) -> Result<Plan>) -> Result<()> {
    let engine = Arc::new(DeviceExecutionEngine::new(own("cpu")).with_rule(Arc::new(Rule(rule))));
    let cluster = Cluster::start(vec![engine.clone()]).await?;
    agrees(&cluster.client().await?, [6]).await?;
    let counts = engine.counts();
    assert!(counts.tasks > 0 && counts.failures == counts.tasks && counts.device_tasks == 0, "{counts:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_fails_leaves_the_plan_alone() -> Result<()> {
    is_survived(|_| exec_err!("no")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_panics_leaves_the_plan_alone() -> Result<()> {
    is_survived(|_| panic!("a fault of ours")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_changes_the_schema_leaves_the_plan_alone() -> Result<()> {
    is_survived(|plan| {
        let other = ProjectionExec::try_new([(lit(1), "one".to_owned())], plan)?;
        Ok(Arc::new(other))
    })
    .await
}
