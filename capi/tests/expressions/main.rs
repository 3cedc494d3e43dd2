//! Tests expressions through the C interface: the meaning of each operation, their results, and their errors.

mod handles;
mod limits;

use std::ffi::CString;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use BowstringStatus::{Cast, Evaluation, Invalid, Ok};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float64Array, Int32Array, NullArray, RecordBatch};
use arrow_schema::{DataType, Field};
use bowstring::exchange;
use bowstring::ffi::{DeviceType, FFI_ArrowSchema};
use bowstring_c::*;
use handles::{Handle, binary, col, got, int, last_error, text, unary};

/// A device, a stream of it, and imports to it.
struct Place(*mut BowstringDevice, *mut BowstringStream);

impl Place {
    fn all() -> [Place; 2] {
        [DeviceType::Cpu as i32, DeviceType::Emulated as i32].map(|kind| {
            // SAFETY: live handles, and places for results.
            let device = got(|out| unsafe { bowstring_device_open(kind, 0, out) });
            // SAFETY: live handles, and places for results.
            Place(device, got(|out| unsafe { bowstring_stream_new(device, out) }))
        })
    }

    fn array(&self, of: ArrayRef) -> *mut BowstringArray {
        let field = Field::new("", of.data_type().clone(), true);
        let (mut array, schema) =
            exchange::export_array(&exchange::from_arrow(&of).unwrap(), &field).unwrap();
        // SAFETY: live handles, and places for results.
        got(|out| unsafe { bowstring_array_import(self.0, &mut array, &schema, out) })
    }

    fn batch(&self, of: &RecordBatch) -> *mut BowstringBatch {
        let (mut batch, schema) = exchange::export_batch(&exchange::batch_from_arrow(of).unwrap()).unwrap();
        // SAFETY: live handles, and places for results.
        let here = got(|out| unsafe { bowstring_batch_import(self.0, &mut batch, &schema, out) });
        // SAFETY: live handles, and places for results.
        let there = got(|out| unsafe { bowstring_batch_to_device(here, self.1, out) });
        // SAFETY: live handles, and places for results.
        unsafe { bowstring_batch_free(here) };
        there
    }

    /// Copies a result to host memory, and frees its handle.
    fn here(&self, batch: *mut BowstringBatch) -> RecordBatch {
        // SAFETY: live handles, and places for results.
        let here = got(|out| unsafe { bowstring_batch_to_host(batch, self.1, out) });
        let (mut array, mut schema) = (bowstring::ffi::ArrowDeviceArray::empty(), FFI_ArrowSchema::empty());
        // SAFETY: live handles, and places for results.
        unsafe {
            assert_eq!(bowstring_batch_export(here, &mut array, &mut schema), Ok, "{}", last_error());
            bowstring_batch_free(here);
            bowstring_batch_free(batch);
        }
        let device = bowstring::Device::cpu();
        // SAFETY: live handles, and places for results.
        let batch = unsafe { exchange::import_batch(&mut array, &schema, &device) }.unwrap();
        exchange::batch_to_arrow(&batch).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // SAFETY: live handles, and places for results.
        unsafe {
            bowstring_stream_free(self.1);
            bowstring_device_free(self.0);
        }
    }
}

fn rows() -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("n", Arc::new(Int32Array::from(vec![Some(7), None, Some(-300), Some(40)]))),
        ("f", Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, 1.5]))),
        ("day", Arc::new(Date32Array::from(vec![Some(-1), Some(8766), None, Some(0)]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn options() -> BowstringExprOptions {
    BowstringExprOptions {
        size: size_of::<BowstringExprOptions>(),
        overflow: 0,
        division_by_zero_is_null: 0,
        floats_as_sql: 0,
        key_sets: null(),
        key_set_count: 0,
    }
}

#[test]
fn each_operation_is_the_one_of_its_name() {
    use BowstringBinary::*;
    use BowstringUnary::*;
    let ones = [
        (Not, "not x"),
        (Negate, "-x"),
        (IsNull, "x is null"),
        (IsNotNull, "x is not null"),
        (IsTrue, "x is true"),
        (IsNotTrue, "x is not true"),
        (IsFalse, "x is false"),
        (IsNotFalse, "x is not false"),
        (Year, "year(x)"),
        (Month, "month(x)"),
        (Day, "day(x)"),
        (Hour, "hour(x)"),
        (Minute, "minute(x)"),
        (Second, "second(x)"),
    ];
    for (i, (op, words)) in ones.into_iter().enumerate() {
        assert_eq!((op as usize, text(unary(op, col("x"))).as_str()), (i, words));
    }
    let twos = [
        (Eq, "x = 3"),
        (NotEq, "x != 3"),
        (Lt, "x < 3"),
        (LtEq, "x <= 3"),
        (Gt, "x > 3"),
        (GtEq, "x >= 3"),
        (Distinct, "x is distinct from 3"),
        (NotDistinct, "x is not distinct from 3"),
        (And, "x and 3"),
        (Or, "x or 3"),
        (Add, "x + 3"),
        (Subtract, "x - 3"),
        (Multiply, "x * 3"),
        (Divide, "x / 3"),
        (Remainder, "x % 3"),
        (Coalesce, "coalesce(x, 3)"),
        (NullIf, "nullif(x, 3)"),
        (StartsWith, "x starts with 3"),
        (EndsWith, "x ends with 3"),
        (Contains, "x contains 3"),
        (Like, "x like 3"),
        (ILike, "x ilike 3"),
    ];
    for (i, (op, words)) in twos.into_iter().enumerate() {
        assert_eq!((op as usize, text(binary(op, col("x"), int(3))).as_str()), (i, words));
    }
    let [place, _] = Place::all();
    let list = place.array(Arc::new(Int32Array::from(vec![Some(1), None, Some(-2)])));
    let small = FFI_ArrowSchema::try_from(DataType::Int8).unwrap();
    let (x, name) = (col("x"), CString::new("y").unwrap());
    // SAFETY: live handles, a schema and a name.
    unsafe {
        let made = |make: &dyn Fn(*mut Handle) -> BowstringStatus| text(got(make));
        assert_eq!(made(&|out| bowstring_expr_nth(2, out)), "#2");
        assert_eq!(made(&|out| bowstring_expr_double(0.05, out)), "0.05");
        assert_eq!(made(&|out| bowstring_expr_bool(2, out)), "true");
        assert_eq!(made(&|out| bowstring_expr_text(name.as_ptr(), out)), "'y'");
        let in_list = made(&|out| bowstring_expr_in_list(x, list, out));
        assert_eq!(in_list, "x in (1::Int32, null::Int32, -2::Int32)");
        assert_eq!(made(&|out| bowstring_expr_if_else(x, x, x, out)), "if x then x else x");
        assert_eq!(made(&|out| bowstring_expr_cast(x, &small, 0, out)), "cast(x as Int8)");
        assert_eq!(made(&|out| bowstring_expr_cast(x, &small, 1, out)), "cast_strict(x as Int8)");
        assert_eq!(made(&|out| bowstring_expr_substring(x, -2, 3, out)), "substring(x, -2, 3)");
        assert_eq!(made(&|out| bowstring_expr_substring(x, 1, u64::MAX, out)), "substring(x, 1)");
        assert_eq!(made(&|out| bowstring_expr_alias(x, name.as_ptr(), out)), "x as y");
        assert_eq!(made(&|out| bowstring_expr_clone(x, out)), "x");
        bowstring_array_free(list);
        bowstring_expr_free(x);
    }
}

#[test]
fn batches_are_filtered_computed_and_aggregated() {
    for place in Place::all() {
        let batch = place.batch(&rows());
        let day = place.array(Arc::new(Date32Array::from(vec![0])));
        // SAFETY: live handles, and places for results.
        let epoch = got(|out| unsafe { bowstring_expr_literal(day, out) });
        let before = binary(BowstringBinary::Lt, col("day"), epoch);
        let twice = binary(BowstringBinary::Multiply, col("n"), int(2));
        let any = place.array(Arc::new(NullArray::new(1)));
        // SAFETY: live handles, and places for results.
        let nothing = got(|out| unsafe { bowstring_expr_literal(any, out) });
        let some = binary(BowstringBinary::Distinct, col("n"), nothing);
        let zero =
            // SAFETY: live handles, and places for results.
            binary(BowstringBinary::Eq, col("f"), got(|out| unsafe { bowstring_expr_double(0.0, out) }));
        let (exprs, mut options) = ([before.cast_const(), twice, some, zero], options());
        let name = CString::new("all").unwrap();
        let function = |function: BowstringFunction, of, name| BowstringAggregate {
            function: function as i32,
            of,
            filter: null(),
            parameter: 0.0,
            name,
        };
        let aggregates = [
            function(BowstringFunction::CountAll, null(), null()),
            function(BowstringFunction::Sum, twice, name.as_ptr()),
            function(BowstringFunction::BoolOr, before, null()),
        ];
        // SAFETY: live handles, structs and arrays of as many.
        unsafe {
            let made = got(|out| bowstring_evaluate(batch, exprs.as_ptr(), 4, &options, place.1, out));
            let made = place.here(made);
            assert_eq!(
                made.column(0).as_ref(),
                &BooleanArray::from(vec![Some(true), Some(false), None, Some(false)])
            );
            assert_eq!(
                made.column(1).as_ref(),
                &Int32Array::from(vec![Some(14), None, Some(-600), Some(80)])
            );
            assert_eq!(made.column(2).as_ref(), &BooleanArray::from(vec![true, false, true, true]));
            assert_eq!(made.column(3).as_ref(), &BooleanArray::from(vec![true, false, false, false]));
            options.floats_as_sql = 1;
            let kept = place.here(got(|out| bowstring_filter_where(batch, zero, &options, place.1, out)));
            assert_eq!(kept, rows().slice(0, 2));
            let all =
                got(|out| bowstring_aggregate(batch, aggregates.as_ptr(), 3, some, null(), place.1, out));
            let all = place.here(all);
            assert_eq!(all.schema().field(1).name(), "all");
            let numbers =
                [0, 1].map(|i| all.column(i).as_primitive::<arrow_array::types::Int64Type>().value(0));
            assert_eq!((numbers, all.column(2).as_boolean().value(0)), ([3, -506], true));
            for expr in exprs {
                bowstring_expr_free(expr.cast_mut());
            }
            bowstring_array_free(day);
            bowstring_array_free(any);
            bowstring_batch_free(batch);
        }
    }
}

#[test]
fn what_does_not_fit_says_so() {
    let [place, _] = Place::all();
    let batch = place.batch(&rows());
    let most = binary(BowstringBinary::Multiply, col("n"), int(i32::MAX.into()));
    // SAFETY: live handles, and places for results.
    let positive = binary(BowstringBinary::Gt, got(|out| unsafe { bowstring_expr_clone(most, out) }), int(0));
    let nobody = col("nobody");
    let small = FFI_ArrowSchema::try_from(DataType::Int8).unwrap();
    // SAFETY: live handles, and places for results.
    let strict = got(|out| unsafe { bowstring_expr_cast(nobody, &small, 1, out) });
    let n = col("n");
    // SAFETY: live handles, and places for results.
    let n_strict = got(|out| unsafe { bowstring_expr_cast(n, &small, 1, out) });
    let list =
        arrow_array::ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>([Some([Some(1)])]);
    let lists = place.array(Arc::new(list));
    let mut made: *mut BowstringBatch = null_mut();
    let mut expr: Handle = null_mut();
    // SAFETY: live handles, structs and arrays of as many; what has not is NULL.
    unsafe {
        let mut evaluated = |of: Handle, options: *const BowstringExprOptions| {
            let status = bowstring_evaluate(batch, &of.cast_const(), 1, options, place.1, &mut made);
            if status == Ok {
                bowstring_batch_free(std::mem::replace(&mut made, null_mut()));
            }
            status
        };
        assert_eq!(evaluated(most, null()), Evaluation);
        assert!(last_error().starts_with("row 0: n * 2147483647"), "{}", last_error());
        let mut options = options();
        for overflow in [1, 2] {
            options.overflow = overflow;
            assert_eq!(evaluated(most, &options), Ok);
        }
        options.overflow = 3;
        assert_eq!(evaluated(most, &options), Invalid);
        options.overflow = 0;
        options.size -= 1;
        assert_eq!(evaluated(most, &options), Invalid);
        assert_eq!(evaluated(n_strict, null()), Cast);
        assert_eq!(evaluated(strict, null()), Invalid);
        assert!(last_error().contains("; there are n, f, day"), "{}", last_error());
        assert_eq!(bowstring_filter_where(batch, positive, null(), place.1, &mut made), Evaluation);
        assert_eq!(bowstring_filter_where(batch, n, null(), place.1, &mut made), Invalid);
        assert_eq!(bowstring_evaluate(batch, &null(), 1, null(), place.1, &mut made), Invalid);
        assert_eq!(last_error(), "C interface: exprs is NULL");
        assert_eq!(bowstring_evaluate(batch, &n.cast_const(), u64::MAX, null(), place.1, &mut made), Invalid);
        for (function, words) in
            [(21, "no function 21"), (-1, "no function -1"), (2, "aggregates.of is NULL")]
        {
            let (of, filter, name) = (null(), null(), null());
            let one = BowstringAggregate { function, of, filter, parameter: 0.0, name };
            assert_eq!(bowstring_aggregate(batch, &one, 1, null(), null(), place.1, &mut made), Invalid);
            assert!(last_error().ends_with(words), "{}", last_error());
        }
        for op in [-1, 14, i32::MAX] {
            assert_eq!(bowstring_expr_unary(op, n, &mut expr), Invalid);
        }
        for op in [-1, 22, i32::MIN] {
            assert_eq!(bowstring_expr_binary(op, n, n, &mut expr), Invalid);
        }
        assert_eq!(bowstring_expr_literal(lists, &mut expr), Invalid);
        assert_eq!(bowstring_expr_text(c"\xff".as_ptr(), &mut expr), Invalid);
        assert_eq!(bowstring_expr_text(null(), &mut expr), Invalid);
        assert_eq!(bowstring_expr_column(c"\xff".as_ptr(), &mut expr), Invalid);
        assert!(made.is_null() && expr.is_null());
        // Nests the expression until it is an error.
        let mut deep = col("n");
        let refused = loop {
            let status = bowstring_expr_unary(BowstringUnary::Negate as i32, deep, &mut expr);
            if status != Ok {
                break status;
            }
            bowstring_expr_free(deep);
            deep = expr;
        };
        assert_eq!(refused, Invalid);
        for one in [deep, n, n_strict, strict, nobody, positive, most] {
            bowstring_expr_free(one);
        }
        bowstring_array_free(lists);
        bowstring_batch_free(batch);
    }
}

#[test]
fn streams_are_filtered_and_computed_when_their_batches_are_asked_for() {
    use bowstring::array::{Batches, Place as Memory};
    let [cpu, _] = Place::all();
    for place in Place::all() {
        let two = [rows(), rows().slice(1, 3)].map(|batch| exchange::batch_from_arrow(&batch));
        let mut exported =
            exchange::export_batches(Batches::new(rows().schema(), Memory::CPU, two.into_iter()));
        let positive = binary(BowstringBinary::Gt, col("n"), int(0));
        let twice = binary(BowstringBinary::Multiply, col("n"), int(2));
        let (nobody, exprs) = (col("nobody"), [twice.cast_const(), positive]);
        let mut none: *mut BowstringBatches = null_mut();
        let mut last = null_mut();
        // SAFETY: live handles, structs and arrays of as many.
        unsafe {
            let here = got(|out| bowstring_batches_import(cpu.0, &mut exported, out));
            let there = got(|out| bowstring_batches_to_device(here, place.1, out));
            // A call that fails leaves the batches in the handle.
            let refused = bowstring_batches_filter_where(there, nobody, null(), place.1, &mut none);
            assert_eq!(refused, Invalid);
            let refused =
                bowstring_batches_evaluate(there, &nobody.cast_const(), 1, null(), place.1, &mut none);
            assert_eq!(refused, Invalid);
            let kept = got(|out| bowstring_batches_filter_where(there, positive, null(), place.1, out));
            // This call takes the batches.
            let refused = bowstring_batches_filter_where(there, positive, null(), place.1, &mut none);
            assert_eq!((refused, none.is_null()), (Invalid, true));
            let made = got(|out| bowstring_batches_evaluate(kept, exprs.as_ptr(), 2, null(), place.1, out));
            for numbers in [vec![14, 80], vec![80]] {
                let batch = place.here(got(|out| bowstring_batches_next(made, out)));
                assert_eq!(batch.column(1).as_ref(), &BooleanArray::from(vec![true; numbers.len()]));
                assert_eq!(batch.column(0).as_ref(), &Int32Array::from(numbers));
            }
            assert_eq!((bowstring_batches_next(made, &mut last), last.is_null()), (Ok, true));
            let again = [rows(), rows().slice(0, 0), rows().slice(1, 3)];
            let again = again.map(|batch| exchange::batch_from_arrow(&batch)).into_iter();
            let mut exported = exchange::export_batches(Batches::new(rows().schema(), Memory::CPU, again));
            let second = got(|out| bowstring_batches_import(cpu.0, &mut exported, out));
            let all = [(BowstringFunction::CountAll, null()), (BowstringFunction::Sum, twice.cast_const())];
            let all = all.map(|(function, of)| BowstringAggregate {
                function: function as i32,
                of,
                filter: null(),
                parameter: 0.0,
                name: null(),
            });
            let (two, on) = (all.as_ptr(), place.1);
            let moved = got(|out| bowstring_batches_to_device(second, on, out));
            assert_eq!(bowstring_batches_aggregate(moved, two, 2, nobody, null(), on, &mut last), Invalid);
            let row = got(|out| bowstring_batches_aggregate(moved, two, 2, positive, null(), on, out));
            let row = place.here(row);
            let numbers =
                [0, 1].map(|i| row.column(i).as_primitive::<arrow_array::types::Int64Type>().value(0));
            assert_eq!(numbers, [3, 14 + 80 + 80]);
            assert_eq!(bowstring_batches_aggregate(moved, two, 2, null(), null(), on, &mut last), Invalid);
            bowstring_batches_free(second);
            bowstring_batches_free(moved);
            for batches in [here, there, kept, made] {
                bowstring_batches_free(batches);
            }
            for expr in [twice, positive, nobody] {
                bowstring_expr_free(expr);
            }
        }
    }
}
