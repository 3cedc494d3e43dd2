//! Shows how the interpreter treats single instructions, for comparison with another authority.
//!
//! - `amdi decode ARCH` reads one instruction for each line, as hexadecimal bytes in memory order, and writes
//!   `{"size", "name", "text"}`, or `{"error"}`, for each.
//! - `amdi encodings DIR` writes every distinct instruction of the code objects in a folder: `{"arch", "hex",
//!   "name", "text"}`.
//! - `amdi text FILE…` writes every instruction of code objects as text, in their order.
//! - `amdi eval` reads one `{"arch", "hex", "wave", "exec", "vcc", "scc", "s": {"4": …}, "v": {"1": […]},
//!   "memory": [[address, "hex"]]}` for each line (masks are hexadecimal; omitted values are 0), runs the
//!   instruction, and writes the changes in the same form, with `"taken"` for branches.
//!
//! Words are little-endian. `cargo run -p bowstring-amdi --example amdi -- eval < cases.jsonl`.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};

use bowstring_amdi::{CodeObject, Instruction, Memory, Program, State, Target};
use serde_json::{Map, Value, json};

type Anything = Result<(), Box<dyn Error>>;

fn main() -> Anything {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["decode", target] => {
            let target = Target::named(target).ok_or("no such architecture")?;
            lines(|line| Ok(decoded(target, &bytes(line)?)))
        }
        ["encodings", folder] => encodings(folder),
        ["text", ref files @ ..] => files.iter().try_for_each(|file| text(file)),
        ["eval"] => {
            lines(|line| Ok(evaluated(&serde_json::from_str(line)?).unwrap_or_else(|e| json!({"error": e}))))
        }
        _ => Err("amdi decode ARCH | encodings DIR | text FILE… | eval".into()),
    }
}

/// Writes one line of output for each line of input.
fn lines(answer: impl Fn(&str) -> Result<Value, Box<dyn Error>>) -> Anything {
    let mut out = std::io::BufWriter::new(stdout().lock());
    for line in stdin().lock().lines() {
        writeln!(out, "{}", answer(line?.trim())?)?;
    }
    Ok(())
}

fn bytes(hex: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16));
    Ok(pairs.collect::<Result<_, _>>()?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn decoded(target: Target, bytes: &[u8]) -> Value {
    match Instruction::decode(target, bytes) {
        Ok(made) => json!({"size": made.size(), "name": made.name(), "text": made.to_string()}),
        Err(error) => json!({"error": error}),
    }
}

fn encodings(folder: &str) -> Anything {
    let mut all = BTreeMap::new();
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "hsaco"));
    for path in paths {
        let object = CodeObject::read(&std::fs::read(&path)?).ok_or("no code object")?;
        let target = Target::named(&object.target).ok_or("no such architecture")?;
        for kernel in object.kernels.values() {
            let mut rest = &kernel.code[..];
            while !rest.is_empty() {
                let made = Instruction::decode(target, rest)?;
                let (own, others) = rest.split_at(made.size());
                all.entry((target.name, hex(own))).or_insert_with(|| (made.name(), made.to_string()));
                rest = others;
            }
        }
    }
    let mut out = std::io::BufWriter::new(stdout().lock());
    for ((arch, hex), (name, text)) in all {
        writeln!(out, "{}", json!({"arch": arch, "hex": hex, "name": name, "text": text}))?;
    }
    Ok(())
}

fn text(file: &str) -> Anything {
    let object = CodeObject::read(&std::fs::read(file)?).ok_or("no code object")?;
    let target = Target::named(&object.target).ok_or("no such architecture")?;
    let mut kernels: Vec<_> = object.kernels.values().collect();
    kernels.sort_by_key(|kernel| kernel.address);
    let mut out = std::io::BufWriter::new(stdout().lock());
    for kernel in kernels {
        for (_, made) in Program::decode(kernel, target)?.instructions() {
            writeln!(out, "{made}")?;
        }
    }
    Ok(())
}

/// A sparse memory: byte ranges, each at an address.
struct Pieces(Vec<(u64, Vec<u8>)>);

impl Pieces {
    fn at(&mut self, address: u64, len: usize) -> Result<&mut [u8], String> {
        let inside = |(start, bytes): &&mut (u64, Vec<u8>)| {
            address >= *start && address - *start + len as u64 <= bytes.len() as u64
        };
        let (start, bytes) = self.0.iter_mut().find(inside).ok_or(format!("no memory at {address:#x}"))?;
        let from = (address - *start) as usize;
        Ok(&mut bytes[from..from + len])
    }
}

impl Memory for Pieces {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String> {
        into.copy_from_slice(self.at(address, into.len())?);
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String> {
        self.at(address, from.len())?.copy_from_slice(from);
        Ok(())
    }
}

fn mask(from: &Value) -> u64 {
    u64::from_str_radix(from.as_str().unwrap_or("0").trim_start_matches("0x"), 16).unwrap_or(0)
}

fn word(value: &Value) -> u32 {
    value.as_u64().unwrap_or(0) as u32
}

const VCC: usize = 106;
const EXEC: usize = 126;

fn pair(state: &State, first: usize) -> u64 {
    u64::from(state.scalars[first]) | u64::from(state.scalars[first + 1]) << 32
}

fn evaluated(case: &Value) -> Result<Value, String> {
    let target = Target::named(case["arch"].as_str().unwrap_or("")).ok_or("no such architecture")?;
    let lanes = case["wave"].as_u64().unwrap_or(target.lanes.into()) as u32;
    let target = Target { lanes, ..target };
    let code = bytes(case["hex"].as_str().unwrap_or("")).map_err(|error| error.to_string())?;
    let made = Instruction::decode(target, &code)?;
    let mut state =
        State { vectors: vec![[0; 64]; 256], scalars: [0; 128], condition: case["scc"].as_u64() == Some(1) };
    for (first, value) in [(EXEC, mask(&case["exec"])), (VCC, mask(&case["vcc"]))] {
        (state.scalars[first], state.scalars[first + 1]) = (value as u32, (value >> 32) as u32);
    }
    let none = Map::new();
    let number = |name: &String| name.parse::<usize>().map_err(|error| error.to_string());
    for (name, value) in case["s"].as_object().unwrap_or(&none) {
        *state.scalars.get_mut(number(name)?).ok_or("no such register")? = word(value);
    }
    for (name, values) in case["v"].as_object().unwrap_or(&none) {
        let register = state.vectors.get_mut(number(name)?).ok_or("no such register")?;
        let values = values.as_array().ok_or("no values")?;
        register.iter_mut().zip(values).for_each(|(lane, value)| *lane = word(value));
    }
    let mut memory = Pieces(vec![]);
    for piece in case["memory"].as_array().unwrap_or(&vec![]) {
        let held = bytes(piece[1].as_str().unwrap_or("")).map_err(|error| error.to_string())?;
        memory.0.push((piece[0].as_u64().ok_or("no address")?, held));
    }
    let (before, held) = (state.clone(), memory.0.clone());
    let taken = made.run(&mut state, &mut memory)?;
    let mut changed = Map::new();
    if taken {
        changed.insert("taken".into(), true.into());
    }
    if state.condition != before.condition {
        changed.insert("scc".into(), u32::from(state.condition).into());
    }
    for (name, first) in [("exec", EXEC), ("vcc", VCC)] {
        if pair(&state, first) != pair(&before, first) {
            changed.insert(name.into(), format!("{:x}", pair(&state, first)).into());
        }
    }
    let own = |i: &usize| ![VCC, VCC + 1, EXEC, EXEC + 1].contains(i);
    let scalars = (0..128).filter(own).filter(|i| state.scalars[*i] != before.scalars[*i]);
    let scalars: Map<_, _> = scalars.map(|i| (i.to_string(), state.scalars[i].into())).collect();
    let vectors = (0..256).filter(|i| state.vectors[*i] != before.vectors[*i]);
    let vectors: Map<_, _> =
        vectors.map(|i| (i.to_string(), state.vectors[i][..lanes as usize].into())).collect();
    let pieces = memory.0.iter().zip(&held).filter(|(now, then)| now != then);
    let pieces: Vec<Value> = pieces.map(|((address, bytes), _)| json!([address, hex(bytes)])).collect();
    for (name, value, is_empty) in [
        ("s", scalars.clone().into(), scalars.is_empty()),
        ("v", vectors.clone().into(), vectors.is_empty()),
        ("memory", pieces.clone().into(), pieces.is_empty()),
    ] as [(&str, Value, bool); 3]
    {
        if !is_empty {
            changed.insert(name.into(), value);
        }
    }
    Ok(changed.into())
}
