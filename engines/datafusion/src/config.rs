//! What a session may say of us: `SET bowstring.device = 'cpu'`.

use datafusion::common::extensions_options;
use datafusion::config::{ConfigExtension, ConfigOptions};

extensions_options! {
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

impl DeviceOptions {
    /// Those of a session, or the usual ones.
    pub fn of(config: &ConfigOptions) -> DeviceOptions {
        config.extensions.get::<DeviceOptions>().cloned().unwrap_or_default()
    }
}
