//! Reports the metrics of a plan with our operators under the operators that the scheduler knows.
//!
//! A task reports its metrics as a list, one set for each operator from the root down, and the scheduler adds
//! up the lists of a stage's tasks, position by position. One operator of ours stands for several planned
//! ones, so its list is shorter. If a task's list has another length than the one before, the scheduler
//! refuses the report, along with the news that the task is done: the query would never end. Executors
//! without a device, or with another one, serve the same stage. So every list gets the length that the plan
//! had before the rule.

use std::sync::Arc;

use bowstring_datafusion::DeviceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;

/// Maps each set of metrics that the planned operators would report to a set of the executed ones.
#[derive(Debug, Default)]
pub(crate) struct MetricsMap {
    /// One entry for each planned operator. If one of ours replaces several, the first has its metrics and
    /// the others are `None`.
    places: Vec<Option<usize>>,
    /// The number of sets that the executed operators report.
    executed: usize,
}

impl MetricsMap {
    /// Maps the metrics of a plan with our operators.
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut map = Self::default();
        map.add(plan);
        map
    }

    /// The number of planned operators that report metrics.
    pub(crate) fn planned(&self) -> usize {
        self.places.len()
    }

    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        let mut own = plan.metrics().map(|_| self.executed);
        self.executed += usize::from(own.is_some());
        match plan.downcast_ref::<DeviceExec>() {
            None => self.places.extend(own.map(Some)),
            Some(ours) => {
                let reporting = ours.replaced().iter().filter(|planned| planned.metrics().is_some());
                self.places.extend(reporting.map(|_| own.take()));
            }
        }
        plan.children().into_iter().for_each(|child| self.add(child));
    }

    /// Arranges the sets of the executed operators, one for each planned operator.
    pub(crate) fn as_planned(&self, executed: Vec<MetricsSet>) -> Vec<MetricsSet> {
        self.places
            .iter()
            .map(|place| place.and_then(|at| executed.get(at).cloned()).unwrap_or_default())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballista_core::utils::collect_plan_metrics;
    use bowstring_datafusion::{DeviceOptions, DeviceRule};
    use datafusion::error::Result;
    use datafusion::physical_optimizer::PhysicalOptimizerRule;
    use datafusion::physical_plan::collect;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use crate::settings;

    const NUMBERS: &str = "SELECT value, value * 2 AS twice FROM generate_series(1, 1000)";

    /// The plan of a query over tables of numbers, before and after the rule.
    async fn plans(context: &SessionContext, sql: &str, device: &str) -> Result<[Arc<dyn ExecutionPlan>; 2]> {
        let planned = context.sql(sql).await?.create_physical_plan().await?;
        let mut eager = DeviceOptions::default();
        (eager.device, eager.always) = (device.to_owned(), true);
        let config = settings::for_rule(context.copied_config().options(), &eager);
        let rule = DeviceRule::new().keeping_partitions();
        let executed = rule.optimize(Arc::clone(&planned), &config)?;
        Ok([planned, executed])
    }

    /// The names of the operators that report, from the root down.
    fn names(plan: &Arc<dyn ExecutionPlan>) -> Vec<&str> {
        let own = plan.metrics().map(|_| plan.name());
        own.into_iter().chain(plan.children().into_iter().flat_map(names)).collect()
    }

    #[tokio::test]
    async fn metrics_of_our_operators_are_those_of_the_first_they_stand_for() -> Result<()> {
        let context = SessionContext::new();
        for table in ["a", "b"] {
            let numbers = context.sql(NUMBERS).await?.cache().await?;
            context.register_table(table, numbers.into_view())?;
        }
        let filters = "SELECT * FROM (SELECT value, twice FROM a WHERE twice > 10) x \
                       JOIN (SELECT value + 1 AS value FROM b WHERE twice < 1000) y ON x.value = y.value";
        for sql in [filters, "SELECT sum(twice), count(*) FROM a WHERE value > 990 AND twice < 1990"] {
            let [planned, executed] = plans(&context, sql, "cpu").await?;
            let (theirs, ours) = (names(&planned), names(&executed));
            assert!(ours.contains(&"DeviceExec") && ours.len() < theirs.len(), "{ours:?} of {theirs:?}");
            collect(Arc::clone(&executed), context.task_ctx()).await?;
            let sets = MetricsMap::of(&executed).as_planned(collect_plan_metrics(executed.as_ref()));
            assert_eq!(sets.len(), theirs.len());

            // Operators that are in both plans keep their own sets; each of ours is found once, and the rest
            // are empty.
            let mut left = ours.into_iter().zip(collect_plan_metrics(executed.as_ref())).peekable();
            for (name, set) in theirs.into_iter().zip(sets) {
                let Some((_, own)) = left.next_if(|(ours, _)| {
                    *ours == name || (*ours == "DeviceExec" && set.iter().next().is_some())
                }) else {
                    assert!(set.iter().next().is_none(), "{name} has metrics of another: {set}");
                    continue;
                };
                assert_eq!(set.to_string(), own.to_string(), "{name}");
            }
            assert!(left.next().is_none());
        }
        Ok(())
    }

    /// The scheduler does not know the operators that the rule adds.
    #[tokio::test]
    async fn added_operators_take_no_place() -> Result<()> {
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        let numbers = context.sql(NUMBERS).await?.cache().await?;
        context.register_table("a", numbers.into_view())?;
        for sql in [
            "SELECT value % 7 AS k, count(*) FROM a GROUP BY 1",
            "SELECT value, twice FROM a ORDER BY twice DESC LIMIT 3",
        ] {
            let [planned, executed] = plans(&context, sql, "emulator").await?;
            assert!(names(&executed).contains(&"DeviceExec"), "{sql}");
            collect(Arc::clone(&executed), context.task_ctx()).await?;
            let sets = MetricsMap::of(&executed).as_planned(collect_plan_metrics(executed.as_ref()));
            assert_eq!(sets.len(), names(&planned).len(), "{sql}");
        }
        Ok(())
    }
}
