"""Tests of the texts that show arrays."""

from __future__ import annotations

import zoneinfo
from typing import Any

import pyarrow as pa
import pytest

import bowstring as bs


def test_a_zone_is_needed_only_by_a_row() -> None:
    lacking = bs.array(pa.array([None, None], pa.timestamp("us", "Nowhere/City")))
    assert lacking.to_pylist() == [None, None] and "[None, None]" in repr(lacking)
    for zone in ["Nowhere/City", "Europe"]:
        some = bs.array(pa.array([None, 1], pa.timestamp("us", zone)))
        assert some[0] is None
        with pytest.raises(ValueError, match=f'no time zone "{zone}"'):
            some.to_pylist()
        assert "Array" in repr(some)


def test_a_zone_that_python_lacks_is_shown_as_arrow_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(name: str) -> Any:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    # bowstring keeps the class, so the two places where the class looks are replaced: the package tzdata and files.
    monkeypatch.setattr(zoneinfo._common, "load_tzdata", lacks)
    zoneinfo.ZoneInfo.clear_cache()
    try:
        zoneinfo.reset_tzpath([])
        some = bs.array(pa.array([0], pa.timestamp("s", "Asia/Tokyo")))
        assert "[1970-01-01T09:00:00+09:00]" in repr(some)
    finally:
        zoneinfo.reset_tzpath()
        zoneinfo.ZoneInfo.clear_cache()
