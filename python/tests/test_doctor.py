"""The doctor, as a function and as `python -m bowstring`."""

from __future__ import annotations

import json
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
    assert ("CPU: self-tests", 0, 5) in said and all(done <= of for _, done, of in said)
    with pytest.raises(ValueError, match="seconds"):
        bs.doctor(seconds=-1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_progress_raises_stops_nothing() -> None:
    def fails(*_: object) -> None:
        raise LookupError("of no interest")

    assert "devices" in json.loads(bs.doctor(seconds=0.5, progress=fails).to_json())


def test_as_a_program(tmp_path: Path) -> None:
    file = tmp_path / "doctor.json"
    command = [sys.executable, "-m", "bowstring", "--budget", "2", "--devices", "0", "--json", str(file)]
    # Not where the package's sources are: they would be taken for the package.
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert file.exists(), done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert done.returncode == (0 if found["well"] else 1), done.stdout + done.stderr
    assert done.stdout.startswith("bowstring ") and str(file) in done.stdout and not done.stderr
