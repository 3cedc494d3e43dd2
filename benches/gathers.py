"""Finds the gather instructions in a built library, which load values from scattered addresses.

On AMD's processors these take up to four times as long as loading the values one by one, and the compiler
makes them from plain loops. Our intended ones are in functions that run only on processors known to be good
at them. Any other gather comes from a loop that should be rewritten.

    python3 benches/gathers.py LIBRARY

LIBRARY is a shared library or a program with its symbols. Needs objdump. Exits with 1 if a function contains
a gather that it must not, and if the library contains none at all, because then it was not read properly.
"""

import re
import subprocess
import sys

# Functions that may contain gathers: `gathers()` in host/cpu/vectorise.rs chooses them.
ALLOWED = re.compile(r"cpu::intrinsics::(gather::(gather|gather_bits|locate)|compress::compress_avx512)\b")
# Functions of the library. Other code may use gathers as it likes.
OURS = re.compile(r"\bbowstring(_kernels)?::")

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
GATHER = re.compile(r"\sv(p?)gather[dq](d|q|ps|pd)\s")


def gathers(lines):
    """The number of gathers in each function, from objdump's output."""
    found, name = {}, ""
    for line in lines:
        if match := FUNCTION.match(line.rstrip()):
            name = match.group(1)
        elif GATHER.search(line):
            found[name] = found.get(name, 0) + 1
    return found


def verdict(found):
    """Our functions that contain gathers they must not."""
    return {name: count for name, count in found.items() if OURS.search(name) and not ALLOWED.search(name)}


def main(library):
    dumped = subprocess.Popen(["objdump", "-dC", "--no-show-raw-insn", library], stdout=subprocess.PIPE, text=True)
    found = gathers(dumped.stdout)
    if dumped.wait() != 0:
        return "objdump failed"
    chosen = sum(count for name, count in found.items() if ALLOWED.search(name))
    if chosen == 0:
        return f"{library} has none of the gathers that there should be: is it without symbols?"
    bad = verdict(found)
    for name, count in sorted(bad.items()):
        print(f"{count:4} {name}")
    print(f"{chosen} gathers where they are chosen, {sum(bad.values())} where they are not")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
