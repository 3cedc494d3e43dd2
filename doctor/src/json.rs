//! A small JSON for reports: written here, and parsed when another process wrote it.

use std::fmt;

#[derive(Clone, Debug, Default)]
pub(super) enum Json {
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
        Json::Object(fields.map(|(name, value)| (name.to_owned(), value)).into())
    }

    pub fn text(text: impl ToString) -> Json {
        Json::Text(text.to_string())
    }

    pub fn count(number: usize) -> Json {
        Json::Number(number as f64)
    }

    pub fn list<T>(all: &[T], one: impl Fn(&T) -> Json) -> Json {
        Json::List(all.iter().map(one).collect())
    }

    pub fn option<T>(value: Option<T>, json: impl Fn(T) -> Json) -> Json {
        value.map_or(Json::Null, json)
    }

    /// Parses a text; `None` if it is not JSON in the form that this module writes.
    pub fn parse(text: &str) -> Option<Json> {
        let mut reader = Reader(text);
        let value = reader.value(DEEPEST)?;
        reader.0.trim_start().is_empty().then_some(value)
    }

    /// A field's value; `Null` if it is missing.
    pub fn get(&self, name: &str) -> &Json {
        let Json::Object(fields) = self else { return &Json::Null };
        fields.iter().find(|(known, _)| known == name).map_or(&Json::Null, |(_, value)| value)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json> {
        let Json::Object(fields) = self else { return None };
        fields.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The text of a field; empty if it has none.
    pub fn text_of(&self, name: &str) -> &str {
        match self.get(name) {
            Json::Text(text) => text,
            _ => "",
        }
    }

    /// The number of a field; zero if it has none.
    pub fn count_of(&self, name: &str) -> usize {
        match self.get(name) {
            Json::Number(number) => *number as usize,
            _ => 0,
        }
    }
}

/// How deep values may be nested.
const DEEPEST: usize = 16;

/// A parser over the rest of a text.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    /// Skips `word` if it comes next, and says whether it did.
    fn takes(&mut self, word: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(word);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        let depth = depth.checked_sub(1)?;
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
        {
            if self.takes(word) {
                return Some(value);
            }
        }
        if self.takes("\"") {
            return self.text().map(Json::Text);
        }
        if self.takes("[") {
            return self.all("]", |reader| reader.value(depth)).map(Json::List);
        }
        if self.takes("{") {
            let field = |reader: &mut Self| {
                let name = if reader.takes("\"") { reader.text()? } else { return None };
                if reader.takes(":") { Some((name, reader.value(depth)?)) } else { None }
            };
            return self.all("}", field).map(Json::Object);
        }
        let text = self.0.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(text.len());
        self.0 = &text[end..];
        text[..end].parse().ok().map(Json::Number)
    }

    /// Parses values between commas, up to `end`.
    fn all<T>(&mut self, end: &str, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut all = vec![];
        if self.takes(end) {
            return Some(all);
        }
        loop {
            all.push(one(self)?);
            if self.takes(end) {
                return Some(all);
            }
            if !self.takes(",") {
                return None;
            }
        }
    }

    /// Parses the rest of a string whose first quote was skipped.
    fn text(&mut self) -> Option<String> {
        let (mut text, mut chars) = (String::new(), self.0.chars());
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => match chars.next()? {
                    'u' => {
                        let digits: String = chars.by_ref().take(4).collect();
                        text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                    }
                    c => text.push(c),
                },
                c => text.push(c),
            }
        }
        self.0 = chars.as_str();
        Some(text)
    }
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{:04x}", c as u32)?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(number) if number.is_finite() => write!(f, "{number}"),
            Json::Number(_) => f.write_str("null"),
            Json::Text(text) => quoted(text, f),
            Json::List(all) => {
                f.write_str("[")?;
                for (i, one) in all.iter().enumerate() {
                    write!(f, "{}{one}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Json::Object(all) => {
                f.write_str("{")?;
                for (i, (name, value)) in all.iter().enumerate() {
                    write!(f, "{}\"{name}\": {value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn what_is_written_is_read_again() {
        let value = Json::object([
            ("text", Json::text("a \"b\" \\ c\n\u{1} é, ]}")),
            ("numbers", Json::list(&[0.0, -1.5e-9, 4e15], |number| Json::Number(*number))),
            ("none", Json::Null),
            ("empty", Json::object([])),
            ("lists", Json::List(vec![Json::List(vec![]), Json::Bool(true), Json::Bool(false)])),
        ]);
        let text = value.to_string();
        assert_eq!(Json::parse(&text).expect(&text).to_string(), text);
        assert_eq!((value.count_of("numbers"), value.text_of("none")), (0, ""));
        let deep = "[".repeat(1 << 20);
        let cut: Vec<&str> = (1..text.len()).filter_map(|end| text.get(..end)).collect();
        for wrong in cut.into_iter().chain(["", "nul", "{} {}", "[1 2]", "{\"a\" 1}", "\"\\ud800\"", &deep]) {
            assert!(Json::parse(wrong).is_none(), "{wrong}");
        }
    }
}
