//! What each device says that it does not do. Asked once, of every operation and type; the README's table is made from
//! the answers and checked in, so that a device can neither lose an operation unnoticed nor skip a test by refusing.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int32Array};
use arrow_cast::can_cast_types;
use arrow_schema::DataType;
use bowstring::array::Place;
use bowstring::compute::*;
use bowstring::{Array, Error, Stream};

use super::{Nulls, Random, Target, array, devices, types};

const ROWS: usize = 40;

/// A named call of an operation on an array of `ROWS` rows.
type Operation = (&'static str, fn(&Array, &Stream) -> Result<(), Error>);

/// Every operation that is asked of a type.
pub const OPERATIONS: &[Operation] = &[
    ("filter", |values, stream| {
        let mask: ArrayRef = Arc::new(BooleanArray::from_iter((0..ROWS).map(|i| Some(i % 3 == 0))));
        filter(values, &on(stream, mask)?, stream).wait().map(drop)
    }),
    ("take", |values, stream| {
        // A null among the indices, on devices: where a type has no nulls there may be no answer to it.
        let null = (stream.device().place() == Place::CPU).then_some(1);
        let indices: ArrayRef = Arc::new(Int32Array::from(vec![Some(2), Some(0), null, Some(39)]));
        take(values, &on(stream, indices)?, &TakeOptions::default(), stream).wait().map(drop)
    }),
    ("null_count", |values, stream| null_count(values, stream).wait().map(drop)),
    ("logical_null_count", |values, stream| logical_null_count(values, stream).wait().map(drop)),
    ("is_null", |values, stream| is_null(values, stream).wait().map(drop)),
    ("is_not_null", |values, stream| is_not_null(values, stream).wait().map(drop)),
    ("drop_nulls", |values, stream| drop_nulls(values, stream).wait().map(drop)),
];

fn on(stream: &Stream, array: ArrayRef) -> Result<Array, Error> {
    stream.upload(&bowstring::exchange::from_arrow(&array)?)
}

/// Arrays of the type on the device, with and without a bitmap: what needs the one may not need the other. How many
/// nulls there are is not known, so that counting them takes the device.
fn values(target: &Target, data_type: &DataType) -> [Array; 2] {
    [Nulls::None, Nulls::Some].map(|nulls| {
        let array = array(data_type, ROWS + 3, nulls, &mut Random::new(0));
        let mut parts = target.import(&array).slice(3, ROWS).expect("rows of the array").into_parts();
        parts.null_count = None;
        Array::try_new(parts).expect("the same parts")
    })
}

fn refused(target: &Target, result: Result<(), Error>, what: &str) -> bool {
    match result {
        Ok(()) => false,
        Err(Error::Unsupported { .. }) => true,
        Err(other) => panic!("{what}, on {target:?}: {other}"),
    }
}

/// The types that the device refuses to an operation.
pub fn refused_types(target: &Target, (name, call): &Operation) -> Vec<DataType> {
    let refuses = |data_type: &DataType| {
        let refuses =
            |values| refused(target, call(values, &target.stream), &format!("{name} of {data_type}"));
        values(target, data_type).iter().any(refuses)
    };
    types().into_iter().filter(refuses).collect()
}

/// The pairs of types, of those that arrow-rs casts, that the device refuses to cast.
pub fn refused_casts(target: &Target) -> Vec<(DataType, DataType)> {
    let mut pairs = vec![];
    for from in types() {
        let values = values(target, &from);
        for to in types().into_iter().filter(|to| can_cast_types(&from, to)) {
            let refuses = |values| match cast(values, &to, &CastOptions::default(), &target.stream).wait() {
                // Whether some value fails is not the question here.
                Err(Error::Cast { .. } | Error::Arrow { .. }) => false,
                answer => refused(target, answer.map(drop), &format!("cast of {from} to {to}")),
            };
            if values.iter().any(refuses) {
                pairs.push((from.clone(), to));
            }
        }
    }
    pairs
}

/// The name of a type without its parameters.
pub fn kind(data_type: &DataType) -> String {
    let shown = data_type.to_string();
    shown.split('(').next().unwrap_or(&shown).to_owned()
}

/// What a device refuses: kinds of types by operation, and pairs of types.
pub struct Refusals {
    of_types: BTreeSet<(&'static str, String)>,
    of_casts: BTreeSet<(String, String)>,
}

impl Refusals {
    /// Asks the device.
    pub fn of(target: &Target) -> Refusals {
        let of_types = OPERATIONS.iter().flat_map(|operation| {
            refused_types(target, operation).into_iter().map(move |data_type| (operation.0, kind(&data_type)))
        });
        let of_casts = refused_casts(target).into_iter().map(|(from, to)| (from.to_string(), to.to_string()));
        Refusals { of_types: of_types.collect(), of_casts: of_casts.collect() }
    }

    /// Whether a refusal is among them: of the type, or of one that it is made of. Of casts to and from types that are
    /// none of the representative ones, whether their kind is refused any.
    pub fn expected(&self, operation: &str, data_type: &str) -> bool {
        let parts = |shown: &str| -> Vec<String> {
            shown.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
        };
        let Some((from, to)) = data_type.split_once(" to ") else {
            let refused =
                |part: &String| self.of_types.iter().any(|(name, of)| *name == operation && of == part);
            return parts(data_type).iter().any(refused);
        };
        let representative = |shown: &str| types().iter().any(|known| known.to_string() == shown);
        match representative(from) && representative(to) {
            true => self.of_casts.contains(&(from.to_owned(), to.to_owned())),
            false => {
                let (from, to) = (parts(from), parts(to));
                self.of_casts
                    .iter()
                    .any(|(a, b)| parts(a).first() == from.first() || parts(b).first() == to.first())
            }
        }
    }
}

/// The devices, one of each kind that may differ in what it does: both widths of the emulator must not.
pub fn kinds_of_devices() -> Vec<(&'static str, Vec<Target>)> {
    let named =
        |prefix: &str| devices().into_iter().filter(|target| target.name.starts_with(prefix)).collect();
    vec![("CPU", named("cpu")), ("emulated GPU", named("emulator"))]
}
