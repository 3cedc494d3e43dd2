//! What an H200 is expected to show, as `benches/predict.py` has written it down. None of it was measured.

/// A line of the table: a tab between its parts, the names of which are its first line.
const TABLE: &str = include_str!("h200-predictions.tsv");

/// The GPU that the table is about, as its name has it, and the bytes that its copies are taken to move in
/// a second.
const OF: &str = "H200";
const COPIED: f64 = 4.3e12;

/// What some work is expected to take, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prediction {
    pub expected: f64,
    /// Where all goes well.
    pub best: f64,
    /// Where little does.
    pub worst: f64,
}

/// Whether a GPU is the one that the table is about.
pub(super) fn is_of(name: &str) -> bool {
    name.contains(OF)
}

/// How many times longer the table's times are on a GPU of this name, whose copies move so many bytes a
/// second: right for work that memory bounds, a guess for other work. `None` where that is not known.
pub(super) fn scale(name: &str, copied: Option<f64>) -> Option<f64> {
    if is_of(name) { Some(1.0) } else { copied.filter(|rate| *rate > 0.0).map(|rate| COPIED / rate) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_follow_what_a_gpu_copies() {
        assert_eq!(scale("NVIDIA H200, compute capability 9.0", Some(1.0)), Some(1.0));
        assert_eq!(scale("NVIDIA A100", Some(COPIED / 4.0)), Some(4.0));
        assert_eq!((scale("NVIDIA A100", None), scale("NVIDIA A100", Some(0.0))), (None, None));
        // The table and the rate have one source: a cast that only memory bounds takes what its bytes take,
        // nearly.
        let (cast, bytes) = of("cast Int32 to Int64, nulls", 1 << 28).expect("a line of the table");
        let share = bytes * f64::from(1 << 28) / COPIED / cast.expected;
        assert!((0.95..1.1).contains(&share), "{share}");
    }
}
