//! The faults that a test asks for in its process, by an environment variable.

use std::sync::OnceLock;

/// The faults that `BOWSTRING_STANDIN_FAULT` asks for in a test's process. With `abort`, the first stray
/// access ends the process, as in ROCm. `abort:NAME` also makes launches of entries whose names begin with
/// `NAME` stray. `wrong:NAME` makes such launches write one wrong bit.
#[derive(Clone, Copy)]
pub struct Faults {
    pub how: &'static str,
    entry: Option<&'static str>,
}

impl Faults {
    pub fn asked() -> Faults {
        static ASKED: OnceLock<Faults> = OnceLock::new();
        *ASKED.get_or_init(|| {
            let asked: &str = std::env::var("BOWSTRING_STANDIN_FAULT").unwrap_or_default().leak();
            let (how, entry) = asked.split_once(':').map_or((asked, None), |(how, entry)| (how, Some(entry)));
            assert!(["", "abort", "wrong"].contains(&how), "BOWSTRING_STANDIN_FAULT={asked}");
            Faults { how, entry }
        })
    }

    /// The fault of an entry's launches; empty if they have none.
    pub fn of(self, entry: &str) -> &'static str {
        if self.entry.is_some_and(|start| entry.starts_with(start)) { self.how } else { "" }
    }
}
