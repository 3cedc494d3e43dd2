"""Tests of the package: the types that the stubs promise, the documented examples, and other threads that go on running."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bowstring as bs

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TOUR = ROOT / "examples" / "tour.py"


def run(*arguments: str, module: bool = True) -> None:
    command = [sys.executable, *(["-m"] if module else []), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_what_is_there() -> None:
    run("mypy.stubtest", "bowstring", "--ignore-disjoint-bases")


def readme_blocks() -> list[str]:
    """Returns the examples of the package's README, without those that raise errors, and of the project's README."""
    examples = doctest.DocTestParser().get_examples((HERE.parent / "README.md").read_text())
    ours = "".join(example.source for example in examples if example.exc_msg is None)
    return [ours, *re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)]


@pytest.fixture
def programs(tmp_path: Path) -> list[str]:
    """Returns every documented use as a program."""
    for i, block in enumerate(readme_blocks()):
        (tmp_path / f"readme{i}.py").write_text(block)
    return [str(HERE / "usage.py"), str(TOUR), *map(str, tmp_path.glob("readme*.py"))]


def test_the_stubs_fit_every_documented_use(programs: list[str]) -> None:
    strict, readmes = programs[:2], programs[2:]
    assert len(readmes) == 2
    run("mypy", "--strict", *strict)
    run("mypy", "--ignore-missing-imports", "--allow-redefinition", *readmes)


def test_pyright_agrees(programs: list[str]) -> None:
    where = ["--pythonpath", sys.executable, "--project", str(HERE / "pyright.json")]
    run("basedpyright", "--level", "error", *where, *programs)


def test_the_tour_is_run() -> None:
    run(str(TOUR), module=False)


def test_the_projects_readme_is_run() -> None:
    readme = (ROOT / "README.md").read_text()
    [block] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    names: dict[str, object] = {}
    checked = 0
    for line in block.splitlines():
        code, _, said = (part.strip() for part in line.partition("  # "))
        if said.startswith("["):
            assert repr(eval(code, names)) == said
            checked += 1
        else:
            exec(code, names)
    assert checked and isinstance(names["kept"], bs.RecordBatch)


def test_the_version() -> None:
    assert bs.__version__.count(".") == 2


def test_other_threads_run_meanwhile() -> None:
    rows = 20_000_000
    values, mask = pa.array(np.arange(rows)), pa.array(np.arange(rows) % 2 == 0)
    ticks, stop = 0, threading.Event()

    def count() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    start, before = time.perf_counter(), ticks
    while time.perf_counter() - start < 0.5:
        bs.filter(values, mask)
    during = ticks - before
    stop.set()
    thread.join()
    # If the call held the interpreter's lock, the other thread would tick only a handful of times.
    assert during > 30


def test_threads_share_arrays_and_streams() -> None:
    gpu = bs.Device.emulated()
    values = bs.array(pa.array(range(500))).to(gpu)
    failures: list[Exception] = []

    def work(seed: int) -> None:
        try:
            for i in range(5):
                indices = bs.array(np.full(50, (seed * 7 + i) % 500)).to(gpu)
                got = pa.array(bs.take(values, indices).to(bs.Device.cpu()))
                assert got.to_pylist() == [(seed * 7 + i) % 500] * 50
        except Exception as error:  # an exception in a thread is lost otherwise
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
