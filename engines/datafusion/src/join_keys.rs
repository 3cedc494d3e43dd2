//! The keys of one side of a join, collected while the join reads them, for filters of the other side.
//!
//! The one idea: a join reads its left side before its right side. So operators far below on the right side
//! can know the keys, and drop rows that find no partner before they are moved, joined and grouped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use datafusion::arrow::array::ArrayRef;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use tokio::sync::Notify;

use crate::key_bits::KeyBits;

/// The keys of one join, in each execution of its plan.
#[derive(Debug)]
pub(crate) struct JoinKeys {
    /// The join's number in the plan, for `EXPLAIN`.
    pub join: usize,
    executions: Mutex<Vec<(Weak<TaskContext>, Arc<Execution>)>>,
}

impl JoinKeys {
    pub fn new(join: usize) -> JoinKeys {
        JoinKeys { join, executions: Mutex::default() }
    }

    /// The keys of an execution, which is known by its context.
    pub fn of(&self, context: &Arc<TaskContext>) -> Arc<Execution> {
        let mut executions = locked(&self.executions);
        executions.retain(|(one, _)| one.strong_count() > 0);
        let found = executions.iter().find(|(one, _)| one.as_ptr() == Arc::as_ptr(context));
        if let Some((_, found)) = found {
            return found.clone();
        }
        let made = Arc::new(Execution::default());
        executions.push((Arc::downgrade(context), made.clone()));
        made
    }
}

/// The keys of one execution.
#[derive(Debug, Default)]
pub(crate) struct Execution {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Which partitions of the left side were opened.
    opened: Vec<bool>,
    /// The number of partitions that were asked for a batch.
    started: usize,
    /// The number of partitions that were read to their end.
    ended: usize,
    /// The keys of the partitions that have ended, and their memory.
    keys: KeyBits,
    memory: Option<MemoryReservation>,
    /// All keys, once they are known.
    all: Option<Arc<KeyBits>>,
    /// Whether they will not be known.
    lost: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is whole: a panic of another thread leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Execution {
    /// Opens a partition of the left side, one of so many. A range of its keys takes at most some bytes of
    /// the memory. One that is opened again has other keys, perhaps: then none are known.
    pub fn open(
        self: Arc<Self>,
        partition: usize,
        partitions: usize,
        memory: MemoryReservation,
        most_bytes: usize,
    ) -> Collector {
        let mut state = locked(&self.state);
        state.opened.resize(partitions, false);
        if state.opened.get(partition).copied().unwrap_or(true) {
            state.lose();
        } else {
            state.opened[partition] = true;
        }
        drop(state);
        Collector {
            execution: self,
            keys: KeyBits::with_at_most(most_bytes),
            memory,
            started: false,
            given_up: false,
            ended: false,
        }
    }

    /// All keys, once they are known; `None` if they are not, and it is no use to wait.
    ///
    /// This never waits for a partition of the join that may itself wait for this: only the right side waits,
    /// and no partition of the join reads it before its own left side has ended. Once one has, this waits
    /// only if all others are being read, since a consumer may read one partition after the other.
    pub async fn known(&self) -> Option<Arc<KeyBits>> {
        loop {
            let changed = self.changed.notified();
            {
                let state = locked(&self.state);
                let elsewhere = state.opened.is_empty();
                let later = state.ended > 0 && state.started < state.opened.len();
                if state.all.is_some() || state.lost || elsewhere || later {
                    return state.all.clone();
                }
            }
            changed.await;
        }
    }

    /// Whether the keys will not be known.
    pub fn is_lost(&self) -> bool {
        locked(&self.state).lost
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut locked(&self.state));
        self.changed.notify_waiters();
    }
}

impl State {
    fn lose(&mut self) {
        (self.lost, self.all, self.keys, self.memory) = (true, None, KeyBits::default(), None);
    }

    fn end(&mut self, keys: KeyBits, memory: MemoryReservation) {
        self.ended += 1;
        if self.lost {
            return;
        }
        match &mut self.memory {
            None => (self.keys, self.memory) = (keys, Some(memory)),
            Some(all) => {
                self.keys.merge(&keys);
                if all.try_resize(self.keys.size()).is_err() {
                    return self.lose();
                }
            }
        }
        if self.ended == self.opened.len() {
            self.all = Some(Arc::new(std::mem::take(&mut self.keys)));
        }
    }
}

/// Collects the keys of one partition of the left side.
pub(crate) struct Collector {
    execution: Arc<Execution>,
    keys: KeyBits,
    memory: MemoryReservation,
    started: bool,
    given_up: bool,
    ended: bool,
}

impl Collector {
    /// Says that the partition is being read.
    pub fn start(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            self.execution.change(|state| state.started += 1);
        }
    }

    /// Adds the keys of a batch.
    pub fn add(&mut self, keys: &ArrayRef) {
        if self.given_up {
            return;
        }
        let before = self.keys.size();
        self.keys.add(keys);
        if self.keys.size() != before && self.memory.try_resize(self.keys.size()).is_err() {
            self.give_up();
        }
    }

    /// Says that the partition has been read to its end.
    pub fn end(mut self) {
        self.ends();
    }

    fn ends(&mut self) {
        self.ended = true;
        let (keys, memory) = (std::mem::take(&mut self.keys), self.memory.take());
        self.execution.change(|state| state.end(keys, memory));
    }

    fn give_up(&mut self) {
        self.given_up = true;
        self.keys = KeyBits::default();
        self.memory.free();
        self.execution.change(State::lose);
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // Its reader needs no more rows, so no more keys have partners. It may have needed those before.
        if !self.ended && !self.given_up {
            self.start();
            self.ends();
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
    use futures::FutureExt;

    use super::*;

    fn memory(pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
        MemoryConsumer::new("test").register(pool)
    }

    fn keys(key: i64) -> ArrayRef {
        Arc::new(Int64Array::from(vec![key]))
    }

    #[test]
    fn keys_are_known_when_all_partitions_have_ended() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
        let execution = Arc::new(Execution::default());
        let [mut one, mut other] =
            [0, 1].map(|partition| execution.clone().open(partition, 2, memory(&pool), usize::MAX));
        // The other side is not read yet.
        assert!(execution.known().now_or_never().is_none());
        one.start();
        one.add(&keys(3));
        one.end();
        // One partition may be reading it, and the other may be read only after that.
        assert!(execution.known().now_or_never().unwrap().is_none() && !execution.is_lost());
        other.start();
        assert!(execution.known().now_or_never().is_none());
        let mut waiting = Box::pin(execution.known());
        assert!((&mut waiting).now_or_never().is_none());
        other.add(&keys(70));
        other.end();
        let all = waiting.now_or_never().unwrap().unwrap();
        assert!(all.contain(&keys(3)).value(0) && all.contain(&keys(70)).value(0));
        assert!(!all.contain(&keys(4)).value(0));
        assert!(pool.reserved() >= all.size());
        // Read again, they may be others.
        drop(execution.clone().open(1, 2, memory(&pool), usize::MAX));
        assert!(execution.known().now_or_never().unwrap().is_none() && execution.is_lost());
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn a_partition_without_memory_leaves_them_unknown() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let opened = |partitions| {
            let execution = Arc::new(Execution::default());
            let mut collector = execution.clone().open(0, partitions, memory(&pool), usize::MAX);
            collector.start();
            (execution, collector)
        };
        let (execution, mut collector) = opened(1);
        collector.add(&(Arc::new(Int64Array::from(vec![0, 1 << 40])) as ArrayRef));
        collector.end();
        assert!(execution.known().now_or_never().unwrap().is_none() && execution.is_lost());
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn a_partition_that_is_not_read_to_its_end_has_the_keys_so_far() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let execution = Arc::new(Execution::default());
        let [mut one, other] =
            [0, 1].map(|partition| execution.clone().open(partition, 2, memory(&pool), usize::MAX));
        one.start();
        one.add(&keys(3));
        drop(one);
        assert!(execution.known().now_or_never().unwrap().is_none());
        // This one was never read.
        drop(other);
        let all = execution.known().now_or_never().unwrap().unwrap();
        assert!(all.contain(&keys(3)).value(0) && !all.contain(&keys(4)).value(0));
    }

    #[test]
    fn executions_have_keys_of_their_own() {
        let keys = JoinKeys::new(1);
        assert!(keys.of(&Arc::new(TaskContext::default())).known().now_or_never().unwrap().is_none());
        let (one, other) = (Arc::new(TaskContext::default()), Arc::new(TaskContext::default()));
        assert!(Arc::ptr_eq(&keys.of(&one), &keys.of(&one)));
        assert!(!Arc::ptr_eq(&keys.of(&one), &keys.of(&other)));
        drop((one, other));
        keys.of(&Arc::new(TaskContext::default()));
        assert_eq!(locked(&keys.executions).len(), 1);
    }
}
