//! Tests what is_null, is_not_null, logical_null_count, fill_null, drop_nulls and concat mean for a batch: on
//! every device each column is as the operation on that array makes it, and drop_nulls and concat are as
//! defined here.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array};
use arrow_schema::{DataType, Field, Schema};
use bowstring::compute::{
    DropIf, DropOptions, Scalar, concat, drop_nulls, fill_null, is_not_null, is_null, logical_null_count,
    null_count,
};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::from_arrow;
use bowstring::{DeviceArray, DeviceBatch, Error, Stream};

use crate::support::*;

const ROWS: usize = 150;

/// Types whose nulls are found in different ways. The first has a wide value, the last only nulls.
fn various() -> Vec<DataType> {
    let kinds = |data_type: &DataType| std::mem::discriminant(data_type);
    let mut seen = vec![];
    let mut various = types();
    various.retain(|data_type| {
        let new = !seen.contains(&kinds(data_type)) && *data_type != DataType::Null;
        seen.push(kinds(data_type));
        new
    });
    various
}

/// A batch of these arrays on a device, with metadata of all kinds.
fn batch(target: &Target, arrays: &[ArrayRef]) -> DeviceBatch {
    let said = |of: &str| HashMap::from([("of".to_owned(), of.to_owned())]);
    let fields = arrays.iter().enumerate().map(|(i, array)| {
        let field = Field::new(format!("c{i}"), array.data_type().clone(), true);
        field.with_metadata(said("values"))
    });
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), said("rows"));
    let columns = arrays.iter().map(|array| uncounted(target.import(array))).collect();
    let rows = arrays.first().map_or(0, |array| array.len());
    let batch = DeviceBatch::try_new(Arc::new(schema), columns, rows).unwrap();
    batch.with_metadata(Arc::new(BTreeMap::from([("of".into(), "this batch".into())])))
}

fn arrays(types: &[DataType], nulls: Nulls) -> Vec<ArrayRef> {
    (0..).zip(types).map(|(seed, of)| array(of, ROWS, nulls, &mut Random::new(seed))).collect()
}

fn columns(target: &Target, batch: &DeviceBatch) -> Vec<Vec<Value>> {
    batch.columns().iter().map(|column| rows(&target.export(column))).collect()
}

#[test]
fn each_column_is_tested_counted_and_filled_as_by_itself() {
    let types = various();
    assert!(types.len() > 20);
    let arrays = arrays(&types, Nulls::Some);
    let scalars: Vec<Option<Scalar>> = (0..)
        .zip(&types)
        .map(|(seed, of)| {
            // Every third column stays as it is.
            let row = array(of, 1, Nulls::None, &mut Random::new(!seed));
            (seed % 3 < 2).then(|| Scalar::from_arrow(&row).unwrap())
        })
        .collect();
    for target in &devices() {
        let (batch, on) = (batch(target, &arrays), &target.stream);
        for (test, all) in [
            (is_null::<DeviceArray> as fn(&DeviceArray, &Stream) -> _, is_null(&batch, on).wait()),
            (is_not_null::<DeviceArray>, is_not_null(&batch, on).wait()),
        ] {
            let all = all.unwrap();
            assert_eq!((all.len(), all.metadata()), (ROWS, batch.metadata()));
            assert_eq!(all.schema().metadata(), batch.schema().metadata());
            for (i, column) in batch.columns().iter().enumerate() {
                assert_eq!(all.schema().field(i), &Field::new(format!("c{i}"), DataType::Boolean, true));
                let alone = target.export(&test(column, on).wait().unwrap());
                assert_eq!(target.export(&all.columns()[i]).to_data(), alone.to_data(), "{target:?}");
            }
        }
        let alone = |count: fn(&DeviceArray, &Stream) -> bowstring::Pending<usize>| -> Vec<usize> {
            batch.columns().iter().map(|column| count(column, on).wait().unwrap()).collect()
        };
        assert_eq!(null_count(&batch, on).wait().unwrap(), alone(null_count::<DeviceArray>));
        assert_eq!(logical_null_count(&batch, on).wait().unwrap(), alone(logical_null_count::<DeviceArray>));

        let filled = fill_null(&batch, &scalars[..], on).wait().unwrap();
        assert_eq!((filled.schema(), filled.metadata()), (batch.schema(), batch.metadata()));
        for ((filled, column), scalar) in filled.columns().iter().zip(batch.columns()).zip(&scalars) {
            let alone = match scalar {
                Some(scalar) => fill_null(column, scalar, on).wait().unwrap(),
                None => column.clone(),
            };
            let context = format!("{} filled on {target:?}", column.data_type());
            assert_same_rows(&rows(&target.export(filled)), &rows(&target.export(&alone)), &context);
        }
    }
}

/// The rows that drop_nulls keeps, by its definition.
fn kept(columns: &[Vec<Value>], options: &DropOptions) -> Vec<Vec<Value>> {
    let looked_at = options.columns.clone().unwrap_or_else(|| (0..columns.len()).collect());
    let mut nulls = (0..ROWS).map(|row| looked_at.iter().map(move |at| is_nothing(&columns[*at][row])));
    let dropped: Vec<bool> = nulls
        .by_ref()
        .map(|mut nulls| match options.drop_if {
            DropIf::AnyNull => nulls.any(|null| null),
            DropIf::AllNull => !looked_at.is_empty() && nulls.all(|null| null),
        })
        .collect();
    let left = |column: &Vec<Value>| {
        column
            .iter()
            .zip(&dropped)
            .filter(|(_, dropped)| !**dropped)
            .map(|(value, _)| value.clone())
            .collect()
    };
    columns.iter().map(left).collect()
}

#[test]
fn rows_are_dropped_by_the_nulls_of_columns() {
    use DataType::*;
    let encoded = Dictionary(Int8.into(), Utf8.into());
    let some = [Int32, Utf8, encoded.clone(), Decimal256(40, 2), Boolean];
    let mut arrays = arrays(&some, Nulls::Some);
    arrays.push(array(&Int64, ROWS, Nulls::None, &mut Random::new(9)));
    arrays.push(array(&Null, ROWS, Nulls::All, &mut Random::new(9)));
    arrays.push(array(&encoded, ROWS, Nulls::All, &mut Random::new(9)));
    let (full, nothing) = (some.len(), some.len() + 1);
    let subsets = [
        None,
        Some(vec![]),
        Some(vec![0]),
        Some(vec![0, 1, 2, 3, 4]),
        Some(vec![2, 2, 0]),
        Some(vec![0, full]),
        Some(vec![full]),
        Some(vec![nothing]),
        Some(vec![nothing, 1]),
        Some(vec![nothing, 3, 1]),
        Some(vec![nothing, nothing + 1]),
    ];
    let values: Vec<Vec<Value>> = arrays.iter().map(|array| rows(array)).collect();
    for target in &devices() {
        let batch = batch(target, &arrays);
        for drop_if in [DropIf::AnyNull, DropIf::AllNull] {
            for columns_looked_at in &subsets {
                let options = DropOptions { drop_if, columns: columns_looked_at.clone() };
                let left = drop_nulls(&batch, &options, &target.stream).wait().unwrap();
                assert_eq!((left.schema(), left.metadata()), (batch.schema(), batch.metadata()));
                let expected = kept(&values, &options);
                assert_eq!(left.len(), expected[0].len(), "{options:?} on {target:?}");
                assert_eq!(columns(target, &left), expected, "{options:?} on {target:?}");
            }
        }
        let none = DropOptions { columns: Some(vec![0, arrays.len()]), ..DropOptions::default() };
        let missing = drop_nulls(&batch, &none, &target.stream).wait();
        assert!(matches!(missing, Err(Error::Invalid { operation: "drop_nulls", .. })), "{target:?}");
    }
}

#[test]
fn an_expression_of_many_columns_is_not_too_deep() {
    let one: ArrayRef = Arc::new(arrow_array::Int8Array::from(vec![Some(1), None]));
    for target in &devices() {
        let batch = batch(target, &vec![one.clone(); 500]);
        for (drop_if, rows) in [(DropIf::AnyNull, 1), (DropIf::AllNull, 1)] {
            let options = DropOptions { drop_if, columns: None };
            assert_eq!(drop_nulls(&batch, &options, &target.stream).wait().unwrap().len(), rows);
        }
    }
}

/// More columns than an expression has parts.
#[test]
fn rows_are_dropped_by_the_nulls_of_very_many_columns() {
    let target = devices().into_iter().find(|target| target.name == "cpu").unwrap();
    let column = |nulls: &[bool]| -> ArrayRef {
        Arc::new(Int8Array::from_iter(nulls.iter().map(|null| (!null).then_some(1))))
    };
    let mut columns = vec![column(&[true, false, false, false]); 12_000];
    (columns[0], columns[11_000]) =
        (column(&[true, true, false, false]), column(&[true, false, true, false]));
    let batch = batch(&target, &columns);
    for (drop_if, left) in [(DropIf::AnyNull, 1), (DropIf::AllNull, 3)] {
        let options = DropOptions { drop_if, columns: None };
        assert_eq!(drop_nulls(&batch, &options, &target.stream).wait().unwrap().len(), left);
    }
}

#[test]
fn batches_are_joined_column_by_column() {
    let types = various();
    let parts = [arrays(&types, Nulls::Some), arrays(&types, Nulls::None)];
    for target in &devices() {
        let ours = parts.each_ref().map(|arrays| batch(target, arrays));
        let short = ours[1].slice(3, 70).unwrap();
        let joined = concat(&[&ours[0], &short, &ours[1]], &target.stream).wait().unwrap();
        assert_eq!((joined.schema(), joined.len()), (ours[0].schema(), 2 * ROWS + 70));
        assert!(joined.metadata().is_empty());
        let [one, other] = ours.each_ref().map(|batch| columns(target, batch));
        for (i, column) in columns(target, &joined).iter().enumerate() {
            let plain = [&one[i][..], &other[i][3..73], &other[i]].concat();
            assert_same_rows(column, &plain, &format!("{} on {target:?}", types[i]));
        }
        let alone = concat(&[&ours[0]], &target.stream).wait().unwrap();
        assert_eq!((alone.schema(), alone.metadata()), (ours[0].schema(), ours[0].metadata()));
    }
}

#[test]
fn the_columns_of_a_batch_are_waited_for_together() {
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    let stream = device.device().stream().unwrap();
    let texts: Vec<ArrayRef> =
        (0..8).map(|seed| array(&DataType::Utf8, ROWS, Nulls::Some, &mut Random::new(seed))).collect();
    let columns: Vec<DeviceArray> =
        texts.iter().map(|text| uncounted(stream.upload(&from_arrow(text).unwrap()).unwrap())).collect();
    let fields: Vec<Field> = (0..8).map(|i| Field::new(format!("c{i}"), DataType::Utf8, true)).collect();
    let rows = DeviceBatch::try_new(Arc::new(Schema::new(fields)), columns, ROWS).unwrap();
    let scalar = Scalar::from_arrow(&arrow_array::StringArray::new_scalar("nothing")).unwrap();
    let looks = |run: &dyn Fn()| {
        let before = device.device().host_synchronisations();
        run();
        device.device().host_synchronisations() - before
    };
    let options = DropOptions::default();
    assert_eq!(looks(&|| drop(concat(&[&rows, &rows], &stream).wait().unwrap())), 1);
    assert_eq!(
        looks(&|| drop(fill_null(&rows, &vec![Some(scalar.clone()); 8][..], &stream).wait().unwrap())),
        2
    );
    assert_eq!(looks(&|| drop(drop_nulls(&rows, &options, &stream).wait().unwrap())), 1);
    assert_eq!(looks(&|| drop(is_null(&rows, &stream).wait().unwrap())), 0);
    assert_eq!(looks(&|| drop(logical_null_count(&rows, &stream).wait().unwrap())), 1);
}

#[test]
fn parts_and_scalars_that_do_not_fit_are_errors() {
    let number: ArrayRef = Arc::new(arrow_array::Int32Array::from(vec![Some(1), None]));
    let text: ArrayRef = Arc::new(arrow_array::StringArray::from(vec!["a", "b"]));
    for target in &devices() {
        let (both, on) = (batch(target, &[number.clone(), text.clone()]), &target.stream);
        let swapped = batch(target, &[text.clone(), number.clone()]);
        let one = batch(target, std::slice::from_ref(&number));
        let said = |result: Result<DeviceBatch, Error>| result.unwrap_err().to_string();
        assert_eq!(
            said(concat(&[&both, &both, &swapped], on).wait()),
            "concat: batch 2 has c0: Utf8, c1: Int32, and batch 0 c0: Int32, c1: Utf8"
        );
        assert_eq!(
            said(concat(&[&both, &one], on).wait()),
            "concat: batch 1 has c0: Int32, and batch 0 c0: Int32, c1: Utf8"
        );
        assert_eq!(said(concat::<DeviceBatch>(&[], on).wait()), "concat: no parts");
        let scalar = Some(Scalar::from_arrow(&arrow_array::Int32Array::new_scalar(0)).unwrap());
        assert_eq!(
            said(fill_null(&both, &[scalar.clone()][..], on).wait()),
            "fill_null: 1 values for 2 columns"
        );
        let wrong = fill_null(&both, &[scalar.clone(), scalar.clone()][..], on).wait();
        assert_eq!(said(wrong), "fill_null: Int32 for nulls among Utf8");
        let right = fill_null(&both, &[scalar, None][..], on).wait().unwrap();
        assert_eq!(null_count(&right, on).wait().unwrap(), [0, 0]);
        // A column that must not be null in one batch only may be in the result.
        let strict = Schema::new(vec![Field::new("c0", DataType::Int32, false)]);
        let strict = DeviceBatch::try_new(Arc::new(strict), vec![one.columns()[0].slice(0, 1).unwrap()], 1);
        let strict = strict.unwrap();
        assert!(!concat(&[&strict, &strict], on).wait().unwrap().schema().field(0).is_nullable());
        assert!(concat(&[&strict, &one], on).wait().unwrap().schema().field(0).is_nullable());
    }
}
