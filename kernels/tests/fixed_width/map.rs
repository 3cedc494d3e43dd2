//! Runs every function of the list for each pair of types that has an entry, and compares with the function
//! itself, called on each row.
//!
//! The parameters are made here; the host library's tests check those that its rules make for pairs of Arrow
//! types.

use bowstring_kernels::map::function::divide::Divisor;
use bowstring_kernels::map::function::null::FillNull;
use bowstring_kernels::map::function::words::{Parameter, WORDS, Words};
use bowstring_kernels::map::function::{Bit, I256, Native, Number, U256, ValueFunction};
use bowstring_kernels::map::functions::{EVERY, Function, FunctionCall, Launcher, Visitor};
use bowstring_kernels::map::kernel::{map, waves};
use bowstring_kernels::map::task::{MapTask, Shape};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::target::{Args, Entry, Fault, Wave};

use crate::support::*;

const OFFSETS: [u64; 8] = [0, 1, 7, 8, 31, 33, 64, 127];

/// The bits that a row should have, if its value fits, and whether it is valid. Booleans are a byte.
struct Row(U256, bool);

impl Visitor for Row {
    type Output = Option<Vec<u8>>;
    fn visit<F: ValueFunction<From: Native, To: Native> + Parameter>(self, function: F) -> Self::Output {
        let (value, fits) = match self.1 || !F::FILLS_NULLS {
            true => function.call(F::From::from_bits(self.0)),
            false => (function.of_null(), true),
        };
        assert!(fits || !F::ALWAYS, "a function whose values always fit has one that does not");
        fits.then(|| bytes(value.to_bits(), size_of::<F::To>()))
    }
}

/// Rows in a tile.
struct Tile(u32);

impl Visitor for Tile {
    type Output = u64;
    fn visit<F: ValueFunction<From: Native, To: Native> + Parameter>(self, _: F) -> u64 {
        Shape::of::<F>().tile(self.0).into()
    }
}

fn bytes(bits: U256, width: usize) -> Vec<u8> {
    [bits.low.to_le_bytes(), bits.high.to_le_bytes()].concat()[..width].to_vec()
}

/// Words of parameters, written from the front.
struct Written(Words);

impl Written {
    fn put(mut self, parameter: impl Parameter) -> Written {
        parameter.write(&mut self.0);
        self
    }

    /// Writes an integer in the width of a native number.
    fn number(self, number: Number, value: i128) -> Written {
        let high = if value < 0 { !0 } else { 0 };
        match number {
            Number::I128 => self.put(value),
            Number::I256 => self.put(U256 { low: value as u128, high }),
            _ => self.put(value as i64),
        }
    }

    /// Writes a divisor, and then the remainder to round up from, in the type that holds the native integer's
    /// magnitudes.
    fn divisor(self, number: Number, divisor: u32, round_from: u32) -> Written {
        let (wide, from) = (U256::from_low(divisor.into()), U256::from_low(round_from.into()));
        match number {
            Number::I256 => self.put(Divisor::new(wide)).put(from),
            Number::I128 => self.put(Divisor::new(u128::from(divisor))).put(u128::from(round_from)),
            Number::I64 | Number::U64 => {
                self.put(Divisor::new(u64::from(divisor))).put(u64::from(round_from))
            }
            _ => self.put(Divisor::new(divisor)).put(round_from),
        }
    }
}

/// Parameters under which some values fit and others do not.
fn parameters(function: Function, from: Number, to: Number) -> [u64; WORDS] {
    // A limit with fewer bits than the native type: some of its values lie outside, unless it has few.
    let limit = (1i128 << (from.bits() * 2 / 3).min(100)) - 3;
    let least = if from.signed() == from { -limit } else { 3 };
    let written = Written(Words::new([0; WORDS]));
    let day = || Divisor::new(86_400_000u64);
    match function {
        Function::Direct | Function::FromBool | Function::ToBool => written,
        Function::MonthsToInterval | Function::DayTimeToInterval => written,
        Function::Up => written.number(from, least).number(from, limit - 1).number(to, 100).put(-7i64),
        Function::Down => {
            let rounding = if to.bits() == 64 { 50 } else { 100 };
            written.number(from, least).number(from, limit - 1).divisor(from, 100, rounding).put(5i64)
        }
        Function::Round => {
            let limit = (1u128 << (to.bits() * 2 / 3).min(100)) - 3;
            let written = written.put(1000.0f64);
            match to {
                Number::I256 => written.put(U256::from_low(limit)),
                Number::I128 => written.put(limit),
                _ => written.put(limit as u64),
            }
        }
        Function::Quotient => {
            // 1000, shifted so that its top bit is the word's top bit.
            match from {
                Number::I256 => {
                    let divisor = U256::from_low(1000);
                    let shift = divisor.leading_zeros();
                    let reciprocal = Divisor::new(divisor).reciprocal.high;
                    written.put(divisor.shl(shift)).put(shift).put(reciprocal)
                }
                _ => {
                    let shift = 1000u128.leading_zeros();
                    written.put(1000u128 << shift).put(shift).put(Divisor::new(1000u128).reciprocal)
                }
            }
        }
        Function::Product => written.put([0, 0, 0, 0, 125u64 << 57]).put(10 - 64 + 256i32),
        Function::Days => {
            written.put(-limit as i64).put(limit as i64).put(day()).put(19_800_000u64).put(-1i64).put(1i64)
        }
        Function::TimeOfDay => {
            let written = written.put(-limit as i64).put(limit as i64).put(day());
            written.put(19_800_000u64).put(1u64).put(Divisor::new(1000u64))
        }
        Function::DurationToInterval => written.put(-limit as i64).put(limit as i64).put(1_000_000i64),
        Function::IntervalToDuration => written.put(Divisor::new(1000u64)),
        Function::FillNull => written.put(U256::from_low(7)),
    }
    .0
    .into_array()
}

/// Numbers of every size, among them zero and all ones.
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
        // The interval has nanoseconds only.
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

struct Run {
    width: u32,
}

impl Launcher for Run {
    type Output = Option<Fault>;
    fn launch<A: Args>(self, entry: &'static Entry<A>, args: &A) -> Option<Fault> {
        run(entry, *args, self.width)
    }
}

struct Case {
    len: u64,
    offset: u64,
    valid: bool,
    safe: bool,
    tiles: u64,
}

fn check(call: &FunctionCall, case: &Case, wave: u32, random: &mut Random) {
    let Case { len, offset, valid, safe, tiles } = *case;
    let context =
        format!("{:?} {:?} {:?}, len {len}, offset {offset}, wave {wave}", call.function, call.from, call.to);
    let (from_bits, to_bits) = (call.from == Number::Bit, call.to == Number::Bit);
    let (from, to) = (call.from.width(), call.to.width());
    let rows: Vec<U256> = (0..len).map(|_| random_row(random)).collect();
    let flat: Vec<u8> = rows.iter().flat_map(|row| bytes(*row, from)).collect();
    let values = Bytes::new(&flat, offset as usize * from.min(8) % 16 + offset as usize / 100);
    let map = Bitmap::new(&rows.iter().map(|row| row.low & 1 == 1).collect::<Vec<_>>(), offset);
    let nulls = random.bits(len, 80);
    let validity = Bitmap::new(&nulls, offset + 5);
    let is_valid = |i: usize| !valid || nulls[i];
    let wanted: Vec<_> =
        rows.iter().enumerate().map(|(i, row)| call.visit(Row(*row, is_valid(i))).unwrap()).collect();

    let out_bytes = if to_bits { len.div_ceil(32) * 4 } else { len * to as u64 };
    let mut out = vec![0x55u128 << 64; out_bytes.div_ceil(16) as usize];
    let mut out_valid = vec![!0u32; len.div_ceil(32) as usize];
    let mut status = [7, u64::MAX];
    let (values_in, values_offset) = if from_bits { map.input() } else { values.input() };
    let (valid_in, valid_offset) = if valid { validity.input() } else { (In::absent(), 0) };
    let task = MapTask {
        values: values_in,
        offset: values_offset,
        valid: valid_in,
        valid_offset,
        len,
        tiles,
        out: output(&mut out).cast(),
        out_valid: if safe { output(&mut out_valid) } else { Out::absent() },
        status: if call.fallible { output(&mut status) } else { Out::absent() },
        words: call.words,
    };
    assert_eq!(call.launch(&task, Run { width: wave }), Some(None), "{context}");

    let out: Vec<u8> = out.iter().flat_map(|block| block.to_le_bytes()).collect();
    for (i, wanted) in wanted.iter().enumerate() {
        let got = if to_bits { vec![out[i / 8] >> (i % 8) & 1] } else { out[i * to..(i + 1) * to].to_vec() };
        assert!(
            wanted.is_none() || *wanted == Some(got.clone()),
            "{context}: row {i} {:?}: {got:?}",
            rows[i]
        );
    }
    if call.fallible {
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
    for (i, &(function, from, to)) in EVERY.iter().enumerate() {
        let words = parameters(function, from, to);
        let plain = FunctionCall::plain(function, from, to).expect("a row of the list");
        let call = FunctionCall { words, ..plain };
        for wave in WIDTHS {
            let tile = call.visit(Tile(wave)).unwrap();
            let lens = [1, tile, 33, tile - 1, 2 * tile + 7, 3 * tile + 65, 64];
            for (case, len) in lens.into_iter().enumerate() {
                let k = i + case;
                let case = Case {
                    len,
                    offset: OFFSETS[k % OFFSETS.len()],
                    valid: k % 3 != 0,
                    safe: k % 4 != 0,
                    tiles: 1 + k as u64 % 3,
                };
                check(&call, &case, wave, &mut random);
            }
        }
    }
}

fn fills<A: Native>(random: &mut Random) {
    for (k, wave) in WIDTHS.into_iter().cycle().take(12).enumerate() {
        let tile = u64::from(Shape::of::<FillNull<A>>().tile(wave));
        let len = [1, 31, tile, 3 * tile + 65, 2 * tile - 1, 64][k / 2];
        let (offset, tiles) = (OFFSETS[k % OFFSETS.len()], 1 + k as u64 % 3);
        let is_bit = A::NUMBER == Number::Bit;
        let width = size_of::<A>();
        let rows: Vec<U256> = (0..len).map(|_| random_row(random)).collect();
        let flat: Vec<u8> = rows.iter().flat_map(|row| bytes(*row, width)).collect();
        let values = Bytes::new(&flat, offset as usize * width.min(8) % 16);
        let map_of = Bitmap::new(&rows.iter().map(|row| row.low & 1 == 1).collect::<Vec<_>>(), offset);
        let nulls = random.bits(len, 60);
        let validity = Bitmap::new(&nulls, offset + 5);
        let (values, offset) = if is_bit { map_of.input() } else { values.input() };
        let (valid, valid_offset) = if k == 5 { (In::absent(), 0) } else { validity.input() };
        let fill = A::from_bits(U256::from_low(0x65));
        let mut words = Words::new([0; WORDS]);
        FillNull(fill).write(&mut words);
        let out_bytes = if is_bit { len.div_ceil(32) * 4 } else { len * width as u64 };
        let mut out = vec![!0u128; out_bytes.div_ceil(16) as usize];
        let task = MapTask {
            values,
            offset,
            valid,
            valid_offset,
            len,
            tiles,
            out: output(&mut out).cast(),
            out_valid: Out::absent(),
            status: Out::absent(),
            words: words.into_array(),
        };
        for index in 0..waves::<FillNull<A>>(len, tiles, wave) {
            map::<FillNull<A>>(&task, &mut Wave::new(wave, index));
        }
        let out: Vec<u8> = out.iter().flat_map(|block| block.to_le_bytes()).collect();
        for (i, row) in rows.iter().enumerate() {
            let got =
                if is_bit { vec![out[i / 8] >> (i % 8) & 1] } else { out[i * width..][..width].to_vec() };
            let value = if k == 5 || nulls[i] { A::from_bits(*row) } else { fill };
            assert_eq!(got, bytes(value.to_bits(), width), "{:?}: row {i} of {len}, wave {wave}", A::NUMBER);
        }
    }
}

#[test]
fn nulls_become_values() {
    let mut random = Random(12);
    fills::<Bit>(&mut random);
    fills::<u8>(&mut random);
    fills::<u16>(&mut random);
    fills::<f32>(&mut random);
    fills::<u64>(&mut random);
    fills::<i128>(&mut random);
    fills::<I256>(&mut random);
}
