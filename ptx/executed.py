"""Writes EXECUTED.md: how many of the hardware's instructions operations execute. No GPU, no measurement.

    python3 ptx/executed.py LINES IMAGES > EXECUTED.md

LINES is what the test of COSTS.md writes: the number of rows, and then, for each operation and entry, how often waves ran
each line of the PTX. IMAGES is the folder with the PTX. `tools/bless executed` makes both. Standard library only; needs
ptxas and nvdisasm in $BIN.

An image gets a line number before each instruction, which changes no instruction that ptxas makes, but says of each which
line of the PTX it comes from. It counts as executed as often as that line is. ptxas copies some code, to unroll a loop or to
save a jump: then each copy executes the less often. A block of the PTX, up to a label or a branch, has as many copies as its
loads, stores, shuffles and branches have, each of which is one instruction; the copies of a block without them are not noticed, so the
counts are high rather than low.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path


# Instructions of the PTX that become one of the hardware's.
SINGLE = {"ld.global": "LDG", "st.global": "STG", "shfl.sync": "SHFL", "red.": "RED", "atom.": "ATOM", "bra": "BRA"}


def with_lines(ptx):
    """The PTX with the number of its line before each instruction."""
    out, inside = [], False
    for number, line in enumerate(ptx.splitlines(), 1):
        if line == "{":
            inside = True
        elif line == "}":
            inside = False
        elif inside and re.match(r"\s+(@!?%p\d+\s+)?[a-z]", line):
            out.append(f"\t.loc 1 {number} 0")
        out.append(line)
        if line.startswith(".address_size"):
            out.append('.file 1 "image.ptx"')
    return "\n".join(out) + "\n"


def assembled(image):
    """For each entry, the lines of the PTX that the instructions of sm_90 come from, each with a weight: 1, or less for
    copies."""
    tools = Path(os.environ["BIN"])
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "image.ptx", Path(folder) / "image.cubin"
        ptx = image.read_text()
        given.write_text(with_lines(ptx))
        subprocess.run([tools / "ptxas", "-lineinfo", "-arch=sm_90", given, "-o", made], check=True)
        listed = subprocess.run([tools / "nvdisasm", "-c", "-g", made], check=True, capture_output=True, text=True)
    entries, at, line = defaultdict(list), None, 0
    for text in listed.stdout.splitlines():
        if text.startswith(".text."):
            at = entries[text.strip()[6:-1]]
        elif found := re.match(r"\s*//## File .*, line (\d+)", text):
            line = int(found[1])
        elif found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+\{?\s*(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)", text):
            if found[1] != "NOP":
                at.append((line, found[1]))
    return {entry: weighed(ptx.splitlines(), each) for entry, each in entries.items()}


def weighed(ptx, instructions):
    """The lines of instructions, with the weights of copies."""
    block_of, block = [], 0
    for text in ptx:
        block += text.startswith("$")
        block_of.append(block)
        block += bool(re.match(r"\s+(@!?%p\d+\s+)?(bra|brx)", text))
    made = Counter()
    for line, mnemonic in instructions:
        if any(begins in ptx[line - 1] and mnemonic.startswith(one) for begins, one in SINGLE.items()):
            made[line] += 1
    copies = {}
    for line, count in made.items():
        block = block_of[line - 1]
        copies[block] = min(count, copies.get(block, count))
    return [(line, 1 / copies.get(block_of[line - 1], 1)) for line, _ in instructions]


def main():
    given, folder = Path(sys.argv[1]), Path(sys.argv[2])
    rows, *lines = given.read_text().splitlines()
    images = {}
    print(
        "# What operations execute on the hardware\n\n"
        "Written by `tools/bless executed` from the counts of `COSTS.md`, by line of the PTX, and from what ptxas 13.4 makes of\n"
        "each line for sm_90; `ptx/executed.py` says how. Counts, not measurements. *PTX*, *SASS*: instructions issued a row of\n"
        "the input, 32 for each wave that ran one, as in `COSTS.md`.\n\n"
        "| operation | entry | PTX | SASS |\n| --- | --- | --: | --: |"
    )
    for row in lines:
        operation, family, entry, counts = row.split("\t")
        if family not in images:
            images[family] = assembled(folder / f"{family}.sm_75.ptx")
        times = {int(line): int(n) for line, n in (pair.split(":") for pair in counts.split())}
        a_row = lambda n: f"{n * 32 / int(rows):.2f}"
        sass = sum(times.get(line, 0) * weight for line, weight in images[family][entry])
        print(f"| {operation} | {entry} | {a_row(sum(times.values()))} | {a_row(sass)} |")


if __name__ == "__main__":
    main()
