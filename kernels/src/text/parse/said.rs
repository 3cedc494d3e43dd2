//! The result of reading a text.

/// The result of reading a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<T> {
    /// The text gives this value.
    Value(T),
    /// The text gives no value of the type.
    Nothing,
    /// The text may give a value that only [`Reader::read_hard`](super::parsers::Reader::read_hard) can
    /// compute.
    Hard,
    /// The text names a time zone, whose rules only a database of time zones has.
    Elsewhere,
}

impl<T> Said<T> {
    /// Applies a function to the value, if there is one.
    #[inline(always)]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Said<U> {
        match self {
            Said::Value(value) => Said::Value(change(value)),
            Said::Nothing => Said::Nothing,
            Said::Hard => Said::Hard,
            Said::Elsewhere => Said::Elsewhere,
        }
    }
}

impl<T> From<Option<T>> for Said<T> {
    #[inline(always)]
    fn from(value: Option<T>) -> Said<T> {
        match value {
            Some(value) => Said::Value(value),
            None => Said::Nothing,
        }
    }
}
