"""Tests that Ctrl-C ends a running operation, however long it would take."""

import signal
import subprocess
import sys
import time

import pytest
from hazards import HERE

CODE = """
import time, bowstring as bs, pyarrow as pa
rows = pa.Array.from_buffers(pa.struct([]), {rows}, [None])
items = pa.ListArray.from_arrays(pa.array(range(0, (1 << 21) + 1, 2), pa.int32()), pa.array(range(1 << 21)))
print("begun", flush=True)
try:
    {work}
    print("done")
except KeyboardInterrupt:
    print("interrupted")
"""

# A sum of floats adds every row, and 64 of them take seconds; arrow-rs converts lists to text.
WORK = [
    "bs.aggregate(pa.RecordBatch.from_struct_array(rows), [bs.lit(i / 10).sum() for i in range(64)])",
    "while True: bs.cast(items, pa.string())",
]


@pytest.mark.parametrize("work", WORK)
def test_an_operation_ends_at_an_interrupt(work):
    code = CODE.format(rows=2**32, work=work)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=HERE)
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.2)
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=100)
    assert said == "interrupted\n"
    assert time.monotonic() - begun < 15
