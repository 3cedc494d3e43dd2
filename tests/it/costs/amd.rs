//! AMD's part of the table.

use std::sync::Arc;

use bowstring_amdi::Target;

use super::{Bench, ROWS};
use crate::support::amd::Objects;
use crate::support::counted::{Cost, SECTOR};

const HEAD: &str = "
## On AMD's code objects

The same operations in the interpreter of `lab/amd`, of one architecture with waves of 64 and one with waves of 32: the others of
each kind have nearly the same code. *lanes*: instructions of vectors by all lanes that run them. *vector*, *scalar*:
instructions that a wave issues, of vectors and for the whole wave at once (waits, branches and hints with the latter), for
each 1,000 rows. *asked*: as above, scalar loads with it.

| operation | lanes gfx90a | vector | scalar | asked | lanes gfx11 | vector | scalar | asked |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |
";

/// The architectures that represent the others: one for each width of a wave.
const TARGETS: [&str; 2] = ["gfx90a", "gfx11-generic"];

fn costs(target: &str) -> Vec<(String, Cost)> {
    let objects = Arc::new(Objects::new(Target::named(target).unwrap()));
    let device = objects.clone().device();
    let mut bench = Bench::new(&device, move || objects.ran());
    bench.all();
    assert_eq!(device.faults(), []);
    bench.costs
}

pub fn table() -> String {
    let [wide, narrow] = TARGETS.map(costs);
    let mut table = HEAD.to_owned();
    for ((name, wide), (_, narrow)) in wide.iter().zip(&narrow) {
        table += &format!("| {name} |");
        for cost in [wide, narrow] {
            let a_row = |n: u64| n as f64 / ROWS as f64;
            table += &format!(
                " {:.1} | {:.0} | {:.0} | {:.2} |",
                a_row(cost.instructions),
                1000.0 * a_row(cost.issued - cost.scalar),
                1000.0 * a_row(cost.scalar),
                a_row(cost.asked * SECTOR),
            );
        }
        table.push('\n');
    }
    table
}
