//! Tests foreign arrays whose inner offsets are wrong, on devices that cannot be read at import. Whatever is
//! sliced from them, and whatever operation follows, nothing reads beyond the extent that the producer
//! declared at import.
//!
//! The one idea: every buffer ends at a protected page, and rows are distinguishable. Operations on rows with
//! valid offsets give correct results; an operation on a row with wrong offsets fails with an error of the
//! producer's, at once or when the result is read.

#![cfg(target_os = "linux")]

mod rows;

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::Place;
use bowstring::compute::{
    CastOptions, DropOptions, Scalar, TakeOptions, cast, concat, drop_nulls, evaluate, fill_null, filter,
    take,
};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions, children};
use bowstring::exchange::{
    export_array, export_host_array, from_arrow, import_array, import_batch, import_host_array, to_arrow,
};
use bowstring::expr::{Expr, col};
use bowstring::ffi::DeviceType;
use bowstring::{Device, DeviceArray, DeviceBatch, Error, Result, Stream};

use crate::exchange::foreign::{RawArray, RawDeviceArray, Releases, produce_in, schema};
use crate::support::{assert_same_rows, guarded, rows};

const ROWS: usize = 12;

/// The index of the wrong offset among [`ROWS`] + 1, so these two rows are wrong.
const LIE: usize = 6;
const LYING: [usize; 2] = [5, 6];

/// Values beyond any page of the buffers, in either direction.
const LIES: [i64; 3] = [17 << 20, -3, i32::MIN as i64];

fn text() -> StringArray {
    StringArray::from_iter((0..ROWS).map(|i| (i != 3).then(|| format!("row number {i:03}"))))
}

fn as_type(values: ArrayRef, to: &DataType) -> ArrayRef {
    arrow_cast::cast(&values, to).unwrap()
}

/// The array, the path to the node with the wrong offset, and the number of that node's rows in each of the
/// array's.
type Case = (&'static str, ArrayRef, &'static [usize], usize);

fn cases() -> Vec<Case> {
    let text: ArrayRef = Arc::new(text());
    let field = |of: &DataType| Arc::new(Field::new_list_field(of.clone(), true));
    let named =
        |name, array: &ArrayRef| (Arc::new(Field::new(name, array.data_type().clone(), true)), array.clone());
    let mut bytes = BinaryBuilder::new();
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for i in 0..ROWS {
        bytes.append_value([i as u8; 21]);
        lists.append_value([Some(format!("first of {i}")), None, Some(format!("{i}"))]);
        maps.keys().append_value(format!("key {i}"));
        maps.values().append_value(format!("value {i}"));
        maps.append(true).unwrap();
    }
    let bytes: ArrayRef = Arc::new(bytes.finish());
    let lists: ArrayRef = Arc::new(lists.finish());
    let numbers: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..ROWS as i32).map(|i| Some([Some(i), None, Some(-i)])),
    ));
    let pairs = as_type(
        Arc::new(StringArray::from_iter_values((0..2 * ROWS).map(|i| format!("half {i}")))),
        &DataType::Utf8,
    );
    let pairs: ArrayRef = Arc::new(FixedSizeListArray::new(field(&DataType::Utf8), 2, pairs, None));
    let structs: ArrayRef = Arc::new(StructArray::from(vec![named("a", &text), named("b", &numbers)]));
    vec![
        ("text", text.clone(), &[], 1),
        ("large text", as_type(text, &DataType::LargeUtf8), &[], 1),
        ("large bytes", as_type(bytes.clone(), &DataType::LargeBinary), &[], 1),
        ("bytes", bytes, &[], 1),
        ("large lists", as_type(numbers.clone(), &DataType::LargeList(field(&DataType::Int32))), &[], 1),
        ("lists", numbers, &[], 1),
        ("text in lists", lists, &[0], 3),
        ("maps", Arc::new(maps.finish()), &[], 1),
        ("text in pairs", pairs, &[0], 2),
        ("text in structs", structs.clone(), &[0], 1),
        ("lists in structs", structs, &[1], 1),
    ]
}

/// The array as a foreign one in guarded memory, with a wrong offset; its length may be less than that of its
/// children.
fn stranger(case: &Case, lie: i64, releases: &Releases, device: &Device, len: usize) -> RawDeviceArray {
    let (_, array, path, scale) = case;
    let mut put = |bytes: &[u8]| guarded(bytes);
    let mut raw = produce_in(&array.to_data(), 0, releases, Some(&mut put));
    let mut node: &mut RawArray = &mut raw;
    let mut data_type = array.data_type().clone();
    for i in *path {
        node = node.child(*i);
        data_type = children(&data_type)[*i].clone();
    }
    let (at, offsets) = (LIE * scale, *node.buffer(1));
    let wide = matches!(data_type, DataType::LargeUtf8 | DataType::LargeBinary | DataType::LargeList(_));
    // SAFETY: offsets of the producer's own, in memory that may be written.
    unsafe {
        match wide {
            true => offsets.cast_mut().cast::<i64>().add(at).write_unaligned(lie),
            false => offsets.cast_mut().cast::<i32>().add(at).write_unaligned(lie as i32),
        }
    }
    raw.length = len as i64;
    raw.null_count = if len == ROWS { raw.null_count } else { -1 };
    let place = device.place();
    RawDeviceArray { device_type: place.device_type as i32, device_id: place.device_id, ..raw.on_cpu() }
}

/// The same array, in memory that a runtime shares between a device and the host.
fn shared(array: &DeviceArray) -> DeviceArray {
    let mut parts = array.clone().into_parts();
    parts.place = Place { device_type: DeviceType::CudaHost, device_id: 0 };
    parts.children = parts.children.iter().map(shared).collect();
    parts.dictionary = parts.dictionary.as_ref().map(shared);
    DeviceArray::try_new(parts).unwrap()
}

/// A request to an array: its name, the rows that it selects, and the operation.
type Ask<'a> = (&'static str, Vec<usize>, Box<dyn Fn(&DeviceArray) -> Result<DeviceArray> + 'a>);

fn asked<'a>(len: usize, first: usize, stream: &'a Stream, other: &'a Stream) -> Vec<Ask<'a>> {
    let all: Vec<usize> = (0..len).collect();
    let honest: Vec<usize> = all.iter().copied().filter(|row| !LYING.contains(&(first + row))).collect();
    let on = |array: ArrayRef| move || stream.upload(&from_arrow(&array)?);
    let mut asks: Vec<Ask> = vec![];
    for picked in [honest, all.clone(), vec![len - 1], vec![0, len - 1]] {
        let indices = on(Arc::new(Int64Array::from_iter_values(picked.iter().map(|row| *row as i64))));
        asks.push((
            "take",
            picked.clone(),
            Box::new(move |a| take(a, &indices()?, &TakeOptions::default(), stream).wait()),
        ));
        let mask = on(Arc::new(BooleanArray::from_iter((0..len).map(|row| Some(picked.contains(&row))))));
        let mut kept = picked;
        kept.dedup();
        asks.push(("filter", kept, Box::new(move |a| filter(a, &mask()?, stream).wait())));
    }
    let twice = [&all[..], &all[..1], &all].concat();
    asks.push(("concat", twice, Box::new(move |a| concat(&[a, &a.slice(0, 1)?, a], stream).wait())));
    asks.push(("download", all.clone(), Box::new(|a| Ok(a.clone()))));
    asks.push((
        "export",
        all.clone(),
        Box::new(move |a| {
            let field = Field::new("f", a.data_type().clone(), true);
            Ok(match stream.device().place() {
                Place::CPU => {
                    let (array, schema) = export_host_array(a, &field)?;
                    // SAFETY: the library's own structs.
                    unsafe { import_host_array(array, &schema) }?.1
                }
                _ => {
                    let (mut array, schema) = export_array(a, &field)?;
                    // SAFETY: the library's own structs.
                    unsafe { import_array(&mut array, &schema, stream.device()) }?.1
                }
            })
        }),
    ));
    if other.device().place() != Place::CPU {
        asks.push(("copy", all.clone(), Box::new(move |a| stream.copy(a))));
        asks.push((
            "transfer",
            all,
            Box::new(move |a| {
                let there = other.transfer(a, stream)?;
                stream.transfer(&there, other)
            }),
        ));
    }
    asks
}

/// Makes every request to rows `first .. first + len` of a faulty array; `ours` contains these rows.
fn ask(context: &str, honest: &ArrayRef, ours: &DeviceArray, first: usize, streams: [&Stream; 2]) {
    let [stream, other] = streams;
    let down = |array: DeviceArray| {
        let is_here = array.place().device_type.host_accessible();
        let there = if is_here { array } else { stream.download(&array)? };
        there.wait()?;
        to_arrow(&there)
    };
    let lies = |rows: &[usize]| rows.iter().any(|row| LYING.contains(&(first + row)));
    let all: Vec<usize> = (0..ours.len()).collect();
    let check = |what: &str, picked: &[usize], got: Result<ArrayRef>, right: Option<ArrayRef>| {
        // The CPU may read all of the declared memory, and casts items of lists whether rows use them or not.
        let items = matches!(honest.data_type(), DataType::List(item) if *item.data_type() == DataType::Utf8);
        let lying = match stream.device().place() {
            Place::CPU => honest.data_type().is_nested() || lies(&all),
            _ => lies(picked) || items && picked.len() == all.len(),
        };
        match (got, right) {
            (Ok(got), Some(right)) => {
                assert_same_rows(&rows(&got), &rows(&right), &format!("{context}: {what} {picked:?}"))
            }
            (Ok(_), None) => {}
            (Err(Error::OutOfSpec { .. }), _) if lying => {}
            (Err(error), _) => panic!("{context}: {what} {picked:?}: {error:?}"),
        }
    };
    for (what, picked, ask) in asked(ours.len(), first, stream, other) {
        let indices = UInt64Array::from_iter_values(picked.iter().map(|row| (first + row) as u64));
        let right = arrow_select::take::take(honest, &indices, None).unwrap();
        let got = ask(ours).and_then(down);
        assert!(!lies(&picked) || got.is_err(), "{context}: {what} {picked:?} believes a lie: {got:?}");
        check(what, &picked, got, Some(right));
    }
    // The rows of these results are not tested here, but their memory accesses are.
    check("drop_nulls", &all, drop_nulls(ours, &DropOptions::default(), stream).wait().and_then(down), None);
    let value = Scalar::from_arrow(&honest.slice(0, 1)).unwrap();
    check("fill_null", &all, fill_null(ours, &value, stream).wait().and_then(down), None);
    for test in tests(ours.data_type()) {
        let fields = vec![Field::new("a", ours.data_type().clone(), true)];
        let rows =
            DeviceBatch::try_new(Arc::new(Schema::new(fields)), vec![ours.clone()], ours.len()).unwrap();
        let tested = evaluate(&rows, std::slice::from_ref(&test), stream).wait();
        check(&test.to_string(), &all, tested.and_then(|tested| down(tested.columns()[0].clone())), None);
    }
    for to in targets(ours.data_type()) {
        let casted = cast(ours, &to, &CastOptions::default(), stream).wait().and_then(|casted| {
            // The result shares the bytes, whose extent was given by the offsets that it has lost.
            down(casted.slice(0, casted.len() / 2)?)?;
            down(casted)
        });
        match casted {
            Err(Error::Unsupported { .. } | Error::Arrow { .. }) => {}
            casted => check(&format!("cast to {to}"), &all, casted, None),
        }
    }
}

/// Tests of text for a column of this type.
fn tests(of: &DataType) -> Vec<Expr> {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 => {
            vec![
                col("a").gt("row number 5"),
                col("a").contains("ber 00"),
                col("a").like("%_m%r"),
                col("a").eq(col("a")),
            ]
        }
        DataType::Binary | DataType::LargeBinary => vec![col("a").ends_with(&[7u8; 3][..])],
        _ => vec![],
    }
}

fn targets(of: &DataType) -> Vec<DataType> {
    use DataType::*;
    let list = |of: DataType| List(Arc::new(Field::new_list_field(of, true)));
    let large = |of: DataType| LargeList(Arc::new(Field::new_list_field(of, true)));
    match of {
        Utf8 | LargeUtf8 | Binary | LargeBinary => {
            vec![Utf8, LargeUtf8, Utf8View, Binary, LargeBinary, BinaryView]
        }
        List(item) | LargeList(item) if *item.data_type() == Utf8 => {
            vec![large(Utf8View), list(LargeUtf8), large(Binary)]
        }
        List(_) | LargeList(_) => vec![large(Int64), list(Int8), list(Int32), large(Int32)],
        FixedSizeList(..) => vec![list(Utf8View), large(Utf8)],
        _ => vec![],
    }
}

/// The slices of a faulty array: whole, up to the fault, around it, from it on, and after it.
const SLICES: [(usize, usize); 6] =
    [(0, ROWS), (0, LIE), (LIE - 1, 1), (2, 8), (LIE, ROWS - LIE), (LIE + 1, 4)];

#[test]
fn no_lying_offset_moves_an_end() {
    for width in [32, 64] {
        let emulated = [0, 1].map(|seed| {
            EmulatedDevice::new(EmulatorOptions { width, seed, ..EmulatorOptions::default() }).unwrap()
        });
        let [stream, other] =
            [&emulated[0], &emulated[1]].map(|emulated| emulated.device().stream().unwrap());
        let device = emulated[0].device();
        let fields = |array: &ArrayRef| matches!(array.data_type(), DataType::Struct(_));
        for (case, lie) in cases().iter().flat_map(|case| LIES.map(|lie| (case.clone(), lie))) {
            let (name, honest, ..) = &case;
            let context = |how: &str| format!("{name}, a lie of {lie}, {how}, waves of {width}");
            let releases = Releases::default();
            for (first, len) in SLICES {
                let mut raw = stranger(&case, lie, &releases, device, ROWS).into_ours();
                // SAFETY: the struct conforms to the interface, except for the wrong offset.
                let ours = unsafe { import_array(&mut raw, &schema(honest.data_type()), device) }.unwrap().1;
                let ours = ours.slice(first, len).unwrap();
                ask(&context(&format!("slice {first}+{len}")), honest, &ours, first, [&stream, &other]);
                let cpu = Stream::cpu();
                ask(
                    &context(&format!("shared slice {first}+{len}")),
                    honest,
                    &shared(&ours),
                    first,
                    [&cpu, &cpu],
                );
            }
            // A struct, and the same as a batch, shorter than its children.
            for len in [LIE, ROWS - 1].into_iter().filter(|_| fields(honest)) {
                let mut raw = stranger(&case, lie, &releases, device, len);
                // SAFETY: as above.
                let ours = unsafe { import_array(&mut raw.into_ours(), &schema(honest.data_type()), device) }
                    .unwrap()
                    .1;
                ask(&context(&format!("the first {len}")), honest, &ours, 0, [&stream, &other]);
                raw = stranger(&case, lie, &releases, device, len);
                raw.array.null_count = 0;
                // SAFETY: as above.
                let batch =
                    unsafe { import_batch(&mut raw.into_ours(), &schema(honest.data_type()), device) }
                        .unwrap();
                for (column, right) in batch
                    .columns()
                    .iter()
                    .zip(honest.as_any().downcast_ref::<StructArray>().unwrap().columns())
                {
                    if column.data_type() == &child_that_lies(&case) {
                        ask(&context(&format!("a batch of {len}")), right, column, 0, [&stream, &other]);
                    }
                }
            }
        }
        drop((stream, other));
        assert!(emulated.iter().all(|emulated| emulated.faults().is_empty()));
    }
}

fn child_that_lies((_, array, path, _): &Case) -> DataType {
    children(array.data_type())[path[0]].clone()
}
