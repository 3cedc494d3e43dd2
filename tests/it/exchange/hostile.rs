//! Tests errors in foreign structs: import reports each with its place, and each struct is released once.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StringViewBuilder};
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, UnionFields};
use bowstring::Error;
use bowstring::exchange::{from_arrow, validate};

use super::foreign::{
    RawArray, Releases, import, import_host, import_host_rows, import_rows, produce, schema, structs,
};
use super::foreign_schema::RawSchema;

/// Ten rows of a named kind.
pub fn sample(of: &str) -> ArrayRef {
    let numbers = Int32Array::from_iter((0..10).map(|row| (row != 3).then_some(row)));
    let text = || Arc::new(StringArray::from_iter((0..10).map(|row| Some(format!("row {row}"))))) as ArrayRef;
    match of {
        "int" => Arc::new(numbers),
        "text" => text(),
        "large text" => arrow_cast::cast(&text(), &DataType::LargeUtf8).unwrap(),
        "views" => {
            let mut views = StringViewBuilder::new().with_fixed_block_size(64);
            (0..10).for_each(|row| views.append_value(format!("much too long for a view {row}")));
            Arc::new(views.finish())
        }
        "list" => {
            let mut lists = ListBuilder::new(StringBuilder::new());
            (0..10).for_each(|row| lists.append_value([Some(format!("{row}"))]));
            Arc::new(lists.finish())
        }
        "pairs" => Arc::new(FixedSizeListArray::new(
            Arc::new(Field::new("item", DataType::Int32, true)),
            2,
            Arc::new(Int32Array::from_iter_values(0..20)),
            None,
        )),
        "struct" => {
            let columns = [sample("int"), sample("text"), sample("list")];
            let named = ["a", "b", "c"].into_iter().zip(columns);
            let fields = named
                .map(|(name, column)| (Arc::new(Field::new(name, column.data_type().clone(), true)), column));
            Arc::new(StructArray::from(fields.collect::<Vec<_>>()))
        }
        "union" => {
            let fields = UnionFields::try_new([7], [Field::new("a", DataType::Int32, true)]).unwrap();
            let ids = ScalarBuffer::from(vec![7i8; 10]);
            Arc::new(UnionArray::try_new(fields, ids, None, vec![sample("int")]).unwrap())
        }
        "dictionary" => {
            let keys = Int32Array::from_iter_values((0..10).rev());
            Arc::new(DictionaryArray::<Int32Type>::new(keys, text()))
        }
        "runs" => {
            let ends = Int32Array::from_iter_values((1..=5).map(|run| 2 * run));
            Arc::new(RunArray::<Int32Type>::try_new(&ends, &text().slice(0, 5)).unwrap())
        }
        other => unreachable!("{other}"),
    }
}

/// Overwrites one integer in a buffer.
fn write<T: Copy>(array: &mut RawArray, buffer: usize, row: usize, value: T) {
    let address = array.buffer(buffer).cast_mut().cast::<T>();
    // SAFETY: `produce` owns the buffer, which is writable and has that row.
    unsafe { address.add(row).write_unaligned(value) };
}

type Bend = fn(&mut RawArray);

/// The kind of array, the modification, and the part that the error must name.
const WRONG: &[(&str, Bend, &str)] = &[
    ("int", |a| a.length = -1, "array.length"),
    ("int", |a| a.length = i64::MIN, "array.length"),
    ("int", |a| a.length = i64::MAX, "array"),
    ("int", |a| a.length = i64::MAX / 2, "array.buffers[0]"),
    ("int", |a| a.offset = -1, "array.offset"),
    ("int", |a| a.offset = i64::MAX, "array"),
    ("text", |a| a.length = i64::MAX - 1, "array"),
    ("views", |a| a.offset = i64::MAX / 3, "array"),
    ("pairs", |a| a.offset = i64::MAX / 3, "array.children[0]"),
    ("int", |a| a.null_count = -2, "array.null_count"),
    ("int", |a| a.null_count = 11, "array.null_count"),
    ("int", |a| *a.buffer(0) = null(), "array.buffers[0]"),
    ("int", |a| *a.buffer(1) = null(), "array.buffers[1]"),
    ("int", |a| a.n_buffers = 0, "array.n_buffers"),
    ("int", |a| a.n_buffers = 1, "array.n_buffers"),
    ("int", |a| a.n_buffers = 3, "array.n_buffers"),
    ("int", |a| a.n_buffers = -1, "array.n_buffers"),
    ("int", |a| a.n_buffers = i64::MAX, "array.n_buffers"),
    ("int", |a| a.buffers = null_mut(), "array.buffers"),
    ("int", |a| a.n_children = 1, "array.n_children"),
    ("int", |a| a.dictionary = a, "array.dictionary"),
    ("text", |a| a.n_buffers = 2, "array.n_buffers"),
    ("text", |a| *a.buffer(1) = null(), "array.buffers[1]"),
    ("text", |a| *a.buffer(2) = null(), "array.buffers[2]"),
    ("text", |a| write(a, 1, 10, -1i32), "array.buffers[1]"),
    ("text", |a| write(a, 1, 0, -1i32), "array.buffers[1]"),
    ("text", |a| write(a, 1, 0, 1000i32), "array.buffers[1]"),
    ("large text", |a| write(a, 1, 10, i64::MIN), "array.buffers[1]"),
    ("large text", |a| write(a, 1, 10, i64::MAX), "array.buffers[2]"),
    ("views", |a| a.n_buffers = 2, "array.n_buffers"),
    ("views", |a| a.n_buffers = i64::MAX, "array.n_buffers"),
    ("views", |a| *a.buffer(1) = null(), "array.buffers[1]"),
    ("views", |a| *a.buffer(2) = null(), "array.buffers[2]"),
    ("views", |a| *a.buffer(a.n_buffers as usize - 1) = null(), "array.buffers["),
    ("views", |a| write(a, a.n_buffers as usize - 1, 0, -1i64), "array.buffers["),
    ("views", |a| write(a, a.n_buffers as usize - 1, 0, i64::MAX), "array.buffers[2]"),
    ("list", |a| a.n_children = 0, "array.n_children"),
    ("list", |a| a.n_children = i64::MAX, "array.n_children"),
    ("list", |a| a.children = null_mut(), "array.children"),
    ("list", |a| a.child(0).length = 9, "array.children[0]"),
    ("list", |a| write(a, 1, 10, 11i32), "array.children[0]"),
    ("list", |a| write(a, 1, 10, -5i32), "array.buffers[1]"),
    ("list", |a| a.child(0).n_buffers = 2, "array.children[0].n_buffers"),
    ("pairs", |a| a.child(0).length = 19, "array.children[0]"),
    ("pairs", |a| a.offset = 1, "array.children[0]"),
    ("struct", |a| a.n_children = 2, "array.n_children"),
    ("struct", |a| a.n_children = -1, "array.n_children"),
    ("struct", |a| a.hide_child(1), "array.children[1]"),
    ("struct", |a| a.child(1).length = 9, "array.children[1]"),
    ("struct", |a| a.offset = 1, "array.children[0]"),
    ("struct", |a| *a.child(2).buffer(1) = null(), "array.children[2].buffers[1]"),
    ("struct", |a| *a.child(2).child(0).buffer(2) = null(), "array.children[2].children[0].buffers[2]"),
    ("union", |a| a.child(0).length = 9, "array.children[0]"),
    ("union", |a| *a.buffer(0) = null(), "array.buffers[0]"),
    ("union", |a| a.n_buffers = 2, "array.n_buffers"),
    ("dictionary", |a| a.dictionary = null_mut(), "array.dictionary"),
    ("dictionary", |a| a.dictionary().length = -1, "array.dictionary.length"),
    ("dictionary", |a| *a.dictionary().buffer(1) = null(), "array.dictionary.buffers[1]"),
    ("runs", |a| a.child(0).length = 4, "array.child"),
    ("runs", |a| a.child(0).null_count = 1, "array.children[0].buffers[0]"),
    (
        "runs",
        |a| (a.child(0).null_count, *a.child(0).buffer(0)) = (1, b"\xfd".as_ptr().cast()),
        "array.children",
    ),
    ("runs", |a| a.length = 11, "array.children[0]"),
    ("runs", |a| write(a.child(0), 1, 4, -1i32), "array.children[0]"),
    ("runs", |a| (a.child(0).length, a.child(1).length) = (0, 0), "array.children[0]"),
    ("runs", |a| a.n_buffers = 1, "array.n_buffers"),
];

#[test]
fn what_is_wrong_is_named_and_released_once() {
    for (i, (of, bend, named)) in WRONG.iter().enumerate() {
        let data = sample(of).to_data();
        let releases = Releases::default();
        let mut foreign = produce(&data, i % 2, &releases);
        bend(&mut foreign);
        let mut foreign = foreign.on_cpu().into_ours();
        match import(&mut foreign, &schema(data.data_type())) {
            Err(Error::OutOfSpec { at, problem }) => {
                let exact = named.ends_with('[') || *named == "array.child" || at == *named;
                assert!(at.starts_with(named) && exact, "{i}, {of}: {at} is named, not {named}: {problem}");
            }
            other => panic!("{i}, {of}: {other:?} instead of a problem at {named}"),
        }
        assert_eq!(releases.count(), structs(&data), "{i}, {of} at {named}");
        assert!(foreign.is_released());
    }
}

#[test]
fn released_structs_are_refused() {
    let data = sample("struct").to_data();
    let releases = Releases::default();
    let mut foreign = produce(&data, 0, &releases);
    foreign.release();
    let error = import(&mut foreign.on_cpu().into_ours(), &schema(data.data_type())).unwrap_err();
    assert_eq!(error, Error::OutOfSpec { at: "array".into(), problem: "released".into() });
    assert_eq!(releases.count(), structs(&data));

    let mut foreign = produce(&data, 0, &releases);
    foreign.child(1).release();
    let error = import(&mut foreign.on_cpu().into_ours(), &schema(data.data_type())).unwrap_err();
    assert_eq!(error, Error::OutOfSpec { at: "array.children[1]".into(), problem: "released".into() });
    assert_eq!(releases.count(), 2 * structs(&data));
}

#[test]
fn memory_that_is_not_served_is_left_alone() {
    for device_type in [2, 3, 10, 11, 12, 13, 0, 7, 99, -1, i32::MAX] {
        let data = sample("text").to_data();
        let releases = Releases::default();
        let mut foreign = produce(&data, 0, &releases).on_cpu();
        (foreign.device_type, foreign.device_id) = (device_type, 0);
        let mut foreign = foreign.into_ours();
        let schema = schema(data.data_type());
        assert!(matches!(import(&mut foreign, &schema), Err(Error::Unsupported { .. })), "{device_type}");
        assert!(matches!(import_rows(&mut foreign, &schema), Err(Error::Unsupported { .. })));
        assert!(releases.count() == 0 && !foreign.is_released());
        drop(foreign);
        assert_eq!(releases.count(), 1);
    }
}

#[test]
fn an_event_on_the_cpu_is_refused() {
    let releases = Releases::default();
    let mut foreign = produce(&sample("int").to_data(), 0, &releases).on_cpu();
    let event = 7u64;
    foreign.sync_event = (&raw const event).cast_mut().cast::<c_void>();
    let error = import(&mut foreign.into_ours(), &schema(&DataType::Int32)).unwrap_err();
    assert!(matches!(error, Error::OutOfSpec { at, .. } if at == "array.sync_event"));
    assert_eq!(releases.count(), 1);
}

#[test]
fn a_batch_of_null_or_no_structs_is_refused() {
    let releases = Releases::default();
    let rows = sample("struct");
    let mut foreign = produce(&rows.to_data(), 0, &releases);
    let validity = [0xfeu8, 0xff];
    (foreign.null_count, *foreign.buffer(0)) = (1, validity.as_ptr().cast());
    let error = import_host_rows(foreign.into_ours(), &schema(rows.data_type())).unwrap_err();
    assert!(matches!(error, Error::OutOfSpec { at, .. } if at == "array.null_count"));
    let foreign = produce(&sample("int").to_data(), 0, &releases);
    let error = import_host_rows(foreign.into_ours(), &schema(&DataType::Int32)).unwrap_err();
    assert!(matches!(error, Error::OutOfSpec { at, .. } if at == "schema"));
    assert_eq!(releases.count(), structs(&rows.to_data()) + 1);
}

#[test]
fn an_array_under_another_arrays_schema_is_refused() {
    let names = ["int", "text", "views", "list", "pairs", "struct", "union", "dictionary", "runs"];
    for of in names {
        for under in names.iter().filter(|under| **under != of) {
            // Both have three buffers, so the difference cannot be detected from outside.
            if [of, *under] == ["text", "views"] {
                continue;
            }
            let (data, releases) = (sample(of).to_data(), Releases::default());
            let other = schema(sample(under).data_type());
            let result = import_host(produce(&data, 0, &releases).into_ours(), &other);
            assert!(matches!(result, Err(Error::OutOfSpec { .. })), "{of} as {under}: {result:?}");
            assert_eq!(releases.count(), structs(&data), "{of} as {under}");
        }
    }
}

#[test]
fn odd_but_legal_arrays_are_taken() {
    let legal: &[(&str, Bend)] = &[
        ("int", |a| a.null_count = -1),
        ("int", |a| (a.null_count, *a.buffer(0)) = (-1, null())),
        ("text", |a| (a.length, *a.buffer(1), *a.buffer(2)) = (0, null(), null())),
        ("text", |a| (a.length, a.offset, *a.buffer(1), *a.buffer(2)) = (0, 5, null(), null())),
        ("int", |a| (a.length, a.null_count, *a.buffer(0), *a.buffer(1)) = (0, 0, null(), null())),
        ("views", |a| (a.length, *a.buffer(1)) = (0, null())),
        ("list", |a| (a.length, *a.buffer(1)) = (0, null())),
        ("struct", |a| a.length = 3),
        ("struct", |a| (a.length, a.offset) = (3, 7)),
        ("runs", |a| (a.length, a.child(0).length, a.child(1).length) = (0, 0, 0)),
        ("runs", |a| (a.length, a.offset) = (3, 7)),
        ("union", |a| (a.length, a.offset) = (0, 10)),
    ];
    for (i, (of, bend)) in legal.iter().enumerate() {
        let (data, releases) = (sample(of).to_data(), Releases::default());
        let mut foreign = produce(&data, 1, &releases);
        bend(&mut foreign);
        let len = foreign.length as usize;
        let ours = import(&mut foreign.on_cpu().into_ours(), &schema(data.data_type())).unwrap().1;
        assert_eq!(ours.len(), len, "{i}, {of}");
        validate(&ours).unwrap_or_else(|error| panic!("{i}, {of}: {error}"));
        drop(ours);
        assert_eq!(releases.count(), structs(&data), "{i}, {of}");
    }
}

fn deep(levels: usize) -> RawSchema {
    (0..levels).fold(RawSchema::new(c"i", vec![]), |inner, _| RawSchema::new(c"+l", vec![inner]))
}

#[test]
fn schemas_that_say_nothing_sensible_are_refused() {
    let leaf = |format| RawSchema::new(format, vec![]);
    let over = |format| RawSchema::new(format, vec![leaf(c"i")]);
    let wrong = [
        (leaf(c"i").with(|s| s.format = null()), "schema.format"),
        (leaf(c"Q"), "schema.format"),
        (leaf(c""), "schema.format"),
        (leaf(c"\xff\xfe"), "schema.format"),
        (leaf(c"i").with(|s| s.name = c"\xff".as_ptr()), "schema.name"),
        (leaf(c"w:x"), "schema.format"),
        (leaf(c"w:99999999999"), "schema.format"),
        (leaf(c"d:a,2"), "schema.format"),
        (leaf(c"d:5,2,512"), "schema.format"),
        (leaf(c"+l"), "schema.n_children"),
        (over(c"i"), "schema.n_children"),
        (over(c"+r"), "schema.n_children"),
        (over(c"+s").with(|s| s.n_children = -1), "schema.n_children"),
        (over(c"+s").with(|s| s.n_children = i64::MAX), "schema.n_children"),
        (over(c"+s").with(|s| s.children = null_mut()), "schema.children"),
        // SAFETY: there is one child.
        (over(c"+s").with(|s| unsafe { *s.children = null_mut() }), "schema.children[0]"),
        (over(c"+us:1,2"), "schema"),
        (RawSchema::new(c"+us:1,1", vec![leaf(c"i"), leaf(c"i")]), "schema"),
        (over(c"+ud:-1"), "schema"),
        (RawSchema::new(c"+s", vec![leaf(c"u"), over(c"+w:x")]), "schema"),
        (RawSchema::new(c"+s", vec![leaf(c"u"), leaf(c"nonsense")]), "schema.children[1].format"),
        (RawSchema::dictionary(c"i", vec![], Some(leaf(c"?"))), "schema.dictionary.format"),
        (deep(100), "schema.children[0].children"),
    ];
    for (i, (schema, named)) in wrong.into_iter().enumerate() {
        let releases = Releases::default();
        let foreign = produce(&sample("int").to_data(), 0, &releases);
        match import_host(foreign.into_ours(), &schema.into_ours()) {
            Err(Error::OutOfSpec { at, .. }) => {
                assert!(
                    at == named || (named.ends_with("children") && at.starts_with(named)),
                    "{i}: {at}, not {named}"
                );
            }
            other => panic!("{i}: {other:?} instead of a problem at {named}"),
        }
        assert_eq!(releases.count(), 1, "{i}");
    }
}

#[test]
fn types_that_are_not_arrows_are_refused() {
    let leaf = |format| RawSchema::new(format, vec![]);
    let wrong = [
        leaf(c"w:-1"),
        leaf(c"d:0,0"),
        leaf(c"d:39,2"),
        leaf(c"d:10,2,32"),
        leaf(c"d:5,9"),
        RawSchema::new(c"+w:-1", vec![leaf(c"i")]),
        RawSchema::new(c"+m", vec![leaf(c"i")]),
        RawSchema::new(c"+m", vec![RawSchema::new(c"+s", vec![leaf(c"i")])]),
        RawSchema::new(c"+r", vec![leaf(c"u"), leaf(c"i")]),
        RawSchema::new(c"+r", vec![leaf(c"c"), leaf(c"i")]),
        RawSchema::dictionary(c"f", vec![], Some(leaf(c"u"))),
        RawSchema::dictionary(c"u", vec![], Some(leaf(c"u"))),
    ];
    for (i, schema) in wrong.into_iter().enumerate() {
        let releases = Releases::default();
        let foreign = produce(&sample("int").to_data(), 0, &releases);
        match import_host(foreign.into_ours(), &schema.into_ours()) {
            Err(Error::OutOfSpec { at, problem }) => assert_eq!(at, "array", "{i}: {problem}"),
            other => panic!("{i}: {other:?}"),
        }
        assert_eq!(releases.count(), 1, "{i}");
    }
}

#[test]
fn a_schema_may_not_contain_itself() {
    let mut endless = RawSchema::new(c"+s", vec![deep(1), deep(1)]);
    let mut own = endless.children;
    let kept = std::mem::replace(&mut own, endless.children);
    let mut pointers = [&raw mut endless, &raw mut endless];
    endless.children = pointers.as_mut_ptr();
    let releases = Releases::default();
    let foreign = produce(&sample("int").to_data(), 0, &releases);
    // SAFETY: both have the ABI's layout, and the copy is only read.
    let borrowed = unsafe { &*(&raw const endless).cast::<bowstring::ffi::FFI_ArrowSchema>() };
    let result = import_host(foreign.into_ours(), borrowed);
    assert!(matches!(result, Err(Error::OutOfSpec { .. })));
    assert_eq!(releases.count(), 1);
    endless.children = kept;
    drop(endless.into_ours());
}

#[test]
fn arrays_of_no_rows_from_arrow_rs_need_no_offsets() {
    let empty = ListArray::new(
        Arc::new(Field::new("item", DataType::Int32, true)),
        OffsetBuffer::new_empty(),
        Arc::new(Int32Array::new_null(0)),
        None,
    );
    validate(&from_arrow(&empty).unwrap()).unwrap();
}
