//! Makes the session that the command line describes, and runs its query, or asks for queries.

use crate::arguments::Arguments;
use crate::output::Form;
use crate::shell::{Shell, say, shown};
use crate::{prompt, tables};
use bowstring_sql::session;
use datafusion::error::Result;
use signal_hook::consts::SIGINT;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub async fn run(arguments: Arguments) -> Result<()> {
    let text = arguments.text()?;
    let settings = arguments.settings.iter().map(|(key, value)| (&**key, &**value));
    let context = session(&arguments.device, arguments.partitions.map(usize::from), settings)?;
    let partitions = context.state().config().target_partitions();
    let made = tables::register(&context, &arguments, partitions).await?;
    if let Some(time) = made {
        say(format_args!("tables made in {}", shown(time)));
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
    if text.is_some() {
        // A second Ctrl-C does not wait for work to stop.
        signal_hook::flag::register_conditional_shutdown(SIGINT, 130, interrupted.clone())?;
    }
    signal_hook::flag::register(SIGINT, interrupted)?;
    match text {
        Some(text) => shell.run(&text).await,
        None => prompt::run(shell).await,
    }
}
