"""What other libraries, and Python itself, call types."""

from __future__ import annotations

import datetime
import sys
from typing import Any

from ._bowstring import Schema

# By class; `Decimal` has no precision, and is no type for it.
_CLASSES: dict[Any, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    bytes: "binary",
    datetime.date: "date32",
    datetime.datetime: "timestamp[us]",
    datetime.time: "time64[us]",
    datetime.timedelta: "duration[us]",
    type(None): "null",
}

# Where numpy's kinds of types have lengths that Arrow has not.
_KINDS = {"U": "string", "T": "string", "S": "binary"}


def known(obj: Any) -> Any:
    """Its name, or an object with `__arrow_c_schema__`; nothing where it is no type."""
    if isinstance(obj, type) and obj in _CLASSES:
        return _CLASSES[obj]
    module = (obj if isinstance(obj, type) else type(obj)).__module__.partition(".")[0]
    # What is an object of theirs has them imported.
    library = sys.modules.get(module)
    if module == "polars" and library is not None:
        try:
            return Schema(library.Schema({"": obj})).types[0]
        except TypeError:
            return None
    if module == "numpy" and library is not None:
        try:
            dtype = library.dtype(obj)
        except TypeError:
            return None
        return _KINDS.get(dtype.kind, dtype.name)
    if module == "pandas":
        return str(getattr(obj, "name", None) or obj)
    if module == "_duckdb" and type(obj).__name__ == "DuckDBPyType":
        return str(obj)
    return None
