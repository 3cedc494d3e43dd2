//! Parts of rows by a hash of their keys: every device has those of a plain definition.

use std::sync::Arc;

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, StringArray, UInt32Array};
use arrow_schema::DataType;
use bowstring::compute::{HashPartitions, filter, partition_by_hash};
use bowstring::exchange::batch_from_arrow;
use bowstring::{DeviceArray, Error, Result};

use crate::support::*;

/// The hash is part of the interface: it must not change from one version to the next.
fn mixed(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 32
}

fn word(bytes: &[u8]) -> u64 {
    (0..8).map(|i| u64::from(*bytes.get(i).unwrap_or(&0)) << (8 * i)).sum()
}

/// Adds a text to a hash: its length, and words of 16 bytes.
fn with_text(hash: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(16).fold(mixed(hash, bytes.len() as u64), |hash, sixteen| {
        mixed(mixed(hash, word(sixteen)), sixteen.get(8..).map_or(0, word))
    })
}

/// Adds a value to a hash: text as such, other values by words that divide them, and nested values as their
/// own hash.
fn hashed(hash: u64, value: &Value, of: &DataType) -> u64 {
    use DataType::*;
    match (value, of) {
        (value, Dictionary(_, of)) => hashed(hash, value, of),
        (value, RunEndEncoded(_, of)) => hashed(hash, value, of.data_type()),
        (Value::Null, _) => mixed(hash, 0x6e75_6c6c_6e75_6c6c).rotate_left(32),
        (Value::Bytes(bytes), of)
            if of.is_string() || of.is_binary() && !matches!(of, FixedSizeBinary(_)) =>
        {
            with_text(hash, bytes)
        }
        (Value::Bytes(bytes), _) => {
            let width = [8, 4, 1].into_iter().find(|width| bytes.len() % width == 0).unwrap();
            bytes.chunks(width).fold(hash, |hash, bytes| mixed(hash, word(bytes)))
        }
        (Value::Fields(values), Struct(fields)) => {
            mixed(hash, row_hash(values.iter().zip(fields.iter().map(|field| field.data_type()))))
        }
        (
            Value::List(items),
            List(item)
            | LargeList(item)
            | ListView(item)
            | LargeListView(item)
            | FixedSizeList(item, _)
            | Map(item, _),
        ) => {
            let hashes = items.iter().map(|value| row_hash([(value, item.data_type())].into_iter()));
            let bytes: Vec<u8> = hashes.flat_map(u64::to_le_bytes).collect();
            mixed(hash, with_text(SEED, &bytes))
        }
        (Value::Member(id, value), Union(fields, _)) => {
            let (_, field) = fields.iter().find(|(of, _)| of == id).unwrap();
            let own = row_hash([(&**value, field.data_type())].into_iter());
            mixed(hash, mixed(mixed(SEED, u64::from(*id as u8)), own))
        }
        (other, of) => panic!("{other:?} of {of} has no hash"),
    }
}

const SEED: u64 = 0x7061_7274_6974_696f;

/// Hashes values of one row; those of type Null do not count.
fn row_hash<'a>(values: impl Iterator<Item = (&'a Value, &'a DataType)>) -> u64 {
    let mut some = values.filter(|(_, of)| **of != DataType::Null).peekable();
    match some.peek() {
        None => 0,
        Some(_) => some.fold(SEED, |hash, (value, of)| hashed(hash, value, of)),
    }
}

/// The rows of each part.
fn expected(columns: &[ArrayRef], parts: usize) -> Vec<Vec<u32>> {
    let mut of_parts = vec![vec![]; parts];
    let values: Vec<Vec<Value>> = columns.iter().map(|column| rows(column)).collect();
    for row in 0..columns[0].len() {
        let hash = row_hash(values.iter().zip(columns).map(|(values, of)| (&values[row], of.data_type())));
        of_parts[((u128::from(hash >> 32) * parts as u128) >> 32) as usize].push(row as u32);
    }
    of_parts
}

fn numbers_of(target: &Target, array: &DeviceArray) -> Vec<u32> {
    let array = target.export(array);
    array.as_any().downcast_ref::<UInt32Array>().unwrap().values().to_vec()
}

fn parts_of(target: &Target, partitions: &HashPartitions) -> Vec<Vec<u32>> {
    let order = numbers_of(target, partitions.order());
    partitions.starts().windows(2).map(|part| order[part[0]..part[1]].to_vec()).collect()
}

fn assert_parts(columns: &[ArrayRef], form: Form, offset: usize, parts: usize, context: &str) {
    let len = columns[0].len() - offset;
    let sliced: Vec<ArrayRef> = columns.iter().map(|values| values.slice(offset, len)).collect();
    let expected = expected(&sliced, parts);
    for target in &devices() {
        let there: Vec<DeviceArray> =
            columns.iter().map(|values| target.import_as(form, values, offset, len)).collect();
        let found = partition_by_hash(&there, parts, &target.stream).wait();
        let found = found.unwrap_or_else(|error| panic!("{context} on {target:?}: {error}"));
        assert_eq!(found.parts(), parts);
        assert_eq!(parts_of(target, &found), expected, "{context}, {parts} parts, on {target:?}");
    }
}

#[test]
fn hashes_of_every_type_choose_the_parts_of_the_definition() {
    let mut random = Random::new(80);
    for data_type in types() {
        let nulls = if has_nulls(&data_type) { Nulls::Some } else { Nulls::None };
        for (len, parts) in [(1, 3), (70, 1), (70, 7), (2500, 300)] {
            let values = array(&data_type, len + 9, nulls, &mut random);
            let flags = array(&DataType::Boolean, len + 9, Nulls::Some, &mut random);
            for form in Form::ALL {
                let context = format!("{len} rows of {data_type}, {form:?}");
                assert_parts(std::slice::from_ref(&values), form, 5, parts, &context);
                assert_parts(&[flags.clone(), values.clone()], form, 5, parts, &context);
            }
        }
    }
}

/// So many rows that several threads share the work.
#[test]
fn many_rows_have_parts_of_nearly_one_size() {
    let len = 40_000;
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..len));
    assert_parts(std::slice::from_ref(&keys), Form::ALL[0], 0, 65_536, "numbers");
    for parts in [2, 10, 16] {
        let of_parts = expected(std::slice::from_ref(&keys), parts);
        let even = len as usize / parts;
        for part in of_parts {
            assert!(part.len().abs_diff(even) < even / 5, "{} rows of {even}", part.len());
        }
    }
}

#[test]
fn equal_values_of_any_layout_are_in_the_same_part() -> Result<()> {
    let mut random = Random::new(81);
    let words = ["", "a", "rather long for a view's own bytes", "twelve bytes", "thirteen byte"];
    let texts: ArrayRef = Arc::new(StringArray::from_iter(
        (0..500).map(|_| (random.below(9) > 0).then(|| words[random.below(words.len())])),
    ));
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let layouts = [DataType::LargeUtf8, DataType::Utf8View, DataType::Binary, dictionary];
    for target in &devices() {
        let of = |values: &ArrayRef, parts| {
            let found = partition_by_hash(&[target.import(values)], parts, &target.stream).wait();
            found.map(|found| parts_of(target, &found))
        };
        let utf8 = of(&texts, 6)?;
        for layout in &layouts {
            let other = arrow_cast::cast(&texts, layout).unwrap();
            assert_eq!(of(&other, 6)?, utf8, "{layout} on {target:?}");
        }
        // A dictionary may have the same value twice, and a null.
        let values = StringArray::from(vec![Some("a"), None, Some("a"), Some("b")]);
        let keys = Int32Array::from(vec![Some(0), Some(1), Some(2), None, Some(3)]);
        let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(values)));
        let plain: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("a"), None, Some("b")]));
        assert_eq!(of(&dictionary, 9)?, of(&plain, 9)?, "{target:?}");
        // A multiple of the number of parts divides each of them.
        let finer = of(&texts, 18)?;
        for (part, three) in utf8.iter().zip(finer.chunks(3)) {
            let mut rows = three.concat();
            rows.sort_unstable();
            assert_eq!(&rows, part, "{target:?}");
        }
    }
    Ok(())
}

#[test]
fn arrays_and_batches_are_split() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let batch = arrow_array::record_batch!(
        ("k", Int32, [Some(3), None, Some(1), Some(3), None, Some(2)]),
        ("s", Utf8, ["a", "b", "c", "d", "e", "f"])
    )?;
    for target in &devices() {
        let there = target.stream.upload(&batch_from_arrow(&batch)?)?;
        let keys = &there.columns()[..1];
        let partitions = partition_by_hash(keys, 4, &target.stream).wait()?;
        let split = partitions.split(&there, &target.stream).wait()?;
        let columns = partitions.split(&there.columns()[1], &target.stream).wait()?;
        assert_eq!((split.len(), columns.len()), (4, 4));
        let expected = expected(&[batch.column(0).clone()], 4);
        for ((part, column), rows) in split.iter().zip(&columns).zip(expected) {
            let rows = UInt32Array::from(rows);
            assert_eq!(part.len(), rows.len());
            assert_eq!(part.schema(), there.schema());
            for (i, values) in batch.columns().iter().enumerate() {
                let expected = arrow_select::take::take(values, &rows, None)?;
                target.assert_same(&part.columns()[i], &expected, &"a part's column");
            }
            target.assert_same(column, &arrow_select::take::take(batch.column(1), &rows, None)?, &"a column");
        }
        let shorter = there.columns()[1].slice(1, 4)?;
        let refused = partitions.split(&shorter, &target.stream).wait();
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
    Ok(())
}

#[test]
fn wrong_arguments_are_errors_and_no_rows_have_empty_parts() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let nulls = arrow_array::new_null_array(&DataType::Null, 3);
    for target in &devices() {
        let three = target.import(&numbers);
        let refused = |keys: &[DeviceArray], parts| {
            let found = partition_by_hash(keys, parts, &target.stream).wait();
            assert!(matches!(found, Err(Error::Invalid { .. })), "{found:?}");
        };
        refused(&[], 2);
        refused(std::slice::from_ref(&three), 0);
        refused(std::slice::from_ref(&three), 65_537);
        refused(&[three.clone(), three.slice(1, 2).unwrap()], 2);
        let none = filter(
            &three,
            &target.import(&(Arc::new(arrow_array::BooleanArray::from(vec![false; 3])) as ArrayRef)),
            &target.stream,
        );
        let found = partition_by_hash(&[none.wait().unwrap()], 3, &target.stream).wait().unwrap();
        assert_eq!(parts_of(target, &found), vec![Vec::<u32>::new(); 3]);
        // Rows of type Null are all equal.
        let found = partition_by_hash(&[target.import(&nulls)], 3, &target.stream).wait().unwrap();
        assert_eq!(parts_of(target, &found), [vec![0, 1, 2], vec![], vec![]]);
    }
}

/// A stranger's offsets may point outside of the text.
#[test]
fn text_outside_of_its_buffer_is_an_error() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["one", "two", "three"]));
    for target in &devices() {
        let offsets: Vec<u8> = [0i32, 3, 1000, 1001].iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let forged = target.forged(&texts, &offsets);
        let found = partition_by_hash(&[forged], 2, &target.stream).wait();
        assert!(matches!(found, Err(Error::OutOfSpec { .. })), "{found:?} on {target:?}");
    }
}
