//! What an AMD code object says of its kernels: the metadata note of the ELF file, which is MessagePack.

use std::collections::HashMap;

/// A code object's metadata.
#[derive(Debug)]
pub struct CodeObject {
    /// The architecture, as in `gfx90a`.
    pub target: String,
    pub kernels: HashMap<String, Kernel>,
}

/// One kernel's.
#[derive(Debug)]
pub struct Kernel {
    pub arguments: Vec<Argument>,
    /// Bytes of the block of arguments.
    pub bytes: usize,
    /// Lanes in its waves.
    pub width: u32,
}

/// Where an argument is in the block.
#[derive(Debug)]
pub struct Argument {
    pub at: usize,
    pub bytes: usize,
    pub is_pointer: bool,
}

/// The type of the note that is metadata.
const METADATA: u32 = 32;
/// The type of a program header that holds notes.
const NOTES: u32 = 4;

fn number(file: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let from = file.get(at..at.checked_add(bytes)?)?;
    Some(from.iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte)))
}

/// Where the metadata is; none where the file is not a whole ELF file with some.
fn metadata(file: &[u8]) -> Option<&[u8]> {
    file.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let (headers, size, count) = (number(file, 32, 8)?, number(file, 54, 2)?, number(file, 56, 2)?);
    let (sections, section_size, section_count) =
        (number(file, 40, 8)?, number(file, 58, 2)?, number(file, 60, 2)?);
    // The table of sections comes last: where it is there, the file is whole.
    file.get(sections..sections + section_size * section_count)?;
    for header in (0..count).map(|i| headers + i * size) {
        if number(file, header, 4)? != NOTES as usize {
            continue;
        }
        let (mut at, bytes) = (number(file, header + 8, 8)?, number(file, header + 32, 8)?);
        let end = at + bytes;
        while at + 12 <= end {
            let (name, text) = (number(file, at, 4)?, number(file, at + 4, 4)?);
            let start = at + 12 + name.next_multiple_of(4);
            if number(file, at + 8, 4)? == METADATA as usize && file.get(at + 12..)?.starts_with(b"AMDGPU\0")
            {
                return file.get(start..start + text);
            }
            at = start + text.next_multiple_of(4);
        }
    }
    None
}

/// What MessagePack can say, as far as metadata does.
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
    /// Reads one; none where it is not a whole one.
    pub fn read(file: &[u8]) -> Option<CodeObject> {
        let all = Reader(metadata(file)?).value()?;
        // amdgcn-amd-amdhsa--ARCHITECTURE
        let target = all.get("amdhsa.target")?.as_text()?.rsplit_once("--")?.1.to_owned();
        let kernels = all.get("amdhsa.kernels")?.items().iter().map(kernel).collect::<Option<_>>()?;
        Some(CodeObject { target, kernels })
    }
}

fn kernel(from: &Value) -> Option<(String, Kernel)> {
    let number = |value: &Value, name: &str| value.get(name)?.as_number();
    let argument = |value: &Value| {
        let is_pointer = value.get(".value_kind")?.as_text()? == "global_buffer";
        Some(Argument { at: number(value, ".offset")?, bytes: number(value, ".size")?, is_pointer })
    };
    let arguments = from.get(".args").map_or(&[][..], Value::items);
    let kernel = Kernel {
        arguments: arguments.iter().map(argument).collect::<Option<_>>()?,
        bytes: number(from, ".kernarg_segment_size")?,
        width: number(from, ".wavefront_size")? as u32,
    };
    Some((from.get(".name")?.as_text()?.to_owned(), kernel))
}
