"""Writes STATIC.md: what each entry costs, read off what ptxas makes of it for sm_90. No GPU, no measurement.

    python3 ptx/static.py FACTS SASS IMAGES > STATIC.md

FACTS has "KIND ARCH ENTRY NUMBER" a line (registers of every architecture, code of AMD's), SASS is `nvdisasm -c -hex` of
all families for sm_90, IMAGES is the folder with the PTX. `check.sh` makes the first two. Standard library only.

How loads in flight are counted: instructions in the order in which they stand, ended by an unconditional jump or exit,
run through by a branch that may not be taken. A load is in flight from its issue until an instruction waits for its
scoreboard, which is in every instruction's control bits. The most that are in flight at once, in each stretch between
two times without any, are listed as "loads x bytes each"; the largest first, each kind once. Loads that a predicate
switches off count, loads carried around a loop do not.
"""

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "gfx90a"]
# The representative of AMD's architectures with waves of 32, as gfx90a is for those with waves of 64.
NARROW = "gfx11-generic"
# The threads of a block, as kernels/src/target/mod.rs launches them, and the limits of a processor of sm_90.
BLOCK, WARPS, REGISTERS, PARTITIONS = 256, 64, 65536, 4
WIDTHS = {"8": 1, "16": 2, "64": 8, "128": 16}


def resident(registers):
    """The warps that a processor of sm_90 holds at once: whole blocks, with registers allocated 256 at a
    time to a warp."""
    of_warp = -(-registers * 32 // 256) * 256
    warps = REGISTERS // PARTITIONS // of_warp * PARTITIONS
    return min(warps, WARPS) // (BLOCK // 32) * (BLOCK // 32)


def resident_amd(arch, registers):
    """The waves that a SIMD holds at once, as far as vector registers allow: of 512 on gfx90a in eights,
    of 1,024 on gfx11 in sixteens (a SIMD of the larger gfx11 has half as many again)."""
    all_of_them, step, most = (512, 8, 8) if arch == "gfx90a" else (1024, 16, 16)
    return min(most, all_of_them // (-(-registers // step) * step))


def width(mnemonic):
    """The bytes that an LDG or STG moves in a lane."""
    parts = (part.lstrip("US") for part in mnemonic.split("."))
    return next((WIDTHS[part] for part in parts if part in WIDTHS), 4)


def control(high):
    """The scoreboard that an instruction sets when its result is ready (7: none), and those that it waits
    for."""
    bits = high >> 41
    return bits >> 5 & 7, bits >> 11 & 63


def instructions(sass):
    """(entry, text, high word) for each instruction: the word's second half is on the following line."""
    entry = text = None
    for line in sass:
        if line.startswith(".text."):
            entry = line.strip()[6:-1]
        elif found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s+/\* 0x[0-9a-f]+ \*/", line):
            text = found[1].strip("{} ")
        elif text and (found := re.match(r"\s+/\* (0x[0-9a-f]+) \*/", line)):
            yield entry, text, int(found[1], 16)
            text = None


def leaves(text):
    """Whether execution never continues at the next instruction: no guard, and a jump without a condition
    of its own."""
    return re.match(r"(EXIT|RET|BRX|JMX|BRA(\.[A-Z]+)? `)", text) and ".DIV" not in text


class Entry:
    def __init__(self):
        self.code = 0
        self.stored, self.loaded = Counter(), Counter()
        self.flights = set()
        self._pending = []  # (scoreboard, bytes), in flight now
        self._most = []

    def add(self, text, high):
        guarded, mnemonic = text.startswith("@"), text.split()[1 if text.startswith("@") else 0]
        if mnemonic == "NOP":
            return
        self.code += 1
        scoreboard, waits = control(high)
        self._pending = [load for load in self._pending if not waits >> load[0] & 1]
        if not self._pending:
            self.land()
        if mnemonic.startswith("LDG"):
            self.loaded[width(mnemonic)] += 1
            self._pending.append((scoreboard, width(mnemonic)))
            if len(self._pending) > len(self._most):
                self._most = list(self._pending)
        elif mnemonic.startswith("STG"):
            self.stored[width(mnemonic)] += 1
        if not guarded and leaves(text):
            self._pending = []
            self.land()

    def land(self):
        if self._most:
            each = Counter(size for _, size in self._most)
            self.flights.add(tuple(sorted(each.items(), reverse=True)))
        self._most = []

    def in_flight(self):
        """The maximum of each mix of widths; a mix that is part of another one is left out."""
        kinds = [dict(flight) for flight in self.flights]

        def less(a, b):
            return a != b and all(b.get(size, 0) >= n for size, n in a.items())

        kinds = [a for a in kinds if not any(less(a, b) for b in kinds)]
        kinds.sort(key=lambda kind: (-sum(size * n for size, n in kind.items()), sorted(kind.items())))
        return ", ".join("+".join(f"{n}x{size}" for size, n in kind.items()) for kind in kinds) or "-"


def ptx_code(folder):
    """The number of instructions of each entry in the PTX."""
    code = {}
    for image in sorted(folder.glob("*.ptx")):
        entry = None
        for line in image.read_text().splitlines():
            if found := re.match(r"\.visible \.entry (\w+)\(", line):
                entry = found[1]
                code[entry] = 0
            elif entry and re.match(r"\s+[@a-z].*;", line):
                code[entry] += 1
    return code


def sizes(counts):
    return " ".join(str(size) for size in sorted(counts, reverse=True)) or "-"


def main():
    facts, sass, folder = sys.argv[1:]
    numbers = defaultdict(dict)
    for line in open(facts):
        kind, arch, entry, number, *_ = line.split()
        if kind in ("registers", "code", "scalars"):
            numbers[entry][kind, arch] = int(number)
    entries = defaultdict(Entry)
    for entry, text, high in instructions(open(sass)):
        entries[entry].add(text, high)
    in_ptx = ptx_code(Path(folder))
    if not set(numbers) == set(entries) == set(in_ptx):
        sys.exit(f"entries differ: {set(numbers) ^ set(entries) ^ set(in_ptx)}")
    print(
        "# What each entry costs\n\n"
        "Written by ptx/check.sh. Static facts, not measurements.\n\n"
        "- *registers*: those that ptxas 13.4 gives it; vector registers on AMD.\n"
        f"- The rest is sm_90's. *warps*: how many a processor holds at once, of {WARPS}, in blocks of {BLOCK} threads.\n"
        "- *a load*, *a store*: bytes that one load or store instruction moves in a lane, each width that occurs.\n"
        "- *in flight*: the most loads that a lane has under way at once, and of how many bytes, on each way through the\n"
        "  code; `ptx/static.py` says how it counts.\n"
        "- *code*: instructions. *a PTX*: SASS instructions for each of the PTX, which `COSTS.md` counts.\n"
        "- AMD's columns are of an architecture with waves of 64 and of one with waves of 32; the others of each kind have\n"
        "  nearly the same code. *scalars*: scalar registers. *waves*: how many a SIMD holds at once, of 8 on gfx90a and of\n"
        "  16 on gfx11, as far as vector registers go.\n\n"
        f"| entry | registers {' | '.join(ARCHITECTURES)} | warps | a load | a store | in flight | code | a PTX | code gfx90a | "
        "scalars | waves | registers gfx11 | code | scalars | waves |\n"
        f"| --- | {'--: | ' * len(ARCHITECTURES)}--: | --- | --- | --- |{' --: |' * 9}"
    )
    for name in sorted(entries):
        entry, of = entries[name], numbers[name]
        registers = " | ".join(str(of.get(("registers", arch), "")) for arch in ARCHITECTURES)
        print(
            f"| {name} | {registers} | {resident(of['registers', 'sm_90'])} | {sizes(entry.loaded)} | "
            f"{sizes(entry.stored)} | {entry.in_flight()} | {entry.code} | {entry.code / in_ptx[name]:.2f} | "
            f"{of['code', 'gfx90a']} | {of['scalars', 'gfx90a']} | {resident_amd('gfx90a', of['registers', 'gfx90a'])} | "
            f"{of['registers', NARROW]} | {of['code', NARROW]} | {of['scalars', NARROW]} | "
            f"{resident_amd(NARROW, of['registers', NARROW])} |"
        )


if __name__ == "__main__":
    main()
