"""Decodes and encodes every shipped instruction by independent tools: tinygrad's decoder, which AMD's
machine-readable ISA generated, and LLVM. Both must agree with the interpreter's name and size, and LLVM
with its text; both must return the same bytes, LLVM from the interpreter's text."""

import re

from tinygrad.renderer.amd import decode_inst
from tinygrad.renderer.amd.dsl import FixedBitField

import exceptions
import shipped

def plain(name):
    """A name without the suffix for its encoding."""
    name = name.lower()
    while True:
        shorter = re.sub(r"_(e32|e64|dpp|sdwa|vop3)$", "", name)
        if shorter == name:
            return name
        name = shorter


def independent_name(made):
    if hasattr(made, "opx"):
        return plain(made.opx.name), plain(made.opy.name)
    return (plain(made.op.name),)


def encoded_again(made):
    """The bytes of a new instruction with the decoder's fields."""
    fields = {name: getattr(made, name) for name, field in made._fields if not isinstance(field, FixedBitField)}
    again = object.__new__(type(made))
    again._raw = 0
    for name, field in made._fields:
        again._raw = field.set(again._raw, fields.get(name))
    return again.to_bytes()


def check_independent(entries):
    """The differences between tinygrad's decoder and the interpreter's, for one architecture."""
    family = shipped.TARGETS[entries[0]["arch"]][0]
    wrong = []
    for entry in entries:
        if exceptions.absent(entry["name"]):
            exceptions.use("V_MAC_F32 is not in the wheel")
            continue
        code = bytes.fromhex(entry["hex"])
        try:
            # A trailing literal is part of the instruction, so the code may be followed by more bytes than
            # needed.
            made = decode_inst(code + bytes(16), family)
            again = encoded_again(made)
        except Exception as error:  # The decoder raises whatever its enumerations raise.
            wrong.append((entry["arch"], entry["hex"], entry["text"], f"tinygrad: {error!r}"))
            continue
        if made.size() != len(code) or again != code:
            wrong.append((entry["arch"], entry["hex"], entry["text"], f"tinygrad's bytes {again.hex()}"))
        # The interpreter names a pair by its first half; the text contains the second.
        names = (plain(entry["name"]), *(plain(part.split()[0]) for part in entry["text"].split(" :: ")[1:]))
        if names != independent_name(made):
            wrong.append((entry["arch"], entry["hex"], entry["text"], f"tinygrad's name {independent_name(made)}"))
    return wrong


def tidy(text):
    return re.sub(r"\s+", " ", text).strip()


def check_llvm(entries):
    target = shipped.TARGETS[entries[0]["arch"]][1]
    texts = shipped.disassemble(target, [entry["hex"] for entry in entries])
    codes = shipped.assemble(target, [entry["text"] for entry in entries])
    wrong = []
    for entry, text, code in zip(entries, texts, codes):
        if tidy(text) != tidy(entry["text"]):
            wrong.append((entry["arch"], entry["hex"], entry["text"], f"LLVM's text {tidy(text)}"))
        if code != entry["hex"] and not only_a_half(entry, code):
            wrong.append((entry["arch"], entry["hex"], entry["text"], f"LLVM's bytes {code}"))
    return wrong


def only_a_half(entry, code):
    """Whether the bytes differ only in the upper half of a literal, in an operation on halves, which does
    not read it."""
    whole, again = entry["hex"], code or ""
    if "16" in entry["name"] and len(whole) == len(again) and whole[:-4] == again[:-4] and again[-4:] == "0000":
        exceptions.use("16-bit literals have an upper half")
        return True
    return False
