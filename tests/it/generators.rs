//! Tests the tests' own tools: every random array is valid, has the intended irregularities, and reads as
//! arrow-rs reads it.

use arrow_array::Array;
use arrow_cast::can_cast_types;
use proptest::prelude::*;

use crate::support::*;

#[test]
fn every_pair_of_types_is_listed() {
    let types = types();
    let pairs = types.iter().flat_map(|from| types.iter().map(move |to| (from, to)));
    let castable = pairs.filter(|(from, to)| can_cast_types(from, to)).count();
    println!("{} types, {castable} pairs that arrow-rs casts", types.len());
    assert_eq!((types.len(), castable), (53, 1_370));
}

#[test]
fn every_type_is_generated_and_valid() {
    for (seed, data_type) in types().iter().enumerate() {
        for nulls in Nulls::ALL {
            for len in [0, 1, 65, 1025] {
                let mut rng = Random::new(seed as u64);
                let array = array(data_type, len, nulls, &mut rng);
                assert_eq!((array.len(), array.data_type()), (len, data_type));
                array
                    .to_data()
                    .validate_full()
                    .unwrap_or_else(|e| panic!("{data_type}, {nulls:?}, {len}: {e}"));
                assert_eq!(rows(&array).len(), len);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn every_sample_is_valid(sample in sample(100)) {
        let array = sample.array();
        array.to_data().validate_full().unwrap();
        let all = rows(&array);
        let (start, end) = (array.len() / 3, array.len() / 2);
        assert_same_rows(&rows(&sliced(&array, start, end - start)), &all[start..end], &"slice");
    }
}
