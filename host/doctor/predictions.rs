//! What an H200 is expected to show, as `benches/predict.py` has written it down. None of it was measured.

/// A line of the table: a tab between its parts, the names of which are its first line.
const TABLE: &str = include_str!("h200-predictions.tsv");

/// The GPU that the table is about, as its name has it.
pub(super) const OF: &str = "H200";

/// What some work is expected to take, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prediction {
    pub expected: f64,
    /// Where all goes well.
    pub best: f64,
    /// Where little does.
    pub worst: f64,
}

/// The prediction for some work on so many rows, and how many bytes a row it must move.
pub(super) fn of(work: &str, rows: usize) -> Option<(Prediction, f64)> {
    let mut lines = TABLE.lines().skip(1).map(|line| line.split('\t'));
    lines.find_map(|mut cells| {
        let (name, _id) = (cells.next()?, cells.next()?);
        if name != work || cells.next()?.parse() != Ok(rows) {
            return None;
        }
        let mut number = || cells.next()?.parse::<f64>().ok();
        let bytes = number()?;
        Some((Prediction { expected: number()?, best: number()?, worst: number()? }, bytes))
    })
}
