//! Programs over arrays: an input chooses operations that run one after another, on any device.
//!
//! The one idea: an array is sound once it was validated. The result of an operation on sound arrays is a
//! sound array equal to the CPU's, or an error of the caller's, never one that blames a producer. With any
//! other array the result is arbitrary, but no operation panics, hangs or reads a byte that the structs do
//! not describe.

use arrow_array::{Array as _, make_array};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bowstring::array::Place;
use bowstring::exchange::{from_arrow, validate_on};
use bowstring::{DeviceArray, Error, Result, Stream};

use super::input::Input;
use super::operations::{Given, Operation, down, is_small};
use super::types::{kind, modest};
use super::world::{World, outcome, reached};
use crate::support::{self, Nulls, assert_same_rows, hiding_no_items, rows};

/// Longer programs show nothing more.
const STEPS: usize = 24;

/// The most arrays that a program keeps at once.
const KEPT: usize = 6;

struct Kept {
    array: DeviceArray,
    sound: bool,
    /// The index of its device's stream in the world.
    at: usize,
}

/// Runs a program that starts with these arrays, each with the index of its device's stream.
pub fn run(input: &mut Input<'_>, world: &World, begin: Vec<(DeviceArray, usize)>) {
    let sound = |array: &DeviceArray, at: usize| {
        let valid = outcome(("import", kind(array.data_type())), validate_on(array, &world.streams[at]));
        valid.is_some() && is_small(array)
    };
    let mut all: Vec<Kept> =
        begin.into_iter().map(|(array, at)| Kept { sound: sound(&array, at), array, at }).collect();
    for _ in 0..STEPS {
        if input.is_over() || all.is_empty() {
            return;
        }
        let which = input.below(all.len());
        if input.one_in(16) {
            all.swap_remove(which);
            continue;
        }
        let from = &all[which];
        let operation = Operation::of(input, &from.array);
        if let Some(made) = step(&operation, from, world) {
            all.push(made);
        }
        if all.len() > KEPT {
            all.remove(0);
        }
    }
}

/// Runs one operation and checks its result.
fn step(operation: &Operation, from: &Kept, world: &World) -> Option<Kept> {
    let stream = &world.streams[from.at];
    let (name, of) = (operation.name(), kind(from.array.data_type()));
    let context = || format!("{operation:?} of {} on {stream:?}", from.array.data_type());
    let given = operation.run(&from.array, stream, &world.streams).and_then(settled);
    if super::setting("_INPUT").is_some() {
        let came = given.as_ref().map_or_else(|error| error.to_string(), |_| "right".into());
        println!("{}, sound {}: {came}", context(), from.sound);
    }
    if let (true, Err(error)) = (from.sound, &given) {
        let fair = matches!(
            error,
            Error::Invalid { .. }
                | Error::Unsupported { .. }
                | Error::OutOfMemory { .. }
                | Error::IndexOutOfBounds { .. }
                | Error::Cast { .. }
                | Error::Evaluation { .. }
                | Error::NoColumn { .. }
                | Error::Arrow { .. }
        );
        assert!(fair, "{}, a sound array: {error:?}", context());
    }
    if from.sound {
        agrees(operation, from, world, &given, &context);
    }
    let given = outcome((&name, &of, from.at.min(1), from.sound), given)?;
    let Given::Array(array) = given else { return None };
    let place = array.place();
    let at =
        world.streams.iter().position(|stream| stream.device().place() == place).expect("a place of ours");
    let valid = validate_on(&array, &world.streams[at]);
    if let (true, Err(error)) = (from.sound, &valid) {
        panic!("{}, a sound array, gave an unsound one: {error:?}", context());
    }
    reached((name, of, kind(array.data_type()), valid.is_ok()));
    let sound = valid.is_ok() && is_small(&array);
    Some(Kept { array, sound, at })
}

/// Waits for a result.
fn settled(given: Given) -> Result<Given> {
    match &given {
        Given::Array(array) => array.wait().map(|()| given),
        _ => Ok(given),
    }
}

/// Fails if the CPU returns a different result for the same rows.
fn agrees(
    operation: &Operation,
    from: &Kept,
    world: &World,
    given: &Result<Given>,
    context: &dyn Fn() -> String,
) {
    let here = &world.streams[from.at];
    let cpu = Stream::cpu();
    let from = down(&from.array, here).and_then(|array| Ok((from_arrow(&array)?, array)));
    let (there, plain) = from.unwrap_or_else(|error| panic!("{}: its rows: {error:?}", context()));
    let mut expected = match operation {
        moves if moves.only_moves() => Ok(Given::Array(there)),
        _ => operation.run(&there, &cpu, &world.streams),
    };
    // arrow-cast also casts items that null inner lists hide, if it moves them along. A device that does not
    // move them must agree with arrow-cast's result for the rows without such items.
    if let (Operation::Cast(..), Ok(_), Err(Error::Arrow { .. } | Error::Cast { .. })) =
        (operation, given, &expected)
    {
        let fewer =
            from_arrow(&make_array(hiding_no_items(&plain.to_data()))).expect("arrow-rs arrays are valid");
        expected = operation.run(&fewer, &cpu, &world.streams);
    }
    match (given, expected) {
        (Ok(Given::Array(given)), Ok(Given::Array(expected))) if is_small(given) && is_small(&expected) => {
            let stream = world.streams.iter().find(|stream| stream.device().place() == given.place());
            let rows_of = |array: &DeviceArray, stream: &Stream| {
                let array = down(array, stream).unwrap_or_else(|error| panic!("{}: {error:?}", context()));
                rows(&array)
            };
            let given = rows_of(given, stream.expect("a place of ours"));
            assert_same_rows(&given, &rows_of(&expected, &cpu), &context());
        }
        (Ok(Given::Count(given)), Ok(Given::Count(expected))) => {
            assert_eq!(*given, expected, "{}, of {plain:?}", context());
        }
        (Ok(_), Ok(_)) => {}
        // A device that lacks support or memory does not count as different.
        (Err(Error::Unsupported { .. } | Error::OutOfMemory { .. }), _) => {}
        (_, Err(Error::Unsupported { .. } | Error::OutOfMemory { .. })) => {}
        (Err(Error::Evaluation { row: given, .. }), Err(Error::Evaluation { row: expected, .. })) => {
            assert_eq!(*given, expected, "{}: the first row that fails", context());
        }
        (Err(given), Err(expected)) if std::mem::discriminant(given) == std::mem::discriminant(&expected) => {
        }
        (Err(Error::Invalid { .. }), Ok(_)) if operation.only_moves() => {}
        // The message is arrow-cast's if arrow-cast does the cast, else the device's.
        (Err(Error::Cast { .. } | Error::Arrow { .. }), Err(Error::Cast { .. } | Error::Arrow { .. })) => {}
        (Err(given), Err(expected)) => panic!("{}: {given:?}, on the CPU {expected:?}", context()),
        (Err(given), Ok(_)) => panic!("{}: {given:?}, none on the CPU", context()),
        (Ok(_), Err(expected)) => panic!("{}: no error, on the CPU {expected:?}", context()),
    }
}

/// A valid arrow-rs array.
fn valid(input: &mut Input<'_>) -> (DataType, ArrayData) {
    let of = modest(input);
    let nulls = *input.pick(&Nulls::ALL);
    let len = input.below(120);
    let rng = &mut input.chance();
    let before = rng.below(3) * rng.below(20);
    let array = support::array(&of, before + len, nulls, rng).slice(before, len);
    (of, array.to_data())
}

/// The target: runs a program on valid arrays.
pub fn target(bytes: &[u8]) {
    let [mut said, mut program] = Input::new(bytes).halves();
    World::with(|world| {
        let arrays = (0..1 + said.below(2)).filter_map(|_| {
            let at = said.below(world.streams.len());
            let (of, data) = valid(&mut said);
            let ours = from_arrow(&make_array(data)).expect("arrow-rs arrays are valid");
            let there = match world.streams[at].device().place() {
                Place::CPU => Ok(ours),
                _ => world.streams[at].upload(&ours),
            };
            outcome(("upload", kind(&of)), there).map(|array| (array, at))
        });
        let arrays = arrays.collect();
        run(&mut program, world, arrays);
    });
}
