//! Tests dates, times, timestamps, durations and intervals as text, and time zones, against tables of
//! arrow-cast's results and plain definitions. (The crates that depend on arrow-cast compare with it
//! directly.)

mod calendar;
mod interval;
mod read;
mod write;
mod zone;

use bowstring_kernels::text::format::sink::Sink;

/// Collects the text that a writer writes.
#[derive(Default)]
struct Text(String);

impl Sink for Text {
    fn put(&mut self, byte: u8) {
        self.0.push(byte as char);
    }
}

/// The text that a writer writes; `None` if the value does not fit.
fn text(write: impl FnOnce(&mut Text) -> bool) -> Option<String> {
    let mut text = Text::default();
    let fits = write(&mut text);
    assert!(fits || text.0.is_empty());
    fits.then_some(text.0)
}
