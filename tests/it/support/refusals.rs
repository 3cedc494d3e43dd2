//! What each device says that it does not do. Asked once, of every operation and type; the README's table is made from
//! the answers and checked in, so that a device can neither lose an operation unnoticed nor skip a test by refusing.

use std::collections::BTreeSet;

use arrow_cast::can_cast_types;
use arrow_schema::DataType;
use bowstring::compute::{CastOptions, cast};
use bowstring::{Array, Error};

use super::operations::{OPERATIONS, Operation};
use super::{Nulls, Random, Target, array, devices, types, uncounted};

const ROWS: usize = 40;

/// The operations that are asked of a type alone: not casts, which are of two.
pub fn of_one_type() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().filter(|operation| operation.name != "cast")
}

/// Arrays of the type on the device, with and without a bitmap: what needs the one may not need the other. How many
/// nulls there are is not known, so that counting them takes the device.
fn values(target: &Target, data_type: &DataType) -> [Array; 2] {
    [Nulls::None, Nulls::Some].map(|nulls| {
        let array = array(data_type, ROWS + 3, nulls, &mut Random::new(0));
        uncounted(target.import(&array).slice(3, ROWS).expect("rows of the array"))
    })
}

fn refused(target: &Target, result: Result<(), Error>, what: &str) -> bool {
    match result {
        Ok(()) => false,
        Err(Error::Unsupported { .. }) => true,
        Err(other) => panic!("{what}, on {target:?}: {other}"),
    }
}

/// The types that the device refuses to an operation, with no nulls in its argument where a device has no answer to them.
pub fn refused_types(target: &Target, operation: &Operation) -> Vec<DataType> {
    let refuses = |data_type: &DataType| {
        let argument = (operation.argument)(data_type, ROWS, &mut Random::new(1)).expect("there are rows");
        let refuses = |values| {
            let answer = operation.run(values, &argument, &target.stream);
            refused(target, answer.map(drop), &format!("{} of {data_type}", operation.name))
        };
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
        let of_types = of_one_type().flat_map(|operation| {
            let refused = refused_types(target, operation).into_iter();
            refused.map(move |data_type| (operation.name, kind(&data_type)))
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
                // Lists of unions do not become text on devices, whatever that is in, and no representative type has any.
                let named = |of: &[String], name: &str| of.iter().any(|part| part.contains(name));
                named(&from, "List") && named(&from, "Union") && named(&to, "Utf8")
                    || self
                        .of_casts
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
