"""Tests of the doctor, as a function and as `python -m bowstring`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bowstring as bs


def test_it_says_what_it_does_and_what_it_found() -> None:
    said: list[tuple[str, int, int]] = []
    report = bs.doctor(seconds=2, progress=lambda *step: said.append(step))
    found = json.loads(report.to_json())
    assert found["devices"][0]["device"] == "CPU" and found["devices"][0]["well"]
    assert "\nCPU\n" in str(report) and ("All is well" in str(report)) == report.is_well == found["well"]
    assert any(what.startswith("CPU: self-tests, ") and of == 5 for what, _, of in said)
    assert all(done <= of for _, done, of in said)
    with pytest.raises(ValueError, match="seconds"):
        bs.doctor(seconds=-1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_progress_raises_stops_nothing() -> None:
    def fails(*_: object) -> None:
        raise LookupError("of no interest")

    assert "devices" in json.loads(bs.doctor(seconds=0.5, progress=fails).to_json())


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_in_progress_is_raised(end: type[BaseException]) -> None:
    said: list[str] = []

    def ends(what: str, *_: object) -> None:
        said.append(what)
        raise end("enough")

    with pytest.raises(end, match="enough"):
        bs.doctor(seconds=0.5, progress=ends)
    assert len(said) == 1


def test_as_a_program(tmp_path: Path) -> None:
    file = tmp_path / "doctor.json"
    command = [sys.executable, "-m", "bowstring", "--budget", "2", "--devices", "0", "--json", str(file)]
    # Run elsewhere than in the folder of the sources, which Python would import as the package.
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert file.exists(), done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert done.returncode == (0 if found["well"] else 1), done.stdout + done.stderr
    assert done.stdout.startswith("bowstring ") and str(file) in done.stdout and not done.stderr

    command[-1] = str(tmp_path / "no" / "such.json")
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1 and command[-1] in done.stderr, done.stderr
    assert done.stdout.startswith("bowstring "), "the report is printed all the same"


CRASHES = "int cuInit(unsigned flags) { volatile int *nowhere = 0; return *nowhere; }"


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs a C compiler, and Linux's names")
def test_a_driver_that_crashes_is_named(tmp_path: Path) -> None:
    # The library looks up all of the driver's functions before it calls one, so all others must exist.
    library = Path(__file__).parents[2] / "host/device"
    text = "".join((library / name).read_text() for name in ("native/table.rs", "cuda/mod.rs"))
    names = {name for name in re.findall(r'"(cu[A-Z]\w*)"', text)} - {"cuInit"}
    (tmp_path / "fake.c").write_text("\n".join([CRASHES, *(f"int {name}(void) {{ return 0; }}" for name in names)]))
    fake = ["cc", "-w", "-shared", "-fPIC", "-o", str(tmp_path / "libcuda.so.1"), str(tmp_path / "fake.c")]
    subprocess.run(fake, check=True)
    command = [sys.executable, "-m", "bowstring", "--budget", "1", "--devices", "1"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert "ended by signal 11 in: library, counting devices" in done.stdout, done.stdout + done.stderr
    assert "\nCPU\n" in done.stdout and done.returncode == 1
