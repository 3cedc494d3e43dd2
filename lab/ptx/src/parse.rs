//! Parses PTX text to instructions. Unknown text is an error: an interpreter that guesses proves nothing.

mod instruction;
mod tokens;

use std::collections::HashMap;

use crate::alu::Type;
use crate::meet::depths;
use crate::module::{CONSTANTS, Entry, Error, Instruction, Module, Op, Operand, Place, Register, Special};
use tokens::{Token, tokens};

type Result<T> = std::result::Result<T, Error>;

pub(crate) fn number(text: &str) -> Option<u64> {
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    if let Some(digits) = text
        .strip_prefix("0f")
        .or(text.strip_prefix("0F"))
        .or(text.strip_prefix("0d"))
        .or(text.strip_prefix("0D"))
    {
        return hex(digits);
    }
    let text = text.trim_end_matches('U');
    let in_base = |base| u64::from_str_radix(&text[if base == 8 { 1 } else { 2 }..], base).ok();
    match text.get(..2) {
        Some("0x" | "0X") => in_base(16),
        Some("0b" | "0B") => in_base(2),
        Some(start) if start.starts_with('0') => in_base(8),
        _ => text.parse().ok(),
    }
}

fn special(name: &str) -> Option<Special> {
    Some(match name {
        "%laneid" => Special::Lane,
        "%tid.x" => Special::Thread,
        "%ctaid.x" => Special::Block,
        "%ntid.x" => Special::BlockSize,
        "%nctaid.x" => Special::Blocks,
        "%lanemask_eq" => Special::LanesEqual,
        "%lanemask_lt" => Special::LanesBelow,
        "%lanemask_le" => Special::LanesUpTo,
        "%lanemask_gt" => Special::LanesAbove,
        "%tid.y" | "%tid.z" | "%ctaid.y" | "%ctaid.z" => Special::Zero,
        "%ntid.y" | "%ntid.z" | "%nctaid.y" | "%nctaid.z" => Special::One,
        _ => return None,
    })
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    constants: Vec<u8>,
    symbols: HashMap<&'a str, u64>,
}

/// The names in the kernel being parsed.
#[derive(Default)]
struct Scope<'a> {
    /// Inner blocks (inline assembly has them) see the outer blocks' registers.
    registers: Vec<HashMap<String, Register>>,
    count: Register,
    params: HashMap<&'a str, usize>,
    labels: HashMap<&'a str, usize>,
    tables: HashMap<&'a str, Vec<&'a str>>,
    /// Instructions whose targets are not resolved yet, with the names of those targets.
    jumps: Vec<(usize, Vec<&'a str>)>,
    code: Vec<Instruction>,
}

impl Module {
    /// Parses a whole image. An instruction outside the subset is an error here.
    pub fn parse(text: &str) -> Result<Module> {
        let mut p = Parser { tokens: tokens(text), at: 0, constants: vec![], symbols: HashMap::new() };
        let mut entries = HashMap::new();
        while p.at < p.tokens.len() {
            match p.next() {
                ".version" | ".address_size" => p.at += 1,
                ".target" => {
                    p.at += 1;
                    while p.accept(",") {
                        p.at += 1;
                    }
                }
                ".visible" | ".weak" => {}
                ".global" | ".const" => p.constant()?,
                ".entry" => {
                    let name = p.next().to_owned();
                    entries.insert(name, p.entry()?);
                }
                other => return p.fail(format!("{other} is not in the subset")),
            }
        }
        Ok(Module { entries, constants: p.constants })
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).map_or("", |token| token.text)
    }

    fn next(&mut self) -> &'a str {
        let text = self.peek();
        self.at += 1;
        text
    }

    fn accept(&mut self, text: &str) -> bool {
        let found = self.peek() == text;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, text: &str) -> Result<()> {
        match self.accept(text) {
            true => Ok(()),
            false => self.fail(format!("{text} expected, {} found", self.peek())),
        }
    }

    fn line(&self) -> u32 {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens.get(self.at.saturating_sub(1).min(last)).map_or(0, |token| token.line)
    }

    fn fail<T>(&self, reason: String) -> Result<T> {
        Err(Error::new(self.line(), reason))
    }

    fn number(&mut self) -> Result<u64> {
        let negative = self.accept("-");
        let text = self.next();
        match number(text) {
            Some(n) => Ok(if negative { n.wrapping_neg() } else { n }),
            None => self.fail(format!("{text} is not a number")),
        }
    }

    /// Parses `.align 4 .b8 name[64] = {…};` after `.global` or `.const`.
    fn constant(&mut self) -> Result<()> {
        let (mut align, mut bytes) = (1, 0);
        while self.peek().starts_with('.') {
            match self.next() {
                ".align" => align = self.number()? as usize,
                suffix => match Type::parse(&suffix[1..]) {
                    Some(ty) => bytes = ty.bits() as usize / 8,
                    None => return self.fail(format!("{suffix} variable")),
                },
            }
        }
        let name = self.next();
        let mut count = 1;
        if self.accept("[") {
            count = self.number()? as usize;
            self.expect("]")?;
        }
        let start = self.constants.len().next_multiple_of(align.max(bytes).max(1));
        self.constants.resize(start + count * bytes, 0);
        self.symbols.insert(name, CONSTANTS + start as u64);
        if self.accept("=") {
            let braces = self.accept("{");
            for i in 0..count {
                let value = self.number()?;
                self.constants[start + i * bytes..][..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                if !self.accept(",") {
                    break;
                }
            }
            if braces {
                self.expect("}")?;
            }
        }
        self.expect(";")
    }

    fn entry(&mut self) -> Result<Entry> {
        let mut scope = Scope::default();
        let mut params = 0;
        self.expect("(")?;
        while !self.accept(")") {
            self.expect(".param")?;
            let mut bytes = 0;
            while self.peek().starts_with('.') {
                match self.next() {
                    ".ptr" | ".global" => {}
                    ".align" => self.at += 1,
                    suffix => match Type::parse(&suffix[1..]) {
                        Some(ty) => bytes = ty.bits() as usize / 8,
                        None => return self.fail(format!("{suffix} parameter")),
                    },
                }
            }
            params = usize::next_multiple_of(params, bytes.max(1));
            scope.params.insert(self.next(), params);
            params += bytes;
            self.accept(",");
        }
        while !self.accept("{") {
            // `.maxntid` and the like do not affect the meaning.
            if self.next().is_empty() {
                return self.fail("the body is missing".into());
            }
        }
        scope.registers.push(HashMap::new());
        while !scope.registers.is_empty() {
            self.statement(&mut scope)?;
        }
        for (at, names) in std::mem::take(&mut scope.jumps) {
            let find = |name: &&str| {
                let target = scope.labels.get(name).copied();
                target.ok_or_else(|| Error::new(scope.code[at].line, format!("no label {name}")))
            };
            let found = names.iter().map(find).collect::<Result<Vec<_>>>()?;
            match &mut scope.code[at].op {
                Op::Branch { target } => *target = found[0],
                Op::BranchTable { targets, .. } => *targets = found,
                _ => unreachable!("only branches wait for labels"),
            }
        }
        let depths = depths(&scope.code);
        Ok(Entry { params, registers: scope.count as usize, code: scope.code, depths })
    }

    fn statement(&mut self, scope: &mut Scope<'a>) -> Result<()> {
        match self.peek() {
            "" => return self.fail("the image ends inside a kernel".into()),
            "{" => scope.registers.push(HashMap::new()),
            "}" => {
                scope.registers.pop();
            }
            ";" => {}
            ".reg" => {
                self.at += 1;
                return self.registers(scope);
            }
            // Skips to the end of the line, or to the semicolon on it.
            ".loc" | ".pragma" => {
                let line = self.tokens[self.at].line;
                while self.tokens.get(self.at).is_some_and(|token| token.line == line && token.text != ";") {
                    self.at += 1;
                }
                return Ok(());
            }
            name if self.tokens.get(self.at + 1).is_some_and(|token| token.text == ":") => {
                self.at += 2;
                if self.accept(".branchtargets") {
                    let mut targets = vec![self.next()];
                    while self.accept(",") {
                        targets.push(self.next());
                    }
                    scope.tables.insert(name, targets);
                    return self.expect(";");
                }
                if scope.labels.insert(name, scope.code.len()).is_some() {
                    return self.fail(format!(
                        "{name} is a label twice; labels of inner blocks are not in the subset"
                    ));
                }
                return Ok(());
            }
            _ => return self.instruction(scope),
        }
        self.at += 1;
        Ok(())
    }

    fn registers(&mut self, scope: &mut Scope<'a>) -> Result<()> {
        self.at += 1;
        loop {
            let name = self.next();
            let names = if self.accept("<") {
                let count = self.number()?;
                self.expect(">")?;
                (0..count).map(|i| format!("{name}{i}")).collect()
            } else {
                vec![name.to_owned()]
            };
            for name in names {
                scope.registers.last_mut().expect("inside a body").insert(name, scope.count);
                scope.count += 1;
            }
            if !self.accept(",") {
                return self.expect(";");
            }
        }
    }

    fn register(&mut self, scope: &Scope) -> Result<Register> {
        let name = self.next();
        match scope.registers.iter().rev().find_map(|names| names.get(name)) {
            Some(register) => Ok(*register),
            None => self.fail(format!("{name} is not a register")),
        }
    }

    fn operand(&mut self, scope: &Scope) -> Result<Operand> {
        let name = self.peek();
        if name == "-" || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Operand::Immediate(self.number()?));
        }
        if let Some(special) = special(name) {
            self.at += 1;
            return Ok(Operand::Special(special));
        }
        if let Some(address) = self.symbols.get(name) {
            self.at += 1;
            return Ok(Operand::Immediate(*address));
        }
        Ok(Operand::Register(self.register(scope)?))
    }

    /// Parses `{a, b}` or a single item; `_` is ignored.
    fn group<T>(&mut self, one: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        if !self.accept("{") {
            return Ok(vec![one(self)?]);
        }
        let mut all = vec![one(self)?];
        while self.accept(",") {
            all.push(one(self)?);
        }
        self.expect("}")?;
        Ok(all)
    }

    fn destinations(&mut self, scope: &Scope) -> Result<Vec<Option<Register>>> {
        self.group(|p| if p.accept("_") { Ok(None) } else { p.register(scope).map(Some) })
    }

    fn sources(&mut self, scope: &Scope) -> Result<Vec<Operand>> {
        self.group(|p| p.operand(scope))
    }

    /// Parses an address: `[base+offset]`.
    fn place(&mut self, scope: &Scope) -> Result<Place> {
        self.expect("[")?;
        let base = self.operand(scope)?;
        let mut offset = 0;
        while !self.accept("]") {
            let plus = self.accept("+");
            if !plus && self.peek() != "-" {
                return self.fail("an offset expected".into());
            }
            offset = self.number()?.wrapping_add(offset);
        }
        Ok(Place { base, offset })
    }

    fn comma_operand(&mut self, scope: &Scope) -> Result<Operand> {
        self.expect(",")?;
        self.operand(scope)
    }
}
