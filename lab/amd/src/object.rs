//! Reads an AMD code object. It is an ELF file: its metadata note, in MessagePack, describes the kernels'
//! arguments, its descriptors define the initial registers, and its text section contains the instructions.

use std::collections::HashMap;

/// A parsed code object.
#[derive(Debug)]
pub struct CodeObject {
    /// The architecture, as in `gfx90a`.
    pub target: String,
    /// Its kernels, by name.
    pub kernels: HashMap<String, Kernel>,
}

/// One kernel of a code object.
#[derive(Debug)]
pub struct Kernel {
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
    /// The size of the argument block in bytes.
    pub bytes: usize,
    /// The number of lanes in a wave.
    pub width: u32,
    /// The number of vector registers that a lane may use.
    pub vector_registers: u32,
    /// The number of scalar registers that a wave may use, `vcc` included.
    pub scalar_registers: u32,
    /// The descriptor, which defines how a wave starts.
    pub descriptor: [u8; 64],
    /// The address of its first instruction in the file.
    pub address: usize,
    /// The instructions as bytes, not decoded.
    pub code: Vec<u8>,
}

/// The place of an argument in the block.
#[derive(Debug)]
pub struct Argument {
    /// The offset of the first byte.
    pub at: usize,
    /// The size in bytes.
    pub bytes: usize,
    /// Whether the argument is an address.
    pub is_pointer: bool,
}

/// The type of the metadata note.
const METADATA: u32 = 32;
/// The section types for notes, and for the symbols that a loader sees.
const NOTES: usize = 7;
const SYMBOLS: usize = 11;

fn number(file: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let from = file.get(at..at.checked_add(bytes)?)?;
    Some(from.iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte)))
}

/// A section: its contents, and the address at which it is loaded.
struct Section<'a> {
    kind: usize,
    address: usize,
    link: usize,
    bytes: &'a [u8],
}

/// The sections of a complete ELF file; `None` if the file is not one.
fn sections(file: &[u8]) -> Option<Vec<Section<'_>>> {
    file.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let (at, size, count) = (number(file, 40, 8)?, number(file, 58, 2)?, number(file, 60, 2)?);
    // The table comes last, so its presence shows that the file is complete.
    file.get(at..at.checked_add(size.checked_mul(count)?)?)?;
    let section = |i: usize| {
        let at = at.checked_add(i * size)?;
        let (kind, from, len) =
            (number(file, at + 4, 4)?, number(file, at + 24, 8)?, number(file, at + 32, 8)?);
        // A section without bytes in the file (`SHT_NOBITS`) is empty.
        let bytes = if kind == 8 { &[][..] } else { file.get(from..from.checked_add(len)?)? };
        Some(Section { kind, address: number(file, at + 16, 8)?, link: number(file, at + 40, 4)?, bytes })
    };
    (0..count).map(section).collect()
}

fn metadata<'a>(sections: &[Section<'a>]) -> Option<&'a [u8]> {
    for notes in sections.iter().filter(|section| section.kind == NOTES).map(|section| section.bytes) {
        let mut at = 0;
        while at + 12 <= notes.len() {
            let (name, text) = (number(notes, at, 4)?, number(notes, at + 4, 4)?);
            let start = at + 12 + name.next_multiple_of(4);
            if number(notes, at + 8, 4)? == METADATA as usize && notes[at + 12..].starts_with(b"AMDGPU\0") {
                return notes.get(start..start.checked_add(text)?);
            }
            at = start + text.next_multiple_of(4);
        }
    }
    None
}

/// Symbols by name: each with its address and its bytes.
type Symbols<'a> = HashMap<String, (usize, &'a [u8])>;

fn symbols<'a>(sections: &[Section<'a>]) -> Option<Symbols<'a>> {
    let table = sections.iter().find(|section| section.kind == SYMBOLS)?;
    let names = sections.get(table.link)?.bytes;
    let mut found = HashMap::new();
    for symbol in table.bytes.chunks_exact(24).skip(1) {
        let (name, section) = (number(symbol, 0, 4)?, number(symbol, 6, 2)?);
        let (address, len) = (number(symbol, 8, 8)?, number(symbol, 16, 8)?);
        let name = names.get(name..)?.split(|byte| *byte == 0).next()?;
        let section = sections.get(section)?;
        let start = address.checked_sub(section.address)?;
        let bytes = section.bytes.get(start..start.checked_add(len)?)?;
        found.insert(String::from_utf8_lossy(name).into_owned(), (address, bytes));
    }
    Some(found)
}

/// The MessagePack values that metadata uses.
enum Value {
    Nothing,
    Number(u64),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, bytes: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)))
    }

    fn text(&mut self, bytes: usize) -> Option<Value> {
        Some(Value::Text(String::from_utf8_lossy(self.take(bytes)?).into_owned()))
    }

    fn list(&mut self, len: usize) -> Option<Value> {
        (0..len).map(|_| self.value()).collect::<Option<_>>().map(Value::List)
    }

    fn map(&mut self, len: usize) -> Option<Value> {
        (0..len).map(|_| Some((self.value()?, self.value()?))).collect::<Option<_>>().map(Value::Map)
    }

    fn value(&mut self) -> Option<Value> {
        let first = self.number(1)?;
        match first {
            0..=0x7f => Some(Value::Number(first as u64)),
            0x80..=0x8f => self.map(first & 15),
            0x90..=0x9f => self.list(first & 15),
            0xa0..=0xbf => self.text(first & 31),
            0xc0 | 0xc2 | 0xc3 => Some(Value::Nothing),
            0xcc..=0xcf => self.number(1 << (first - 0xcc)).map(|number| Value::Number(number as u64)),
            0xd0..=0xd3 => self.number(1 << (first - 0xd0)).map(|number| Value::Number(number as u64)),
            0xd9..=0xdb => {
                let len = self.number(1 << (first - 0xd9))?;
                self.text(len)
            }
            0xdc | 0xdd => {
                let len = self.number(2 << (first - 0xdc))?;
                self.list(len)
            }
            0xde | 0xdf => {
                let len = self.number(2 << (first - 0xde))?;
                self.map(len)
            }
            _ => None,
        }
    }
}

impl Value {
    fn get(&self, name: &str) -> Option<&Value> {
        let Value::Map(entries) = self else { return None };
        entries.iter().find(|(key, _)| key.as_text() == Some(name)).map(|(_, value)| value)
    }

    fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    fn as_number(&self) -> Option<usize> {
        if let Value::Number(number) = self { Some(*number as usize) } else { None }
    }

    fn items(&self) -> &[Value] {
        if let Value::List(items) = self { items } else { &[] }
    }
}

impl CodeObject {
    /// Parses a code object; `None` if the file is not a complete one.
    pub fn read(file: &[u8]) -> Option<CodeObject> {
        let sections = sections(file)?;
        let all = Reader(metadata(&sections)?).value()?;
        let symbols = symbols(&sections)?;
        // amdgcn-amd-amdhsa--ARCHITECTURE
        let target = all.get("amdhsa.target")?.as_text()?.rsplit_once("--")?.1.to_owned();
        let kernels = all.get("amdhsa.kernels")?.items().iter().map(|kernel| read_kernel(kernel, &symbols));
        Some(CodeObject { target, kernels: kernels.collect::<Option<_>>()? })
    }
}

fn read_kernel(from: &Value, symbols: &Symbols<'_>) -> Option<(String, Kernel)> {
    let number = |value: &Value, name: &str| value.get(name)?.as_number();
    let argument = |value: &Value| {
        let is_pointer = value.get(".value_kind")?.as_text()? == "global_buffer";
        Some(Argument { at: number(value, ".offset")?, bytes: number(value, ".size")?, is_pointer })
    };
    let arguments = from.get(".args").map_or(&[][..], Value::items);
    let name = from.get(".name")?.as_text()?.to_owned();
    let (address, code) = symbols.get(&name)?;
    let kernel = Kernel {
        arguments: arguments.iter().map(argument).collect::<Option<_>>()?,
        bytes: number(from, ".kernarg_segment_size")?,
        width: number(from, ".wavefront_size")? as u32,
        vector_registers: number(from, ".vgpr_count")? as u32,
        scalar_registers: number(from, ".sgpr_count")? as u32,
        descriptor: symbols.get(from.get(".symbol")?.as_text()?)?.1.try_into().ok()?,
        address: *address,
        code: code.to_vec(),
    };
    Some((name, kernel))
}

impl Kernel {
    /// Builds the argument block from one word for each argument; an error names the argument that does not
    /// fit the metadata.
    pub fn laid_out(&self, words: &[u64]) -> Result<Vec<u8>, String> {
        let mut block = vec![0; self.bytes];
        if words.len() != self.arguments.len() {
            return Err(format!("{} arguments for {}", words.len(), self.arguments.len()));
        }
        for (i, (argument, word)) in self.arguments.iter().zip(words).enumerate() {
            let end = argument.at.saturating_add(argument.bytes);
            let place = block.get_mut(argument.at..end).filter(|place| place.len() == 8);
            place
                .ok_or_else(|| format!("argument {i} is no word in the block"))?
                .copy_from_slice(&word.to_le_bytes());
        }
        Ok(block)
    }
}
