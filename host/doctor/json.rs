//! JSON, as far as a report needs it.

use std::fmt;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
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
