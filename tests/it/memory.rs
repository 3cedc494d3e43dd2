//! Tests that the memory of operations on the CPU counts against the limit, even if arrow-rs allocates it.

use std::sync::Arc;

use arrow_array::*;
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_cast::can_cast_types;
use arrow_schema::{DataType, Field};
use bowstring::compute::{CastOptions, Selection, TakeOptions, cast, concat, filter, take};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{Device, Error, Stream};

use crate::support::{Nulls, Random, allocations, array, children, types};

/// More types than the usual ones, whose casts allocate differently.
fn more_types() -> Vec<DataType> {
    use DataType::*;
    let item = |of: DataType| Arc::new(Field::new("item", of, true));
    let ends = |of: DataType| Arc::new(Field::new("run_ends", of, false));
    let dictionary = |key: DataType, of: DataType| Dictionary(Box::new(key), Box::new(of));
    vec![
        FixedSizeBinary(16),
        List(item(Utf8)),
        LargeList(item(Utf8View)),
        ListView(item(Utf8)),
        FixedSizeList(item(Utf8), 3),
        FixedSizeList(item(Utf8), 1),
        FixedSizeList(item(Int32), 1),
        List(item(List(item(Int64)))),
        dictionary(UInt16, Utf8),
        dictionary(Int64, LargeUtf8),
        dictionary(Int32, Utf8View),
        dictionary(Int32, Int64),
        dictionary(Int16, Decimal128(20, 2)),
        RunEndEncoded(ends(Int64), item(Utf8)),
        RunEndEncoded(ends(Int32), item(LargeUtf8)),
        List(item(dictionary(Int32, Utf8))),
    ]
}

fn goes_through_arrow(from: &DataType, to: &DataType) -> bool {
    let special = |t: &DataType| {
        t.is_nested() || !t.is_primitive() && *t != DataType::Boolean || matches!(t, DataType::Null)
    };
    // Parsing and formatting text is our own code, and takes less memory.
    let text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let plain = |t: &DataType| t.is_primitive() || *t == DataType::Boolean;
    let written = text(from) && plain(to) || plain(from) && text(to);
    from != to && !written && (special(from) || special(to))
}

/// Checks the memory bound that is reserved before a call of arrow-cast, for every pair of types: if the
/// limit is just below what the cast allocates, the cast is refused before it begins.
#[test]
fn no_cast_takes_more_than_was_reserved() {
    const NAME: &str = "memory::no_cast_takes_more_than_was_reserved";
    if children::case().is_none() {
        return children::run(NAME, "bounds", None, 500, &[]);
    }
    let (mut wrong, mut pairs, mut loosest) = (vec![], 0, (0.0, String::new()));
    let types: Vec<DataType> = types().into_iter().chain(more_types()).collect();
    let device = Device::cpu();
    let pool = device.host_pool();
    for from in &types {
        for (nulls, seed) in [(Nulls::Some, 1), (Nulls::None, 2)] {
            let theirs = array(from, 3000, nulls, &mut Random::new(seed));
            let theirs = theirs.slice(100, 2800);
            let ours = from_arrow(&theirs).unwrap();
            for to in types.iter().filter(|to| can_cast_types(from, to) && goes_through_arrow(from, to)) {
                for safe in [true, false] {
                    let options = CastOptions { safe, ..CastOptions::default() };
                    let peak =
                        allocations::peak(|| drop(arrow_cast::cast_with_options(&theirs, to, &options)));
                    // Small allocations, and those of error messages, are not bounded.
                    if peak < 8192 {
                        continue;
                    }
                    pairs += 1;
                    pool.set_limit(pool.usage().in_use + peak - 4096);
                    let refused = cast(&ours, to, &options, &Stream::cpu()).wait();
                    if !matches!(refused, Err(Error::OutOfMemory { .. })) {
                        // Text that is shared, and validated in passing, allocates nothing for us.
                        wrong.push(format!("{from} to {to}, safe {safe}, {nulls:?}: {peak} bytes"));
                    }
                    let loose = match refused {
                        Err(Error::OutOfMemory { bytes, .. }) => bytes as f64 / peak as f64,
                        _ => 0.0,
                    };
                    if loose > loosest.0 {
                        loosest = (loose, format!("{from} to {to}, safe {safe}"));
                    }
                    pool.set_limit(usize::MAX);
                }
            }
        }
    }
    println!("{pairs} casts; the loosest bound is {:.1} times what {} took", loosest.0, loosest.1);
    assert!(pairs > 300, "{pairs}");
    assert!(wrong.is_empty(), "{} of {pairs}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Checks the memory bound that is reserved before a call of arrow-select's `concat` in the same way: for
/// chunks that are slices of one array, and for unrelated chunks.
#[test]
fn no_concat_takes_more_than_was_reserved() {
    const NAME: &str = "memory::no_concat_takes_more_than_was_reserved";
    if children::case().is_none() {
        return children::run(NAME, "bounds", None, 500, &[]);
    }
    let (mut wrong, mut bounded, mut loosest) = (vec![], 0, (0.0, String::new()));
    let (device, stream) = (Device::cpu(), Stream::cpu());
    let pool = device.host_pool();
    for data_type in types().into_iter().chain(more_types()) {
        for (nulls, seed) in [(Nulls::Some, 1), (Nulls::None, 2)] {
            let whole = array(&data_type, 3000, nulls, &mut Random::new(seed));
            let slices = vec![whole.slice(100, 1300), whole.slice(1400, 0), whole.slice(1400, 1500)];
            let others =
                (0..9).map(|i| array(&data_type, 300 + i, nulls, &mut Random::new(seed + 10 * i as u64)));
            for (kind, chunks) in [("slices", slices), ("others", others.collect())] {
                let theirs: Vec<&dyn Array> = chunks.iter().map(|chunk| &**chunk).collect();
                let mut expected = None;
                let peak = allocations::peak(|| expected = Some(arrow_select::concat::concat(&theirs)));
                let ours: Vec<_> = chunks.iter().map(|chunk| from_arrow(chunk).unwrap()).collect();
                let ours: Vec<&bowstring::DeviceArray> = ours.iter().collect();
                let joined = concat(&ours, &stream).wait().map(|joined| to_arrow(&joined).unwrap());
                assert_eq!(joined.ok(), expected.unwrap().ok(), "{kind} of {data_type}");
                // Small allocations are not bounded.
                if peak < 8192 {
                    continue;
                }
                bounded += 1;
                pool.set_limit(pool.usage().in_use + peak - 4096);
                match concat(&ours, &stream).wait() {
                    Err(Error::OutOfMemory { bytes, .. }) => {
                        let loose = bytes as f64 / peak as f64;
                        if loose > loosest.0 {
                            loosest = (loose, format!("{kind} of {data_type}"));
                        }
                    }
                    _ => wrong.push(format!("{kind} of {data_type}, {nulls:?}: {peak} bytes")),
                }
                pool.set_limit(usize::MAX);
            }
        }
    }
    println!("{bounded} joined; the loosest bound is {:.1} times what {} took", loosest.0, loosest.1);
    assert!(bounded > 100, "{bounded}");
    assert!(wrong.is_empty(), "{} of {bounded}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(pool.usage().in_use, 0);
}

/// A result of arrow-rs counts as in use until it is dropped; memory that it shares with its input does not.
#[test]
fn results_of_arrow_count_until_they_are_dropped() {
    const NAME: &str = "memory::results_of_arrow_count_until_they_are_dropped";
    if children::case().is_none() {
        return children::run(NAME, "counts", None, 60, &[]);
    }
    let device = Device::cpu();
    let (pool, stream, options) = (device.host_pool(), Stream::cpu(), CastOptions::default());
    let numbers = from_arrow(&Int32Array::from_iter_values(100_000..200_000)).unwrap();
    assert_eq!(pool.usage().in_use, 0);
    let text = cast(&numbers, &DataType::Utf8, &options, &stream).wait().unwrap();
    let in_use = pool.usage().in_use;
    assert!((1_000_000..3_000_000).contains(&in_use), "{in_use}");
    let views = cast(&text, &DataType::Utf8View, &options, &stream).wait().unwrap();
    let more = pool.usage().in_use - in_use;
    assert!((1_600_000..2_200_000).contains(&more), "views and not what they point at: {more}");
    // Either array keeps the shared bytes alive.
    drop(text);
    drop(views);
    assert_eq!(pool.usage().in_use, 0);
    let long = from_arrow(&StringArray::from(vec!["longer than a view holds in itself"; 1000])).unwrap();
    let view = cast(&long, &DataType::Utf8View, &options, &stream).wait().unwrap();
    let back = cast(&view, &DataType::LargeUtf8, &options, &stream).wait().unwrap();
    drop((long, view));
    assert!((34_000..200_000).contains(&pool.usage().in_use), "{:?}", pool.usage());
    drop(back);
    assert_eq!(pool.usage().in_use, 0);
    // A block that is used again is kept once.
    drop(cast(&numbers, &DataType::Utf8, &options, &stream).wait().unwrap());
    assert!(pool.usage().hits > 0 && pool.usage().kept > 0, "{:?}", pool.usage());
    pool.set_keep(0);
    assert_eq!(pool.usage().kept, 0);
}

/// The intermediate memory of take and filter counts too: a lower limit refuses them.
#[test]
fn what_is_put_together_on_the_way_counts() {
    const NAME: &str = "memory::what_is_put_together_on_the_way_counts";
    if children::case().is_none() {
        return children::run(NAME, "on the way", None, 60, &[]);
    }
    let device = Device::cpu();
    let (pool, stream) = (device.host_pool(), Stream::cpu());
    let rows = 100_000;
    let items = || Arc::new(Int8Array::from_iter_values((0..2 * rows).map(|i| i as i8)));
    let item = Arc::new(Field::new("item", DataType::Int8, true));
    let pairs = FixedSizeListArray::try_new(item.clone(), 2, items(), None).unwrap();
    let lists =
        ListArray::try_new(item.clone(), OffsetBuffer::from_repeated_length(2, rows), items(), None).unwrap();
    let ends = Int32Array::from_iter_values(1..=rows as i32);
    let runs = RunArray::try_new(&ends, &Int8Array::from_iter_values((0..rows).map(|i| i as i8))).unwrap();
    let members = arrow_schema::UnionFields::try_new([0], [Field::new("a", DataType::Int8, true)]).unwrap();
    let union = UnionArray::try_new(
        members,
        ScalarBuffer::from(vec![0i8; rows]),
        Some(ScalarBuffer::from_iter(0..rows as i32)),
        vec![Arc::new(Int8Array::from_iter_values((0..rows).map(|i| i as i8)))],
    )
    .unwrap();
    let indices = from_arrow(&Int32Array::from_iter_values(0..rows as i32)).unwrap();
    let mask = from_arrow(&BooleanArray::from_iter((0..rows).map(|i| Some(i % 2 == 0)))).unwrap();
    // Take needs this much memory besides its result: indices of eight bytes for the child rows.
    let taken: [(&dyn Array, usize); 4] =
        [(&pairs, 16 * rows), (&lists, 16 * rows), (&runs, 16 * rows), (&union, 8 * rows)];
    for (values, at_least) in taken {
        let values = from_arrow(values).unwrap();
        let attempt = || take(&values, &indices, &TakeOptions::default(), &stream).wait().map(drop);
        pool.set_limit(pool.usage().in_use + at_least);
        assert!(matches!(attempt(), Err(Error::OutOfMemory { .. })), "{}", values.data_type());
        pool.set_limit(usize::MAX);
        attempt().unwrap();
    }
    let selection = Selection::of_mask(&mask, &stream).wait().unwrap();
    let filtered: [(&dyn Array, usize); 3] =
        [(&pairs, 2 * rows / 8), (&lists, 4 * rows / 2), (&runs, 8 * rows)];
    for (values, at_least) in filtered {
        let values = from_arrow(values).unwrap();
        pool.set_limit(pool.usage().in_use + at_least);
        let refused = selection.filter(&values).wait();
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{}", values.data_type());
        pool.set_limit(usize::MAX);
        filter(&values, &mask, &stream).wait().unwrap();
    }
    drop(selection);
    assert_eq!(pool.usage().in_use, 0);
}

/// A download stays in pinned memory, which is the host's, too.
#[test]
fn a_download_counts_while_its_result_lives() {
    const NAME: &str = "memory::a_download_counts_while_its_result_lives";
    if children::case().is_none() {
        return children::run(NAME, "downloads", None, 60, &[]);
    }
    let device = Device::cpu();
    let (pool, stream) = (device.host_pool(), Device::emulated().stream().unwrap());
    let there = stream.upload(&from_arrow(&Int64Array::from_iter_values(0..100_000)).unwrap()).unwrap();
    let before = pool.usage().in_use;
    let here = stream.download(&there).unwrap();
    here.wait().unwrap();
    assert!(pool.usage().in_use >= before + 800_000, "{:?}", pool.usage());
    let part = here.slice(5, 10).unwrap();
    drop(here);
    assert!(pool.usage().in_use >= before + 800_000, "{:?}", pool.usage());
    drop(part);
    stream.synchronise().unwrap();
    assert_eq!(pool.usage().in_use, before);
    pool.set_limit(before + 700_000);
    assert!(matches!(stream.download(&there), Err(Error::OutOfMemory { bytes: 800_000.., .. })));
    pool.set_limit(usize::MAX);
    stream.download(&there).unwrap().wait().unwrap();
}
