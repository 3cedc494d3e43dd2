"""A pytest plugin that routes pyarrow's compute functions through us: `pytest -p pyarrow_suite --pyargs pyarrow.tests.test_compute`
runs pyarrow's own tests of them on our operations. Calls without arrays (scalars, expressions of datasets) stay with pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import bowstring as bs

ARRAYS = (pa.Array, pa.ChunkedArray)
BATCHES = (pa.RecordBatch, pa.Table)

# Errors that both report in different words: a part of our message, and pyarrow's class and message.
SAME: dict[str, tuple[type[Exception], str]] = {
    "and a mask of": (pa.ArrowInvalid, "arguments must all be the same length"),
    "not Boolean": (pa.ArrowNotImplementedError, "the mask is not boolean"),
    "Float32 indices": (pa.ArrowNotImplementedError, "indices are no integers"),
    "Float64 indices": (pa.ArrowNotImplementedError, "indices are no integers"),
    "rows, not one": (pa.ArrowInvalid, "Array arguments must all be the same length"),
    "NaN does not fit": (pa.ArrowInvalid, "truncated"),
    "to FixedSizeList(": (pa.ArrowTypeError, "Size of FixedSizeList is not the same."),
}

# The number of calls of each function that were routed to us.
CALLS: dict[str, int] = {}


def like(given: Any, got: Any) -> Any:
    """Converts our result to the class that pyarrow returns for this input."""
    if isinstance(got, bs.RecordBatch):
        return pa.table(got) if isinstance(given, pa.Table) else pa.record_batch(got)
    array = pa.array(got)
    array.validate(full=True)
    return pa.chunked_array([array]) if isinstance(given, pa.ChunkedArray) else array


def routed(name: str, ours: Callable[..., Any]) -> None:
    """Replaces a function of pyarrow with ours, and converts our exceptions to pyarrow's classes."""
    theirs = getattr(pc, name)

    def route(data: Any, *args: Any, **kwargs: Any) -> Any:
        kinds = (*ARRAYS, *BATCHES)
        if not isinstance(data, kinds) or any(isinstance(arg, (pc.Expression, pc.FunctionOptions)) for arg in args):
            return theirs(data, *args, **kwargs)
        try:
            got = ours(data, *args, **kwargs)
        except TheirsInstead:
            return theirs(data, *args, **kwargs)
        except TypeError as error:
            raise pa.ArrowTypeError(str(error)) from error
        except (IndexError, NotImplementedError, ValueError) as error:
            raise theirs_for(error) from error
        CALLS[name] = CALLS.get(name, 0) + 1
        return like(data, got)

    setattr(pc, name, route)


def theirs_for(error: Exception) -> Exception:
    """Converts our exception to pyarrow's, with pyarrow's message if both report the same error in different words."""
    words = str(error)
    for ours, (kind, said) in SAME.items():
        if ours in words:
            return kind(said)
    kinds = {IndexError: pa.ArrowIndexError, NotImplementedError: pa.ArrowNotImplementedError}
    return next((kind(words) for base, kind in kinds.items() if isinstance(error, base)), pa.ArrowInvalid(words))


class TheirsInstead(Exception):
    """The call asks for an option that we do not have, so pyarrow answers it."""


def filter(data: Any, mask: Any, null_selection_behavior: Any = "drop", **rest: Any) -> Any:
    return bs.filter(data, mask, null_selection=null_selection_behavior)


def take(data: Any, indices: Any, *, boundscheck: bool = True, **rest: Any) -> Any:
    return bs.take(data, indices)


def cast(data: Any, target_type: Any = None, safe: Any = None, options: Any = None, **rest: Any) -> Any:
    if target_type is None or options is not None:
        raise TheirsInstead
    if isinstance(target_type, str):
        target_type = pa.type_for_alias(target_type)
    return bs.cast(data, target_type, strict=safe is not False)


def is_null(data: Any, nan_is_null: bool = False, **rest: Any) -> Any:
    if nan_is_null:
        raise TheirsInstead
    return bs.is_null(data)


def is_valid(data: Any, **rest: Any) -> Any:
    return bs.is_valid(data)


def fill_null(data: Any, value: Any) -> Any:
    if isinstance(value, ARRAYS):
        raise TheirsInstead
    return bs.fill_null(data, value)


def drop_null(data: Any, **rest: Any) -> Any:
    return bs.drop_null(data)


def pytest_configure(config: pytest.Config) -> None:
    for function in [filter, take, cast, is_null, is_valid, fill_null, drop_null]:
        routed(function.__name__, function)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"routed: {' '.join(f'{name}={times}' for name, times in sorted(CALLS.items()))}")
