//! Binds text tests, and parts of texts. Those of literals are computed at once; a separate launch computes
//! the others.

use arrow_schema::DataType;
use bowstring_kernels::text::search::kernels::passes;
use bowstring_kernels::text::search::test::Test as TextTest;
use bowstring_kernels::text::substring::{ALL, bounds};

use super::binder::{Binder, Typed};
use super::plan::{Bytes, Op, value_type};
use super::print::short;
use super::{Comparison, Expr, Literal, Matches};
use crate::Result;

/// The test for a text type; `None` if the type does not support it: patterns require characters.
pub(super) fn tested_as(how: Matches, data_type: &DataType) -> Option<TextTest> {
    use DataType::*;
    let is_string = matches!(data_type, Utf8 | LargeUtf8 | Utf8View);
    if !is_string && !matches!(data_type, Binary | LargeBinary | BinaryView) {
        return None;
    }
    match how {
        Matches::StartsWith => Some(TextTest::StartsWith),
        Matches::EndsWith => Some(TextTest::EndsWith),
        Matches::Contains => Some(TextTest::Contains),
        Matches::Like => is_string.then_some(TextTest::Like),
        Matches::ILike => is_string.then_some(TextTest::ILike),
    }
}

impl Binder<'_> {
    /// Binds a test of two operands of one type.
    pub fn text_test(&mut self, test: TextTest, a: Typed, b: Typed, expr: &Expr) -> Typed {
        let known = match (&self.plan.nodes[a.id].op, &self.plan.nodes[b.id].op) {
            (Op::Literal(_), _) | (_, Op::Literal(_)) => Some(None),
            (Op::Bytes(a), Op::Bytes(b)) => Some(Some(i128::from(passes(test, &a.0, &b.0)))),
            _ => None,
        };
        match known {
            Some(truth) => self.literal(truth, DataType::Boolean, expr),
            None => self.node(Op::Text(test), DataType::Boolean, &[&a, &b], expr),
        }
    }

    /// Binds a comparison that is true as the bits select.
    pub fn compare_text(&mut self, how: Comparison, bits: u8, a: Typed, b: Typed, expr: &Expr) -> Typed {
        let is_distinct = match how {
            Comparison::Distinct => true,
            Comparison::NotDistinct => false,
            _ => return self.text_test(TextTest::Compare(bits), a, b, expr),
        };
        let truth = DataType::Boolean;
        if matches!(self.plan.nodes[b.id].op, Op::Bytes(_)) {
            let equal = self.text_test(TextTest::Compare(2), a, b, expr);
            return self.node(Op::Test(if is_distinct { 5 } else { 2 }), truth, &[&equal], expr);
        }
        let equal = self.text_test(TextTest::Compare(2), a.clone(), b.clone(), expr);
        self.distinct_unless(&equal, [&a, &b], is_distinct, expr)
    }

    /// Binds some characters of a text. Those of a literal are known at once.
    pub fn substring(&mut self, expr: &Expr, x: Typed, start: i64, length: Option<u64>) -> Result<Typed> {
        let to = x.data_type.clone();
        if !matches!(value_type(&to), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
            return Err(self.wrong(expr, format!("{to} has no characters")));
        }
        let known = match &self.plan.nodes[x.id].op {
            Op::Literal(_) => Op::Literal(None),
            Op::Bytes(Bytes(text)) => {
                let (from, end) = bounds(&**text, start, length.unwrap_or(ALL));
                Op::Bytes(Bytes(text[from as usize..end as usize].into()))
            }
            _ => return Ok(self.node(Op::Substring(start, length), to, &[&x], expr)),
        };
        Ok(self.node(known, to, &[], expr))
    }

    /// Binds a test whether a text is one of these literals.
    pub fn text_in_list(&mut self, expr: &Expr, x: Typed, list: &[Literal]) -> Result<Typed> {
        let of = value_type(&x.data_type).clone();
        let (mut values, mut has_null) = (vec![], false);
        for literal in list {
            match literal.as_text(&of) {
                Some(Some(value)) => values.push(value),
                Some(None) => has_null = true,
                None => return Err(self.wrong(expr, format!("{} is no value of {of}", short(literal)))),
            }
        }
        values.sort();
        values.dedup();
        let found = match &self.plan.nodes[x.id].op {
            Op::Literal(_) => self.literal(None, DataType::Boolean, expr),
            Op::Bytes(value) => {
                let found = values.binary_search(value).is_ok();
                self.literal(Some(i128::from(found)), DataType::Boolean, expr)
            }
            _ if values.is_empty() => self.none_of_none(&x, expr),
            _ => self.node(Op::TextIn(values.into()), DataType::Boolean, &[&x], expr),
        };
        Ok(if has_null { self.or_null(found, expr) } else { found })
    }
}
