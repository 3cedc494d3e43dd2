//! Prints expressions as text.

use std::fmt;

use arrow_schema::Schema;

use super::{Arithmetic, Comparison, DatePart, Expr, Matches, Node, Test};

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Node::Named(name) => write!(f, "{name}"),
            Node::Indexed(index) => write!(f, "#{index}"),
            Node::Literal(literal) => write!(f, "{literal}"),
            Node::Compare(how, a, b) => write!(f, "{} {how} {}", part(a), part(b)),
            Node::Between(x, low, high) => {
                write!(f, "{} between {} and {}", part(x), part(low), part(high))
            }
            Node::InList(x, list) => {
                write!(f, "{} in (", part(x))?;
                for (i, literal) in list.iter().enumerate() {
                    write!(f, "{}{literal}", if i == 0 { "" } else { ", " })?;
                }
                write!(f, ")")
            }
            Node::Matches(how, a, b) => write!(f, "{} {how} {}", part(a), part(b)),
            Node::And(a, b) => write!(f, "{} and {}", part(a), part(b)),
            Node::Or(a, b) => write!(f, "{} or {}", part(a), part(b)),
            Node::Not(x) => write!(f, "not {}", part(x)),
            Node::Test(test, x) => write!(f, "{} {test}", part(x)),
            Node::Arithmetic(op, a, b) => write!(f, "{} {op} {}", part(a), part(b)),
            Node::Negate(x) => write!(f, "-{}", part(x)),
            Node::Cast(x, to, safe) => {
                write!(f, "{}({x} as {to})", if *safe { "cast" } else { "cast_strict" })
            }
            Node::IfElse(condition, then, otherwise) => {
                write!(f, "if {} then {} else {}", part(condition), part(then), part(otherwise))
            }
            Node::Coalesce(a, b) => write!(f, "coalesce({a}, {b})"),
            Node::NullIf(a, b) => write!(f, "nullif({a}, {b})"),
            Node::DatePart(which, x) => write!(f, "{which}({x})"),
            Node::Substring(x, start, None) => write!(f, "substring({x}, {start})"),
            Node::Substring(x, start, Some(length)) => write!(f, "substring({x}, {start}, {length})"),
            Node::Abs(x) => write!(f, "abs({x})"),
            Node::IsNan(x) => write!(f, "is_nan({x})"),
            Node::FloorDiv(a, b) => write!(f, "{} // {}", Part(a), Part(b)),
            Node::Power(x, exponent) => write!(f, "{} ** {exponent}", Part(x)),
            Node::Alias(x, name) => write!(f, "{x} as {name}"),
        }
    }
}

/// An operand, which is put in parentheses if it consists of several words.
struct Part<'a>(&'a Expr);

fn part(expr: &Expr) -> Part<'_> {
    Part(expr)
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0.0 {
            Node::Named(_)
            | Node::Indexed(_)
            | Node::Literal(_)
            | Node::Coalesce(..)
            | Node::NullIf(..)
            | Node::Cast(..)
            | Node::DatePart(..)
            | Node::Substring(..)
            | Node::Abs(_)
            | Node::IsNan(_) => write!(f, "{}", self.0),
            _ => write!(f, "({})", self.0),
        }
    }
}

/// The most bytes that errors quote.
const QUOTED: usize = 1000;

/// The text, truncated to the length that errors quote: a value or list may have any length.
pub(crate) fn short(of: &impl fmt::Display) -> String {
    let mut start = Start(String::new());
    match fmt::write(&mut start, format_args!("{of}")) {
        Ok(()) => start.0,
        Err(fmt::Error) => start.0 + "...",
    }
}

/// Collects the beginning of the text, then returns an error to stop the printing.
struct Start(String);

impl fmt::Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = text.floor_char_boundary(QUOTED - self.0.len());
        self.0.push_str(&text[..fits]);
        if fits == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

macro_rules! words {
    ($($name:ident { $($variant:ident $word:literal)+ })+) => {
        $(impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$variant => $word,)+ })
            }
        })+
    };
}

words! {
    Comparison {
        Eq "=" NotEq "!=" Lt "<" LtEq "<=" Gt ">" GtEq ">=" Distinct "is distinct from"
        NotDistinct "is not distinct from"
    }
    Matches {
        StartsWith "starts with" EndsWith "ends with" Contains "contains" Like "like" ILike "ilike"
    }
    Test {
        Null "is null" NotNull "is not null" True "is true" NotTrue "is not true" False "is false"
        NotFalse "is not false"
    }
    Arithmetic { Add "+" Sub "-" Mul "*" Div "/" Rem "%" }
    DatePart { Year "year" Month "month" Day "day" Hour "hour" Minute "minute" Second "second" }
}

/// The name of a result column.
pub(crate) fn name(expr: &Expr, schema: &Schema) -> String {
    match &*expr.0 {
        Node::Alias(_, name) => name.clone(),
        Node::Indexed(index) if *index < schema.fields().len() => schema.field(*index).name().clone(),
        _ => expr.to_string(),
    }
}
