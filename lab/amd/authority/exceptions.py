"""The deviations from AMD's pseudo-code, each with its reason. AUTHORITY.md has the same list with the
documents' words; a test fails if an entry is missing from one of the two, or was not needed."""

import collections
import re

USED = collections.Counter()

DENORMALS = "DENORM is any denormal number"

# Corrections of wrong texts: family, operation, the written text, the text read instead, the entry's name.
CORRECTIONS = [
    (r"cdna", r"V_PK_MOV_B32", r"S([01])\.u32\[OPSEL", r"S\1[OPSEL", "V_PK_MOV_B32's operands have 64 bits"),
    (r"cdna", r"V_PK_MOV_B32", r"D0\.u32\[", r"D0[", "V_PK_MOV_B32's operands have 64 bits"),
    (r".*", r"V_DIV_SCALE_F\d\d", r"^", "D0 = S0;\n", "V_DIV_SCALE gives S0 where the text gives nothing"),
    (r".*", r"V_DIV_SCALE_F\d\d", r"VCC = 0x([01])LL", r"VCC.u64[laneId] = 0x\1LL", "V_DIV_SCALE's bit is the lane's"),
    (r".*", r"V_DIV_SCALE_F32", r"1\.0 / 64'F\(S1\.f32\) == DENORM\.f64", "isDENORM(1.0F / S1.f32)", DENORMALS),
    (r".*", r"V_DIV_SCALE_F\d\d", r"((?:1\.0 / |S2\.f\d\d / )?S1\.f\d\d) == DENORM\.f\d\d", r"isDENORM(\1)", DENORMALS),
    (r".*", r"V_DIV_SCALE_F\d\d", r"(&&[^&]*?ldexp\(S0\.f\d\d, )", r"\1-", "a large denominator is scaled down"),
    (r".*", r"V_DIV_FMAS_F\d\d(_E64)?", r"2\.0F? \*\* \d+ \* fma", "scaled_fma", "V_DIV_FMAS undoes what V_DIV_SCALE did"),
    (r".*", r"V_DIV_FIXUP_F\d\d(_E64)?", r"sign_out \? -abs\(S0\.(f\d\d)\) : abs\(S0\.f\d\d\)",
     r"isNAN(S0.\1) ? (sign_out ? -INF.\1 : INF.\1) : (sign_out ? -abs(S0.\1) : abs(S0.\1))",
     "V_DIV_FIXUP makes an overflow of what is no number"),
    (r"rdna.", r"DS_BPERMUTE_B32", r"32'I\(VGPR", r"32'U(VGPR", "DS_BPERMUTE_B32's addresses have no sign"),
]

# Instructions without an effect that a program can observe: waiting, hints, the end.
SILENT = re.compile(
    r"S_(NOP|CLAUSE|DELAY_ALU|ENDPGM|WAITCNT\w*|WAIT_\w+|SENDMSG|SET_INST_PREFETCH_DISTANCE|INST_PREFETCH)$"
)


# Instructions that the wheel lacks, in its notation, under the name of an operation with the same fields.
ABSENT = {"v_mac_f32": ("v_fmac_f32", "D0.f32 = flush(flush(flush(S0.f32) * flush(S1.f32)) + flush(D0.f32))")}


def absent(name):
    """The replacement for an operation, and its text, if the wheel lacks it."""
    return ABSENT.get(name.lower().removesuffix("_e32").removesuffix("_e64"))


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
