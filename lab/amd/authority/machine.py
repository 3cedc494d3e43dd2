"""Runs one instruction on a wave, by the independent decoder's fields and AMD's pseudo-code.

The pseudo-code describes operations on `S0`, `D0`, `VCC` and so on. The documents' chapters on encodings, and this file,
define their registers and modifiers. `exceptions.py` lists every text that is not used literally."""

import functools
import importlib

import exceptions
import floats
from pcode import Program
from reach import Reaching
from values import FRACTIONS, INVERSE_OF_2_PI, Bits, Unsupported, Value

VCC, EXEC = 106, 126


@functools.cache
def texts(family):
    """All pseudo-code of a family, by the operation's name."""
    module = importlib.import_module(f"tinygrad.runtime.autogen.amd.{family}.str_pcode")
    return {operation.name: text for operation, text in module.PCODE.items()}


class Machine(Reaching):
    def __init__(self, family, wave, scalars, vectors, condition, memory):
        self.family, self.wave, self.scalars, self.vectors = family, wave, scalars, vectors
        self.condition, self.memory, self.taken, self.instead = condition, memory, None, None
        self.texts = texts(family)

    # Registers.

    def scalar(self, first, bits):
        words = (bits + 31) // 32
        return sum(self.scalars[first + i] << (32 * i) for i in range(words))

    def put_scalar(self, first, bits, value):
        if first == 124 and self.family != "cdna":
            return
        for i in range((bits + 31) // 32):
            self.scalars[first + i] = value >> (32 * i) & 0xFFFFFFFF

    def vector(self, register, lane, bits):
        return sum(self.vectors[register + i][lane] << (32 * i) for i in range((bits + 31) // 32))

    def put_vector(self, register, lane, bits, value):
        for i in range((bits + 31) // 32):
            self.vectors[register + i][lane] = value >> (32 * i) & 0xFFFFFFFF

    def mask(self, first):
        return self.scalar(first, self.wave)

    def running(self):
        exec_mask = self.mask(EXEC)
        return [lane for lane in range(self.wave) if exec_mask >> lane & 1]

    def text(self, name):
        if self.instead:
            return self.instead
        plain = name.removeprefix("V_DUAL_") if name.startswith("V_DUAL_") else None
        stem = "V_" + plain if plain else name.removesuffix("_E64").removesuffix("_E32")
        for candidate in (name, stem, stem + "_E32", stem + "_E64"):
            if self.texts.get(candidate):
                if candidate != name:
                    exceptions.use("the same operation's other encoding")
                return exceptions.corrected(self.family, candidate, self.texts[candidate])
        raise Unsupported(f"no pseudo-code for {name}")

    # Operands.

    def operand(self, made, offset, bits, lane, form):
        """The bits of a source, before modifiers."""
        if offset >= 256:
            return self.vector(offset - 256, lane, bits)
        if offset < 128:
            if offset == 124 and self.family != "cdna":
                return 0
            return self.scalar(offset, bits)
        if offset <= 208:
            return (offset - 128 if offset <= 192 else 192 - offset) & (1 << bits) - 1
        if 240 <= offset <= 248:
            width = bits if bits in floats.FORMATS else 32
            if offset == 248:
                return INVERSE_OF_2_PI[width]
            return floats.nearest(floats.Fraction(FRACTIONS[offset - 240]), width)
        if offset == 251:
            return int(self.mask(VCC) == 0)
        if offset == 252:
            return int(self.mask(EXEC) == 0)
        if offset == 253:
            return self.condition
        if offset == 255:
            literal = made._literal
            if bits == 64 and form == "F64":
                return literal << 32
            if bits == 64 and form == "I64":
                return Value("i", 32, literal).number & (1 << 64) - 1
            return literal
        raise Unsupported(f"source {offset}")

    def form(self, made, field):
        entry = made.operands.get(field) or made.operands.get("v" + field)
        return entry[0].name.rsplit("_", 1)[-1] if entry else "B32"

    def bits(self, made, field):
        for name in (field, field.removeprefix("v"), "v" + field):
            if name in made.operands:
                return made.op_bits[name]
        return 32

    def run(self, made):
        family = type(made).__name__.split("_")[0]
        getattr(self, "run_" + {"VGLOBAL": "global", "VOP3SD": "vop", "VOP1": "vop", "VOP2": "vop", "VOP3": "vop",
                                "VOPC": "vop", "VOP3P": "packed"}.get(family, family.lower()))(made)

    # Scalar instructions.

    def scalar_names(self):
        return {
            "SCC": Bits(self.condition, 1, "u"),
            "EXEC": Bits(self.mask(EXEC), 64),
            "EXEC_LO": Bits(self.scalars[EXEC], 32),
            "VCC": Bits(self.mask(VCC), 64),
            "VCCZ": Bits(int(self.mask(VCC) == 0), 1),
            "EXECZ": Bits(int(self.mask(EXEC) == 0), 1),
            "WAVE64": Bits(int(self.wave == 64), 1),
            "WAVE32": Bits(int(self.wave == 32), 1),
            "laneId": Bits(0, 32),
        }

    def run_scalar(self, made, sources, to=None):
        text = self.text(made.op.name)
        names = self.scalar_names()
        for name, (value, width) in sources.items():
            names[name] = Bits(value, width)
        if to:
            names["D0"] = Bits(self.scalar(to[0], to[1]), to[1])
        executed = names["EXEC"].number
        names["PC"] = Bits(0, 64, "i")
        Program(names).run(text)
        self.condition = names["SCC"].number & 1
        if names["EXEC"].number != executed or "EXEC.u" in text.replace("~EXEC", ""):
            self.put_scalar(EXEC, self.wave, names["EXEC"].number)
        if to and "D0" in text:
            self.put_scalar(to[0], to[1], names["D0"].number)
        return names

    def scalar_source(self, made, field):
        bits = self.bits(made, field)
        return self.operand(made, getattr(made, field).offset, bits, 0, self.form(made, field)), bits

    def run_sop1(self, made):
        to = (made.sdst.offset, self.bits(made, "sdst"))
        self.run_scalar(made, {"S0": self.scalar_source(made, "ssrc0")}, to)

    def run_sop2(self, made):
        sources = {"S0": self.scalar_source(made, "ssrc0"), "S1": self.scalar_source(made, "ssrc1")}
        self.run_scalar(made, sources, (made.sdst.offset, self.bits(made, "sdst")))

    def run_sopc(self, made):
        self.run_scalar(made, {"S0": self.scalar_source(made, "ssrc0"), "S1": self.scalar_source(made, "ssrc1")})

    def run_sopk(self, made):
        register, immediate = (self.scalars[made.sdst.offset], 32), (made.simm16, 16)
        compares = "CMPK" in made.op.name
        if "SIMM16" in self.text(made.op.name):
            sources = {"S0": register, "SIMM16": immediate}
        else:
            sources = {"S0": register, "S1": immediate} if compares else {"S0": immediate}
        self.run_scalar(made, sources, None if compares else (made.sdst.offset, 32))

    def run_sopp(self, made):
        if exceptions.is_silent(made.op.name):
            return
        names = self.run_scalar(made, {"SIMM16": (made.simm16, 16)})
        self.taken = names["PC"].whole().number != 4 if "BRANCH" in made.op.name and made.simm16 else None

    # Vector instructions that compute.

    def run_vop(self, made):
        if made.op.name.startswith(("V_READFIRSTLANE", "V_READLANE")):
            return self.run_lane_read(made)
        if made.op.name.startswith("V_WRITELANE"):
            return self.run_lane_write(made)
        text = self.text(made.op.name)
        results = [(lane, self.lane(made, text, lane)) for lane in self.active(made)]
        self.finish(made, text, results)

    def active(self, made):
        lanes = self.running()
        if type(made).__name__.endswith("_DPP16"):
            lanes = [lane for lane in lanes if made.row_mask >> (lane // 16) & made.bank_mask >> (lane // 4 % 4) & 1]
            lanes = [lane for lane in lanes if self.dpp_lane(made, lane) is not None or made.bc]
        return lanes

    def dpp_lane(self, made, lane):
        if not 0x111 <= made.dpp <= 0x11F:
            raise Unsupported(f"DPP control {made.dpp:#x}")
        within = lane % 16 - (made.dpp - 0x110)
        from_lane = lane - (made.dpp - 0x110)
        if within < 0:
            return None
        if not self.mask(EXEC) >> from_lane & 1 and not getattr(made, "fi", 0):
            return None
        return from_lane

    def field(self, made, i):
        for name in (f"vsrc{i}", f"src{i}"):
            if hasattr(type(made), name):
                return name
        return None

    def source(self, made, i, lane):
        """A vector operand with its modifiers, as bits and their width."""
        kind = type(made).__name__
        field = self.field(made, i)
        bits, form = self.bits(made, field), self.form(made, field)
        offset = getattr(made, field).offset
        high = False
        if kind.endswith("_SDWA") or kind.endswith("_SDWA_SDST"):
            if getattr(made, f"s{i}"):
                offset -= 256
            return self.selected(made, i, offset, bits, form, lane)
        if kind.endswith("_DPP16") and i == 0:
            lane = self.dpp_lane(made, lane)
            if lane is None:
                return 0, bits
        vop3 = kind.startswith("VOP3")
        if bits == 16 and self.family != "cdna" and not vop3 and offset >= 384:
            offset, high = offset - 128, True
        if bits == 16 and vop3 and getattr(made, "opsel", 0) >> i & 1:
            high = offset < 128 or offset >= 256
        value = self.operand(made, offset, 32 if high else bits, lane, form)
        value = (value >> 16 if high else value) & (1 << bits) - 1
        negated, absolute = getattr(made, "neg", 0) >> i & 1, getattr(made, "abs", 0) >> i & 1
        if kind.endswith("_DPP16") and i < 2:
            negated, absolute = getattr(made, f"src{i}_neg"), getattr(made, f"src{i}_abs")
        return self.with_sign(value, bits, negated, absolute), bits

    def with_sign(self, value, bits, negated, absolute):
        if absolute:
            value &= ~(1 << (bits - 1))
        return value ^ (negated << (bits - 1))

    def selected(self, made, i, offset, bits, form, lane):
        """SDWA: a byte, a half or the whole of a register."""
        value = self.operand(made, offset, max(bits, 32), lane, form)
        part, signed = getattr(made, f"src{i}_sel"), getattr(made, f"src{i}_sext")
        low, width = [(0, 8), (8, 8), (16, 8), (24, 8), (0, 16), (16, 16), (0, 32)][part]
        value = value >> low & (1 << width) - 1
        if signed:
            value = Value("i", width, value).number & 0xFFFFFFFF
        value &= (1 << bits) - 1
        return self.with_sign(value, bits, getattr(made, f"src{i}_neg"), getattr(made, f"src{i}_abs")), bits

    def mask_field(self, made):
        """The source of a lane mask: the third operand in the long encodings."""
        name = made.op.name
        if type(made).__name__.startswith("VOP3") and any(x in name for x in ("CNDMASK", "_CI_", "ADDC", "SUBB")):
            return made.src2.offset
        return VCC

    def lane(self, made, text, lane):
        names = self.scalar_names()
        names["laneId"] = Bits(lane, 32)
        names["OPSEL"] = Bits(getattr(made, "opsel", 0), 4)
        names["VCC"] = Bits(self.operand(made, self.mask_field(made), self.wave, lane, "B64"), 64)
        for i in range(3):
            if self.field(made, i) and f"S{i}" in text:
                names[f"S{i}"] = Bits(*self.source(made, i, lane))
        names["D1"] = Bits(0, 1)
        if self.is_compare(made):
            names["D0"] = Bits(0, 64)
        else:
            bits = 32 if "OPSEL" in text else self.bits(made, "vdst")
            register, high = self.destination(made)
            old = self.vector(register, lane, max(bits, 32))
            names["D0"] = Bits(old >> 16 if high and bits == 16 else old, bits)
            names["D0"].number &= (1 << bits) - 1
        Program(names).run(text)
        return names

    def is_compare(self, made):
        return made.op.name.startswith("V_CMP")

    def destination(self, made):
        """The destination register, and whether it is its upper half."""
        register = made.vdst.offset - 256
        if self.bits(made, "vdst") == 16:
            if type(made).__name__.startswith("VOP3"):
                return register, bool(made.opsel >> 3 & 1)
            if self.family != "cdna" and register >= 128:
                return register - 128, True
        return register, False

    def finish(self, made, text, results):
        kind = type(made).__name__
        name = made.op.name
        if self.is_compare(made):
            to_exec = name.startswith("V_CMPX") and self.family != "cdna"
            found = sum((names["EXEC" if to_exec else "D0"].number >> lane & 1) << lane for lane, names in results)
            to = VCC
            if to_exec:
                to = EXEC
            elif kind.startswith("VOP3"):
                to = made.vdst.offset
            elif kind.endswith("_SDST") and made.sd:
                to = made.sdst.offset
            exceptions.use("lanes that do not run leave 0 in masks")
            return self.put_scalar(to, self.wave, found)
        for lane, names in results:
            self.put_result(made, text, lane, names["D0"].number)
        if "VCC.u64[laneId] =" in text or "D1.u1" in text or "D1.i1" in text:
            store, at = ("D1", False) if "D1." in text else ("VCC", True)
            found = sum((names[store].number >> (lane if at else 0) & 1) << lane for lane, names in results)
            exceptions.use("lanes that do not run leave 0 in masks")
            self.put_scalar(made.sdst.offset if kind.startswith("VOP3SD") else VCC, self.wave, found)
        return None

    def put_result(self, made, text, lane, value):
        register, high = self.destination(made)
        bits = 32 if "OPSEL" in text else self.bits(made, "vdst")
        if getattr(made, "omod", 0):
            raise Unsupported("omod")
        if getattr(made, "clmp", 0):
            value = self.clamped(made, lane, value, bits)
        if type(made).__name__.endswith("_SDWA"):
            low, width = [(0, 8), (8, 8), (16, 8), (24, 8), (0, 16), (16, 16), (0, 32)][made.dst_sel]
            part = value & (1 << width) - 1
            whole = part << low
            if made.dst_unused == 1:
                whole = Value("i", low + width, whole).number & 0xFFFFFFFF
            if made.dst_unused == 2:
                old = self.vectors[register][lane]
                whole |= old & ~(((1 << width) - 1) << low)
            return self.put_vector(register, lane, 32, whole)
        if bits == 16:
            old = self.vectors[register][lane]
            if high:
                value = value << 16 | old & 0xFFFF
            elif self.family != "cdna":
                exceptions.use("16-bit results leave the other half on RDNA")
                value |= old & 0xFFFF0000
            else:
                exceptions.use("16-bit results clear the upper half on CDNA")
        return self.put_vector(register, lane, max(bits, 32), value)

    def clamped(self, made, lane, value, bits):
        """Saturates integer additions and subtractions without a carry."""
        name = made.op.name
        exceptions.use("clamp")
        a, b = (self.source(made, i, lane)[0] for i in (0, 1))
        if "ADD" in name and "U32" in name:
            return min(a + b, (1 << bits) - 1)
        if "SUBREV" in name and "U32" in name:
            return max(b - a, 0)
        if "SUB" in name and "U32" in name:
            return max(a - b, 0)
        if name in ("V_ADD_I32", "V_ADD_NC_I32"):
            signed = [Value("i", 32, side).number for side in (a, b)]
            return min(max(sum(signed), -(1 << 31)), (1 << 31) - 1) & 0xFFFFFFFF
        raise Unsupported(f"clamp of {name}")

    def run_packed(self, made):
        text = self.text(made.op.name)
        high_halves = made.opsel_hi | made.opsel_hi2 << 2
        halves = 16 if "B16" in made.op.name else 32
        results = []
        for lane in self.running():
            names = {"OPSEL": Bits(made.opsel, 3), "D0": Bits(0, 2 * halves)}
            for i in range(2):
                raw = self.operand(made, getattr(made, f"src{i}").offset, 2 * halves, lane, "B64")
                mask = (1 << halves) - 1
                low = raw >> halves * (made.opsel >> i & 1) & mask
                high = raw >> halves * (high_halves >> i & 1) & mask
                if halves == 32 and "F32" in made.op.name:
                    low ^= (made.neg >> i & 1) << 31
                    high ^= (made.neg_hi >> i & 1) << 31
                names[f"S{i}"] = Bits(raw if "OPSEL" in text else high << halves | low, 2 * halves)
            Program(names).run(text)
            results.append((lane, names["D0"].number))
        for lane, value in results:
            self.put_vector(made.vdst.offset - 256, lane, 2 * halves, value)

    def run_vopd(self, made):
        exceptions.use("pairs read before either writes")
        results = []
        for half, operation in (("x", made.opx), ("y", made.opy)):
            text = self.text(operation.name)
            register = getattr(made, "vdst" + half).offset - 256
            for lane in self.running():
                names = self.scalar_names()
                names["laneId"] = Bits(lane, 32)
                names["D0"] = Bits(self.vectors[register][lane], 32)
                for i, field in enumerate((f"src{half}0", f"vsrc{half}1")):
                    names[f"S{i}"] = Bits(self.operand(made, getattr(made, field).offset, 32, lane, "B32"), 32)
                Program(names).run(text)
                results.append((register, lane, names["D0"].number))
        for register, lane, value in results:
            self.vectors[register][lane] = value
