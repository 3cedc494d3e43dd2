//! The same for buffers that locate each row by itself: views, list views, dictionary keys, run ends, type
//! ids and the offsets of dense unions. Most operations pass these on without reading their targets, so a
//! result may have the same fault. Valid rows still give correct results, and nothing else is read.

use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::*;
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, UnionFields};
use bowstring::DeviceArray;
use bowstring::array::Place;
use bowstring::compute::{is_null, logical_null_count, null_count};
use bowstring::exchange::validate_on;

use super::*;

/// A fault: the path to a node, a buffer of it, the byte position of a number, and the wrong values.
struct Lie {
    name: &'static str,
    honest: ArrayRef,
    path: &'static [usize],
    buffer: usize,
    at: usize,
    lies: Vec<Vec<u8>>,
    /// The rows of the array that the fault affects.
    rows: std::ops::Range<usize>,
    casts: Vec<DataType>,
}

fn words(of: &[i32]) -> Vec<Vec<u8>> {
    of.iter().map(|word| word.to_ne_bytes().to_vec()).collect()
}

fn list(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(of, true)))
}

fn union(dense: bool) -> ArrayRef {
    let text: ArrayRef = Arc::new(text());
    let fields = UnionFields::try_new([7, 2], ["a", "b"].map(|name| Field::new(name, DataType::Utf8, true)));
    let ids: ScalarBuffer<i8> = (0..ROWS).map(|row| [7, 2][row % 2]).collect();
    let offsets = dense.then(|| (0..ROWS as i32).collect());
    Arc::new(UnionArray::try_new(fields.unwrap(), ids, offsets, vec![text.clone(), text]).unwrap())
}

fn list_views() -> ArrayRef {
    let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let starts: ScalarBuffer<i32> = (0..ROWS as i32).map(|row| row / 2).collect();
    let sizes = ScalarBuffer::from(vec![3; ROWS]);
    Arc::new(ListViewArray::new(item, starts, sizes, Arc::new(text()), None))
}

fn lies() -> Vec<Lie> {
    let text: ArrayRef = Arc::new(StringArray::from_iter(
        (0..ROWS).map(|i| (i != 3).then(|| format!("much too long for a view {i:03}"))),
    ));
    let views = as_type(text.clone(), &DataType::Utf8View);
    let keys = Int32Array::from_iter_values((0..ROWS as i32).rev());
    let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, text.clone()));
    let narrow = Int8Array::from_iter_values((0..ROWS as i8).rev());
    let narrow: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(narrow, text.clone()));
    let ends = Int32Array::from_iter_values((1..=ROWS as i32 / 2).map(|run| 2 * run));
    let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&ends, &text.slice(0, ROWS / 2)).unwrap());
    let structs: ArrayRef = Arc::new(StructArray::from(vec![
        (Arc::new(Field::new("v", DataType::Utf8View, true)), views.clone()),
        (Arc::new(Field::new("d", dictionary.data_type().clone(), true)), dictionary.clone()),
    ]));
    let far = || words(&[17 << 20, -3, i32::MIN, i32::MAX]);
    let encoded = || {
        let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
        let values = Arc::new(Field::new("values", DataType::Utf8, true));
        let keys = Box::new(DataType::Int32);
        [DataType::Dictionary(keys, Box::new(DataType::Utf8)), DataType::RunEndEncoded(ends, values)]
    };
    let plain = [DataType::Utf8, DataType::LargeUtf8, DataType::Binary, DataType::BinaryView];
    let texts: Vec<DataType> = plain.into_iter().chain(encoded()).collect();
    let row = |at: usize, rows: std::ops::Range<usize>, honest: &ArrayRef| Lie {
        name: "",
        honest: honest.clone(),
        path: &[],
        buffer: 1,
        at,
        lies: far(),
        rows,
        casts: vec![],
    };
    let one = LIE..LIE + 1;
    let of_view =
        |name, byte: usize| Lie { name, casts: texts.clone(), ..row(16 * LIE + byte, one.clone(), &views) };
    let unpacked = || {
        let [_, runs] = encoded();
        vec![DataType::Utf8, DataType::Utf8View, DataType::LargeUtf8, runs]
    };
    let lists = || {
        let item = || Arc::new(Field::new_list_field(DataType::Utf8View, true));
        let others = [DataType::LargeListView(item()), DataType::FixedSizeList(item(), 3)];
        [list(DataType::Utf8), list(DataType::Utf8View)].into_iter().chain(others).collect()
    };
    vec![
        of_view("a view's length", 0),
        of_view("a view's buffer", 8),
        of_view("a view's offset", 12),
        Lie { name: "a view in structs", path: &[0], ..row(16 * LIE + 8, one.clone(), &structs) },
        Lie { name: "a key", casts: unpacked(), ..row(4 * LIE, one.clone(), &dictionary) },
        Lie { name: "a key in structs", path: &[1], ..row(4 * LIE, one.clone(), &structs) },
        Lie {
            name: "a narrow key",
            casts: unpacked(),
            lies: vec![vec![0x7f], vec![0x80], vec![0xff]],
            ..row(LIE, one.clone(), &narrow)
        },
        Lie { name: "where a list view starts", casts: lists(), ..row(4 * LIE, one.clone(), &list_views()) },
        Lie {
            name: "how long a list view is",
            casts: lists(),
            buffer: 2,
            ..row(4 * LIE, one.clone(), &list_views())
        },
        // A run's end determines the position of all later rows.
        Lie { name: "a run's end", path: &[0], casts: unpacked(), ..row(4 * 2, 0..ROWS, &runs) },
        Lie {
            name: "a sparse union's id",
            buffer: 0,
            lies: vec![vec![99], vec![0xff], vec![0]],
            casts: vec![DataType::Utf8, DataType::LargeUtf8],
            ..row(LIE, one.clone(), &union(false))
        },
        Lie {
            name: "a dense union's id",
            buffer: 0,
            lies: vec![vec![99], vec![0xff], vec![0]],
            casts: vec![DataType::Utf8, DataType::LargeUtf8],
            ..row(LIE, one.clone(), &union(true))
        },
        Lie {
            name: "a dense union's offset",
            casts: vec![DataType::Utf8, DataType::LargeUtf8],
            ..row(4 * LIE, one, &union(true))
        },
    ]
}

/// The foreign array in guarded memory, with its fault.
fn told(lie: &Lie, said: &[u8], releases: &Releases, device: &Device) -> RawDeviceArray {
    let mut put = |bytes: &[u8]| guarded(bytes);
    let mut raw = produce_in(&lie.honest.to_data(), 0, releases, Some(&mut put));
    let mut node: &mut RawArray = &mut raw;
    for i in lie.path {
        node = node.child(*i);
    }
    let bytes = node.buffer(lie.buffer).cast_mut().cast::<u8>();
    // SAFETY: numbers of the producer's own, in memory that may be written.
    unsafe { bytes.add(lie.at).copy_from_nonoverlapping(said.as_ptr(), said.len()) };
    let place = device.place();
    RawDeviceArray { device_type: place.device_type as i32, device_id: place.device_id, ..raw.on_cpu() }
}

/// Makes every request to the rows from `first` on of a faulty array; `ours` contains these rows.
fn ask(context: &str, lie: &Lie, ours: &DeviceArray, first: usize, streams: [&Stream; 2]) {
    let [stream, other] = streams;
    let down = |array: &DeviceArray| {
        let is_here = array.place().device_type.host_accessible();
        let there = if is_here { array.clone() } else { stream.download(array)? };
        there.wait()?;
        to_arrow(&there)
    };
    let fair = |what: &str, error: Error| match error {
        Error::OutOfSpec { .. } | Error::Unsupported { .. } | Error::Cast { .. } | Error::Arrow { .. } => {}
        error => panic!("{context}: {what}: {error:?}"),
    };
    for (what, picked, ask) in asked(ours.len(), first, stream, other) {
        let lying = picked.iter().any(|row| lie.rows.contains(&(first + row)));
        let indices = UInt64Array::from_iter_values(picked.iter().map(|row| (first + row) as u64));
        match ask(ours).and_then(|array| down(&array)) {
            Ok(got) if !lying => {
                // arrow-rs cannot take from some unions; and comparing rows needs no order.
                let right = arrow_select::take::take(&lie.honest, &indices, None).unwrap();
                assert_same_rows(&rows(&got), &rows(&right), &format!("{context}: {what} {picked:?}"));
            }
            Ok(_) => {}
            Err(Error::Unsupported { .. }) => {}
            // If the CPU delegates to arrow-rs, it validates everything first, other rows of children too.
            Err(Error::OutOfSpec { .. })
                if lying || what != "take" || stream.device().place() == Place::CPU => {}
            Err(error) => panic!("{context}: {what} {picked:?}: {error:?}"),
        }
    }
    // The results of these are not tested here, but their memory accesses are.
    let results = [drop_nulls(ours, &DropOptions::default(), stream).wait(), is_null(ours, stream).wait()];
    for result in results {
        let _ = result.and_then(|array| down(&array)).map_err(|error| fair("nulls", error));
    }
    for count in [null_count(ours, stream).wait(), logical_null_count(ours, stream).wait()] {
        let _ = count.map_err(|error| fair("a count", error));
    }
    let _ = validate_on(ours, stream).map_err(|error| fair("validation", error));
    for to in &lie.casts {
        for safe in [true, false] {
            let options = CastOptions { safe, ..CastOptions::default() };
            let casted = cast(ours, to, &options, stream).wait().and_then(|casted| {
                let _ = down(&casted.slice(0, casted.len() / 2)?).map_err(|error| fair("a part", error));
                down(&casted)
            });
            let _ = casted.map_err(|error| fair("a cast", error));
        }
    }
}

#[test]
fn no_lying_row_is_followed_beyond_an_end() {
    for width in [32, 64] {
        let emulated = [0, 1].map(|seed| {
            EmulatedDevice::new(EmulatorOptions { width, seed, ..EmulatorOptions::default() }).unwrap()
        });
        let [stream, other] =
            [&emulated[0], &emulated[1]].map(|emulated| emulated.device().stream().unwrap());
        let device = emulated[0].device();
        for lie in lies() {
            for said in &lie.lies {
                let releases = Releases::default();
                for (first, len) in SLICES {
                    let mut raw = told(&lie, said, &releases, device).into_ours();
                    let schema = schema(lie.honest.data_type());
                    // SAFETY: the struct conforms to the interface, except for the fault.
                    let ours = unsafe { import_array(&mut raw, &schema, device) }.unwrap().1;
                    let ours = ours.slice(first, len).unwrap();
                    let context = format!("{}, {said:x?}, slice {first}+{len}, waves of {width}", lie.name);
                    ask(&context, &lie, &ours, first, [&stream, &other]);
                    let cpu = Stream::cpu();
                    ask(&format!("{context}, shared"), &lie, &shared(&ours), first, [&cpu, &cpu]);
                }
            }
        }
        drop((stream, other));
        assert!(emulated.iter().all(|emulated| emulated.faults().is_empty()));
    }
}
