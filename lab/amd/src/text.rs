//! Prints instructions as LLVM's disassembler does, so that its output and ours can be compared line by line.

use std::fmt::{self, Write};

use crate::instruction::{Encoding, Instruction, Operand, Sdwa};
use crate::table::{Action, Format, Generation, Kind, Output, Waits};

/// The names of special registers: for one register, and for a pair.
fn named(register: u8, count: u32) -> Option<&'static str> {
    Some(match (register, count) {
        (106, 2) => "vcc",
        (106, _) => "vcc_lo",
        (107, _) => "vcc_hi",
        (124, _) => "m0",
        (126, 2) => "exec",
        (126, _) => "exec_lo",
        (127, _) => "exec_hi",
        _ => return None,
    })
}

fn registers(letter: &str, first: u32, count: u32) -> String {
    if count == 1 { format!("{letter}{first}") } else { format!("{letter}[{first}:{}]", first + count - 1) }
}

const FRACTIONS: [&str; 9] = ["0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494"];

impl Instruction {
    /// The mnemonic, with the suffix for its form.
    pub fn name(&self) -> String {
        let mut name = self.row.name(self.target.generation).to_owned();
        name.push_str(match (self.encoding, self.sdwa.is_some(), self.dpp.is_some()) {
            (_, true, _) => "_sdwa",
            (Encoding::Short, _, true) => "_dpp",
            (_, _, true) => "_e64_dpp",
            (Encoding::Short, ..) => "_e32",
            (Encoding::Long, ..) => "_e64",
            (Encoding::Only, ..) => "",
        });
        name
    }

    /// Prints an operand of this many registers.
    fn operand(&self, operand: Operand, count: u32, kind: Kind) -> String {
        match operand {
            Operand::None => "off".into(),
            Operand::Null => "null".into(),
            Operand::Vector(first) => registers("v", first.into(), count),
            Operand::Scalar(first) => match named(first, count) {
                Some(name) => name.into(),
                None if (108..=123).contains(&first) => registers("ttmp", u32::from(first) - 108, count),
                None => registers("s", first.into(), count),
            },
            Operand::Constant(code @ 240..) => FRACTIONS[usize::from(code - 240)].into(),
            Operand::Constant(_) => {
                let value = operand.constant(Kind::B64).unwrap_or_default();
                (value as i64).to_string()
            }
            Operand::Literal(word) if kind == Kind::B16 => format!("{:#x}", word & 0xffff),
            Operand::Literal(word) => format!("{word:#x}"),
            Operand::NoVcc => "src_vccz".into(),
            Operand::NoExec => "src_execz".into(),
            Operand::Condition => "src_scc".into(),
        }
    }

    /// Whether half registers are printed with their half.
    fn names_halves(&self) -> bool {
        self.target.generation == Generation::Gfx11
    }

    fn lanes_operand(&self, i: usize, kind: Kind) -> String {
        let operand = self.from[i];
        let count = match kind {
            Kind::Mask => self.target.lanes / 32,
            kind => kind.bits().div_ceil(32),
        };
        let mut text = self.operand(operand, count, kind);
        if kind == Kind::B16 && self.names_halves() && matches!(operand, Operand::Vector(_)) {
            text.push_str(if self.halves >> i & 1 != 0 { ".h" } else { ".l" });
        }
        if self.absolute >> i & 1 != 0 {
            text = format!("|{text}|");
        }
        if self.negated >> i & 1 != 0 && self.row.format != Format::Vop3p {
            text.insert(0, '-');
        }
        if self.sdwa.is_some_and(|sdwa| i < 2 && sdwa.signed[i]) {
            text = format!("sext({text})");
        }
        text
    }

    fn result(&self, kind: Kind) -> String {
        let mut text = self.operand(self.to, kind.bits().div_ceil(32), kind);
        if kind == Kind::B16 && self.names_halves() {
            text.push_str(if self.halves & 8 != 0 { ".h" } else { ".l" });
        }
        text
    }

    /// The operands of a vector operation.
    fn lanes_operands(&self, from: &[Kind], to: Output) -> String {
        let mut all = vec![];
        let mask = self.target.lanes / 32;
        match to {
            Output::Lanes(kind) => all.push(self.result(kind)),
            Output::Both(kind) => {
                all.extend([self.result(kind), self.operand(self.bits_to, mask, Kind::Mask)]);
            }
            Output::Mask => all.push(self.operand(self.bits_to, mask, Kind::Mask)),
            Output::Exec => {}
        }
        for (i, kind) in from.iter().enumerate() {
            match kind {
                Kind::Result | Kind::Lane | Kind::Vcc => {}
                // The text of a pair omits the mask.
                Kind::Mask if self.row.format == Format::VopdX || self.row.format == Format::VopdY => {}
                kind => all.push(self.lanes_operand(i, *kind)),
            }
        }
        all.join(", ")
    }

    /// The modifiers after the operands.
    fn modifiers(&self, from: &[Kind], to: Output) -> String {
        let mut text = String::new();
        let list = |bits: u8, count: usize| {
            let bits: Vec<String> = (0..count).map(|i| (bits >> i & 1).to_string()).collect();
            format!("[{}]", bits.join(","))
        };
        if self.row.format == Format::Vop3p {
            if self.halves != 0 {
                let _ = write!(text, " op_sel:{}", list(self.halves, from.len()));
            }
            if self.high_halves & 3 != 3 {
                let _ = write!(text, " op_sel_hi:{}", list(self.high_halves, from.len()));
            }
            if self.negated != 0 {
                let signs = list(self.negated, from.len());
                let _ = write!(text, " neg_lo:{signs} neg_hi:{signs}");
            }
        } else if self.halves != 0 && self.encoding != Encoding::Short && !from.contains(&Kind::Mask) {
            let (operands, shown) = (from.len(), from.len() + 1);
            let order = self.halves & 7 & ((1 << operands) - 1) as u8 | (self.halves >> 3) << operands;
            let _ = write!(text, " op_sel:{}", list(order, shown));
        }
        if self.clamp {
            text.push_str(" clamp");
        }
        if let Some(dpp) = self.dpp {
            let _ =
                write!(text, " row_shr:{} row_mask:{:#x} bank_mask:{:#x}", dpp.shift, dpp.rows, dpp.banks);
            text.push_str(if dpp.zero { " bound_ctrl:1" } else { "" });
        }
        if let Some(Sdwa { to: part, rest, from: parts, .. }) = self.sdwa {
            let name = |part: u8| {
                ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"][usize::from(part)]
            };
            if to != Output::Mask {
                let rest = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"][usize::from(rest)];
                let _ = write!(text, " dst_sel:{} dst_unused:{rest}", name(part));
            }
            for (i, part) in parts.into_iter().enumerate().take(from.len()) {
                let _ = write!(text, " src{i}_sel:{}", name(part));
            }
        }
        text
    }

    /// The offset and cache modifiers of a memory access.
    fn reach(&self) -> String {
        let mut text = String::new();
        if self.immediate != 0 {
            let _ = write!(text, " offset:{}", self.immediate);
        }
        let flags: &[(u8, &str)] = match self.target.name {
            "gfx942" | "gfx9-4-generic" => &[(1, "sc0"), (2, "nt"), (4, "sc1")],
            "gfx90a" => &[(1, "glc"), (2, "slc"), (4, "scc")],
            _ => &[(1, "glc"), (2, "slc"), (4, "dlc")],
        };
        if self.target.generation < Generation::Gfx12 {
            for (_, name) in flags.iter().filter(|(bit, _)| self.cache & bit != 0) {
                let _ = write!(text, " {name}");
            }
            return text;
        }
        match (self.cache >> 2, self.returns) {
            (0, _) => {}
            (1, true) => text.push_str(" th:TH_ATOMIC_RETURN"),
            (hint, _) => {
                let _ = write!(text, " th:{hint}");
            }
        }
        text.push_str(
            ["", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS"][usize::from(self.cache & 3)],
        );
        text
    }

    /// The limits of a wait on several counters; counters without a wait are omitted.
    fn packed_wait(&self) -> String {
        let [loads, expected, scalars] = self.waits();
        let most = self.most_waits();
        let names = [("vmcnt", loads, most[0]), ("expcnt", expected, most[1]), ("lgkmcnt", scalars, most[2])];
        let said = names.iter().filter(|(_, left, most)| left != most);
        said.map(|(name, left, _)| format!("{name}({left})")).collect::<Vec<_>>().join(" ")
    }

    fn operands(&self) -> String {
        let at = |operand, count: u8| self.operand(operand, count.into(), Kind::B32);
        let words = |bytes: u8| bytes.div_ceil(4);
        match &self.row.action {
            Action::Scalar(scalar) => {
                let mut all = vec![];
                if scalar.to > 0 {
                    all.push(at(self.to, (scalar.to / 32) as u8));
                }
                if scalar.onto && scalar.to == 0 {
                    all.push(at(self.from[0], 1));
                }
                let shown = usize::from(scalar.onto);
                for (operand, bits) in
                    self.from.iter().zip(scalar.from).skip(shown).filter(|(_, bits)| *bits > 0)
                {
                    if self.row.format == Format::Sopk {
                        all.push(format!("{:#x}", self.immediate as u16));
                    } else {
                        all.push(at(*operand, (bits / 32) as u8));
                    }
                }
                all.join(", ")
            }
            Action::SaveExec(bits, _) => {
                format!("{}, {}", at(self.to, (bits / 32) as u8), at(self.from[0], (bits / 32) as u8))
            }
            Action::Branch(_) => (self.immediate as u16).to_string(),
            Action::End => String::new(),
            Action::Nothing => {
                hint(self.row.name(self.target.generation), self.immediate as u16, self.target.generation)
            }
            Action::Wait(Waits::Packed) => self.packed_wait(),
            Action::Wait(_) => format!("{:#x}", self.immediate as u16),
            Action::Vector(vector) => {
                let first =
                    self.lanes_operands(&vector.from, vector.to) + &self.modifiers(&vector.from, vector.to);
                match &self.pair {
                    Some(pair) => format!("{first} :: {pair}"),
                    None => first,
                }
            }
            Action::FirstLane => format!("{}, {}", at(self.to, 1), at(self.from[0], 1)),
            Action::OneLane | Action::IntoLane | Action::Permute => {
                let reach = self.reach();
                format!("{}, {}, {}{reach}", at(self.to, 1), at(self.from[0], 1), at(self.from[1], 1))
            }
            Action::ScalarLoad { words } => {
                let older = matches!(self.target.generation, Generation::Gfx10 | Generation::Gfx11);
                let sign = if self.immediate < 0 { "-" } else { "" };
                let offset = format!("{sign}{:#x}", self.immediate.unsigned_abs());
                let offset = match (self.from[1], self.immediate) {
                    (Operand::None, 0) if older => "null".into(),
                    (Operand::None, _) => offset,
                    (register, 0) if older => at(register, 1),
                    (register, _) => format!("{} offset:{offset}", at(register, 1)),
                };
                format!("{}, {}, {offset}", at(self.to, *words), at(self.from[0], 2))
            }
            Action::Load { bytes, .. } => {
                let address = at(self.from[0], if self.from[2] == Operand::None { 2 } else { 1 });
                format!("{}, {address}, {}{}", at(self.to, words(*bytes)), at(self.from[2], 2), self.reach())
            }
            Action::Store { bytes, .. } => {
                let address = at(self.from[0], if self.from[2] == Operand::None { 2 } else { 1 });
                format!(
                    "{address}, {}, {}{}",
                    at(self.from[1], words(*bytes)),
                    at(self.from[2], 2),
                    self.reach()
                )
            }
            Action::Atomic { bytes, operands, .. } => {
                let address = at(self.from[0], if self.from[2] == Operand::None { 2 } else { 1 });
                let to = if self.returns { at(self.to, words(*bytes)) + ", " } else { String::new() };
                let data = at(self.from[1], words(bytes * operands));
                format!("{to}{address}, {data}, {}{}", at(self.from[2], 2), self.reach())
            }
        }
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, operands) = (self.name(), self.operands());
        if operands.is_empty() { f.write_str(&name) } else { write!(f, "{name} {operands}") }
    }
}

/// The immediate of an instruction that has no effect on results.
fn hint(name: &str, value: u16, generation: Generation) -> String {
    let of = |from: u32, len: u32| usize::from(value >> from) & ((1 << len) - 1);
    match name {
        "s_nop" => value.to_string(),
        "s_sendmsg" => "sendmsg(MSG_DEALLOC_VGPRS)".into(),
        "s_delay_alu" => {
            let on = |id: usize| match id {
                1..=4 => format!("VALU_DEP_{id}"),
                5..=7 => format!("TRANS32_DEP_{}", id - 4),
                8 => "FMA_ACCUM_CYCLE_1".into(),
                _ => format!("SALU_CYCLE_{}", id - 8),
            };
            let skip = ["SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];
            let (first, between, second) = (of(0, 4), of(4, 3), of(7, 4));
            let mut said = vec![];
            if first > 0 {
                said.push(format!("instid0({})", on(first)));
            }
            if between > 0 {
                said.push(format!("instskip({})", skip.get(between).unwrap_or(&"?")));
            }
            if second > 0 {
                said.push(format!("instid1({})", on(second)));
            }
            said.join(" | ")
        }
        "s_wait_alu" | "s_waitcnt_depctr" => {
            let mut fields =
                vec![("hold_cnt", 7, 1), ("sa_sdst", 0, 1), ("va_vdst", 12, 4), ("va_sdst", 9, 3)];
            fields.extend([("va_ssrc", 8, 1), ("va_vcc", 1, 1), ("vm_vsrc", 2, 3)]);
            if generation < Generation::Gfx12 {
                fields.remove(0);
            }
            let most = |len: u32| (1 << len) - 1;
            let said = fields.into_iter().filter(|(_, from, len)| of(*from, *len) != most(*len));
            said.map(|(name, from, len)| format!("depctr_{name}({})", of(from, len)))
                .collect::<Vec<_>>()
                .join(" ")
        }
        _ => format!("{value:#x}"),
    }
}
