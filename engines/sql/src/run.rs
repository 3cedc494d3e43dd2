//! Makes the session that the command line describes, and runs its query, or asks for queries.

use crate::arguments::Arguments;
use crate::output::Form;
use crate::shell::{Shell, shown};
use crate::{prompt, tables};
use bowstring_sql::set;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub async fn run(arguments: Arguments) -> Result<()> {
    let text = arguments.text()?;
    let mut config = SessionConfig::new().with_information_schema(true);
    if let Some(partitions) = arguments.partitions {
        config = config.with_target_partitions(partitions.into());
    }
    let partitions = config.target_partitions();
    let context = bowstring_datafusion::session(config);
    set(&context, "bowstring.device", &arguments.device)?;
    for (key, value) in &arguments.settings {
        set(&context, key, value)?;
    }
    let made = tables::register(&context, &arguments, partitions).await?;
    if let Some(time) = made {
        eprintln!("tables made in {}", shown(time));
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    let shell = Shell {
        context,
        form: Form { format: arguments.format, file: arguments.output, shown: arguments.rows },
        explain: arguments.explain,
        analyze: arguments.analyze,
        repeat: arguments.repeat,
        timing: true,
        interrupted: interrupted.clone(),
    };
    match text {
        Some(text) => shell.run(&text).await,
        None => {
            signal_hook::flag::register(signal_hook::consts::SIGINT, interrupted)?;
            prompt::run(shell).await
        }
    }
}
