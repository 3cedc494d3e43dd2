use std::collections::HashSet;

use bowstring_kernels::cast::*;
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::numeric::direct::Truth;
use bowstring_kernels::numeric::plan::{Unit, Zone};
use bowstring_kernels::numeric::words::Parameter;
use bowstring_kernels::numeric::{
    Conversion, Kind, Native, Number, Operation, Plan, Recipe, U256, Visitor, plan,
};
use bowstring_kernels::target::{Args, Entry, Fault};

use crate::support::*;

type Key = [u32; 3];

const OFFSETS: [u64; 8] = [0, 1, 7, 8, 31, 33, 64, 127];

/// Types that between them need every entry.
fn kinds() -> Vec<Kind> {
    use Number::*;
    let mut kinds = vec![Kind::Boolean, Kind::Date32, Kind::Date64, Kind::Time32(Unit::Second)];
    kinds.extend([I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64].map(Kind::Plain));
    for (number, precision) in [(I32, 9), (I64, 18), (I128, 38), (I256, 76)] {
        kinds.extend([0, 1, 3, -1].map(|scale| Kind::Decimal(number, precision, scale)));
    }
    kinds.extend([Kind::Time64(Unit::Nanosecond), Kind::Time32(Unit::Millisecond)]);
    kinds.extend([Unit::Second, Unit::Nanosecond].map(Kind::Duration));
    for zone in [None, Some(Zone::Fixed(19_800)), Some(Zone::Fixed(-39_600))] {
        kinds.extend([Unit::Second, Unit::Microsecond].map(|unit| Kind::Timestamp(unit, zone)));
    }
    kinds.extend([Kind::YearMonth, Kind::DayTime, Kind::MonthDayNano]);
    kinds
}

/// What a row should become: its bits if it fits. Booleans are a byte.
struct Row(U256);

impl Visitor for Row {
    type Output = Option<Vec<u8>>;
    fn convert<C: Conversion<From: Native, To: Native> + Parameter>(self, conversion: C) -> Self::Output {
        let (value, fits) = conversion.convert(C::From::from_bits(self.0));
        assert!(fits || !C::ALWAYS, "a conversion that always fits does not");
        fits.then(|| bytes(value.to_bits(), size_of::<C::To>()))
    }
    fn bits_to<B: Native + Truth>(self) -> Self::Output {
        Some(bytes(B::from_bool(self.0.low & 1 == 1).to_bits(), size_of::<B>()))
    }
    fn bits_from<A: Native + Truth>(self) -> Self::Output {
        Some(vec![A::from_bits(self.0).to_bool() as u8])
    }
}

fn bytes(bits: U256, width: usize) -> Vec<u8> {
    [bits.low.to_le_bytes(), bits.high.to_le_bytes()].concat()[..width].to_vec()
}

/// Numbers of every size, zero and all ones among them.
fn random_row(random: &mut Random) -> U256 {
    let mut word = || random.next();
    let bits = U256 {
        low: u128::from(word()) << 64 | u128::from(word()),
        high: u128::from(word()) << 64 | u128::from(word()),
    };
    let short = bits.shr((word() % 256) as u32);
    match word() % 8 {
        0 => U256::ZERO,
        1 => bits,
        2 => U256 { low: !short.low, high: !short.high },
        // Intervals of nanoseconds only.
        3 => U256::from_low(short.low << 64),
        _ => short,
    }
}

/// Memory of exactly this many bytes, `at` bytes after a 16-byte boundary.
struct Bytes {
    memory: Vec<u128>,
    at: usize,
    len: usize,
}

impl Bytes {
    fn new(bytes: &[u8], at: usize) -> Bytes {
        let all = [vec![0; at], bytes.to_vec(), vec![0; 16]].concat();
        let memory =
            all.chunks_exact(16).map(|chunk| u128::from_le_bytes(chunk.try_into().unwrap())).collect();
        Bytes { memory, at, len: bytes.len() }
    }

    fn input(&self) -> (In<u32>, u64) {
        In::bitmap(self.memory.as_ptr().expose_provenance() as u64 + self.at as u64, self.len as u64, 0)
    }
}

fn launch<A: Args>(table: &'static [Entry<A>], key: Key, args: A, width: u32, waves: u64) -> Option<Fault> {
    let entry = table.iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("no entry {key:?}"));
    run(entry, args, width, waves)
}

struct Case {
    len: u64,
    offset: u64,
    valid: bool,
    safe: bool,
    tiles: u64,
}

fn check(recipe: &Recipe, case: &Case, wave: u32, random: &mut Random) {
    let Case { len, offset, valid, safe, tiles } = *case;
    let key = [recipe.operation as u32, recipe.from as u32, recipe.to as u32];
    let context = format!(
        "{:?} {:?} {:?}, len {len}, offset {offset}, wave {wave}",
        recipe.operation, recipe.from, recipe.to
    );
    let (from_bits, to_bits) =
        (recipe.operation == Operation::FromBits, recipe.operation == Operation::ToBits);
    let (from, to) = (recipe.from.width(), recipe.to.width());
    let rows: Vec<U256> = (0..len).map(|_| random_row(random)).collect();
    let wanted: Vec<_> = rows.iter().map(|row| recipe.visit(Row(*row)).unwrap()).collect();

    let flat: Vec<u8> = rows.iter().flat_map(|row| bytes(*row, from)).collect();
    let values = Bytes::new(&flat, offset as usize * from.min(8) % 16 + offset as usize / 100);
    let map = Bitmap::new(&rows.iter().map(|row| row.low & 1 == 1).collect::<Vec<_>>(), offset);
    let nulls = random.bits(len, 80);
    let validity = Bitmap::new(&nulls, offset + 5);
    let is_valid = |i: usize| !valid || nulls[i];

    let out_bytes = if to_bits { len.div_ceil(32) * 4 } else { len * to as u64 };
    let mut out = vec![0x55u128 << 64; out_bytes.div_ceil(16) as usize];
    let mut out_valid = vec![!0u32; len.div_ceil(32) as usize];
    let mut status = [7, u64::MAX];
    let (values_in, values_offset) = if from_bits { map.input() } else { values.input() };
    let (valid_in, valid_offset) = if valid { validity.input() } else { (In::absent(), 0) };
    let task = Task {
        values: values_in,
        offset: values_offset,
        valid: valid_in,
        valid_offset,
        len,
        tiles,
        out: output(&mut out).cast(),
        out_valid: if safe { output(&mut out_valid) } else { Out::absent() },
        status: if recipe.fallible { output(&mut status) } else { Out::absent() },
        words: recipe.words,
    };
    let waves = len.div_ceil(tile(recipe, wave).unwrap() * tiles);
    let fault = match recipe.operation {
        Operation::Direct | Operation::FromBits | Operation::ToBits => {
            launch(CAST_NUMBERS, key, CastNumbers::of(&task), wave, waves)
        }
        Operation::Up | Operation::Down => launch(CAST_SCALE, key, CastScale::of(&task), wave, waves),
        Operation::Round | Operation::Quotient | Operation::Product => {
            launch(CAST_FLOAT, key, CastFloat::of(&task), wave, waves)
        }
        _ => launch(CAST_TIME, key, CastTime::of(&task), wave, waves),
    };
    assert_eq!(fault, None, "{context}");

    let out: Vec<u8> = out.iter().flat_map(|block| block.to_le_bytes()).collect();
    for (i, wanted) in wanted.iter().enumerate() {
        let got = if to_bits { vec![out[i / 8] >> (i % 8) & 1] } else { out[i * to..(i + 1) * to].to_vec() };
        assert!(
            wanted.is_none() || *wanted == Some(got.clone()),
            "{context}: row {i} {:?}: {got:?}",
            rows[i]
        );
    }
    if recipe.fallible {
        let good: Vec<bool> = (0..rows.len()).map(|i| is_valid(i) && wanted[i].is_some()).collect();
        let bad = (0..rows.len()).find(|i| is_valid(*i) && wanted[*i].is_none());
        let count = good.iter().filter(|good| !**good).count() as u64;
        assert_eq!(status, [7 + count, bad.map_or(u64::MAX, |row| row as u64)], "{context}");
        if safe {
            let bit = |i: usize| out_valid[i / 32] >> (i % 32) & 1 == 1;
            for i in 0..out_valid.len() * 32 {
                assert_eq!(bit(i), good.get(i).copied().unwrap_or(false), "{context}: validity of {i}");
            }
        }
    }
}

#[test]
fn every_entry_at_every_edge() {
    let mut random = Random(11);
    let mut reached = HashSet::<Key>::new();
    for (i, &from) in kinds().iter().enumerate() {
        for (j, &to) in kinds().iter().enumerate() {
            let Plan::Convert(recipe) = plan(from, to) else { continue };
            let new = reached.insert([recipe.operation as u32, recipe.from as u32, recipe.to as u32]);
            for wave in WIDTHS {
                let tile = tile(&recipe, wave).unwrap();
                let lens = [1, tile, 33, tile - 1, 2 * tile + 7, 3 * tile + 65, 64];
                let cases = if new { lens.len() } else { 1 };
                for case in 0..cases {
                    let k = i + j + case;
                    let case = Case {
                        len: lens[k % lens.len()],
                        offset: OFFSETS[k % OFFSETS.len()],
                        valid: k % 3 != 0,
                        safe: k % 4 != 0,
                        tiles: 1 + k as u64 % 3,
                    };
                    check(&recipe, &case, wave, &mut random);
                }
            }
        }
    }
    let keys = |table: &[&[u32]]| table.iter().map(|key| Key::try_from(*key).unwrap()).collect::<Vec<_>>();
    let entries = [
        keys(&CAST_NUMBERS.iter().map(|entry| entry.key).collect::<Vec<_>>()),
        keys(&CAST_SCALE.iter().map(|entry| entry.key).collect::<Vec<_>>()),
        keys(&CAST_FLOAT.iter().map(|entry| entry.key).collect::<Vec<_>>()),
        keys(&CAST_TIME.iter().map(|entry| entry.key).collect::<Vec<_>>()),
    ]
    .concat();
    for key in &entries {
        assert!(reached.contains(key), "no plan leads to {key:?}");
    }
    assert_eq!(entries.len(), reached.len(), "as many entries as ways to compute");
}
