//! Random cases for proptest. A [`Sample`] describes an array instead of containing it, so a failing case
//! shrinks in meaningful steps (a simpler type, a shorter array, no nulls, no slice), and its message is one
//! line.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, Fields, UnionFields, UnionMode};
use bowstring::device::testing::any_part;
use proptest::prelude::*;

use super::{Nulls, OFFSETS, Random, array, index_types, types};

/// The description of an array.
#[derive(Clone, Debug)]
pub struct Sample {
    pub data_type: DataType,
    pub len: usize,
    pub nulls: Nulls,
    /// The number of rows that the slice skips in the longer array.
    pub offset: usize,
    pub seed: u64,
}

impl Sample {
    /// Makes the described array.
    pub fn array(&self) -> ArrayRef {
        self.longer().slice(self.offset, self.len)
    }

    /// Makes the longer array, of which the sample is a slice.
    pub fn longer(&self) -> ArrayRef {
        array(&self.data_type, self.offset + self.len + 3, self.nulls, &mut self.random())
    }

    /// A random generator from the sample's seed.
    pub fn random(&self) -> Random {
        Random::new(self.seed)
    }
}

/// The number of cases in `BOWSTRING_CASES`.
fn asked() -> Option<u32> {
    let cases = std::env::var("BOWSTRING_CASES").ok()?;
    Some(cases.parse().expect("BOWSTRING_CASES is a number"))
}

/// Runs as many cases as `BOWSTRING_CASES` says, or `short`. Failures are kept in
/// `tests/proptest-regressions`.
pub fn config(short: u32) -> ProptestConfig {
    ProptestConfig { cases: asked().unwrap_or(short), ..ProptestConfig::default() }
}

/// The number of seeds to try if each is a small case: four for each of `BOWSTRING_CASES`, or `short`.
pub fn cases(short: u64) -> u64 {
    asked().map_or(short, |cases| 4 * u64::from(cases))
}

/// Types, nested up to three levels deep. A quarter of the items, children of structs and values of maps are
/// not nullable.
pub fn data_type() -> impl Strategy<Value = DataType> {
    let leaf = proptest::sample::select(types());
    leaf.prop_recursive(3, 8, 3, |inner| {
        let part = (inner.clone(), proptest::bool::weighted(0.75));
        let field = part.clone().prop_map(|(of, nullable)| Arc::new(inside("item", of, nullable)));
        let key = proptest::sample::select(index_types());
        let end = proptest::sample::select(vec![DataType::Int32, DataType::Int64]);
        let key_of_map = Field::new("keys", DataType::Utf8, false);
        let mode = prop_oneof![Just(UnionMode::Sparse), Just(UnionMode::Dense)];
        prop_oneof![
            field.clone().prop_map(DataType::List),
            field.clone().prop_map(DataType::LargeList),
            field.clone().prop_map(DataType::ListView),
            field.clone().prop_map(DataType::LargeListView),
            (field.clone(), 1..4).prop_map(|(field, size)| DataType::FixedSizeList(field, size)),
            prop::collection::vec(part.clone(), 1..4).prop_map(|of| {
                let numbered = |(i, (of, nullable))| inside(&format!("f{i}"), of, nullable);
                DataType::Struct(of.into_iter().enumerate().map(numbered).collect())
            }),
            (prop::collection::vec(inner.clone(), 1..4), mode).prop_map(|(of, mode)| {
                let fields = of.into_iter().enumerate().map(|(i, of)| inside(&format!("f{i}"), of, true));
                DataType::Union(
                    UnionFields::try_new([9, 4, 0][3 - fields.len()..].to_vec(), fields).unwrap(),
                    mode,
                )
            }),
            (key, inner.clone()).prop_map(|(key, of)| DataType::Dictionary(Box::new(key), Box::new(of))),
            (end, inner.clone().prop_filter("arrow-rs joins runs of nulls of different members", no_union))
                .prop_map(|(end, of)| {
                    let ends = Arc::new(Field::new("run_ends", end, false));
                    DataType::RunEndEncoded(ends, Arc::new(Field::new("values", of, true)))
                }),
            part.prop_map(move |(of, nullable)| {
                let entries = Fields::from(vec![key_of_map.clone(), inside("values", of, nullable)]);
                let entries = Field::new("entries", DataType::Struct(entries), false);
                DataType::Map(Arc::new(entries), false)
            }),
        ]
    })
}

/// A field inside of a type. Rows of some types are null without a bitmap that says so; these are nullable.
fn inside(name: &str, of: DataType, nullable: bool) -> Field {
    let nullable = nullable || any_part(&of, |part| matches!(part, DataType::Null | DataType::Union(..)));
    Field::new(name, of, nullable)
}

/// Whether the type contains no union at any depth.
fn no_union(data_type: &DataType) -> bool {
    !any_part(data_type, |part| matches!(part, DataType::Union(..)))
}

/// Samples of any type.
pub fn sample(longest: usize) -> impl Strategy<Value = Sample> {
    sample_of(data_type(), longest)
}

/// Samples of these types.
pub fn sample_of(
    data_type: impl Strategy<Value = DataType>,
    longest: usize,
) -> impl Strategy<Value = Sample> {
    let nulls = proptest::sample::select(&Nulls::ALL);
    let offset = prop_oneof![proptest::sample::select(OFFSETS), 0usize..200];
    (data_type, 0..=longest, nulls, offset, any::<u64>().no_shrink())
        .prop_map(|(data_type, len, nulls, offset, seed)| Sample { data_type, len, nulls, offset, seed })
}
