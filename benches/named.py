"""The ids of the benches that predictions are for."""

import re
import sys

# The pairs of the cast bench, each with its nearest counts: some pairs exist only without nulls, and move a
# fiftieth less.
CASTS = dict.fromkeys(["int64-int32", "float64-int32", "int64-decimal12818,2"], "10%-null")
CASTS |= dict.fromkeys(["int32-int64", "float64-float32", "date32-timestampms", "int32-int8", "int32-float64"], "no-nulls")
CASTS |= dict.fromkeys(["int8-int16", "decimal12838,10-decimal12838,2", "decimal12838,10-int64"], "no-nulls")
CASTS |= dict.fromkeys(["int64-utf8", "utf8-int64", "float64-utf8", "utf8-float64"], "no-nulls")

# The predictions of calculations, and what the bench calls each: its name, the rest of its id.
CALCULATIONS = {
    "b + b, Int64, wrapping": ("add_itself", "int64", "wrapping"),
    "b + b, Int64": ("add_itself", "int64", "checked"),
    "a + 7, Int32": ("add_constant", "int32", "checked"),
    "c * (1 - c), Float64": ("two_operators", "float64", "-"),
    "(c + 1) * (c - 2) * 3 + c, Float64": ("five_operators", "float64", "-"),
}


def bench(name, rows):
    """The id of the bench that a prediction is for."""
    nulls = "10%-null" if name.endswith(", nulls") else "no-nulls"
    plain = name.removesuffix(", nulls")
    if found := re.fullmatch(r"filter (\w+), (\d+) % (uniform|in runs of 1024)", plain):
        spread = "uniform" if found[3] == "uniform" else "clustered"
        return f"filter/cuda/{found[1].lower()}/{rows}/{found[2]}%-{spread}/{nulls}/1"
    if found := re.fullmatch(r"take (\w+), (ascending|random)", plain):
        return f"take/cuda/{found[1].lower()}/{rows}/{found[2]}/{nulls}/1"
    if found := re.fullmatch(r"cast (.+) to (.+)", plain):
        # The length of texts is written after the type of their values.
        kind = lambda name: re.sub("[ ()]", "", re.sub(r", \d+ digits", "", name)).lower()
        pair = f"{kind(found[1])}-{kind(found[2])}"
        return f"cast/cuda/{pair}/{rows}/all-safe/{CASTS[pair]}/1"
    if found := re.fullmatch(r"a < k, (\w+)(\(.*\))?", plain):
        return f"less_than/cuda/{found[1].lower()}/{rows}/50%/{nulls}/1"
    if found := re.fullmatch(r"x < y, (\w+)", plain):
        return f"less_than_column/cuda/{found[1].lower()}/{rows}/50%/{nulls}/2"
    if found := CALCULATIONS.get(plain):
        of, data_type, shape = found
        return f"{of}/cuda/{data_type}/{rows}/{shape}/{nulls}/1"
    if plain.startswith("TPC-H Q6"):
        return f"tpch_q6/cuda/decimal128-date32/{rows}/2%/{nulls}/4"
    if plain.startswith("a > 0 and"):
        return f"three_terms/cuda/int32-int64-float64/{rows}/-/10%-null/3"
    if plain == "null_count":
        return f"null_count/cuda/bits/{rows}/offset-0/-/1"
    sys.exit(f"no bench for the prediction {name}")
