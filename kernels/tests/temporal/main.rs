//! Dates, times, timestamps, durations and intervals as text, and zones: against tables of what arrow-cast does, and plain definitions.
//! (Against arrow-cast itself they are compared where it is a dependency.)

mod calendar;
mod interval;
mod read;
mod write;
mod zone;

use bowstring_kernels::written::Sink;

/// What is written, as text.
#[derive(Default)]
struct Text(String);

impl Sink for Text {
    fn put(&mut self, byte: u8) {
        self.0.push(byte as char);
    }
}

/// What a writer writes, if it does.
fn text(write: impl FnOnce(&mut Text) -> bool) -> Option<String> {
    let mut text = Text::default();
    let fits = write(&mut text);
    assert!(fits || text.0.is_empty());
    fits.then_some(text.0)
}
