//! Fuzzes streams: those of untrusted producers, which pass arrays with lies in them, fail or end; and our
//! own, called in ways that the interface forbids.

use arrow_schema::{DataType, Field};
use bowstring::array::Place;
use bowstring::exchange::export_stream;
use bowstring::ffi::{DeviceType, FFI_ArrowSchema};
use bowstring::{DeviceArray, DeviceBatch, Error};

use super::input::Input;
use super::programs;
use super::stranger::Strangers;
use super::types::{data_type, kind};
use super::world::{World, outcome, reached};
use crate::exchange::foreign_stream::{RawStream, Step, read, read_batches};

/// The target: imports a stream, runs a program on its arrays, and exports streams.
pub fn target(bytes: &[u8]) {
    let [mut said, mut program] = Input::new(bytes).halves();
    let mut strangers = Strangers::default();
    World::with(|world| {
        let at = said.below(world.streams.len());
        let device = world.streams[at].device();
        let place = device.place();
        let batches = said.one_in(3);
        let mut of = data_type(&mut said);
        if batches {
            of = DataType::Struct(vec![Field::new("a", of, said.one_in(2))].into());
        }
        let mut steps = vec![];
        for _ in 0..said.below(5) {
            steps.push(match said.byte() % 8 {
                7 => Step::Fail(said.number() as i32 | 1, said.one_in(2).then_some(c"no more")),
                6 => Step::End,
                _ => {
                    let place = if said.one_in(8) { Place::CPU } else { place };
                    Step::Give(strangers.array(&mut said, &of, place))
                }
            });
        }
        steps.push(Step::End);
        let mut stream = RawStream::new(of.clone(), steps, &strangers.releases);
        strangers.and(1);
        if !said.one_in(16) {
            stream.device_type = place.device_type as i32;
        }
        let mut given = stream.into_ours();
        let most = said.below(6);
        let arrays: Vec<DeviceArray> = match batches {
            true => outcome("batches", read_batches(&mut given, device))
                .into_iter()
                .flatten()
                .take(most)
                .map_while(|batch| outcome("batch", batch))
                .filter_map(|batch: DeviceBatch| batch.columns().first().cloned())
                .collect(),
            false => outcome("arrays", read(&mut given, device))
                .into_iter()
                .flatten()
                .take(most)
                .map_while(|array| outcome(("array", kind(&of)), array))
                .collect(),
        };
        drop(given);
        ours(&mut program, arrays.clone(), place.device_type);
        let at = |array: &DeviceArray| if array.place() == Place::CPU { 0 } else { at };
        programs::run(
            &mut program,
            world,
            arrays.into_iter().map(|array| (array.clone(), at(&array))).collect(),
        );
    });
    strangers.assert_released();
}

/// Exports arrays under the first one's field, and calls the stream in any order and any number of times.
fn ours(input: &mut Input<'_>, arrays: Vec<DeviceArray>, device_type: DeviceType) {
    let Some(first) = arrays.first() else { return };
    let field = Field::new("f", first.data_type().clone(), true);
    let fails = input.below(8);
    let source = arrays.into_iter().enumerate().map(move |(i, array)| match i + 1 == fails {
        true => Err(Error::Producer { code: 7, message: "asked".into(), metadata: Default::default() }),
        false => Ok(array),
    });
    let mut stream = RawStream::of(export_stream(field, device_type, source));
    let mut kept = vec![];
    for _ in 0..input.below(12) {
        match input.byte() % 4 {
            0 => drop(stream.call_last_error()),
            1 => {
                let mut schema = FFI_ArrowSchema::empty();
                // SAFETY: the callback belongs to the struct.
                let code = unsafe {
                    stream.get_schema.expect("a stream gives its schema")(&mut stream, &mut schema)
                };
                reached(("schema", code));
            }
            _ => {
                let (code, array) = stream.call_next();
                assert!(code == 0 || stream.call_last_error().is_some(), "code {code} without a word");
                reached(("next", code, array.is_released()));
                kept.push(array);
            }
        }
    }
    if input.one_in(2) {
        kept.clear();
    }
    stream.call_release();
}
