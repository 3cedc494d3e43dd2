"""The progress bar, on a pseudo terminal. It is drawn when a query has run for half a second."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = 1_000_000
# A query that runs for a minute, in batches of few rows, between which it can be interrupted.
QUERY = """
import sys, bowstring_sql, pyarrow.parquet
path, kind, progress = sys.argv[1:]
session = bowstring_sql.Session(device="cpu", partitions=1, settings={"datafusion.execution.batch_size": 16})
session.register("t", path if kind == "file" else pyarrow.parquet.read_table(path))
answer = session.sql("select sum(length(reverse(repeat(cast(x as varchar), 2000)))) as n from t")
try:
    print("ready", flush=True)
    answer.collect(progress=progress == "shown")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def drawn(path: Path, kind: str, progress: str, *, until: bytes | None) -> bytes:
    """What such a query writes to a terminal until it has drawn that, or for two seconds; then it gets a Ctrl-C."""
    terminal, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-c", QUERY, str(path), kind, progress]
    environment = os.environ | {"TERM": "xterm"}
    text = b""
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        # Whatever else happens, the loop ends.
        timers = [threading.Timer(120, process.kill)]
        if until is None:
            timers.append(threading.Timer(2, process.send_signal, [signal.SIGINT]))
        for timer in timers:
            timer.start()
        while part := read(terminal):
            text += part
            if until is not None and re.search(until, text):
                process.send_signal(signal.SIGINT)
                until = None
        for timer in timers:
            timer.cancel()
        assert process.communicate(timeout=60)[0] == "interrupted\n", text
    os.close(terminal)
    return text


def read(terminal: int) -> bytes:
    """The next bytes; none after the end, for which Linux has an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"x": list(range(ROWS))}), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


@pytest.mark.parametrize(
    ("kind", "bar"), [("file", rb"query \[.*\] [\d,]+/1,000,000 "), ("memory", rb"query \(\d+s\)")]
)
def test_long_queries_show_their_progress_on_a_terminal(path: Path, kind: str, bar: bytes) -> None:
    text = drawn(path, kind, "shown", until=bar)
    assert re.search(bar, text), text
    assert text.endswith(b"\x1b[2K"), "the bar's line is cleared in the end"


def test_a_bar_that_is_not_wanted_is_not_drawn(path: Path) -> None:
    assert drawn(path, "file", "hidden", until=None) == b""
