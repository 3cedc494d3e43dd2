"""Runs pyarrow's own tests of filter, take, cast and nulls on our operations."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MODULES = ["pyarrow.tests.test_compute", "pyarrow.tests.test_array", "pyarrow.tests.test_table"]


def test_pyarrows_tests_pass_but_for_what_the_readme_says(tmp_path: Path) -> None:
    readme = (HERE.parent / "README.md").read_text()
    said = set(re.findall(r"^\| `(test_\w+)` \|", readme, re.MULTILINE))
    # Run in another folder, so that this project's pytest settings do not apply.
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pyarrow_suite", "-p", "no:cacheprovider", "-rf", "--tb=no", "--pyargs"]
        + [*MODULES, "-k", "filter or take or cast or null or drop"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])},
        check=False,
    )
    failed = set(re.findall(r"^FAILED .*::(\w+)", done.stdout, re.MULTILINE))
    assert failed == said, done.stdout[-4000:] + done.stderr[-2000:]
    # The tests were run, and called our operations.
    [routed] = re.findall(r"^routed: (.*)", done.stdout, re.MULTILINE)
    counts = dict(re.findall(r"(\w+)=(\d+)", routed))
    assert int(counts["cast"]) > 200 and int(counts["take"]) > 50 and int(counts["filter"]) > 50
    assert {"drop_null", "fill_null", "is_null", "is_valid"} <= counts.keys()
    [passed] = re.findall(r"(\d+) passed", done.stdout)
    assert int(passed) > 150
