//! Tests concat: the plain definition, arrow-rs and every device agree; also its inputs, sharing and
//! refusals.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::types::{Int8Type, Int16Type};
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, UnionFields};
use bowstring::compute::concat;
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{DeviceArray, Error};
use proptest::prelude::*;

use crate::support::*;

fn joined(parts: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    arrow_select::concat::concat(&parts.iter().map(|part| &**part).collect::<Vec<_>>())
}

/// Concatenates samples of one type on every device.
fn agrees(samples: &[Sample]) {
    let parts: Vec<ArrayRef> = samples.iter().map(Sample::array).collect();
    let plain: Vec<Value> = parts.iter().flat_map(|part| rows(part)).collect();
    // With overflow checks arrow-rs may panic on the keys of null rows.
    let theirs = catch_unwind(AssertUnwindSafe(|| joined(&parts)));
    let theirs = theirs.unwrap_or_else(|_| Err(ArrowError::ComputeError("a panic".into())));
    if let Ok(theirs) = &theirs {
        assert_same_rows(&rows(theirs), &plain, &format_args!("arrow-rs and the definition, {samples:?}"));
    }
    for target in &devices() {
        for form in Form::ALL {
            let context = format!("{form:?}, {samples:?}, on {target:?}");
            let import = |one: &Sample| target.import_as(form, &one.longer(), one.offset, one.len);
            let ours: Vec<DeviceArray> = samples.iter().map(import).collect();
            let ours = match concat(&ours.iter().collect::<Vec<_>>(), &target.stream).wait() {
                Ok(ours) => ours,
                // The result has more values than keys can name.
                Err(Error::Arrow { .. }) if theirs.is_err() => continue,
                Err(error) => panic!("{context}: {error}"),
            };
            let exported = target.export(&ours);
            assert_eq!(exported.data_type(), &samples[0].data_type, "{context}");
            assert_same_rows(&rows(&exported), &plain, &context);
            target.assert_null_count(&ours, &exported, &context);
        }
    }
}

fn samples(longest: usize) -> impl Strategy<Value = Vec<Sample>> {
    let nulls = proptest::sample::select(&Nulls::ALL);
    let offset = proptest::sample::select(OFFSETS);
    let piece = (0..=longest, nulls, offset, any::<u64>().no_shrink());
    (data_type(), prop::collection::vec(piece, 1..=6)).prop_map(|(data_type, pieces)| {
        let piece =
            |(len, nulls, offset, seed)| Sample { data_type: data_type.clone(), len, nulls, offset, seed };
        pieces.into_iter().map(piece).collect()
    })
}

#[test]
fn every_type_of_pieces_of_every_length() {
    for (i, data_type) in types().into_iter().enumerate() {
        for pieces in [2, 3, 6] {
            let sample = |k: usize| {
                let turn = i + 5 * k + pieces;
                let (len, offset) = (LENGTHS[turn % (LENGTHS.len() - 1)], OFFSETS[turn % OFFSETS.len()]);
                let nulls = Nulls::ALL[turn % Nulls::ALL.len()];
                Sample { data_type: data_type.clone(), len, nulls, offset, seed: turn as u64 }
            };
            agrees(&(0..pieces).map(sample).collect::<Vec<_>>());
        }
    }
}

proptest! {
    #![proptest_config(config(24))]
    #[test]
    fn nested_types_of_any_pieces(samples in samples(150)) {
        agrees(&samples);
    }
}

/// As many pieces as coalescing small batches produces, and bits that end anywhere in a word.
#[test]
fn many_small_pieces() {
    for data_type in [DataType::Boolean, DataType::Utf8, DataType::Int16] {
        let sample = |i: usize| {
            let nulls = Nulls::ALL[i % Nulls::ALL.len()];
            Sample { data_type: data_type.clone(), len: i * 7 % 23, nulls, offset: i % 9, seed: i as u64 }
        };
        agrees(&(0..300).map(sample).collect::<Vec<_>>());
    }
}

#[test]
fn the_host_looks_once_for_each_level_of_what_has_lengths() {
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    let stream = device.device().stream().unwrap();
    let text = list_of(DataType::Utf8);
    let both = DataType::Struct(vec![field("a", DataType::Utf8), field("b", text.clone())].into());
    let levels = [(DataType::Int32, 0), (DataType::Utf8View, 0), (DataType::Utf8, 1), (text, 2), (both, 2)];
    for (data_type, looks) in levels {
        let pieces: Vec<DeviceArray> = (0..20)
            .map(|seed| array(&data_type, 60, Nulls::Some, &mut Random::new(seed)))
            .map(|piece| stream.upload(&from_arrow(&piece).unwrap()).unwrap())
            .collect();
        let before = device.device().host_synchronisations();
        concat(&pieces.iter().collect::<Vec<_>>(), &stream).wait().unwrap();
        assert_eq!(device.device().host_synchronisations() - before, looks, "{data_type}");
    }
}

fn field(name: &str, of: DataType) -> arrow_schema::Field {
    arrow_schema::Field::new(name, of, true)
}

fn list_of(of: DataType) -> DataType {
    DataType::List(Arc::new(field("item", of)))
}

#[test]
fn a_dictionary_that_all_share_stays() {
    let values: ArrayRef = Arc::new(["a", "b", "a", "c"].into_iter().collect::<DictionaryArray<Int8Type>>());
    for target in &devices() {
        let whole = target.import(&values);
        let parts = [whole.slice(2, 2).unwrap(), whole.clone()];
        let ours = concat(&parts.each_ref(), &target.stream).wait().unwrap();
        target.assert_same(&ours, &joined(&[values.slice(2, 2), values.clone()]).unwrap(), &"shared");
        let address = |array: &DeviceArray| array.dictionary().unwrap().buffers()[0].address();
        assert!(target.name == "cpu" || address(&ours) == address(&whole), "{target:?}");
    }
}

/// If the key type has no room for all values, equal ones are merged, as in arrow-rs; if that is not enough,
/// concat fails.
#[test]
fn keys_that_are_too_narrow() {
    let of = |from: usize| -> ArrayRef {
        let texts = (from..from + 40).map(|i| format!("value {i}")).collect::<Vec<_>>();
        Arc::new(texts.iter().map(String::as_str).collect::<DictionaryArray<Int8Type>>())
    };
    for target in &devices() {
        let join = |parts: &[ArrayRef]| {
            let ours: Vec<DeviceArray> = parts.iter().map(|part| target.import(part)).collect();
            concat(&ours.iter().collect::<Vec<_>>(), &target.stream).wait()
        };
        let parts = [of(0), of(0), of(10), of(0)];
        target.assert_same(&join(&parts).unwrap(), &joined(&parts).unwrap(), &"merged");
        let distinct = join(&[of(0), of(40), of(80), of(120)]);
        assert!(matches!(distinct, Err(Error::Arrow { .. })), "{target:?}: {distinct:?}");
    }
}

/// All different values have keys, however often equal ones come and whatever values are not used. arrow-rs
/// does not promise that: in its table, values displace each other.
#[test]
fn keys_that_are_just_wide_enough() {
    let text = |values: &mut dyn Iterator<Item = Option<String>>| StringArray::from_iter(values);
    let of = |seed: usize, values: usize, to: &DataType| -> ArrayRef {
        let (mut random, rows) = (Random::new(seed as u64), 300);
        // Each part has values of its own that it does not use, and null as one that it does.
        let used = (0..values - 1).map(|i| Some(format!("value {i}"))).chain([None]);
        let unused = (values..120).map(|i| Some(format!("unused {seed} {i}")));
        let values_of_part = arrow_cast::cast(&text(&mut used.chain(unused)), to).unwrap();
        let key = |row: usize| (row % 9 != 8).then(|| if row < values { row } else { random.below(values) });
        let keys = Int8Array::from_iter((0..rows).map(key).map(|key| key.map(|key| key as i8)));
        Arc::new(DictionaryArray::new(keys, values_of_part))
    };
    for (values, to) in [(120, DataType::Utf8), (128, DataType::Utf8), (127, DataType::Utf8View)] {
        let parts: Vec<ArrayRef> = (0..5).map(|seed| of(seed, values, &to)).collect();
        let plain: Vec<ArrayRef> =
            parts.iter().map(|part| arrow_cast::cast(part, &DataType::Utf8).unwrap()).collect();
        let expected = joined(&plain).unwrap();
        for target in &devices() {
            let ours: Vec<DeviceArray> = parts.iter().map(|part| target.import(part)).collect();
            let made = concat(&ours.iter().collect::<Vec<_>>(), &target.stream).wait().unwrap();
            assert_eq!(made.data_type(), parts[0].data_type());
            let made = to_arrow(&target.stream.download(&made).unwrap()).unwrap();
            assert_eq!(arrow_cast::cast(&made, &DataType::Utf8).unwrap().as_ref(), expected.as_ref(), "{to}");
        }
    }
}

/// Invalid keys, views, items and union offsets, beside valid arrays that must not make them valid.
#[test]
fn what_points_nowhere_is_an_error() {
    let keys: ArrayRef = Arc::new(["a", "b"].into_iter().collect::<DictionaryArray<Int8Type>>());
    let text: ArrayRef = Arc::new(StringViewArray::from(vec!["much too long for a view", "short"]));
    let items: ArrayRef = Arc::new(Int8Array::from(vec![1, 2, 3]));
    let item = Arc::new(field("item", DataType::Int8));
    let lists: ArrayRef =
        Arc::new(ListViewArray::new(item, vec![0, 1].into(), vec![1, 2].into(), items.clone(), None));
    let fields = UnionFields::try_new([5], [field("a", DataType::Int8)]).unwrap();
    let at = Some(vec![2, 0].into());
    let union: ArrayRef = Arc::new(UnionArray::try_new(fields, vec![5, 5].into(), at, vec![items]).unwrap());
    let view = [24u32, 0, 1, 0, 0, 0, 0, 0].map(u32::to_ne_bytes).concat();
    let forged: [(&ArrayRef, &[u8]); 5] = [
        (&keys, &[0, 2]),
        (&keys, &[0xff, 0]),
        (&text, &view),
        (&lists, &[0, 0, 0, 0, 2, 0, 0, 0]),
        (&union, &[5, 4]),
    ];
    for target in devices().iter().filter(|target| target.name != "cpu") {
        for (like, first) in forged {
            let (good, bad) = (target.import(like), target.forged(like, first));
            for parts in [[&good, &bad, &good], [&bad, &good, &good]] {
                let joined = concat(&parts, &target.stream).wait();
                let there = joined.and_then(|joined| joined.wait());
                assert!(matches!(there, Err(Error::OutOfSpec { .. })), "{like:?}, {target:?}: {there:?}");
            }
            let ours = concat(&[&good, &good], &target.stream).wait().unwrap();
            target.assert_same(&ours, &joined(&[like.clone(), like.clone()]).unwrap(), &"good ones");
        }
    }
}

/// Items without bytes need no memory, so their number may exceed the range of offsets.
#[test]
fn more_than_offsets_can_say() {
    const MANY: usize = 1 << 30;
    let nothing: ArrayRef = Arc::new(NullArray::new(MANY));
    let item = Arc::new(field("item", DataType::Null));
    let fields = UnionFields::try_new([0], [field("a", DataType::Null)]).unwrap();
    let arrays: [ArrayRef; 3] = [
        Arc::new(ListViewArray::new(item.clone(), vec![0].into(), vec![1].into(), nothing.clone(), None)),
        Arc::new(
            UnionArray::try_new(fields, vec![0].into(), Some(vec![7].into()), vec![nothing.clone()]).unwrap(),
        ),
        Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([MANY]), nothing, None)),
    ];
    for target in devices().iter().filter(|target| target.name != "cpu") {
        for array in &arrays {
            let ours = target.import(array);
            let refused = concat(&[&ours, &ours, &ours], &target.stream).wait();
            assert!(matches!(refused, Err(Error::Invalid { .. })), "{}: {refused:?}", array.data_type());
        }
    }
}

#[test]
fn what_cannot_be_joined_is_said() {
    let one: ArrayRef = Arc::new(Int8Array::from(vec![1]));
    let other: ArrayRef = Arc::new(Int16Array::from(vec![1]));
    let ends = Int16Array::from(vec![20_000]);
    let runs: ArrayRef = Arc::new(RunArray::<Int16Type>::try_new(&ends, &Int8Array::from(vec![7])).unwrap());
    for target in &devices() {
        let [one, other, runs] = [&one, &other, &runs].map(|array| target.import(array));
        let join = |arrays: &[&DeviceArray]| concat(arrays, &target.stream).wait();
        for refused in [join(&[]), join(&[&one, &other])] {
            assert!(matches!(refused, Err(Error::Invalid { .. })), "{target:?}: {refused:?}");
        }
        let refused = join(&[&runs, &runs]);
        assert!(
            matches!(refused, Err(Error::Invalid { .. } | Error::Arrow { .. })),
            "{target:?}: {refused:?}"
        );
    }
}

/// Views that were taken from one array bring its data once, however many parts they come in.
#[test]
fn views_of_one_source_have_its_buffers_once() {
    let texts = |of: &str| -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values((0..40).map(|row| format!("{of}, row number {row}"))))
    };
    let (one, other) = (texts("one source"), texts("another source"));
    for target in &devices() {
        let (ours, others) = (target.import(&one), target.import(&other));
        let part = |array: &DeviceArray, first| array.slice(first, 10).unwrap();
        let parts = [part(&ours, 0), part(&others, 5), part(&ours, 20), part(&others, 30), part(&ours, 3)];
        let made = concat(&parts.iter().collect::<Vec<_>>(), &target.stream).wait().unwrap();
        let data = ours.buffers().len() - 1 + others.buffers().len() - 1;
        assert_eq!(made.buffers().len(), 1 + data, "{target:?}");
        let plain =
            [one.slice(0, 10), other.slice(5, 10), one.slice(20, 10), other.slice(30, 10), one.slice(3, 10)];
        let plain: Vec<Value> = plain.iter().flat_map(|part| rows(part)).collect();
        assert_same_rows(&rows(&target.export(&made)), &plain, &format_args!("{target:?}"));
    }
}
