//! A session's options for this crate: `SET bowstring.device = 'cpu'`.

use std::any::Any;
use std::fmt::Display;

use datafusion::common::config_namespace;
use datafusion::config::{ConfigEntry, ConfigExtension, ConfigField, ConfigOptions, ExtensionOptions, Visit};
use datafusion::error::Result;

config_namespace! {
    /// The device that runs our operators, and the thresholds for using it.
    pub struct DeviceOptions {
        /// `auto` (the first GPU that opens, else the CPU), `cpu`, `cuda:0`, `rocm:0`, `emulator`, or `off`.
        pub device: String, default = "auto".to_owned()

        /// Host batches are merged until they have this many rows, then uploaded.
        pub upload_rows: usize, default = 1 << 20

        /// Host batches are merged until they have this many bytes, then uploaded.
        pub upload_bytes: usize, default = 128 << 20

        /// The number of uploads that a device works on at a time, for each partition.
        pub in_flight: usize, default = 2

        /// The bytes of groups, of rows to sort, and of the left rows of a join that an operator keeps on a
        /// device. If there are more, they are spilled to host memory, and processed in parts. Rows to sort
        /// and left rows are at most 1 GiB if a column, such as `Utf8`, has offsets of 32 bits.
        pub device_bytes: usize, default = 8 << 30

        /// Plans stay on the host if none of their scans is estimated to have so many rows, whatever the
        /// device. Without an estimate, operators stay whose own input is estimated to have fewer rows.
        pub device_min_rows: usize, default = 100_000

        /// Take every plan that can be translated, without asking whether it pays: for tests.
        pub always: bool, default = false

        /// On the CPU, drop rows that find no partner in a join where they are read.
        pub key_filters: bool, default = true

        /// On the CPU, the number of batches that an aggregate processes together.
        pub run_batches: usize, default = 16
    }
}

impl ConfigExtension for DeviceOptions {
    const PREFIX: &'static str = "bowstring";
}

/// Written by hand, because DataFusion's generated code leaves the prefix out of the entries' keys. `SHOW`
/// finds an option by that key, and Ballista sends it to the executors.
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
    /// The session's options, or the defaults if it has none.
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
