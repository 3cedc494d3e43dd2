"""Conversion to numpy arrays, and from those that DLPack cannot describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _bowstring
from ._bowstring import Array, Device, RecordBatch

if TYPE_CHECKING:
    import numpy as np

# The integer that represents NaT.
_NAT = -(2**63)
_WORDS = {"D": "days", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_UNITS = ("s", "ms", "us", "ns")
# The units of numpy, in order of decreasing length.
_LENGTHS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")


def given(obj: Any, argument: str) -> Any:
    """Convert an object that numpy accepts to an `Array`, or to a numpy array that DLPack can share."""
    import numpy as np

    if isinstance(obj, np.ma.MaskedArray):
        if obj.dtype.kind in "mM":
            return _times(obj.filled(obj.dtype.type("NaT")), argument)
        return Array(obj.tolist(), _type(obj))
    array = np.asarray(obj)
    kind = array.dtype.kind
    if array.ndim == 0:
        raise TypeError(f"{argument}: {type(obj)} is one value of numpy's, and no array: it has no dimensions")
    if kind in "OUST":
        return Array((_objects(array) if kind == "T" else array).tolist(), _type(array))
    if kind in "mM":
        return _times(array, argument)
    if kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"{argument}: Arrow has no type for numpy's {array.dtype}")
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="), order="C")
    return _lent(np.ascontiguousarray(array))


def _lent(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array that DLPack can share: numpy before 2.1 exports none that is read-only."""
    import numpy as np

    old = tuple(map(int, np.__version__.split(".")[:2])) < (2, 1)
    return array.copy() if old and not array.flags.writeable else array


def _objects(texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return texts of numpy's `StringDType` as objects, `None` for its missing values, which may be any object."""
    objects = texts.astype(object)
    for at, text in enumerate(objects.flat):
        if not isinstance(text, str):
            objects.flat[at] = None
    return objects


def _type(array: np.ndarray[Any, Any]) -> Any:
    """Return the type of an array's values, which an empty one has as well; `None` if the values tell it."""
    if array.ndim != 1:
        return None
    return {"O": None, "U": "string", "T": "string", "S": "binary"}.get(array.dtype.kind, array.dtype)


def _times(array: np.ndarray[Any, Any], argument: str) -> Array:
    """Convert dates, times and durations; a unit that Arrow lacks becomes one that it has."""
    import numpy as np

    kind = "timestamp" if array.dtype.kind == "M" else "duration"
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    unit, step = np.datetime_data(array.dtype)
    if array.ndim != 1:
        raise TypeError(f"{argument}: one dimension of {array.dtype} is needed, not {array.ndim}")
    if unit == "generic":
        raise TypeError(f"{argument}: {array.dtype} has no unit")
    days = kind == "timestamp" and unit == "D"
    if step != 1 or unit not in _UNITS:
        unit = "D" if days else unit if unit in _UNITS else "ns" if unit in ("ps", "fs", "as") else "s"
        array = _in_unit(array, unit, argument)
    numbers = _bowstring.from_dlpack(_lent(np.ascontiguousarray(array).view(np.int64)))
    if np.isnat(array).any():
        rows = _bowstring.RecordBatch.from_arrays({"": numbers})
        numbers = _bowstring.evaluate(rows, [_bowstring.nth(0).nullif(_NAT)]).column(0)
    if days:
        return numbers.cast("int32").cast("date32")
    return numbers.cast(f"{kind}[{unit}]")


def _in_unit(times: Any, unit: str, argument: str) -> Any:
    """Convert to another unit. Raise `ValueError` or `OverflowError` for values that numpy would change silently."""
    import numpy as np

    found = times.astype(f"{times.dtype.kind}8[{unit}]")
    lost = (found.astype(times.dtype) != times) & ~np.isnat(times)
    if lost.any():
        value = np.asarray(times)[lost].flat[0]
        if _LENGTHS.index(np.datetime_data(times.dtype)[0]) > _LENGTHS.index(unit):
            raise ValueError(f"{argument}: {value} is no whole number of {_WORDS[unit]}")
        count = int(value.astype(np.int64))
        raise OverflowError(f"{argument}: {count} of {times.dtype} does not fit 64 bits of {_WORDS[unit]}")
    return found


def microseconds(time: Any) -> int | None:
    """Return a numpy time as microseconds since 1970, or a duration as microseconds; `None` for NaT."""
    import numpy as np

    if np.isnat(time):
        return None
    if np.datetime_data(time.dtype)[0] == "generic":
        raise TypeError(f"{time.dtype} has no unit")
    return int(_in_unit(time, "us", "value").astype(np.int64))


def taken(array: Array, zero_copy_only: bool = False, writable: bool = False) -> np.ndarray[Any, Any]:
    """Convert an array to numpy for `Array.to_numpy`."""
    import numpy as np

    found, shared = _made(np, array)
    if zero_copy_only and not shared:
        raise ValueError(f"{array.type} with these rows on {array.device.name} is no numpy array without a copy")
    return found.copy() if writable and not found.flags.writeable else found


def as_asked(array: Array, dtype: Any, copy: bool | None) -> np.ndarray[Any, Any]:
    """Convert an array to numpy for `Array.__array__`, which `np.asarray` calls."""
    import numpy as np

    found, shared = _made(np, array)
    fits = dtype is None or np.dtype(dtype) == found.dtype
    if copy is False and not (shared and fits):
        raise ValueError(f"{array.type} is no numpy array of {dtype or 'its own type'} without a copy")
    if not fits:
        return found.astype(dtype)
    return found.copy() if copy and (shared or not found.flags.writeable) else found


def columns(batch: RecordBatch, dtype: Any, copy: bool | None) -> np.ndarray[Any, Any]:
    """Put the columns of a batch side by side in a numpy array of one type, for `RecordBatch.__array__`."""
    import numpy as np

    if copy is False:
        raise ValueError("the columns of a batch are no numpy array without a copy")
    made = [taken(column) for column in batch.columns]
    found = np.column_stack(made) if made else np.empty((len(batch), 0))
    return found if dtype is None else found.astype(dtype, copy=False)


def _made(np: Any, array: Array) -> tuple[np.ndarray[Any, Any], bool]:
    """Convert to a numpy array. Also return whether it shares the memory of `array`."""
    here = array.to(Device.cpu())
    shared = array.device == here.device
    name, _, rest = str(array.type).partition("[")
    if name.startswith(("dictionary<", "run_end_encoded<")):
        return _made(np, here.cast(here.type.value_type))[0], False
    nulls = here.null_count
    if name in ("date32", "date64", "timestamp", "duration"):
        unit = {"date32": "D", "date64": "ms"}.get(name) or rest.rstrip("]").partition(",")[0]
        kind = "m8" if name == "duration" else "M8"
        # Only days are converted: they have 32 bits in Arrow, and 64 in numpy.
        numbers = here.cast("int32").cast("int64") if name == "date32" else here.cast("int64")
        if nulls:
            numbers = numbers.fill_null(_NAT)
        return np.from_dlpack(numbers).view(f"{kind}[{unit}]"), shared and not nulls and name != "date32"
    if name.startswith(("int", "uint", "float")):
        if nulls:
            floats = here if name.startswith("float") else here.cast("float64", strict=False)
            return np.from_dlpack(floats.fill_null(float("nan"))), False
        return np.from_dlpack(here), shared
    if not nulls and (name == "bool" or name.startswith("fixed_size_list<")):
        try:
            return np.from_dlpack(here), shared and name != "bool"
        except BufferError:
            # numpy has no numbers for the items of these lists.
            pass
    found = np.empty(len(here), object)
    for row, value in enumerate(here):
        found[row] = value
    return found, False
