//! Runs the operations at each of the CPU's vector levels: in child processes of this binary, which read the
//! level from the environment.

use std::process::Command;

/// The suites that every level must pass: all operations of all types, filters, and batches made of others.
const SUITES: [&str; 3] = ["equivalence_operations::", "equivalence_filter::", "coalesce::"];

/// The variable that a child has set already; it starts no further children.
const LEVEL: &str = "BOWSTRING_LEVEL";

#[test]
fn every_level_passes_the_suites() {
    if std::env::var_os(LEVEL).is_some() {
        return;
    }
    // All other tests run at the widest level.
    for level in ["plain", "avx2"] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(SUITES)
            .args(["--test-threads", "2"])
            .env(LEVEL, level)
            .env("BOWSTRING_CASES", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{level}: {said}");
        assert!(!said.contains(" 0 passed"), "{level}: no test of {SUITES:?} ran: {said}");
    }
}
