//! Polls operations on drivers that answer slowly: no call of theirs that blocks may be made meanwhile.

use super::*;
use crate::polled::{every_operation, other_operations};

#[test]
fn no_operation_blocks_before_its_result_is_waited_for() {
    for target in Target::slow_standins() {
        every_operation(&target);
        other_operations(&target);
    }
}
