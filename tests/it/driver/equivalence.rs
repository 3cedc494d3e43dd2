//! Runs a part of the equivalence suites through the drivers themselves, on the stand-ins: every type that
//! the device supports, at a few lengths and offsets, against arrow-rs.

use std::sync::Arc;

use arrow_cast::can_cast_types;
use arrow_schema::DataType;
use bowstring::compute::{CastOptions, TakeOptions, cast, filter, null_count, take};

use super::*;

/// Lengths around a wave and a tile, each with its own offset.
const CASES: &[(usize, usize)] = &[(0, 0), (33, 1), (65, 31), (1025, 8)];

#[test]
fn filter_agrees() {
    for target in Target::standins() {
        for (seed, data_type) in (0..).zip(types()) {
            for (i, &(len, offset)) in CASES.iter().enumerate() {
                let random = &mut Random::new(seed);
                let longer = array(&data_type, len + offset + 1, Nulls::ALL[(seed as usize + i) % 5], random);
                let mask = mask(MASKS[(seed as usize + i) % MASKS.len()], len, random);
                let values = target.import_as(Form::SlicedAfter, &longer, offset, len);
                let there: ArrayRef = Arc::new(mask.clone());
                let there = target.import(&there);
                let context = format!("filter of {len} {data_type} from {offset}");
                let Some(ours) = target.answer(filter(&values, &there, &target.stream).wait(), &context)
                else {
                    continue;
                };
                let theirs = arrow_select::filter::filter(&longer.slice(offset, len), &mask).unwrap();
                target.assert_same(&ours, &theirs, &context);
            }
        }
    }
}

#[test]
fn take_and_null_count_agree() {
    for target in Target::standins() {
        for (seed, data_type) in (0..).zip(types()).filter(|(_, data_type)| has_nulls(data_type)) {
            for &(len, offset) in &CASES[1..] {
                let random = &mut Random::new(seed);
                let longer = array(&data_type, len + offset + 1, Nulls::Some, random);
                let indices = indices(&DataType::Int32, len / 2, len, Nulls::Some, random);
                let values = target.import_as(Form::SlicedAfter, &longer, offset, len);
                let context = format!("take from {len} {data_type} from {offset}");
                let plain = longer.slice(offset, len);
                let nulls = null_count(&values, &target.stream).wait();
                if let Some(nulls) = target.answer(nulls, &context) {
                    assert_eq!(nulls, plain.null_count(), "{context} on {target:?}");
                }
                let ours =
                    take(&values, &target.import(&indices), &TakeOptions::default(), &target.stream).wait();
                let Some(ours) = target.answer(ours, &context) else { continue };
                let theirs = arrow_select::take::take(&plain, &indices, None).unwrap();
                target.assert_same(&ours, &theirs, &context);
            }
        }
    }
}

#[test]
fn casts_of_numbers_agree() {
    use DataType::*;
    let numbers = [Int8, UInt16, Int32, UInt64, Float32, Float64, Decimal128(20, 3), Date32, Boolean];
    for target in Target::standins() {
        for (from, to) in numbers.iter().flat_map(|from| numbers.iter().map(move |to| (from, to))) {
            if !can_cast_types(from, to) {
                continue;
            }
            let host = array(from, 100, Nulls::Some, &mut Random::new(7));
            let context = format!("cast of {from} to {to}");
            let ours = cast(&target.import(&host), to, &CastOptions::default(), &target.stream).wait();
            let Some(ours) = target.answer(ours, &context) else { continue };
            target.assert_same(&ours, &arrow_cast::cast(&host, to).unwrap(), &context);
        }
    }
}
