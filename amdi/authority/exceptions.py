"""Where AMD's pseudo-code is not taken as it stands, each with the reason. AUTHORITY.md has the same list with the
documents' words; a test fails if one of the two has an entry that the other has not, or if an entry was not needed."""

import collections
import re

USED = collections.Counter()

# Texts that cannot mean what they say: family, operation, what is written, what is read instead, the entry's name.
CORRECTIONS = [
    (r"cdna", r"V_PK_MOV_B32", r"S([01])\.u32\[OPSEL", r"S\1[OPSEL", "V_PK_MOV_B32's operands have 64 bits"),
    (r"cdna", r"V_PK_MOV_B32", r"D0\.u32\[", r"D0[", "V_PK_MOV_B32's operands have 64 bits"),
    (r"rdna.", r"DS_BPERMUTE_B32", r"32'I\(VGPR", r"32'U(VGPR", "DS_BPERMUTE_B32's addresses have no sign"),
]

# These change nothing that a program can see by itself: waiting, hints, the end.
SILENT = re.compile(
    r"S_(NOP|CLAUSE|DELAY_ALU|ENDPGM|WAITCNT\w*|WAIT_\w+|SENDMSG|SET_INST_PREFETCH_DISTANCE|INST_PREFETCH)$"
)


def use(entry, times=1):
    USED[entry] += times


def corrected(family, name, text):
    for families, names, written, meant, entry in CORRECTIONS:
        if re.fullmatch(families, family) and re.fullmatch(names, name):
            text, count = re.subn(written, meant, text)
            if count:
                use(entry)
    return text


def is_silent(name):
    if SILENT.match(name):
        use("waiting, hints and the end")
        return True
    return False
