//! Parses one instruction: its guard, its mnemonic, its operands.

use super::{Parser, Result, Scope};
use crate::alu::{self, Type};
use crate::module::{Instruction, Op, Operand, Shuffle, Vote};

impl<'a> Parser<'a> {
    pub fn instruction(&mut self, scope: &mut Scope<'a>) -> Result<()> {
        let guard = if self.accept("@") {
            let not = self.accept("!");
            Some((self.register(scope)?, not))
        } else {
            None
        };
        let mnemonic = self.next();
        let line = self.line();
        let op = self.op(mnemonic, scope)?;
        self.expect(";")?;
        scope.code.push(Instruction { line, guard, op });
        Ok(())
    }

    fn op(&mut self, mnemonic: &'a str, scope: &mut Scope<'a>) -> Result<Op> {
        let words: Vec<&str> = mnemonic.split('.').collect();
        let has = |word: &str| words.contains(&word);
        let ty = words.iter().rev().find_map(|word| Type::parse(word));
        // The modifiers allowed for this access: any other, of order or of scope, would change its meaning.
        let known: &[&str] = match words[0] {
            "ld" if has("relaxed") => &["relaxed", "gpu", "global"],
            "ld" => &["param", "global", "nc", "L1::no_allocate", "v2", "v4"],
            "st" => &["global", "v2", "v4"],
            "atom" | "red" => {
                &["relaxed", "gpu", "global", "add", "and", "or", "xor", "exch", "cas", "min", "max"]
            }
            _ => &words,
        };
        if words[1..].iter().any(|word| Type::parse(word).is_none() && !known.contains(word)) {
            return self.fail(format!("{mnemonic} is not in the subset"));
        }
        let vector = if has("v4") {
            4
        } else if has("v2") {
            2
        } else {
            1
        };
        Ok(match (words[0], ty) {
            ("ld", Some(ty)) if has("param") => {
                let to = self.register(scope)?;
                self.expect(",")?;
                self.expect("[")?;
                let name = self.next();
                let Some(mut offset) = scope.params.get(name).copied() else {
                    return self.fail(format!("no parameter {name}"));
                };
                if self.accept("+") {
                    offset += self.number()? as usize;
                }
                self.expect("]")?;
                Op::Param { to, offset, bytes: ty.bits() as usize / 8, signed: matches!(ty, Type::Signed(_)) }
            }
            ("ld", _) if has("relaxed") != has("gpu") => {
                return self.fail(format!("{mnemonic} is not in the subset"));
            }
            ("ld", Some(ty)) if has("global") => {
                let to = self.destinations(scope)?;
                self.expect(",")?;
                let at = self.place(scope)?;
                if to.len() != vector {
                    return self.fail(format!("{mnemonic} of {} values", to.len()));
                }
                let (bytes, signed) = (ty.bits() as usize / 8, matches!(ty, Type::Signed(_)));
                Op::Load { to, at, bytes, signed, atomic: has("relaxed") }
            }
            ("st", Some(ty)) if has("global") => {
                let at = self.place(scope)?;
                self.expect(",")?;
                let from = self.sources(scope)?;
                if from.len() != vector {
                    return self.fail(format!("{mnemonic} of {} values", from.len()));
                }
                Op::Store { from, at, bytes: ty.bits() as usize / 8 }
            }
            ("atom" | "red", Some(ty)) if has("global") => {
                let to = if words[0] == "atom" {
                    let to = self.destinations(scope)?[0];
                    self.expect(",")?;
                    to
                } else {
                    None
                };
                let at = self.place(scope)?;
                let mut from = [self.comma_operand(scope)?, Operand::Immediate(0)];
                if self.accept(",") {
                    from[1] = self.operand(scope)?;
                }
                let Some(function) = words.iter().find_map(|how| alu::atomic(how, ty)) else {
                    return self.fail(format!("{mnemonic} is not in the subset"));
                };
                Op::Atomic { function, to, at, from, bytes: ty.bits() as usize / 8 }
            }
            ("vote", _) if has("sync") => {
                let kind = match () {
                    _ if has("ballot") => Vote::Ballot,
                    _ if has("any") => Vote::Any,
                    _ if has("all") => Vote::All,
                    _ => return self.fail(format!("{mnemonic} is not in the subset")),
                };
                let to = self.register(scope)?;
                self.expect(",")?;
                let not = self.accept("!");
                let from = self.operand(scope)?;
                Op::Vote { kind, to, from, not, mask: self.comma_operand(scope)? }
            }
            ("shfl", Some(_)) if has("sync") => {
                let kind = match () {
                    _ if has("idx") => Shuffle::Index,
                    _ if has("up") => Shuffle::Up,
                    _ if has("down") => Shuffle::Down,
                    _ if has("bfly") => Shuffle::Butterfly,
                    _ => return self.fail(format!("{mnemonic} is not in the subset")),
                };
                let to = self.register(scope)?;
                let found = if self.accept("|") { Some(self.register(scope)?) } else { None };
                let [from, by, clamp, mask] = std::array::from_fn(|_| self.comma_operand(scope));
                Op::Shuffle { kind, to, found, from: from?, by: by?, clamp: clamp?, mask: mask? }
            }
            ("bar", _) if has("warp") && has("sync") => Op::SyncWarp { mask: self.operand(scope)? },
            ("bra", _) => {
                scope.jumps.push((scope.code.len(), vec![self.next()]));
                Op::Branch { target: 0 }
            }
            ("brx", _) if has("idx") => {
                let index = self.operand(scope)?;
                self.expect(",")?;
                let name = self.next();
                let Some(targets) = scope.tables.get(name) else {
                    return self.fail(format!("no table {name}"));
                };
                scope.jumps.push((scope.code.len(), targets.clone()));
                Op::BranchTable { index, targets: vec![] }
            }
            ("ret" | "exit", _) => Op::Exit,
            ("trap", _) => Op::Trap,
            ("add" | "addc" | "sub" | "subc", Some(ty)) if has("cc") || words[0].ends_with('c') => {
                let to = self.register(scope)?;
                let from = [self.comma_operand(scope)?, self.comma_operand(scope)?];
                let (takes, subtract) = (words[0].ends_with('c'), words[0].starts_with("sub"));
                Op::Carry { bits: ty.bits(), subtract, takes, leaves: has("cc"), to, from }
            }
            ("mov", Some(ty)) if self.peek() == "{" => {
                let to = self.destinations(scope)?;
                let from = self.comma_operand(scope)?;
                Op::Unpack { bits: ty.bits() / to.len() as u32, to, from }
            }
            _ => {
                let Some((function, count)) = alu::function(mnemonic) else {
                    return self.fail(format!("{mnemonic} is not in the subset"));
                };
                let to = self.register(scope)?;
                self.expect(",")?;
                if words[0] == "mov" && self.peek() == "{" {
                    let from = self.sources(scope)?;
                    let bits = ty.map_or(0, Type::bits) / from.len() as u32;
                    return Ok(Op::Pack { to, from, bits });
                }
                let mut from = [Operand::Immediate(0); 4];
                for (i, operand) in from.iter_mut().take(count).enumerate() {
                    if i > 0 {
                        self.expect(",")?;
                    }
                    *operand = self.operand(scope)?;
                }
                Op::Alu { function, to, from }
            }
        })
    }
}
