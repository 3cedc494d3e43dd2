"""Support for RDNA2, which the independent decoder lacks. LLVM disassembles each instruction and assembles
it as the same instruction of RDNA3, or of CDNA if it uses SDWA; these bytes select the pseudo-code. So
the interpreter runs RDNA2's bytes, and the authority an equivalent's."""

import re

import exceptions
import shipped

# The representation of halves on RDNA2: whole registers, of which only the lower half counts.
RDNA3 = ("gfx1100", "-real-true16,+wavefrontsize32")
CDNA = "gfx90a"


def as_cdna(text):
    """An SDWA instruction with CDNA's names. A mask has two registers there; the actual one is patched in
    later."""
    text = text.replace("vcc_lo", "vcc").replace("_nc_", "_").replace("_co_ci_", "c_co_")
    return re.sub(r"^(v_cmp_\w+_sdwa) s\d+,", r"\1 s[0:1],", text)


def with_destination(code, text):
    """Puts a compare's scalar destination into SDWA's bits for it, which are the same in both generations."""
    found = re.match(r"v_cmp_\w+_sdwa s(\d+),", text)
    if not found:
        return code
    second = bytearray(bytes.fromhex(code))
    second[5] = 0x80 | int(found[1])
    return bytes(second).hex()


def equivalents(entries):
    """Pairs for `semantics.check`, and the instructions without an equivalent."""
    texts = shipped.disassemble("gfx10-3-generic", [entry["hex"] for entry in entries])
    pairs, left, without = [], [], []
    for entry, text, code in zip(entries, texts, shipped.assemble(RDNA3[0], texts, RDNA3[1])):
        if code:
            pairs.append((entry, code, "rdna3", 32))
        else:
            left.append((entry, text))
    for (entry, text), code in zip(left, shipped.assemble(CDNA, [as_cdna(text) for _, text in left])):
        if code:
            pairs.append((entry, with_destination(code, text), "cdna", 32))
        else:
            without.append(text)
    exceptions.use("RDNA2 by its equivalents", len(pairs))
    return pairs, without
