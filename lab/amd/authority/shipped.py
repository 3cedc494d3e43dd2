"""The subjects of the comparison: the shipped instructions as the interpreter lists them, and the two
outside programs."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent

# Each shipped architecture: the family in the independent decoder (if it has one), LLVM's name, and the
# lanes.
TARGETS = {
    "gfx90a": ("cdna", "gfx90a", 64),
    "gfx942": ("cdna", "gfx942", 64),
    "gfx9-4-generic": ("cdna", "gfx9-4-generic", 64),
    "gfx10-3-generic": (None, "gfx10-3-generic", 32),
    "gfx11-generic": ("rdna3", "gfx11-generic", 32),
    "gfx12-generic": ("rdna4", "gfx12-generic", 32),
}


def interpreter():
    """The interpreter's example program, built by `cargo build --example amdi`."""
    named = os.environ.get("BOWSTRING_AMDI")
    return named or str(ROOT / "target" / "debug" / "examples" / "amdi")


def ask(arguments, lines):
    """Sends lines to the interpreter, and returns one answer for each."""
    run = subprocess.run([interpreter(), *arguments], input="\n".join(lines) + "\n" if lines else "", text=True,
                         stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def encodings():
    """Every distinct instruction of the images that are checked in."""
    with tempfile.TemporaryDirectory() as folder:
        unpack = [sys.executable, str(ROOT / "ptx" / "images.py"), "unpack", folder]
        subprocess.run(unpack, check=True, stdout=subprocess.DEVNULL)
        return ask(["encodings", folder], [])


def tool(name):
    """The name of an LLVM 22 tool: Debian's, or the plain one."""
    for candidate in (f"{name}-22", name):
        if shutil.which(candidate):
            return candidate
    raise FileNotFoundError(f"{name} of LLVM 22 is not installed")


def disassemble(target, codes):
    """LLVM's text of each code."""
    source = "".join(" ".join(f"0x{code[i:i + 2]}" for i in range(0, len(code), 2)) + "\n" for code in codes)
    run = subprocess.run([tool("llvm-mc"), "--disassemble", "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}"], input=source,
                         text=True, capture_output=True, check=True)
    texts = [line.strip() for line in run.stdout.splitlines() if line.startswith("\t") and not line.startswith("\t.")]
    if len(texts) != len(codes):
        raise ValueError(f"{len(codes)} codes gave {len(texts)} texts: {run.stderr[:300]}")
    return [text.split("//")[0].split(" ;")[0].strip() for text in texts]


def assemble(target, texts, attributes=""):
    """The bytes of each text, as hexadecimal digits; None if LLVM has no such instruction for the target."""
    arguments = [tool("llvm-mc"), "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", "--show-encoding"]
    if attributes:
        arguments.append(f"-mattr={attributes}")
    # A label before each instruction shows which are missing from the output.
    source = "".join(f"at{i}:\n{text}\n" for i, text in enumerate(texts))
    run = subprocess.run(arguments, input=source, text=True, capture_output=True, check=False)
    codes, at = [None] * len(texts), None
    for line in run.stdout.splitlines():
        if line.startswith("at") and line.rstrip().endswith(":"):
            at = int(line.strip()[2:-1])
        elif "encoding: [" in line and at is not None:
            inside = line.split("encoding: [")[1].split("]")[0]
            codes[at] = "".join(byte.strip()[2:] for byte in inside.split(","))
    return codes
