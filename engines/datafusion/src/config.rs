//! A session's options for this crate: `SET bowstring.device = 'cpu'`.

use std::any::Any;
use std::fmt::Display;

use arrow_schema::DataType;
use datafusion::common::config_namespace;
use datafusion::config::{ConfigEntry, ConfigExtension, ConfigField, ConfigOptions, ExtensionOptions, Visit};
use datafusion::error::Result;

use crate::types::has_short_offsets;

/// The most bytes of rows that are concatenated if a column has offsets of 32 bits, which count to 2 GiB.
const MOST_BYTES_WITH_SHORT_OFFSETS: usize = 1 << 30;

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
        /// device. If there are more, they are parked in host memory, and processed in parts. Rows to sort
        /// and left rows are at most 1 GiB if a column, such as `Utf8`, has offsets of 32 bits.
        pub device_bytes: usize, default = 8 << 30

        /// Plans that are estimated to read fewer rows than this stay on the host, whatever the device. A
        /// plan without an estimate may run on the device.
        pub device_min_rows: usize, default = 100_000

        /// Take every plan that can be translated, without asking whether it pays: for tests.
        pub always: bool, default = false

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

    /// The bytes of rows with columns of these types that an operator keeps on a device and concatenates.
    pub(crate) fn bytes_kept<'a>(&self, types: impl IntoIterator<Item = &'a DataType>) -> usize {
        match types.into_iter().any(has_short_offsets) {
            true => self.device_bytes.min(MOST_BYTES_WITH_SHORT_OFFSETS),
            false => self.device_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Field;

    use super::*;

    /// Concatenated text may not grow to 2 GiB, wherever it is.
    #[test]
    fn less_is_kept_of_columns_with_short_offsets() {
        let mut options = DeviceOptions::default();
        let field = |of: &DataType| Arc::new(Field::new("a", of.clone(), true));
        let long = [DataType::Int64, DataType::Utf8View, DataType::LargeBinary];
        let nested = |of: &DataType| {
            [
                of.clone(),
                DataType::Struct([field(&DataType::Int8), field(of)].into_iter().collect()),
                DataType::FixedSizeList(field(of), 2),
                DataType::LargeList(field(of)),
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(of.clone())),
            ]
        };
        for of in long.iter().flat_map(nested) {
            assert_eq!(options.bytes_kept([&of]), 8 << 30, "{of}");
        }
        let short = [DataType::Utf8, DataType::Binary, DataType::List(field(&DataType::Int8))];
        for of in short.iter().flat_map(nested) {
            assert_eq!(options.bytes_kept(long.iter().chain([&of])), 1 << 30, "{of}");
        }
        options.device_bytes = 1000;
        assert_eq!(options.bytes_kept(&short), 1000);
    }

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
