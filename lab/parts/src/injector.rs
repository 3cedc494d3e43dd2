//! Counts calls, and makes them fail on a test's request.

use std::collections::BTreeMap;

/// Counts calls by name, and fails those that a test selected, with the code that it gave.
pub struct Injector<C> {
    plan: Option<Plan<C>>,
    calls: BTreeMap<&'static str, u64>,
}

struct Plan<C> {
    /// If set, only calls of this function count.
    call: Option<String>,
    /// The number of calls that still succeed.
    before: u64,
    times: u64,
    hit: u64,
    code: C,
}

impl<C> Default for Injector<C> {
    fn default() -> Self {
        Injector { plan: None, calls: BTreeMap::new() }
    }
}

impl<C: Copy> Injector<C> {
    /// Makes call number `nth` (from 1) fail with `code`, and `times - 1` more after it. With `call`, only
    /// calls of that function count.
    pub fn fail(&mut self, call: Option<String>, nth: u64, times: u64, code: C) {
        self.plan = Some(Plan { call, before: nth.saturating_sub(1), times, hit: 0, code });
    }

    /// Ends the failures, and returns the number of failed calls.
    pub fn stop_failing(&mut self) -> u64 {
        self.plan.take().map_or(0, |plan| plan.hit)
    }

    /// Counts a call, and fails it on request. A call in `spared` fails only if it was named.
    pub fn enter(&mut self, call: &'static str, spared: &[&str]) -> Result<(), C> {
        *self.calls.entry(call).or_default() += 1;
        let picks = |plan: &&mut Plan<C>| match &plan.call {
            Some(only) => only == call,
            None => !spared.contains(&call),
        };
        let Some(plan) = self.plan.as_mut().filter(picks) else { return Ok(()) };
        if plan.before > 0 {
            plan.before -= 1;
            return Ok(());
        }
        if plan.hit == plan.times {
            return Ok(());
        }
        plan.hit += 1;
        Err(plan.code)
    }

    /// The number of calls of each function.
    pub fn calls(&self) -> &BTreeMap<&'static str, u64> {
        &self.calls
    }

    /// Resets all counts to zero.
    pub fn forget_calls(&mut self) {
        self.calls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_that_were_picked_fail_and_no_others() {
        let mut injector = Injector::default();
        injector.fail(None, 2, 2, 7);
        let outcomes: Vec<_> =
            ["a", "spared", "b", "a", "a"].map(|call| injector.enter(call, &["spared"])).into();
        assert_eq!(outcomes, [Ok(()), Ok(()), Err(7), Err(7), Ok(())]);
        assert_eq!((injector.stop_failing(), injector.enter("a", &[])), (2, Ok(())));
        injector.fail(Some("spared".into()), 1, 1, 9);
        assert_eq!((injector.enter("a", &[]), injector.enter("spared", &["spared"])), (Ok(()), Err(9)));
        assert_eq!(injector.calls()["a"], 5);
    }
}
