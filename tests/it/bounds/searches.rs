//! Tests searches in text: long needles and patterns, their time, and their interruption.

use super::*;

/// Searches for needles one byte longer than the rows, needles that would span two rows, and needles among
/// rows of similar lengths: the answers equal a search row by row.
#[test]
fn long_needles_are_found_in_the_rows_that_hold_them() {
    let mut rng = Random::new(5);
    for len in [1, 64, 65, 130] {
        let needle = "a".repeat(len - 1) + "b";
        let rows: Vec<Option<String>> = (0..300)
            .map(|_| {
                let long = len - rng.below(len.min(3)) + [0, 1, 2, len][rng.below(4)];
                let mut text = "a".repeat(if rng.percent(30.0) { rng.below(len) } else { long });
                if rng.percent(50.0) {
                    let at = rng.below(text.len() + 1);
                    text.insert(at, 'b');
                }
                (!rng.percent(5.0)).then_some(text)
            })
            .collect();
        let escaped = needle.replace('b', "\\b");
        let middle = &needle[..len / 2];
        type Holds<'a> = Box<dyn Fn(&str) -> bool + 'a>;
        let cases: Vec<(Expr, Holds)> = vec![
            (col("s").contains(&needle), Box::new(|row| row.contains(&needle))),
            (col("s").like(format!("%{escaped}%")), Box::new(|row| row.contains(&needle))),
            (col("s").like(format!("{escaped}%")), Box::new(|row| row.starts_with(&needle))),
            (
                col("s").like(format!("{middle}%{escaped}%\\a")),
                Box::new(|row| {
                    let rest = row.strip_prefix(middle).and_then(|row| row.strip_suffix('a'));
                    rest.is_some_and(|rest| rest.contains(&needle))
                }),
            ),
            (col("s").ilike(format!("%{}%", needle.to_uppercase())), Box::new(|row| row.contains(&needle))),
            (lit(needle.repeat(2)).contains(col("s")), Box::new(|row| needle.repeat(2).contains(row))),
        ];
        for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
            let texts = StringArray::from(rows.clone());
            let texts = arrow_cast::cast(&texts, &data_type).unwrap();
            for target in devices() {
                let batch = batch(&target, &[("s", texts.clone())]);
                for (expr, holds) in &cases {
                    let made = of(&target, &batch, expr.clone(), &Options::default()).unwrap();
                    let right: Vec<_> = rows.iter().map(|row| row.as_deref().map(holds)).collect();
                    let made: Vec<_> = made.as_boolean().iter().collect();
                    assert!(made == right, "{expr} of {data_type} on {target:?}");
                }
            }
        }
    }
}

/// Patterns longer than the step-by-step matcher handles, with repeating parts, match as in arrow-rs.
#[test]
fn long_patterns_match_as_short_ones_do() {
    let mut rng = Random::new(7);
    let parts = ["a", "b", "A", "\u{212a}", "k", "\u{e9}", "\u{1f600}"];
    let some =
        |rng: &mut Random, len: usize| -> Vec<&str> { (0..len).map(|_| parts[rng.below(2)]).collect() };
    let [cpu, ..] = &devices()[..] else { panic!("no device") };
    for round in 0..60 {
        let mut text = some(&mut rng, 150);
        (0..rng.below(6)).for_each(|_| text[rng.below(150)] = parts[rng.below(parts.len())]);
        let mut pattern: Vec<String> = text.iter().map(|part| part.to_string()).collect();
        (0..1 + rng.below(20)).for_each(|_| pattern[rng.below(150)] = "_".to_owned());
        (0..rng.below(5))
            .for_each(|_| pattern[rng.below(150)] = ["%", "%%", "\\a", "\\_"][rng.below(4)].to_owned());
        let from = rng.below(60);
        let pattern = ["%", ""][rng.below(2)].to_owned() + &pattern[from..from + 70].concat() + "%";
        let rows: Vec<String> = (0..40)
            .map(|_| {
                let mut row = text[rng.below(from + 1)..].to_vec();
                (0..rng.below(3)).for_each(|_| row.insert(0, parts[rng.below(parts.len())]));
                (0..rng.below(2)).for_each(|_| row[rng.below(90)] = parts[rng.below(parts.len())]);
                row.concat()
            })
            .collect();
        let texts: ArrayRef = Arc::new(StringArray::from(rows));
        let batch = batch(cpu, &[("s", texts.clone())]);
        let scalar = StringArray::new_scalar(&pattern);
        for (expr, right) in [
            (col("s").like(&pattern), arrow_string::like::like(&texts.as_string::<i32>(), &scalar)),
            (col("s").ilike(&pattern), arrow_string::like::ilike(&texts.as_string::<i32>(), &scalar)),
        ] {
            let made = of(cpu, &batch, expr, &Options::default()).unwrap();
            assert_eq!(made.as_boolean(), &right.unwrap(), "round {round}: {pattern}");
        }
    }
}

/// A search that restarts in each row, and reads the needle's length each time, would take half a minute
/// here.
#[test]
fn a_search_takes_as_long_as_what_is_searched() {
    let len = 100_000;
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..20).map(|_| "a".repeat(len - 1))));
    let [cpu, ..] = &devices()[..] else { panic!("no device") };
    let rows = batch(cpu, &[("s", texts)]);
    let needle = "a".repeat(len);
    for expr in [
        col("s").contains(&needle),
        col("s").contains("a".repeat(len / 2) + "b"),
        col("s").like(format!("%\\a{needle}%")),
        col("s").ilike(format!("%{needle}%")),
        col("s").like(format!("%{}_b%", "a".repeat(len / 100))),
    ] {
        assert_eq!(filter_where(&rows, &expr, &cpu.stream).wait().unwrap().len(), 0);
    }
}

#[test]
fn a_pattern_is_interrupted_between_few_rows() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a long row"; 200]));
    let cpu = devices().swap_remove(0);
    let rows = batch(&cpu, &[("s", texts)]);
    let expr = col("s").like("a_%r_w");
    let kept = || filter_where(&rows, &expr, &cpu.stream).wait().map(|kept| kept.len());
    assert!(matches!(interruptible(Duration::ZERO, || false, kept), Ok(200)));
    assert!(matches!(interruptible(Duration::ZERO, || true, kept), Err(Error::Interrupted)));
}
