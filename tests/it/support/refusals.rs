//! The operations and types that each device refuses. The answers for every operation and type, determined
//! once, make the README's table, which is checked in. So a device cannot lose an operation unnoticed, and
//! cannot skip a test by refusing.

use std::collections::BTreeSet;

use arrow_cast::can_cast_types;
use arrow_schema::DataType;
use bowstring::compute::{CastOptions, cast, check_cast};
use bowstring::{DeviceArray, Error};

use super::operations::{OPERATIONS, Operation};
use super::{Nulls, Random, Target, array, devices, types, uncounted};

const ROWS: usize = 40;

/// The operations that depend on one type: all but casts, which depend on two.
pub fn of_one_type() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().filter(|operation| operation.name != "cast")
}

/// Arrays of the type on the device, with and without a bitmap, because a device may support only one of
/// them. Null counts are unknown, so that counting them needs the device.
fn values(target: &Target, data_type: &DataType) -> [DeviceArray; 2] {
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

/// The types for which the device refuses an operation. Arguments have no nulls if the device does not
/// support nulls in them.
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

/// The pairs of types that arrow-rs casts and the device refuses to cast.
pub fn refused_casts(target: &Target) -> Vec<(DataType, DataType)> {
    let mut pairs = vec![];
    for from in types() {
        let values = values(target, &from);
        for to in types().into_iter().filter(|to| can_cast_types(&from, to)) {
            let refuses = |values| match cast(values, &to, &CastOptions::default(), &target.stream).wait() {
                // Failing values do not matter here.
                Err(Error::Cast { .. } | Error::Arrow { .. }) => false,
                answer => refused(target, answer.map(drop), &format!("cast of {from} to {to}")),
            };
            let refused = values.iter().any(refuses);
            // A planner knows it before there are values.
            let before = check_cast(&from, &to, &CastOptions::default(), &target.stream);
            let unsupported = matches!(before, Err(Error::Unsupported { .. }));
            assert_eq!(unsupported, refused, "{from} to {to} on {target:?}: {before:?}");
            if refused {
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

/// The refusals of a device: kinds of types by operation, and pairs of types.
pub struct Refusals {
    of_types: BTreeSet<(&'static str, String)>,
    of_casts: BTreeSet<(String, String)>,
}

impl Refusals {
    /// Determines the refusals by trying every operation and type.
    pub fn of(target: &Target) -> Refusals {
        let of_types = of_one_type().flat_map(|operation| {
            let refused = refused_types(target, operation).into_iter();
            refused.map(move |data_type| (operation.name, kind(&data_type)))
        });
        let of_casts = refused_casts(target).into_iter().map(|(from, to)| (from.to_string(), to.to_string()));
        Refusals { of_types: of_types.collect(), of_casts: of_casts.collect() }
    }

    /// Whether a refusal is expected: for the type, or for a type that it contains. For a cast with a type
    /// outside the representative ones, any refused cast of the same kind counts.
    pub fn expected(&self, operation: &str, data_type: &str) -> bool {
        let parts = |shown: &str| -> Vec<String> {
            shown.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
        };
        // Devices do not look for nulls in the values of a part that must have none.
        if operation == "cast" && data_type.ends_with(" without nulls") {
            return true;
        }
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
                // Devices refuse to cast lists of unions to text at any depth, and no representative type
                // contains such a list.
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

/// The devices, one of each kind that may differ in its refusals; the emulator's two widths must not differ.
pub fn kinds_of_devices() -> Vec<(&'static str, Vec<Target>)> {
    let named =
        |prefix: &str| devices().into_iter().filter(|target| target.name.starts_with(prefix)).collect();
    vec![("CPU", named("cpu")), ("emulated GPU", named("emulator"))]
}
