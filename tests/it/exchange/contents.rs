//! What stands in a stranger's buffers: a verdict on any bytes, on request.

use arrow_schema::DataType;
use bowstring::Error;
use bowstring::array::{Buffer, Parts};
use bowstring::exchange::{from_arrow, from_arrow_data, to_arrow, validate};
use proptest::prelude::*;

use super::foreign::{Releases, import_host, produce, schema};
use super::hostile::sample;
use crate::support;

#[test]
fn a_lie_about_the_null_count_is_seen_by_validation() {
    let releases = Releases::default();
    let rows = sample("struct").to_data();
    for (told, name) in [(2, "array.children[0].null_count"), (0, "array.children[0].null_count")] {
        let mut foreign = produce(&rows, 0, &releases);
        foreign.child(0).null_count = told;
        let ours = import_host(foreign.into_ours(), &schema(rows.data_type())).unwrap().1;
        assert!(matches!(validate(&ours), Err(Error::OutOfSpec { at, .. }) if at == name));
    }
}

proptest! {
    #![proptest_config(support::config(400))]

    /// Whatever the bytes are: a verdict, no panic, and arrow-rs agrees with what was found good.
    #[test]
    fn contents_of_any_kind_are_judged(sample in support::sample(60), seed in any::<u64>()) {
        let mut random = support::Random::new(seed);
        let ours = from_arrow(&sample.array()).unwrap();
        let spoilt = spoil(&ours, &mut random);
        match validate(&spoilt) {
            Ok(()) => drop(to_arrow(&spoilt).unwrap()),
            Err(Error::OutOfSpec { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// The same array with a few bytes of some buffers changed.
fn spoil(array: &bowstring::Array, random: &mut support::Random) -> bowstring::Array {
    let mut parts: Parts = array.clone().into_parts();
    for buffer in &mut parts.buffers {
        let owner: &arrow_buffer::Buffer = buffer.owner().downcast_ref().unwrap();
        let mut bytes = owner.to_vec();
        if !bytes.is_empty() && random.percent(50.0) {
            for _ in 0..random.below(3) + 1 {
                let at = random.below(bytes.len());
                bytes[at] = *random.pick(&[&0u8, &1, &0x7f, &0x80, &0xff]);
            }
        }
        *buffer = holding(bytes);
    }
    parts.children = parts.children.iter().map(|child| spoil(child, random)).collect();
    parts.dictionary = parts.dictionary.map(|values| spoil(&values, random));
    bowstring::Array::try_new(parts).unwrap()
}

fn holding(bytes: Vec<u8>) -> Buffer {
    let data = arrow_data::ArrayData::builder(DataType::UInt8).len(bytes.len()).add_buffer(bytes.into());
    from_arrow_data(&data.build().unwrap()).unwrap().buffers()[0].clone()
}
