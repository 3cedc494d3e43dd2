//! Counts how often the host looks at a device during an operation: how often it waits for words that the
//! device writes. The table in `docs/src/operations.md` has the counts; `tools/bless looks` writes it.
//!
//! The one idea: columns look at the same time. So three columns of a type take as many looks as the one of
//! them that takes the most, and so does a batch of all types.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BooleanArray, Int32Array, RecordBatch, StructArray, UInt32Array};
use arrow_buffer::NullBuffer;
use arrow_cast::can_cast_types;
use arrow_schema::{DataType, Field, UnionFields, UnionMode};
use bowstring::compute::*;
use bowstring::exchange::from_arrow;
use bowstring::expr::{col, sum};
use bowstring::{DeviceArray, DeviceBatch, Error, Stream};

use crate::support::*;

const ROWS: usize = 150;
/// The seeds of each type's columns.
const SEEDS: std::ops::Range<u64> = 0..3;

/// Some columns, as a batch that has a column of numbers too, and as one array: a struct of several.
struct Values {
    batch: DeviceBatch,
    array: DeviceArray,
    types: Vec<DataType>,
    /// A row of the array's type, without nulls.
    scalar: ArrayRef,
}

/// The other arguments of the operations.
struct Arguments {
    stream: Stream,
    mask: DeviceArray,
    selection: Selection,
    indices: DeviceArray,
    indices_with_nulls: DeviceArray,
}

type Run = fn(&Values, &Arguments) -> Result<(), Error>;

/// The operations in the order of the table's columns.
const OPERATIONS: &[(&str, Run)] = &[
    ("`filter`", |on, by| filter(&on.batch, &by.mask, &by.stream).wait().map(drop)),
    ("`filter_where`", |on, by| filter_where(&on.batch, &col("n").gt(0), &by.stream).wait().map(drop)),
    ("`drop_nulls`", |on, by| drop_nulls(&on.array, &DropOptions::default(), &by.stream).wait().map(drop)),
    ("`Selection::filter`", |on, by| by.selection.filter(&on.batch).wait().map(drop)),
    ("`take`", |on, by| take(&on.batch, &by.indices, &TakeOptions::default(), &by.stream).wait().map(drop)),
    ("`take` by indices that may be null", |on, by| {
        take(&on.batch, &by.indices_with_nulls, &TakeOptions::default(), &by.stream).wait().map(drop)
    }),
    ("`concat`", |on, by| concat(&[&on.array, &on.array], &by.stream).wait().map(drop)),
    ("`Coalescer` of two batches", |on, by| {
        let mut coalescer = Coalescer::new(on.batch.schema().clone(), 4 * ROWS, &by.stream)?;
        coalescer.push_batch(&on.batch)?;
        coalescer.push_batch(&on.batch)?;
        coalescer.finish_buffered_batch()?;
        coalescer.next_completed_batch().map(drop)
    }),
    ("`fill_null`", |on, by| {
        fill_null(&on.array, &Scalar::from_arrow(&on.scalar)?, &by.stream).wait().map(drop)
    }),
    ("`cast` to a type of the same kind", |on, by| casted(on, by, similar)),
    ("`cast` to Utf8", |on, by| casted(on, by, |_| DataType::Utf8)),
    ("`null_count`", |on, by| null_count(&on.batch, &by.stream).wait().map(drop)),
    ("`logical_null_count`", |on, by| logical_null_count(&on.batch, &by.stream).wait().map(drop)),
    ("`is_null`", |on, by| is_null(&on.array, &by.stream).wait().map(drop)),
    ("`is_not_null`", |on, by| is_not_null(&on.array, &by.stream).wait().map(drop)),
    ("`evaluate`", |on, by| evaluate(&on.batch, &[col("n") + 1], &by.stream).wait().map(drop)),
    ("`aggregate`", |on, by| aggregate(&on.batch, &[sum(col("n"))], None, &by.stream).wait().map(drop)),
    ("`Selection::of_mask`", |_, by| Selection::of_mask(&by.mask, &by.stream).wait().map(drop)),
];

fn casted(on: &Values, by: &Arguments, to: fn(&DataType) -> DataType) -> Result<(), Error> {
    if let Some(of) = on.types.iter().find(|of| !can_cast_types(of, &to(of))) {
        let device = on.array.place().device_type;
        return Err(Error::Unsupported { operation: "cast", what: of.into(), device });
    }
    let columns = on.batch.schema().fields().iter();
    let fields = columns.map(|field| Field::clone(field).with_data_type(to(field.data_type())));
    let schema = Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()));
    cast(&on.batch, &schema, &CastOptions::default(), &by.stream).wait().map(drop)
}

fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(of, true))
}

fn list(of: DataType) -> DataType {
    DataType::List(item(of))
}

fn fields(of: &[DataType]) -> DataType {
    let field = |(i, of): (usize, &DataType)| Field::new(format!("f{i}"), of.clone(), true);
    DataType::Struct(of.iter().enumerate().map(field).collect())
}

fn runs(of: DataType) -> DataType {
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    DataType::RunEndEncoded(ends, Arc::new(Field::new("values", of, true)))
}

fn union(mode: UnionMode) -> DataType {
    let member = |name, of| Field::new(name, of, true);
    let members = [member("number", DataType::Int32), member("text", DataType::Utf8)];
    DataType::Union(UnionFields::try_new([3, 1], members).unwrap(), mode)
}

/// The types in the order of the table's rows.
fn kinds() -> Vec<(&'static str, DataType)> {
    use DataType::*;
    let entries = Struct(vec![Field::new("keys", Utf8, false), Field::new("values", Int32, true)].into());
    vec![
        ("numbers", Int32),
        ("text", Utf8),
        ("views of text", Utf8View),
        ("dictionary of text", Dictionary(Box::new(Int32), Box::new(Utf8))),
        ("list of numbers", list(Int32)),
        ("list of text", list(Utf8)),
        ("list of lists of text", list(list(Utf8))),
        ("list view of numbers", ListView(item(Int32))),
        ("fixed-size list of text", FixedSizeList(item(Utf8), 2)),
        ("struct of text and lists", fields(&[Utf8, list(Int32)])),
        ("map of text to numbers", Map(Arc::new(Field::new("entries", entries, false)), false)),
        ("runs of numbers", runs(Int32)),
        ("runs of text", runs(Utf8)),
        ("sparse union of numbers and text", union(UnionMode::Sparse)),
        ("dense union of numbers and text", union(UnionMode::Dense)),
        ("list of runs of text", list(runs(Utf8))),
        ("list of dense unions", list(union(UnionMode::Dense))),
        ("runs of dense unions", runs(union(UnionMode::Dense))),
    ]
}

/// A type of the same kind with other widths at every level; without an encoding, if there is one.
fn similar(of: &DataType) -> DataType {
    use DataType::*;
    let with = |field: &Field| Field::clone(field).with_data_type(similar(field.data_type()));
    let below = |field: &Arc<Field>| Arc::new(with(field));
    match of {
        Int32 => Int64,
        Utf8 => LargeUtf8,
        Utf8View => Utf8,
        List(items) | ListView(items) | FixedSizeList(items, _) => LargeList(below(items)),
        Struct(fields) => Struct(fields.iter().map(below).collect()),
        Map(entries, sorted) => Map(below(entries), *sorted),
        Dictionary(_, of) => similar(of),
        RunEndEncoded(_, values) => similar(values.data_type()),
        Union(members, _) => similar(members.iter().next().unwrap().1.data_type()),
        other => panic!("{other} is no type of the table"),
    }
}

impl Values {
    /// A column of each type for each seed.
    fn new(types: &[DataType], seeds: std::ops::Range<u64>, stream: &Stream) -> Values {
        let column = |(of, seed): (&DataType, u64)| {
            (format!("{of} {seed}"), array(of, ROWS, Nulls::Some, &mut Random::new(seed)), true)
        };
        let each = types.iter().flat_map(|of| seeds.clone().map(move |seed| (of, seed)));
        let columns: Vec<(String, ArrayRef, bool)> = each.map(column).collect();
        let whole: ArrayRef = match &columns[..] {
            [(_, one, _)] => one.clone(),
            many => {
                let (fields, columns, _) = StructArray::from(
                    RecordBatch::try_from_iter_with_nullable(many.iter().cloned()).unwrap(),
                )
                .into_parts();
                let nulls = NullBuffer::new(bitmap(ROWS, 67.0, 1, &mut Random::new(1)));
                Arc::new(StructArray::new(fields, columns, Some(nulls)))
            }
        };
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((0..ROWS as i32).map(|n| n % 3)));
        let batch = columns.into_iter().chain([("n".to_owned(), numbers, true)]);
        let batch = RecordBatch::try_from_iter_with_nullable(batch).unwrap();
        let batch = stream.upload(&DeviceBatch::try_from(&batch).unwrap()).unwrap();
        let counted = |column: &DeviceArray| uncounted(column.clone());
        let columns = batch.columns().iter().map(counted).collect();
        Values {
            batch: DeviceBatch::try_new(batch.schema().clone(), columns, ROWS).unwrap(),
            scalar: array(whole.data_type(), 1, Nulls::None, &mut Random::new(1)),
            array: uncounted(stream.upload(&from_arrow(&whole).unwrap()).unwrap()),
            types: types.to_vec(),
        }
    }
}

impl Arguments {
    fn new(target: &Target) -> Arguments {
        let random = &mut Random::new(7);
        let keep: ArrayRef = Arc::new(BooleanArray::from(bitmap(ROWS, 50.0, 1, random)));
        let backwards: ArrayRef = Arc::new(UInt32Array::from_iter_values((0..ROWS as u32).rev()));
        let mask = target.import(&keep);
        Arguments {
            selection: Selection::of_mask(&mask, &target.stream).wait().unwrap(),
            mask,
            indices: target.import(&backwards),
            indices_with_nulls: target.import(&indices(&DataType::Int32, ROWS, ROWS, Nulls::Some, random)),
            stream: target.stream.clone(),
        }
    }

    /// How often the host looks; `None` if the operation is not supported.
    fn looks(&self, (name, run): &(&str, Run), on: &Values) -> Option<u64> {
        let device = self.stream.device();
        self.stream.synchronise().unwrap();
        let before = device.host_synchronisations();
        match run(on, self) {
            Ok(()) => Some(device.host_synchronisations() - before),
            Err(Error::Unsupported { .. }) => None,
            Err(error) => panic!("{name} of {:?}: {error}", on.types),
        }
    }
}

/// The looks by type and operation, measured at one width of waves.
fn measured(width: u32) -> Vec<Vec<Option<u64>>> {
    let target = Target::emulator(width);
    let by = Arguments::new(&target);
    let mut more = vec![];
    let mut compare = |what: &str, operation: &str, looks: Option<u64>, most: Option<u64>| {
        if looks != most {
            more.push(format!("{operation} of {what}: {looks:?} instead of {most:?}"));
        }
    };
    let mut all = vec![];
    for (name, of) in kinds() {
        let of = std::slice::from_ref(&of);
        let alone: Vec<Values> = SEEDS.map(|seed| Values::new(of, seed..seed + 1, &by.stream)).collect();
        let three = Values::new(of, SEEDS, &by.stream);
        let mut looks = vec![];
        for operation in OPERATIONS {
            let most = alone.iter().filter_map(|one| by.looks(operation, one)).max();
            compare(&format!("three columns, {name}"), operation.0, by.looks(operation, &three), most);
            looks.push(most);
        }
        all.push(looks);
    }
    for (i, operation) in OPERATIONS.iter().enumerate() {
        let supported = kinds().into_iter().zip(&all).filter(|(_, looks)| looks[i].is_some());
        let types: Vec<DataType> = supported.map(|((_, of), _)| of).collect();
        let looks = by.looks(operation, &Values::new(&types, SEEDS, &by.stream));
        compare("all types", operation.0, looks, all.iter().filter_map(|looks| looks[i]).max());
    }
    assert!(more.is_empty(), "many columns look more often than one:\n{}", more.join("\n"));
    all
}

/// Types by rows, operations by columns; operations with the same cells share a column.
fn table(looks: &[Vec<Option<u64>>]) -> String {
    let mut columns: Vec<(String, Vec<Option<u64>>)> = vec![];
    for (i, (name, _)) in OPERATIONS.iter().enumerate() {
        let cells: Vec<_> = looks.iter().map(|looks| looks[i]).collect();
        match columns.iter_mut().find(|(_, known)| *known == cells) {
            Some((names, _)) => *names += &format!(", {name}"),
            None => columns.push(((*name).to_owned(), cells)),
        }
    }
    let names: Vec<_> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut table = format!("| type | {} |\n| --- |{}\n", names.join(" | "), " :-: |".repeat(names.len()));
    for (row, (kind, _)) in kinds().into_iter().enumerate() {
        let shown = |cell: Option<u64>| cell.map_or("–".to_owned(), |looks| looks.to_string());
        let cells: Vec<_> = columns.iter().map(|(_, cells)| shown(cells[row])).collect();
        table += &format!("| {kind} | {} |\n", cells.join(" | "));
    }
    table
}

#[test]
fn the_host_looks_as_often_as_the_table_says() {
    let looks = measured(32);
    assert_eq!(measured(64), looks, "the width of waves does not matter");
    generated::compare("docs/src/operations.md", "looks", &table(&looks));
}
