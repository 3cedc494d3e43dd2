"""The Arrow types that correspond to types of Python and of other libraries."""

from __future__ import annotations

import datetime
import sys
from typing import Any

from ._bowstring import Schema

# The type of each class. `Decimal` is missing, because its values do not share a precision.
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

# The types of numpy's kinds of text and bytes: numpy's names for them include a length, which Arrow lacks.
_KINDS = {"U": "string", "T": "string", "S": "binary"}


def known(obj: Any) -> Any:
    """Return a type's name, or an object with `__arrow_c_schema__`; `None` if `obj` is not a known type."""
    if isinstance(obj, type) and obj in _CLASSES:
        return _CLASSES[obj]
    module = (obj if isinstance(obj, type) else type(obj)).__module__.partition(".")[0]
    # An object of a library exists only if the library has been imported.
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
