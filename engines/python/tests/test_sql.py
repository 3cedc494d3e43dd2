"""Queries over tables of every kind, against pyarrow and DataFusion alone, and objects that misbehave."""

from __future__ import annotations

import ctypes
import decimal
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import bowstring_sql
from bowstring_sql import Session, sql

ROWS = pa.table(
    {
        "k": pa.array([i % 7 if i % 11 else None for i in range(5000)], pa.int32()),
        "x": pa.array([i * 3 for i in range(5000)], pa.int64()),
        "d": pa.array([decimal.Decimal(i) / 100 for i in range(5000)], pa.decimal128(12, 2)),
        "s": pa.array([None if i % 13 == 0 else f"text {i % 50}" for i in range(5000)]),
    }
)
GROUPS = "select k, count(*) as n, sum(d) as d, max(s) as s from t where x % 2 = 0 group by k order by k"


def expected() -> list[dict[str, Any]]:
    kept = ROWS.filter(pc.equal(pc.bit_wise_and(ROWS["x"], 1), 0))
    groups = kept.group_by("k").aggregate([([], "count_all"), ("d", "sum"), ("s", "max")])
    groups = groups.rename_columns(["k", "n", "d", "s"]).sort_by("k")
    rows: list[dict[str, Any]] = groups.to_pylist()
    return rows


def test_tables_of_many_libraries(session: Session, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    (tmp_path / "folder").mkdir()
    pq.write_table(ROWS.slice(0, 3000), tmp_path / "folder" / "a.parquet")
    pq.write_table(ROWS.slice(3000), tmp_path / "folder" / "b.parquet")
    tables = [
        ROWS,
        ROWS.slice(0),
        pa.concat_tables([ROWS.slice(0, 100), ROWS.slice(100)]),
        ROWS.to_reader(max_chunksize=77),
        pl.DataFrame(ROWS),
        str(tmp_path / "rows.parquet"),
        tmp_path / "folder",
    ]
    for table in tables:
        answer = session.sql(GROUPS, {"t": table})
        assert answer.column_names == ["k", "n", "d", "s"]
        assert answer.to_arrow().to_pylist() == expected(), type(table)


def test_answers_have_the_types_of_their_rows(session: Session) -> None:
    """A query's types before DataFusion has made them meet are not those of its rows."""
    session.register("t", ROWS)
    long = "a text of more than twelve bytes"
    answers: list[tuple[str, list[Any]]] = [
        ("select case when x > 3 then 1 else 0.5 end as y from t where x < 9 order by x", [0.5, 0.5, 1.0]),
        ("select * from (select 1 as y union all select 2.5) order by y", [1.0, 2.5]),
        (f"select arrow_cast('{long}', 'Utf8View') as y union all select 'b' order by y", [long, "b"]),
    ]
    for query, right in answers:
        assert pa.table(session.sql(query))["y"].to_pylist() == right
        answer = session.sql(query).collect()
        assert pa.table(answer)["y"].to_pylist() == right
        assert f"{len(right)} rows" in repr(answer)


def test_answers_of_many_libraries(session: Session) -> None:
    session.register("t", ROWS)
    answer = session.sql(GROUPS)
    assert pa.table(answer).to_pylist() == expected()
    assert pl.DataFrame(session.sql(GROUPS)).to_dicts() == expected()
    assert len(answer) == len(expected()) == 8
    assert answer.to_polars().to_dicts() == expected()
    frame = session.sql("select x, s from t where x < 9 order by x").to_pandas()
    pd.testing.assert_frame_equal(frame, ROWS.select(["x", "s"]).slice(0, 3).to_pandas(), check_dtype=False)
    assert session.sql("select x from t limit 0").to_arrow().num_rows == 0
    assert pa.table(answer).to_pylist() == expected()
    assert "8 rows" in repr(answer)
    assert "5000 rows, of which 20 are shown" in repr(session.sql("select * from t"))


def test_pandas_frames_are_tables() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], "s": ["a", None, "c"]})
    assert sql("select count(s) as n from t where x > 1", {"t": frame}).to_arrow().to_pylist() == [{"n": 1}]


def test_plans_show_operators_of_ours() -> None:
    tables = {"t": ROWS}
    answer = sql("select sum(x * 2) as s from t where k < 3", tables, device="cpu")
    assert "DeviceExec" in answer.explain()
    assert "input_rows=5000" in answer.explain(analyze=True).replace("5.00 K", "5000")
    off = sql("select sum(x * 2) as s from t where k < 3", tables, device="off")
    assert "DeviceExec" not in off.explain()
    left = sql("select x from t where reverse(cast(x as text)) = '1'", tables, device="cpu").explain()
    assert "left to DataFusion:" in left and "  FilterExec: CAST(x@0 AS Utf8" in left
    assert answer.to_arrow() == off.to_arrow()


def test_names_are_literal_and_tables_give_way(session: Session) -> None:
    session.register("A b", pa.table({"x": [1]}))
    session.register("A b", pa.table({"y": [2]}))
    assert session.sql('select y from "A b"').to_arrow().to_pylist() == [{"y": 2}]
    session.deregister("A b")
    with pytest.raises(KeyError):
        session.deregister("A b")
    with pytest.raises(ValueError, match="A b"):
        session.sql('select y from "A b"')


def test_errors_say_who_must_act(session: Session, tmp_path: Path) -> None:
    session.register("t", ROWS)
    for query in ["selec", "select nothing from t", "select * from nowhere", "select x + s from t where", ""]:
        with pytest.raises(ValueError):
            session.sql(query)
    with pytest.raises(ZeroDivisionError):
        session.sql("select k / k as q from t").to_arrow()
    wrong: Any
    for wrong in [None, 7, [1, 2], {"x": [1]}, object()]:
        with pytest.raises(TypeError, match="__arrow_c_stream__"):
            session.register("t", wrong)
    with pytest.raises(ValueError, match="there is no"):
        session.register("t", "nothing.parquet")
    with pytest.raises(ValueError, match="never"):
        session.sql("select date_trunc('never', now()) as b").to_arrow()
    (tmp_path / "text.parquet").write_text("no Parquet file at all")
    with pytest.raises(OSError, match="Parquet"):
        session.register("t", tmp_path / "text.parquet")
    # A table gives way only to one that is there.
    assert session.sql("SELECT count(*) AS n FROM t").to_arrow()["n"].to_pylist() == [len(ROWS)]
    with pytest.raises(TypeError):
        session.sql("select 1", {1: ROWS})  # type: ignore[dict-item]


def test_options_are_checked() -> None:
    for options in [{"device": "tpu"}, {"partitions": 0}, {"settings": {"bowstring.nothing": 1}}]:
        with pytest.raises(ValueError):
            Session(**options)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        Session(partitions=-1)


class Claims:
    """An object whose stream is whatever it was given."""

    def __init__(self, stream: object) -> None:
        self.stream = stream

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if isinstance(self.stream, BaseException):
            raise self.stream
        return self.stream


def test_streams_that_are_none_are_errors(session: Session) -> None:
    released = pa.table({"x": [1]}).__arrow_c_stream__()
    session.register("t", Claims(released))
    for wrong in [None, 7, pa.array([1]).__arrow_c_array__()[0], released]:
        with pytest.raises((TypeError, ValueError)):
            session.register("t", Claims(wrong))
    with pytest.raises(LookupError, match="mine"):
        session.register("t", Claims(LookupError("mine")))
    # Numbers are no rows of a table.
    with pytest.raises(ValueError):
        session.register("t", pa.chunked_array([[1, 2]]))

    def failing() -> Any:
        yield pa.record_batch({"x": [1]})
        raise RuntimeError("the producer is tired")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), failing())
    with pytest.raises(OSError, match="tired"):
        session.register("t", reader)
    assert session.sql("select x from t").to_arrow().to_pylist() == [{"x": 1}], "the table before is there"


def test_arrays_of_strangers_are_validated(session: Session) -> None:
    # The row in the middle reaches beyond the bytes.
    offsets = pa.py_buffer(b"".join(bytes(ctypes.c_int32(at)) for at in [0, 1 << 30, 2]))
    text = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    with pytest.raises(ValueError):
        session.register("t", pa.table({"s": text}))
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(bytes(4) + b"\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    with pytest.raises(ValueError):
        session.register("t", pa.table({"s": bad}))


def test_a_consumer_may_stop_early(session: Session) -> None:
    session.register("t", ROWS)
    reader = pa.RecordBatchReader.from_stream(session.sql("select a.x from t as a, t as b"))
    assert reader.read_next_batch().num_rows > 0
    reader.close()
    with pytest.raises((pa.ArrowException, OSError), match="(?i)zero"):
        pa.table(session.sql("select k / k as q from t"))


LONG = """
import bowstring_sql, pyarrow as pa
session = bowstring_sql.Session(device="cpu")
session.register("t", pa.table({"x": list(range(200000))}))
print("ready", flush=True)
try:
    session.sql("select count(*) from t as a join t as b on a.x <> b.x").to_arrow()
except KeyboardInterrupt:
    print("interrupted", len(session.sql("select x from t where x < 3")), flush=True)
"""


def test_ctrl_c_ends_a_query() -> None:
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        timer = threading.Timer(1.0, process.send_signal, [signal.SIGINT])
        timer.start()
        assert process.communicate(timeout=60)[0] == "interrupted 3\n"


READ = """
import bowstring_sql, pyarrow as pa
session = bowstring_sql.Session(device="off")
session.register("t", pa.table({"x": list(range(200000))}))
answer = session.sql("select count(*) from t as a join t as b on a.x <> b.x")
print("ready", flush=True)
try:
    pa.table(answer)
except (OSError, pa.ArrowException) as error:
    print("KeyboardInterrupt" in str(error), len(session.sql("select x from t where x < 3")), flush=True)
"""


def test_ctrl_c_ends_a_query_that_another_library_reads() -> None:
    with subprocess.Popen([sys.executable, "-c", READ], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        timer = threading.Timer(1.0, process.send_signal, [signal.SIGINT])
        timer.start()
        assert process.communicate(timeout=60)[0] == "True 3\n"


def test_dictionaries_may_change_meanwhile(session: Session) -> None:
    class Changing:
        def __init__(self, of: dict[str, Any]) -> None:
            self.of = of

        def more(self) -> None:
            for i in range(100):
                self.of[f"more {i}"] = pa.table({"x": [1]})

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            self.more()
            return pa.table({"x": [1, 2]}).__arrow_c_stream__()

        def __str__(self) -> str:
            self.more()
            return "100"

    tables: dict[str, Any] = {}
    tables |= {"t": Changing(tables), "u": pa.table({"x": [3]})}
    answer = session.sql("select * from t union all select * from u order by x", tables)
    assert answer.to_arrow()["x"].to_pylist() == [1, 2, 3] and len(tables) > 100
    settings: dict[str, Any] = {}
    settings |= {"datafusion.execution.batch_size": Changing(settings), "bowstring.always": True}
    assert len(Session(device="off", settings=settings).sql("select 1")) == 1 and len(settings) > 100


def test_a_forked_child_has_a_runtime_of_its_own() -> None:
    assert len(sql("select 1")) == 1
    child = os.fork()
    if child == 0:
        os._exit(0 if sql("select 2 as x", device="off").to_arrow().to_pylist() == [{"x": 2}] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_share_a_session(session: Session) -> None:
    session.register("t", ROWS)
    answers: list[int] = []

    def work() -> None:
        answers.append(len(session.sql("select x from t where x < 300")))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [100] * 8


def test_the_version_is_there() -> None:
    assert bowstring_sql.__version__.count(".") == 2
