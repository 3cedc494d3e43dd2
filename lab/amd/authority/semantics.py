"""Runs every shipped operation by the interpreter and by AMD's pseudo-code on the same registers and memory.
Afterwards all registers and memory must agree, not only those that the instruction names.

A case is one wave. Its lanes have different operands, so it makes as many comparisons as lanes run."""

import collections
import json
import re

from tinygrad.renderer.amd import decode_inst

import exceptions
import floats
import shipped
from machine import EXEC, VCC, Machine
from values import FRACTIONS, Unsupported

WORDS = [0, 1, 2, 3, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000,
         0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFF8000, 0xFF, 0x80, 0x01020304, 0x0C0D0A09, 0x0B08070F]
# Zeros, denormals, the least and the greatest, ones, halves, bounds of integers, infinities, NaNs.
FLOATS = [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x3F000000,
          0xBF000000, 0x3EFFFFFF, 0x4F000000, 0xCF000000, 0x4F7FFFFF, 0x4F800000, 0x7F800000, 0xFF800000, 0x7FC00000,
          0x7F800001, 0xFFC00001, 0x4B800000, 0x4B000001, 0x3F7FFFFF, 0x40200000, 0xC0600000, 0xC77FFF80]
DOUBLES = [0, 1 << 63, 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0xBFF0000000000000,
           0x3FE0000000000000, 0xBFE0000000000000, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0xC1E0000000000000,
           0xC1E0000000200000, 0x41EFFFFFFFE00000, 0x41F0000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
           0x7FF8000000000000, 0x7FF0000000000001, 0x36A0000000000000, 0x3690000000000001, 0x380FFFFFE0000000,
           0x47EFFFFFEFFFFFFF, 0x47EFFFFFF0000000, 0x4340000000000001, 0xC3E0000000000000,
           0x4004000000000000, 0xC00C000000000000, 0xBFD0000000000000, 0xC0EFFFF000000000]

# The address of a case's memory, and the bytes that belong to each lane.
MEMORY, OWN = 0x7F0012340000, 64


class Piece:
    def __init__(self, held):
        self.held = bytearray(held)

    def read(self, address, size):
        return int.from_bytes(self.held[self.at(address, size):][:size], "little")

    def write(self, address, size, value):
        at = self.at(address, size)
        self.held[at:at + size] = value.to_bytes(size, "little")

    def at(self, address, size):
        if not MEMORY <= address <= MEMORY + len(self.held) - size:
            raise Unsupported(f"an address outside of the case's memory: {address:#x}")
        return address - MEMORY


def shape(text):
    """The text that identifies an instruction apart from register numbers: constants stay, and all
    literals become one."""
    text = re.sub(r"\b([sv])\d+\b", r"\1", text)
    text = re.sub(r"\b([sv])\[(\d+):(\d+)\]", lambda m: f"{m[1]}x{int(m[3]) - int(m[2]) + 1}", text)
    text = re.sub(r"\b0x[0-9a-f]+\b", "literal", text)
    text = re.sub(r"\b(s_\w*branch\w*|s_nop|s_delay_alu|s_clause|s_wait\w*) .*", r"\1", text)
    text = re.sub(r"offset:-?\d+", "offset", text)
    # Whole constants are reduced to their sign, and to whether they have one digit or more.
    return re.sub(r"(?<![\w:.])-?\d+(?![\w.\]])", lambda m: "-n" if m[0][0] == "-" else "n" if len(m[0]) > 1 else m[0], text)


def chosen(entries, each, draw):
    """Picks up to `each` instructions of each shape."""
    shapes = collections.defaultdict(list)
    for entry in entries:
        shapes[shape(entry["text"])].append(entry)
    return [entry for held in shapes.values() for entry in draw.sample(held, min(each, len(held)))]


def word(draw, kind):
    drawn = draw.random()
    if drawn < 0.35:
        return draw.getrandbits(32)
    if drawn < 0.55:
        return draw.choice(WORDS)
    if kind == "f64":
        return draw.choice(DOUBLES) >> 32
    if drawn < 0.9 and kind == "f32":
        return draw.choice(FLOATS)
    return draw.getrandbits(draw.randrange(33))


def masks(draw, wave, number):
    """The mask of active lanes: all, some, one, or none."""
    everything = (1 << wave) - 1
    return [draw.getrandbits(wave), everything, 1 << draw.randrange(wave), 0][number % 4]


def case(entry, made, wave, number, draw):
    """Makes registers and memory for an instruction."""
    name = made.opx.name if hasattr(made, "opx") else made.op.name
    kind = "f64" if "F64" in name else "f32" if "F32" in name or "DUAL" in name else "b"
    # All registers of a wave get values, so that reading a wrong register shows.
    scalars = [word(draw, kind) for _ in range(106)] + [0] * 22
    used = set()
    for field, _ in made._fields:
        value = getattr(made, field)
        if hasattr(value, "offset") and value.offset >= 256:
            first = value.offset - 256
            used.update(range(first, min(first + 4, 256)))
            used.update({first % 128, first % 128 + 1})
    vectors = {register: [word(draw, kind) for _ in range(wave)] for register in used}
    if kind == "f64":
        for register in sorted(used):
            for lane in range(wave):
                if register + 1 in used and draw.random() < 0.4:
                    double = draw.choice(DOUBLES)
                    vectors[register][lane], vectors[register + 1][lane] = double & 0xFFFFFFFF, double >> 32
    for lane in range(wave):
        if draw.random() < 0.25 and len(used) > 2:
            # Random operands would rarely be equal.
            first, second = draw.sample(sorted(used), 2)
            vectors[first][lane] = vectors[second][lane]
    equal_pairs(made, wave, scalars, vectors, draw)
    if hasattr(made, "ssrc1") and draw.random() < 0.3 and max(made.ssrc0.offset, made.ssrc1.offset) < 105:
        for i in (0, 1):
            scalars[made.ssrc0.offset + i] = scalars[made.ssrc1.offset + i]
    if name.startswith("DS_BPERMUTE"):
        addresses = [draw.choice([draw.getrandbits(32), 4 * draw.randrange(wave)]) for _ in range(wave)]
        vectors[made.addr.offset - 256] = addresses
    held = b""
    if type(made).__name__.startswith(("GLOBAL", "VGLOBAL")):
        held = reach(made, wave, scalars, vectors, draw)
    if type(made).__name__.startswith("SMEM"):
        offset = made.ioffset if hasattr(made, "ioffset") else made.offset
        bits = 24 if hasattr(made, "ioffset") else 21
        offset = offset - (1 << bits) if offset >> (bits - 1) else offset
        place(scalars, made.sbase.offset, MEMORY - offset + 4 * draw.randrange(8))
        if made.soffset.offset < 106 and getattr(made, "soffset_en", 1):
            scalars[made.soffset.offset] = 4 * draw.randrange(8)
        held = draw.randbytes(256)
    vcc = draw.choice([draw.getrandbits(wave), draw.getrandbits(wave), 0, (1 << wave) - 1])
    run = {"arch": entry["arch"], "hex": entry["hex"], "wave": wave, "exec": f"{masks(draw, wave, number):x}",
           "vcc": f"{vcc:x}", "scc": draw.randrange(2), "s": {str(i): scalars[i] for i in range(106)},
           "v": {str(i): lanes for i, lanes in vectors.items()}, "memory": [[MEMORY, held.hex()]] if held else []}
    return run


def equal_pairs(made, wave, scalars, vectors, draw):
    """Makes the operands of a 64-bit comparison equal in some lanes: chance would rarely make two
    registers each equal."""
    if not re.match(r"V_CMPX?_\w+64", made.op.name if hasattr(made, "op") else ""):
        return
    first = made.src0.offset
    second = (made.src1 if hasattr(made, "src1") else made.vsrc1).offset
    known = constant(made, first)
    if not (second < 105 or second >= 256) or known is None and not (first < 105 or first >= 256):
        return
    lanes = [lane for lane in range(wave) if draw.random() < 0.2] if second >= 256 else [0] * (draw.random() < 0.3)
    for lane in lanes:
        for i in (0, 1):
            if known is not None:
                value = known >> 32 * i & 0xFFFFFFFF
            else:
                value = vectors[first - 256 + i][lane] if first >= 256 else scalars[first + i]
            if second >= 256:
                vectors[second - 256 + i][lane] = value
            else:
                scalars[second + i] = value


def constant(made, offset):
    """The double of a constant operand in the instruction."""
    if "F64" not in made.op.name:
        return None
    if 240 <= offset < 248:
        return floats.nearest(floats.Fraction(FRACTIONS[offset - 240]), 64)
    return made._literal << 32 if offset == 255 else None


def place(scalars, first, address):
    scalars[first], scalars[first + 1] = address & 0xFFFFFFFF, address >> 32


def reach(made, wave, scalars, vectors, draw):
    """Gives each lane memory of its own, and sets the registers that address it."""
    newest = hasattr(made, "ioffset")
    bits = 24 if newest else 13
    offset = made.ioffset if newest else made.offset
    offset = offset - (1 << bits) if offset >> (bits - 1) else offset
    register = (made.vaddr if newest else made.addr).offset - 256
    order = list(range(wave))
    draw.shuffle(order)
    saddr = made.saddr.offset
    if saddr < 106:
        # The lane's offset is unsigned: a large one needs a base far below.
        far = draw.choice([0, 0x80000000, 0xFFFF0000])
        place(scalars, saddr, MEMORY - offset - far)
        vectors[register] = [OWN * order[lane] + far for lane in range(wave)]
    else:
        for lane in range(wave):
            address = MEMORY - offset + OWN * order[lane]
            vectors[register][lane], vectors[register + 1][lane] = address & 0xFFFFFFFF, address >> 32
    return draw.randbytes(OWN * wave)


def expected(run, made, family, instead=None):
    """The pseudo-code's result of a case, in the form of the interpreter's answer, but complete instead of
    only the changes."""
    scalars = [run["s"].get(str(i), 0) for i in range(128)]
    for first, name in ((VCC, "vcc"), (EXEC, "exec")):
        mask = int(run[name], 16)
        scalars[first], scalars[first + 1] = mask & 0xFFFFFFFF, mask >> 32
    vectors = {int(i): list(lanes) for i, lanes in run["v"].items()}
    memory = Piece(bytes.fromhex(run["memory"][0][1]) if run["memory"] else b"")
    machine = Machine(family, run["wave"], scalars, vectors, run["scc"], memory)
    machine.instead = instead
    machine.run(made)
    return machine


def answered(run, answer):
    """The interpreter's answer in the same form."""
    scalars = [run["s"].get(str(i), 0) for i in range(128)]
    for first, name in ((VCC, "vcc"), (EXEC, "exec")):
        mask = int(answer.get(name, run[name]), 16)
        scalars[first], scalars[first + 1] = mask & 0xFFFFFFFF, mask >> 32
    for i, value in answer.get("s", {}).items():
        scalars[int(i)] = value
    vectors = {int(i): list(lanes) for i, lanes in run["v"].items()}
    for i, lanes in answer.get("v", {}).items():
        vectors[int(i)] = list(lanes)
    memory = answer["memory"][0][1] if "memory" in answer else run["memory"][0][1] if run["memory"] else ""
    return scalars, vectors, answer.get("scc", run["scc"]), memory


def floating_results(made):
    """The width of a result that may be a NaN, and its register: the pseudo-code does not define a NaN's
    bits."""
    if hasattr(made, "opx"):
        halves = ((made.opx, made.vdstx), (made.opy, made.vdsty))
        return [(32, to.offset - 256) for operation, to in halves if "F32" in operation.name]
    entry = made.operands.get("vdst")
    name = made.op.name
    if name in ("V_PK_ADD_F32", "V_PK_MUL_F32"):
        return [(32, made.vdst.offset - 256), (32, made.vdst.offset - 255)]
    if not entry or name.startswith("V_CMP") or not entry[0].name.startswith("FMT_NUM_") or entry[0].name[8] != "F":
        return []
    register = made.vdst.offset - 256
    return [(entry[1], register)] if entry[1] in (32, 64) else []


def same_but_for_nans(made, ours, theirs):
    """Replaces every result that is a NaN on both sides by the same NaN."""
    for width, register in floating_results(made):
        if register not in ours or register not in theirs:
            continue
        for lane in range(len(ours[register])):
            def whole(held, lane=lane):
                high = held[register + 1][lane] << 32 if width == 64 else 0
                return held[register][lane] | high
            if whole(ours) != whole(theirs) and floats.is_nan(whole(ours), width) and floats.is_nan(whole(theirs), width):
                exceptions.use("which bits say that a result is no number")
                ours[register][lane] = theirs[register][lane]
                if width == 64:
                    ours[register + 1][lane] = theirs[register + 1][lane]


def same_scalar_but_for_nans(made, ours, theirs):
    """Does the same for a scalar result, which has 32 bits."""
    name = made.op.name if hasattr(made, "op") else ""
    if not name.startswith("S_") or not name.endswith("_F32") or not hasattr(made, "sdst"):
        return
    register = made.sdst.offset
    if register < 128 and ours[register] != theirs[register]:
        if floats.is_nan(ours[register], 32) and floats.is_nan(theirs[register], 32):
            exceptions.use("which bits say that a result is no number")
            ours[register] = theirs[register]


def operations_of(entry):
    """The names of an instruction's operations: two for a pair."""
    return [part.split()[0] for part in entry["text"].split(" :: ")]


def compare(run, made, machine, answer):
    """Describes the first difference; None if the results agree."""
    if "error" in answer:
        return f"the interpreter's error: {answer['error']}"
    scalars, vectors, condition, memory = answered(run, answer)
    same_but_for_nans(made, vectors, machine.vectors)
    same_scalar_but_for_nans(made, scalars, machine.scalars)
    for i in range(128):
        if scalars[i] != machine.scalars[i]:
            return f"scalar {i}: interpreter {scalars[i]:#x}, pseudo-code {machine.scalars[i]:#x}"
    if condition != machine.condition:
        return f"scc: interpreter {condition}, pseudo-code {machine.condition}"
    for i in sorted(set(vectors) | set(machine.vectors)):
        if vectors.get(i) != machine.vectors.get(i):
            ours, theirs = vectors.get(i, []), machine.vectors.get(i, [])
            lane = next((k for k in range(min(len(ours), len(theirs))) if ours[k] != theirs[k]), 0)
            operands = {k: f"{v[lane]:#x}" for k, v in ((int(k), v) for k, v in run["v"].items())}
            pair = f"{ours[lane]:#x}" if ours else None, f"{theirs[lane]:#x}" if theirs else None
            return f"v{i} lane {lane} of exec {run['exec']}: interpreter {pair[0]}, pseudo-code {pair[1]}, from {operands}"
    if memory != machine.memory.held.hex():
        return "memory differs"
    if machine.taken is not None and bool(answer.get("taken")) != machine.taken:
        return f"taken: interpreter {answer.get('taken')}, pseudo-code {machine.taken}"
    return None


def check(pairs, cases, draw):
    """Checks pairs of a shipped instruction and the code, family and lanes to evaluate it with. Returns
    the numbers of compared cases and lanes, their operations, and the differences."""
    runs, wrong, uncovered, operations = [], [], collections.Counter(), set()
    shapes = collections.Counter(entry["name"] for entry, *_ in pairs)
    for entry, code, family, wave in pairs:
        made = decode_inst(bytes.fromhex(code) + bytes(16), family)
        _, instead = exceptions.absent(entry["name"]) or (None, None)
        first = draw.randrange(4)
        # Operations with few shapes get more cases, to reach rare operands such as a zero or a negative
        # fraction.
        for number in range(first, first + max(cases, 2 * cases // shapes[entry["name"]])):
            run = case(entry, made, wave, number, draw)
            try:
                machine = expected(run, made, family, instead)
            except Unsupported as reason:
                uncovered[f"{entry['arch']} {entry['name']}: {reason}"] += 1
                break
            runs.append((run, made, machine, entry))
    answers = shipped.ask(["eval"], [json.dumps(run) for run, *_ in runs])
    lanes = 0
    for (run, made, machine, entry), answer in zip(runs, answers):
        operations.update(operations_of(entry))
        lanes += max(1, bin(int(run["exec"], 16)).count("1")) if entry["name"][0] != "s" else 1
        difference = compare(run, made, machine, answer)
        if difference:
            wrong.append((entry["arch"], entry["hex"], entry["text"], difference))
    return len(runs), lanes, operations, wrong, uncovered
