//! Chooses the device of a stage: the one that its session names, else the one that its executor was started
//! with.
//!
//! A session's settings travel as text from the client through the scheduler to each task, and a program that
//! does not know a setting drops it. An executor therefore has to know `bowstring.device` before a task
//! comes: [`config_producer`] ensures that. A stock scheduler does not know the setting, so under one the
//! executor's own options apply.

use std::sync::Arc;

use ballista_core::ConfigProducer;
use bowstring_datafusion::DeviceOptions;
use datafusion::config::ConfigOptions;

/// The device name that leaves the choice to each executor; also the default of sessions that name none.
const ANY: &str = "auto";

/// Adds `bowstring.device` and the other options to the configurations of `stock`, with the values of `own`
/// until a session sets others. Use it for an executor's `override_config_producer`, and for a scheduler's as
/// well if sessions are to choose the device.
pub fn config_producer(own: DeviceOptions, stock: ConfigProducer) -> ConfigProducer {
    Arc::new(move || stock().with_option_extension(own.clone()))
}

/// The configuration for the rule in one task: the session's, with the device of the session or that of
/// `own`.
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
