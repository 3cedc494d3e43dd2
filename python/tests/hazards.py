"""Runs programs that might kill the process, hang or take all memory, in a process of their own with limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

# Programs start in this folder. Python imports from the folder it starts in, and the sources in python/ would
# hide the installed package.
HERE = Path(__file__).parent

# Runs before each program. It names an exception that `except Exception` does not catch.
_BEGIN = """
import resource

def error(body, *arguments):
    '''The class of what is raised.'''
    try:
        body(*arguments)
    except Exception as error:
        assert "a bug in bowstring" not in str(error), error
        return type(error)

def fails(body, *classes):
    found = error(body)
    assert found is not None and issubclass(found, classes), (body, found)

def limit_memory(more):
    '''From now on there is so much more address space.'''
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more,) * 2)
"""


def run(program: str, *, seconds: float = 20) -> None:
    """Runs a program to its end, with nothing on stderr."""
    command = [sys.executable, "-c", _BEGIN + dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds, cwd=HERE)
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)
