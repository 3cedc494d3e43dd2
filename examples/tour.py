"""A first tour of the library, from top to bottom, like a notebook. Run it with `python examples/tour.py`; it needs
bowstring, pyarrow, polars, pandas and numpy. Every claim is an assertion. The last part runs on an emulated GPU,
which is slow, or with `BOWSTRING_DEVICE=cuda` (or `rocm`) on a real one."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from datetime import date, datetime

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

import bowstring as bs
from bowstring import col

# 1. Arrays: made from lists, ranges, numpy arrays and any Arrow data. `print` shows their rows.
numbers = bs.array([3, None, 300, 4])
print(numbers)
assert len(numbers) == 4 and numbers.null_count == 1
assert numbers.type == "int64" == pa.int64() and numbers.type == pl.Int64
assert numbers[0] == 3 and numbers[-1] == 4 and numbers[1] is None
assert numbers[1:3].to_pylist() == [None, 300] and numbers[::-1].to_pylist() == [4, 300, None, 3]
assert list(numbers) == numbers.to_pylist() == [3, None, 300, 4]
assert bs.array(range(3)).equals(np.arange(3)) and bs.array(np.arange(6)[::-2]).to_pylist() == [5, 3, 1]
assert bs.array(["a", None]).type == "string" and bs.array([date(2024, 2, 29)]).type == "date32"
assert bs.array(np.array(["2024-02-29T12:00"], "datetime64[s]"))[0] == datetime(2024, 2, 29, 12)
assert bs.array([1.5, 2], "float32").type == np.float32

# 2. Conversions: to Python values, numpy, pandas, polars and pyarrow.
assert np.asarray(numbers)[0] == 3.0 and np.isnan(numbers.to_numpy()[1])
assert pd.Series(numbers).mean() == (3 + 300 + 4) / 3
assert pl.Series(numbers).to_list() == pa.array(numbers).to_pylist()
assert pickle.loads(pickle.dumps(numbers)) == numbers

# 3. Operations on arrays, as functions and as methods.
kept = bs.filter(numbers, [True, None, True, False])
assert kept.to_pylist() == [3, 300]
assert numbers.filter([True, None, False, False], null_selection="emit_null").to_pylist() == [3, None]
assert numbers.take([2, 0, None]).to_pylist() == [300, 3, None]
assert numbers.cast("int8", strict=False).to_pylist() == [3, None, None, 4]
assert numbers.is_null().to_pylist() == [False, True, False, False]
assert numbers.fill_null(0).to_pylist() == [3, 0, 300, 4] and numbers.drop_null().to_pylist() == [3, 300, 4]

# 4. Errors describe the problem and name the argument.
mistakes: list[tuple[Callable[[], bs.Array], str]] = [
    (lambda: numbers.cast("Int33"), 'did you mean "int32"?'),
    (lambda: numbers.cast("int8"), "row 2"),
    (lambda: numbers.take([4]), "4"),
    (lambda: bs.filter(numbers, [True]), "a mask of 1"),
]
for wrong, said in mistakes:
    try:
        wrong()
    except (ValueError, IndexError) as error:
        assert said in str(error), error
    else:
        raise AssertionError(said)

# 5. Batches: made from dictionaries, data frames and Arrow tables. Select columns by name, and rows by slice.
people = bs.record_batch({"name": ["Ada", "Bo", None], "age": [36, None, 21], "member": [True, False, True]})
print(people)
print(people.schema)
assert people.shape == (3, 3) and people.column_names == ["name", "age", "member"]
assert people["age"].to_pylist() == [36, None, 21] and people[:1].to_pylist() == [{"name": "Ada", "age": 36, "member": True}]
assert bs.filter(people, "member")["name"].to_pylist() == ["Ada", None]
assert people.drop_null()["name"].to_pylist() == ["Ada"] and len(people.drop_null(subset=["age"])) == 2
assert people.fill_null({"age": 0, "name": "?"})["name"].to_pylist() == ["Ada", "Bo", "?"]
assert people.cast({"age": float}).schema["age"].type == "float64"
frame = pd.DataFrame({"n": [1, 2, 3], "odd": [True, False, True]})
assert bs.filter(frame, "odd")["n"].to_pylist() == bs.filter(pl.DataFrame(frame), frame["odd"])["n"].to_pylist() == [1, 3]
assert people._repr_html_().startswith("<div>")

# 6. Expressions: they compute whole predicates and aggregates in one pass.
adults = bs.filter(people, (col("age") >= 18) & col("member"))
assert adults["age"].to_pylist() == [36, 21]
assert bs.aggregate(people, [col("age").sum().alias("years"), bs.count_all()]).to_pylist() == [{"years": 57, "count(*)": 3}]
assert bs.evaluate(people, [(col("age") + 1).alias("next")])["next"].to_pylist() == [37, None, 22]

# 7. Streams: a reader handles one batch at a time, when it is asked for.
table = pa.table({"n": list(range(1000)), "odd": [n % 2 == 1 for n in range(1000)]})
with bs.BatchReader(table.to_reader(max_chunksize=100)) as reader:
    print(reader)
    assert reader.filter("odd").filter(col("n") > 990).read_all()["n"].to_pylist() == [991, 993, 995, 997, 999]
assert pl.DataFrame(bs.BatchReader(table).cast({"n": "int16"})).schema["n"] == pl.Int16

# 8. Devices: the same operations work in a device's memory.
device = bs.Device(os.environ.get("BOWSTRING_DEVICE", "emulated"))
there = numbers.to(device)
print(there)
assert there.device == device and there[0] == 3
assert there.filter([True, False, True, True]).device == device
assert there.filter(bs.array([True, False, True, True]), copy=True).to_pylist() == [3, 300, 4]
rows = people.select(["age", "member"]).to(device)
assert bs.aggregate(rows, [col("age").max()]).to_pylist() == [{"max(age)": 36}]
assert pa.array(there.to("cpu")).to_pylist() == pl.Series(there).to_list() == np.asarray(there.fill_null(0)).tolist()[:1] + [None, 300, 4]

print("That was the tour.")
