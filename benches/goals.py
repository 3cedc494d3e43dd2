"""What predictions are held against: `predict.py` reads these tables."""

# The targets: the name, the matching counts, rows, and the share of a copy's rate to reach.
TARGETS = [
    ("filter 4- and 8-byte, 50–99 % uniform", r"filter Int(32|64), (50|90|99) % uniform$", 1 << 28, 0.85),
    ("filter, 1 % and 10 % uniform (of the sectors)", r"filter Int(32|64), (1|10) % uniform$", 1 << 28, 0.80),
    ("filter, clustered 1–50 %", r"filter Int(32|64), \d+ % in runs of 1024$", 1 << 28, 0.85),
    ("filter 1- and 2-byte, 50 %", r"filter Int(8|16), 50 % uniform$", 1 << 28, 0.45),
    ("filter with 10 % nulls: 0.9 of without", r"filter Int(32|64), 50 % uniform, nulls$", 1 << 28, None),
    ("filter Boolean, and a bitmap of validity", r"filter Boolean", 1 << 28, 0.60),
    ("filter Utf8, mean 12 bytes, 50 %", r"filter Utf8", 1 << 27, 0.50),
    ("take 4-byte, ascending", r"take Int32, ascending", 1 << 28, 0.85),
    ("take 4- and 8-byte, random (of the sectors)", r"take Int(32|64), random$", 1 << 28, 0.80),
    ("take Utf8 random, mean 12 bytes (of the sectors)", r"take Utf8, random", 1 << 27, 0.40),
    ("cast, any fixed width, checks and nulls", r"cast (?!Utf8|Binary|Decimal).*nulls$", 1 << 28, 0.90),
    ("cast, division of 128 bits", r"cast Decimal128", 1 << 28, 0.50),
    ("Utf8 to Int64 and back, 8 digits", r"cast (Utf8 to Int64|Int64, 8 digits)", 1 << 22, 0.40),
    ("Utf8 to Float64 and back, 8 digits", r"cast (Utf8 to Float64, 8|Float64, 8 digits)", 1 << 22, 0.15),
    ("null_count, 2^33 bits", r"null_count", 1 << 33, 0.90),
    ("a comparison with a constant", r"a < k", 1 << 28, 0.90),
    ("three comparisons, Kleene logic, nulls", r"a > 0 and", 1 << 28, 0.85),
    ("TPC-H's sixth query", r"TPC-H Q6", 1 << 28, 0.85),
    ("a comparison of two columns, nulls", r"x < y", 1 << 28, 0.85),
    ("arithmetic of two columns, nulls", r"b \+ b", 1 << 28, 0.85),
    ("arithmetic of one to five operators, nulls", r"a \+ 7|c \* \(1|\(c \+ 1\)", 1 << 28, 0.80),
]

# Groups, orders and joins: the name, the counts, the bytes of a row that a good algorithm moves (a pass over
# the keys for a digit, sectors of 32 bytes for what lies anywhere), whether tables are larger than the
# caches, so that each access moves a sector, and the share of a copy's rate to reach. Keys are in a narrow range,
# or "far apart".
RELATIONAL = [
    ("sums of 100 groups, Int64", "sum Int64 by 100 values", 16, False, 0.60),
    ("sums of 10^5 groups, Int64", "sum Int64 by 1000 values", 40, False, 0.40),
    ("sums of 10^5 groups, Int64", "sum Int64 by 1000 values far apart", 40, False, 0.40),
    ("sums of 10^8 groups, Int64", "sum Int64 by many values", 200, True, 0.50),
    ("sums of 10^8 groups, Int64", "sum Int64 by many values far apart", 200, True, 0.50),
    ("order of 4 bytes", "sort_to_indices Int32", 88, False, 0.60),
    ("order of 8 bytes", "sort_to_indices Int64", 176, False, 0.60),
    ("pairs with 10^5 unique keys", "pairs of Int64, unique", 24, False, 0.50),
    ("pairs with 10^5 unique keys", "pairs of Int64, unique and far apart", 24, False, 0.50),
    ("pairs with 10^8 unique keys", "pairs of Int64, unique", 120, True, 0.50),
    ("pairs with 10^8 unique keys", "pairs of Int64, unique and far apart", 120, True, 0.50),
]

# The more rows a sort has, the longer are the runs that a wave takes, and the fewer the counters of runs: the
# beginning of the entries' names, and the rows of a run as counted and at 2^28 rows (`run_bits` in
# kernels/src/sort/places.rs).
RUNS = {"sort_to_indices": ("scan_", 256, 4096)}
