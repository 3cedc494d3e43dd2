//! Targets for C structs: arrays, schemas and metadata of untrusted producers.

use std::ptr::{null, null_mut};

use bowstring::Device;
use bowstring::array::Place;
use bowstring::device::testing::{ManualEvent, children, drain};
use bowstring::exchange::{export_batch, import_batch, import_field, import_schema, validate_batch};

use super::input::Input;
use super::metadata::{self, Words};
use super::programs;
use super::stranger::Strangers;
use super::types::{data_type, kind};
use super::world::{World, outcome};
use crate::exchange::foreign::{import_on, schema};
use crate::exchange::foreign_schema::RawSchema;

/// Imports arrays of any type with lies in them, on any device, and runs a program on them.
pub fn arrays(bytes: &[u8]) {
    let [mut said, mut program] = Input::new(bytes).halves();
    let mut strangers = Strangers::default();
    World::with(|world| {
        let of = data_type(&mut said);
        let at = said.below(world.streams.len());
        let device = world.streams[at].device();
        let place = if said.one_in(5) { Place::CPU } else { device.place() };
        let mut raw = strangers.array(&mut said, &of, place);
        // On a device, another stream may still be writing it.
        let event = (place != Place::CPU && said.one_in(3)).then(ManualEvent::pending);
        raw.sync_event = event.as_ref().map_or(null_mut(), ManualEvent::pointer);
        let mut ours = raw.into_ours();
        let imported = import_on(device, &mut ours, &schema(&of));
        event.iter().for_each(ManualEvent::fire);
        let imported = outcome(("arrays", kind(&of), at.min(1)), imported);
        if let Some((_, array)) = imported {
            let at = if array.place() == Place::CPU { 0 } else { at };
            // Both the whole and a part, whose last offset is an inner one.
            let half = array.len() / 2;
            let part = array.slice(half / 2, half).expect("rows of the array");
            programs::run(&mut program, world, vec![(part, at), (array, at)]);
        }
        drop(ours);
        drain(device);
        drop(event);
    });
    strangers.assert_released();
}

/// Imports schemas of untrusted producers; if one can be read, imports an array under it, as an array and as
/// a batch.
pub fn schemas(bytes: &[u8]) {
    let mut said = Input::new(bytes);
    let mut strangers = Strangers::default();
    let mut words = Words::default();
    let schema = stranger(&mut said, &mut words, 0).into_ours();
    // SAFETY: its pointers point to what the interface wants.
    let (read, field) = unsafe { (import_schema(&schema), import_field(&schema)) };
    outcome("schema", read);
    let field = outcome("field", field);
    World::with(|world| {
        let Some(field) = field.filter(|field| is_known(field.data_type())) else { return };
        let mut ours = strangers.array(&mut said, field.data_type(), Place::CPU).into_ours();
        if said.one_in(2) {
            // SAFETY: as the interface wants it, except for what an importer can see.
            let batch = unsafe { import_batch(&mut ours, &schema, &Device::cpu()) };
            if let Some(batch) = outcome("batch", batch) {
                outcome("validated", validate_batch(&batch, &world.streams[0]));
                let again = export_batch(&batch).and_then(|(mut array, schema)| {
                    // SAFETY: the library's own structs.
                    unsafe { import_batch(&mut array, &schema, &Device::cpu()) }
                });
                let again = again.expect("what was exported can be imported");
                assert_eq!(again.schema(), batch.schema());
            }
        } else if let Some((_, array)) = outcome("array", import_on(&Device::cpu(), &mut ours, &schema)) {
            programs::run(&mut said, world, vec![(array, 0)]);
        }
        drop(ours);
    });
    drop(schema);
    strangers.assert_released();
}

/// Whether [`Strangers`] can make arrays of a type.
fn is_known(of: &arrow_schema::DataType) -> bool {
    let below = children(of);
    let own = match of {
        arrow_schema::DataType::Dictionary(key, values) => key.is_integer() && is_known(values),
        arrow_schema::DataType::FixedSizeBinary(size) | arrow_schema::DataType::FixedSizeList(_, size) => {
            *size >= 0
        }
        _ => true,
    };
    own && below.into_iter().all(is_known)
}

/// Valid formats, nearly valid ones, and wrong ones.
const FORMATS: [&str; 56] = [
    "i",
    "+s",
    "n",
    "b",
    "c",
    "C",
    "s",
    "S",
    "l",
    "L",
    "I",
    "e",
    "f",
    "g",
    "z",
    "Z",
    "u",
    "U",
    "vu",
    "vz",
    "w:5",
    "w:0",
    "w:-1",
    "d:10,2",
    "d:9,2,32",
    "d:76,20,256",
    "d:5,-3",
    "tdD",
    "tdm",
    "tts",
    "ttn",
    "tss:",
    "tsu:UTC",
    "tsn:+02:00",
    "tsm:Europe/Paris",
    "tsu:\u{e9}",
    "tDs",
    "tiM",
    "tiD",
    "tin",
    "+l",
    "+L",
    "+vl",
    "+vL",
    "+w:3",
    "+w:0",
    "+m",
    "+r",
    "+us:0,1",
    "+ud:5",
    "+ud:",
    "+us:300",
    "+us:1,1",
    "",
    "d:",
    "+w:99999999999",
];

/// A schema of any shape, with lies in every field.
fn stranger(input: &mut Input<'_>, words: &mut Words, depth: usize) -> RawSchema {
    let mut format = input.pick(&FORMATS).to_string();
    if input.one_in(12) {
        let (at, with) = (input.below(format.len() + 1), input.byte());
        if format.is_char_boundary(at) {
            format.insert(at, with as char);
        }
    }
    let ids = || format.split(':').nth(1).unwrap_or_default().split(',').filter(|id| !id.is_empty());
    let fits = match format.split(':').next().unwrap_or_default() {
        "+l" | "+L" | "+vl" | "+vL" | "+w" | "+m" => 1,
        "+r" => 2,
        "+us" | "+ud" => ids().count(),
        "+s" => input.below(4),
        _ => 0,
    };
    let wanted = if input.one_in(24) { input.below(4) } else { fits };
    let deep = depth < 4;
    let children = (0..wanted).filter(|_| deep).map(|_| stranger(input, words, depth + 1)).collect();
    let values = (input.one_in(8) && deep).then(|| stranger(input, words, depth + 1));
    let metadata = input.one_in(8).then(|| words.keep(&metadata::stranger(input).0));
    let name = input.one_in(8).then(|| words.text(&format!("n{}", input.byte() as char)));
    let format = words.text(&format);
    RawSchema::dictionary(c"n", children, values).with(|schema| {
        schema.format = format;
        (schema.name, schema.metadata) = (name.unwrap_or(null()), metadata.unwrap_or(null()));
        match input.byte() {
            255 => schema.flags = input.number(),
            254 => schema.n_children = input.number().min(schema.n_children),
            253 => schema.children = null_mut(),
            252 => schema.dictionary = null_mut(),
            251 => schema.format = null(),
            250 => schema.name = c"\xff\xfe".as_ptr(),
            _ => {}
        }
    })
}
