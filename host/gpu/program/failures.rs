//! The errors of rows at which a program failed. A device reports the row and the node. Only when the error
//! is reported is the device read once more, to tell whether the divisor was zero.

use std::sync::Arc;

use crate::array::{Buffer, DeviceArray};
use crate::device::{Gpu, fetch};
use crate::expr::Expr;
use crate::expr::plan::{Op, Plan};
use crate::expr::print::short;
use crate::{Error, Failure, Result};

/// The possible errors of each node of a plan.
pub(super) struct Failures {
    nodes: Vec<Node>,
    gpu: Arc<Gpu>,
}

struct Node {
    written: Expr,
    failure: Failure,
    /// The divisor's column, if its value decides which error it is.
    divisor: Option<DeviceArray>,
}

impl Failures {
    pub fn new(plan: &Plan, columns: &[DeviceArray], gpu: &Arc<Gpu>) -> Failures {
        let node = |id: usize| {
            let (node, failure) = (&plan.nodes[id], plan.failure(id));
            let divisor = match (failure, node.inputs.get(1).map(|divisor| &plan.nodes[*divisor].op)) {
                (Failure::Either, Some(Op::Column(column))) => Some(columns[*column].clone()),
                _ => None,
            };
            Node { written: node.written.clone(), failure, divisor }
        };
        Failures { nodes: (0..plan.nodes.len()).map(node).collect(), gpu: gpu.clone() }
    }

    /// Returns the columns that an error may have to be looked up in.
    pub fn divisors(&self) -> impl Iterator<Item = &DeviceArray> {
        self.nodes.iter().filter_map(|node| node.divisor.as_ref())
    }

    /// Returns the error that a device reports, if it does.
    pub fn outcome(&self, failed: u64) -> Result<()> {
        if failed == u64::MAX {
            return Ok(());
        }
        let (row, id) = ((failed >> 16) as usize, (failed & 0xffff) as usize);
        let Some(node) = self.nodes.get(id) else {
            let problem = format!("the device reports node {id} of {}", self.nodes.len());
            return Err(Error::invalid("expression", problem));
        };
        let failure = match &node.divisor {
            Some(divisor) => self.by(divisor, row)?,
            None => node.failure,
        };
        Err(Error::Evaluation { row, expression: short(&node.written), failure })
    }

    /// Tells why a quotient by this column has no value.
    fn by(&self, divisor: &DeviceArray, row: usize) -> Result<Failure> {
        let width = divisor.layout().slots().next().and_then(|slot| slot.bytes_for(1)).unwrap_or(1);
        if row >= divisor.len() {
            let problem = format!("the device reports row {row} of {}", divisor.len());
            return Err(Error::invalid("expression", problem));
        }
        let value: Buffer = divisor.buffers()[0].slice((divisor.offset() + row) * width, None);
        let is_zero = fetch(&self.gpu, &value, width)?.iter().all(|byte| *byte == 0);
        Ok(if is_zero { Failure::DivisionByZero } else { Failure::Overflow })
    }
}
