//! The times that an H200 is expected to take, written by `benches/predict.py`. None of them was measured.

/// The table, with tabs between its columns; its first line names them.
const TABLE: &str = include_str!("h200-predictions.tsv");

/// The part of a GPU's name that says that the table is about it, and the bytes a second that the table takes
/// its copies to move.
const OF: &str = "H200";
const COPIED: f64 = 4.3e12;

/// The expected times of a piece of work, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prediction {
    pub expected: f64,
    /// The time if everything goes well.
    pub best: f64,
    /// The time if little does.
    pub worst: f64,
}

/// Whether a GPU is the one that the table is about.
pub(super) fn is_of(name: &str) -> bool {
    name.contains(OF)
}

/// The factor from the table's times to those of a GPU of this name whose copies move `copied` bytes a
/// second. It is right for work that memory bounds, and a guess for other work. `None` if the rate is not
/// known.
pub(super) fn scale(name: &str, copied: Option<f64>) -> Option<f64> {
    if is_of(name) { Some(1.0) } else { copied.filter(|rate| *rate > 0.0).map(|rate| COPIED / rate) }
}

/// The prediction for a piece of work on so many rows, and the bytes that it must move for each row.
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
        // The table and the rate have one source: a cast that only memory bounds takes nearly as long as a
        // copy of its bytes.
        let (cast, bytes) = of("cast Int32 to Int64, nulls", 1 << 28).expect("a line of the table");
        let share = bytes * f64::from(1 << 28) / COPIED / cast.expected;
        assert!((0.95..1.1).contains(&share), "{share}");
    }
}
