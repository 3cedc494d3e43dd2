//! Groups that are more than a device has memory for: they wait in host memory, in parts that hashes of their
//! keys choose.
//!
//! The one idea: equal keys are in the same part, whenever they came, so each part alone has all that is
//! known of its groups. A part that is still too large is divided further by the same hash.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::DataType;

use super::partial::Partial;
use crate::Result;
use crate::compute::Spill;

/// The parts that groups are divided into, and each part again.
const PARTS: usize = 16;
/// How often groups are divided at most: 16^4 is the most parts that there are.
pub(super) const LEVELS: u32 = 4;

/// Groups in host memory, in parts.
pub(super) struct Spilled {
    parts: Vec<Vec<Partial>>,
    /// The types of the columns on the device.
    pub types: Vec<DataType>,
}

/// Groups that become results.
pub(super) enum Task {
    /// Groups on the device, merged.
    Ready(Partial),
    /// Groups in host memory that share a part, and how often they were divided.
    Spilled(Vec<Partial>, u32),
}

impl Spilled {
    /// Makes room for groups like some on the device.
    pub fn new(like: &Partial) -> Spilled {
        Spilled { parts: (0..PARTS).map(|_| vec![]).collect(), types: like.types() }
    }

    /// Adds groups that are in host memory.
    pub fn add(&mut self, groups: Partial, spill: Option<&Arc<dyn Spill>>) -> Result<()> {
        for (part, own) in groups.divided(PARTS)? {
            self.parts[part].push(own.spilled(spill)?);
        }
        Ok(())
    }

    /// The parts as tasks, the last one first.
    pub fn into_tasks(self) -> Vec<Task> {
        self.parts.into_iter().rev().map(|part| Task::Spilled(part, 1)).collect()
    }
}

/// Divides groups that share a part, the last part first.
pub(super) async fn divided(groups: Vec<Partial>, level: u32) -> Result<Vec<Task>> {
    let mut parts: BTreeMap<usize, Vec<Partial>> = BTreeMap::new();
    // One after the other: together they may have more text than one array can.
    for one in groups {
        for (part, own) in one.divided(PARTS.pow(level + 1))? {
            parts.entry(part).or_default().push(own);
        }
    }
    Ok(parts.into_values().rev().map(|part| Task::Spilled(part, level + 1)).collect())
}
