//! Arrays that still lack rows which other passes take.
//!
//! The one idea: runs, unions and the like are taken in parts, and a part may have any type. The files that
//! build arrays cannot call the take for them, because the take consists of these files. So they return what
//! an array lacks, and [`take`](super::take) begins all of these takes at the same time.

use super::indices::Outside;
use super::parts::part_of;
use crate::Result;
use crate::array::{DeviceArray, Parts};
use crate::pass::Pass;

/// Rows of an array, by their indices.
#[derive(Clone)]
pub(crate) struct Pick {
    pub array: DeviceArray,
    pub indices: DeviceArray,
    pub outside: Outside,
}

/// An array that a pass builds.
pub(crate) enum Draft {
    Whole(DeviceArray),
    /// It consists of these rows.
    Lacking(Pick),
    /// Another pass has begun to make it.
    Begun,
    /// An array without its children, and these.
    Nested(Box<Parts>, Vec<Draft>),
}

impl Draft {
    /// Adds children to an array.
    pub fn nested(mut parts: Parts, children: Vec<Draft>) -> Result<Draft> {
        if children.iter().all(|child| matches!(child, Draft::Whole(_))) {
            parts.children = children.into_iter().filter_map(Draft::whole).collect();
            return DeviceArray::try_new(parts).map(Draft::Whole);
        }
        Ok(Draft::Nested(Box::new(parts), children))
    }

    /// Makes an array of another pass a part of what this pass makes.
    pub fn part_of(self, pass: &Pass) -> Result<Draft> {
        if let Draft::Whole(array) = self { part_of(pass, array).map(Draft::Whole) } else { Ok(self) }
    }

    fn whole(self) -> Option<DeviceArray> {
        if let Draft::Whole(array) = self { Some(array) } else { None }
    }

    /// The rows that it lacks.
    pub fn lacking(&self) -> Vec<Pick> {
        match self {
            Draft::Whole(_) | Draft::Begun => vec![],
            Draft::Lacking(pick) => vec![pick.clone()],
            Draft::Nested(_, children) => children.iter().flat_map(Draft::lacking).collect(),
        }
    }

    /// Returns the array. `lacking` are the arrays of rows that drafts lacked, `begun` those that other
    /// passes had begun, each in the order of the drafts.
    pub fn finish(
        self,
        pass: &mut Pass,
        lacking: &mut impl Iterator<Item = DeviceArray>,
        begun: &mut impl Iterator<Item = DeviceArray>,
    ) -> Result<DeviceArray> {
        let made = match self {
            Draft::Whole(array) => return Ok(array),
            Draft::Nested(mut parts, children) => {
                let children = children.into_iter().map(|child| child.finish(pass, lacking, begun));
                parts.children = children.collect::<Result<_>>()?;
                return DeviceArray::try_new(*parts);
            }
            Draft::Lacking(_) => lacking.next(),
            Draft::Begun => begun.next(),
        };
        let made = made.ok_or_else(|| crate::Error::invalid(pass.operation(), "an array that is missing"))?;
        pass.input(&made)?;
        part_of(pass, made)
    }
}
