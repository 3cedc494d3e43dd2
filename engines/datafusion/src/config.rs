//! What a session may say of us: `SET bowstring.device = 'cpu'`.

use std::any::Any;
use std::fmt::Display;

use datafusion::common::config_namespace;
use datafusion::config::{ConfigEntry, ConfigExtension, ConfigField, ConfigOptions, ExtensionOptions, Visit};
use datafusion::error::Result;

config_namespace! {
    /// Where and when our operators run.
    pub struct DeviceOptions {
        /// `auto` (the first GPU that opens, else the CPU), `cpu`, `cuda:0`, `rocm:0`, `emulator`, or `off`.
        pub device: String, default = "auto".to_owned()

        /// Host batches are put together until they have so many rows before they are uploaded.
        pub upload_rows: usize, default = 1 << 20

        /// Or until they have so many bytes.
        pub upload_bytes: usize, default = 128 << 20

        /// Uploads that a device works on at a time, for each partition.
        pub in_flight: usize, default = 2

        /// Plans that are estimated to read fewer rows than this stay on the host, whatever the device. Where nothing is known of
        /// the rows they do not.
        pub device_min_rows: usize, default = 100_000

        /// Take whatever can be translated, and do not ask whether it pays: for tests.
        pub always: bool, default = false

        /// On the CPU, batches that an aggregate is given together.
        pub run_batches: usize, default = 16
    }
}

impl ConfigExtension for DeviceOptions {
    const PREFIX: &'static str = "bowstring";
}

/// By hand, since what DataFusion generates leaves the prefix out of the entries' keys. By those keys `SHOW` finds an option,
/// and Ballista sends it to the executors.
impl ExtensionOptions for DeviceOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        ConfigField::set(self, key, value)
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let mut entries = Entries(vec![]);
        self.visit(&mut entries, Self::PREFIX, "");
        entries.0
    }
}

struct Entries(Vec<ConfigEntry>);

impl Visit for Entries {
    fn some<V: Display>(&mut self, key: &str, value: V, description: &'static str) {
        self.0.push(ConfigEntry { key: key.to_owned(), value: Some(value.to_string()), description });
    }

    fn none(&mut self, key: &str, description: &'static str) {
        self.0.push(ConfigEntry { key: key.to_owned(), value: None, description });
    }
}

impl DeviceOptions {
    /// Those of a session, or the usual ones.
    pub fn of(config: &ConfigOptions) -> DeviceOptions {
        config.extensions.get::<DeviceOptions>().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_can_be_set_again_by_their_keys() -> Result<()> {
        let mut options = DeviceOptions::default();
        (options.device, options.in_flight) = ("cpu".to_owned(), 7);
        let mut config = ConfigOptions::new();
        config.extensions.insert(DeviceOptions::default());
        for ConfigEntry { key, value, .. } in options.entries() {
            config.set(&key, &value.unwrap_or_default())?;
        }
        assert_eq!(DeviceOptions::of(&config), options);
        Ok(())
    }
}
