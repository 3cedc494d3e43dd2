//! Writes TPC-H's tables as Parquet files: `cargo run --release --example tpch-files -- 0.1 folder 2` has
//! scale 0.1 and two files a table.

use bowstring_tpch::write_parquet;
use datafusion::error::{DataFusionError, Result};
use std::path::Path;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [scale, folder, files] = &arguments[..] else {
        return Err(DataFusionError::Configuration("arguments: SCALE FOLDER FILES".into()));
    };
    let files = files
        .parse()
        .map_err(|_| DataFusionError::Configuration(format!("{files} is no number of files")))?;
    write_parquet(Path::new(folder), scale.parse()?, files)
}
