//! Which device a stage runs on: what its session asked for, else what its executor was started with.
//!
//! A session's settings travel as text from the client through the scheduler to each task, and whoever does not know a
//! setting drops it. An executor therefore has to know `bowstring.device` before a task comes: [`config_producer`] sees to
//! that. A stock scheduler does not know it, so with one the executor's own options are what counts.

use std::sync::Arc;

use ballista_core::ConfigProducer;
use bowstring_datafusion::DeviceOptions;
use datafusion::config::ConfigOptions;

/// What a session says that leaves the choice to each executor; also the default of sessions that say nothing.
const ANY: &str = "auto";

/// `stock`'s configurations, which know `bowstring.device` and the other options besides: `own` until a session says
/// otherwise. For an executor's `override_config_producer`; for a scheduler's as well, if sessions are to choose the device.
pub fn config_producer(own: DeviceOptions, stock: ConfigProducer) -> ConfigProducer {
    Arc::new(move || stock().with_option_extension(own.clone()))
}

/// What the rule is given for a task: its session's configuration, with a device that is the session's or that of `own`.
pub(crate) fn for_rule(session: &ConfigOptions, own: &DeviceOptions) -> ConfigOptions {
    let mut config = session.clone();
    match config.extensions.get_mut::<DeviceOptions>() {
        Some(options) if options.device == ANY => options.device.clone_from(&own.device),
        Some(_) => {}
        None => config.extensions.insert(own.clone()),
    }
    config
}

/// The device in a configuration that [`for_rule`] made.
pub(crate) fn device(config: &ConfigOptions) -> &str {
    config.extensions.get::<DeviceOptions>().map_or(ANY, |options| &options.device)
}
