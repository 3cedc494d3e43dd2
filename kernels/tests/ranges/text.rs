//! Compares searches for text and patterns with plain definitions, and counts the bytes that they read.

use std::cell::Cell;

use bowstring_kernels::text::bytes::Bytes;
use bowstring_kernels::text::search::find::{SPARE, contains};
use bowstring_kernels::text::search::folds::FOLDS;
use bowstring_kernels::text::search::like::{Folds, like};

/// Bytes that count how often they are read.
#[derive(Clone, Copy)]
struct Counted<'a> {
    bytes: &'a [u8],
    reads: &'a Cell<u64>,
}

impl<'a> Counted<'a> {
    fn of(text: &'a str, reads: &'a Cell<u64>) -> Counted<'a> {
        Counted { bytes: text.as_bytes(), reads }
    }
}

impl Bytes for Counted<'_> {
    fn len(self) -> u64 {
        self.bytes.len() as u64
    }

    fn at(self, i: u64) -> u8 {
        self.reads.set(self.reads.get() + 1);
        self.bytes[i as usize]
    }
}

/// Every text of these letters, up to a length.
fn all(letters: &[char], most: usize) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut last = 0;
    for _ in 0..most {
        let longer: Vec<String> =
            texts[last..].iter().flat_map(|text| letters.iter().map(move |c| format!("{text}{c}"))).collect();
        last = texts.len();
        texts.extend(longer);
    }
    texts
}

/// Whether a text matches, by the definition of patterns.
fn matches(text: &[char], pattern: &[char], fold: bool) -> bool {
    let of = |c: char| if fold { FOLDS.fold(c.into()) } else { c.into() };
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|from| matches(&text[from..], rest, fold)),
        ['_', rest @ ..] => !text.is_empty() && matches(&text[1..], rest, fold),
        ['\\', c, rest @ ..] | [c, rest @ ..] => {
            text.first().is_some_and(|first| of(*first) == of(*c)) && matches(&text[1..], rest, fold)
        }
    }
}

#[test]
fn needles_are_found_where_they_are() {
    let (texts, needles) = (all(&['a', 'b'], 10), all(&['a', 'b'], 6));
    for text in &texts {
        for needle in &needles {
            let wanted = text.contains(needle.as_str());
            for spare in [0, SPARE] {
                let found = contains(text.as_bytes(), needle.as_bytes(), spare);
                assert_eq!(found, wanted, "{needle} in {text}, {spare}");
            }
        }
    }
}

#[test]
fn patterns_mean_what_they_are_said_to() {
    let agree = |texts: &[String], patterns: &[String], fold: bool| {
        let chars = |text: &String| text.chars().collect::<Vec<_>>();
        for text in texts {
            for pattern in patterns {
                let wanted = matches(&chars(text), &chars(pattern), fold);
                for spare in [0, SPARE] {
                    let found = like(text.as_bytes(), pattern.as_bytes(), FOLDS, fold, spare);
                    assert_eq!(found, wanted, "{text} like {pattern}, {fold}, {spare}");
                }
            }
        }
    };
    agree(&all(&['a', 'b', '\\'], 5), &all(&['a', 'b', '%', '_', '\\'], 4), false);
    // Without case, these letters equal some of another length.
    agree(&all(&['k', '\u{212a}', 'é'], 5), &all(&['K', 'É', '%', '_', '\\'], 4), true);
    // Pieces that are escaped, or ignore case, are searched for unit by unit.
    let inside = |letters: &[char], most: usize| -> Vec<String> {
        all(letters, most).iter().map(|piece| format!("%{piece}%")).collect()
    };
    agree(&all(&['a', '\\'], 9), &inside(&['a', '\\'], 7), false);
    agree(&all(&['k', '\u{212a}', 'é'], 7), &inside(&['K', 'É'], 5), true);
    agree(&all(&['k', '\\', '\u{212a}'], 6), &inside(&['K', '\\'], 6), true);
    let pieces = all(&['a', 'é'], 3);
    let patterns: Vec<String> = pieces
        .iter()
        .flat_map(|first| pieces.iter().map(move |last| (first, last)))
        .flat_map(|(first, last)| [format!("%{first}%{last}"), format!("%{first}a%{last}%")])
        .collect();
    agree(&all(&['a', 'é'], 8), &patterns, false);
}

/// Texts of 64 KiB, and needles of 1000 bytes that nearly occur in them everywhere.
#[test]
fn searches_look_at_each_byte_a_few_times() {
    let (long, short) = (1 << 16, 1000);
    let (mut rare, mut next) = (String::from("a"), String::from("ab"));
    while rare.len() < long {
        (rare, next) = (next.clone(), next + &rare);
    }
    let a = "a".repeat(short);
    let cases = [
        ("a".repeat(long), format!("{a}b")),
        ("a".repeat(long), format!("b{a}")),
        ("a".repeat(long), format!("{a}b{a}")),
        (format!("{a}c").repeat(long / short), format!("{a}{a}")),
        ("ab".repeat(long / 2), format!("{}b", "ab".repeat(short / 2))),
        ("ba".repeat(long / 2), format!("{}b", "ba".repeat(short / 2))),
        ("a".repeat(long - 1) + "b", "a".repeat(long / 2)),
        (format!("{}b", "a".repeat(short - 1)).repeat(long / short), format!("{a}b")),
        (rare.clone(), format!("{}{}", &rare[..short], &rare[..short])),
        (rare.clone(), format!("{}c", &rare[1..short])),
    ];
    for (text, needle) in &cases {
        let reads = Cell::new(0);
        let within = |most: u64, what: &str, found: bool, wanted: bool, bytes: usize| {
            assert_eq!(found, wanted, "{what}");
            let (reads, bytes) = (reads.take(), bytes as u64);
            assert!(reads < most * bytes, "{what}: {reads} reads of {bytes}");
        };
        let is = text.contains(needle.as_str());
        let found = contains(Counted::of(text, &reads), Counted::of(needle, &reads), SPARE);
        within(16, &needle[needle.len() - 8..], found, is, text.len() + needle.len());
        // A last piece is tried at only one place, whatever it is.
        let last = text.ends_with(needle.as_str());
        for (pattern, fold, wanted) in [
            (format!("%{needle}%"), false, is),
            (format!("%{}%", needle.to_uppercase()), true, is),
            (format!("%a%{needle}%"), false, text[1 + text.find('a').unwrap()..].contains(needle.as_str())),
            (format!("%{needle}"), false, last),
            (format!("%{needle}"), true, last),
            (format!("%_{needle}"), false, last && text.len() > needle.len()),
            (format!("%\\{needle}"), false, last),
            (format!("{}%c", "%a".repeat(short)), false, text.ends_with('c')),
        ] {
            let found = like(Counted::of(text, &reads), Counted::of(&pattern, &reads), FOLDS, fold, SPARE);
            within(32, &pattern[..8], found, wanted, text.len() + pattern.len());
        }
    }
}

/// As above, if each unit of the needle is escaped, or its equals have other lengths.
#[test]
fn searches_for_escaped_and_folded_text_do_so_too() {
    let (long, short) = (1 << 16, 1000);
    let cases = [
        ("\\".repeat(long), "\\".repeat(short) + "b"),
        ("\\".repeat(long), String::from("b") + &"\\".repeat(short)),
        ("\\\\b".repeat(long / 3), "\\\\b".repeat(short / 3) + "\\b"),
        ("b\\".repeat(long / 2), "b\\".repeat(short / 2) + "\\"),
        ("\u{212a}".repeat(long / 3), "k".repeat(short) + "b"),
        ("k\u{212a}".repeat(long / 4), "\u{212a}".repeat(short) + "k\u{212a}b"),
        ("\u{212a}é".repeat(long / 5), "kÉ".repeat(short / 2) + "k"),
        ("\u{212a}é".repeat(long / 5), "kÉ".repeat(short / 2) + "kk"),
    ];
    for (text, needle) in &cases {
        let escaped: String = needle.chars().flat_map(|c| ['\\', c]).collect();
        let pattern = format!("%{escaped}%");
        for fold in [false, true] {
            let wanted = match fold {
                true => text.to_lowercase().contains(&needle.to_lowercase()),
                false => text.contains(needle.as_str()),
            };
            let reads = Cell::new(0);
            let found = like(Counted::of(text, &reads), Counted::of(&pattern, &reads), FOLDS, fold, SPARE);
            assert_eq!(found, wanted, "{}, {fold}", &pattern[..8]);
            let bytes = (text.len() + pattern.len()) as u64;
            assert!(reads.get() < 32 * bytes, "{}, {fold}: {} reads of {bytes}", &pattern[..8], reads.get());
        }
    }
}
