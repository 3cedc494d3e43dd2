//! Counts what the kernels of TPC-H's queries execute: the shipped PTX images are interpreted under the whole
//! queries, at a small scale. The counts are no measurement. `predict.py` makes a page of them.
//!
//! `cargo bench --workspace --bench counts -- --scale 0.01 --queries 1,6` prints a line for each query and
//! entry.

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../../tests/it/support/counted.rs"]
mod counted;
#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../../tests/it/support/ptx.rs"]
mod ptx;

use std::sync::Arc;

use bowstring::Device;
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring_datafusion::name_device;
use bowstring_tpch::{QUERIES, Scale, Table, in_memory};
use clap::Parser;
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};

#[derive(Parser)]
struct Arguments {
    #[arg(long, default_value = "0.01")]
    scale: Scale,
    /// Queries to run, as 1,6,14; all, if none are given.
    #[arg(long, value_delimiter = ',')]
    queries: Vec<usize>,
    /// Accepted and ignored, because cargo bench passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let images = Arc::new(ptx::Images::default());
    let options = EmulatorOptions { executor: Some(images.clone()), ..EmulatorOptions::default() };
    let device = EmulatedDevice::new(options).expect("an emulated device");
    name_device("counted", device.device());
    let context = bowstring_datafusion::session(SessionConfig::new().with_target_partitions(1));
    for setting in ["device = 'counted'", "device_min_rows = 0", "upload_rows = 1000000000"] {
        context.sql(&format!("SET bowstring.{setting}")).await?.collect().await?;
    }
    for table in Table::ALL {
        context.register_table(table.name(), Arc::new(in_memory(table, arguments.scale, 1)?))?;
    }
    println!(
        "query\tfamily\tentry\tlaunches\twaves\tissued\tasked\ttouched\tloads of 1\tof 2\tof 4\tof 8\tof 16\tagain"
    );
    for number in 1..=QUERIES.len() {
        if arguments.queries.is_empty() || arguments.queries.contains(&number) {
            run(&context, device.device(), &images, number).await?;
        }
    }
    Ok(())
}

async fn run(context: &SessionContext, device: &Device, images: &ptx::Images, number: usize) -> Result<()> {
    let plan = context.sql(QUERIES[number - 1]).await?.create_physical_plan().await?;
    images.ran();
    let before = device.host_synchronisations();
    let rows: usize = collect(plan.clone(), context.task_ctx()).await?.iter().map(|one| one.num_rows()).sum();
    let waits = device.host_synchronisations() - before;
    for ((family, entry), cost) in images.ran() {
        let loads: Vec<String> = cost.loads_of.iter().map(u64::to_string).collect();
        println!(
            "{number}\t{family}\t{entry}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            cost.launches,
            cost.waves,
            cost.issued,
            cost.asked * counted::SECTOR,
            cost.touched * counted::SECTOR,
            loads.join("\t"),
            cost.loads_again
        );
    }
    println!(
        "{number}\t-\twaits\t{waits}\t{rows}\t{}\t{}",
        metric(&plan, "bytes_up"),
        metric(&plan, "bytes_down")
    );
    Ok(())
}

/// The sum of a metric of all nodes.
fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name)).map_or(0, |sum| sum.as_usize());
    own + plan.children().into_iter().map(|child| metric(child, name)).sum::<usize>()
}
