"""Tests of types and schemas by the names that other libraries have for them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from samples import ARRAYS

import bowstring as bs


def test_types_are_those_of_all_neighbours() -> None:
    for type, name in [
        ("Int32", "int32"),
        ("i32", "int32"),
        ("str", "string"),
        ("Utf8", "string"),
        ("large_string", "large_string"),
        ("TIMESTAMP[us, tz=UTC]", "timestamp[us, tz=UTC]"),
        ("Timestamp(Microsecond, None)", "timestamp[us]"),
        ("datetime64[ns, Europe/Paris]", "timestamp[ns, tz=Europe/Paris]"),
        ("decimal128(10, 2)", "decimal128(10, 2)"),
        ("list<item: int32 not null>", "list<int32 not null>"),
        ("fixed_size_list<float>[3]", "fixed_size_list<float32>[3]"),
        ("map<string, list<int8>>", "map<string, list<int8>>"),
        ("dictionary<int8, string>", "dictionary<values=string, indices=int8>"),
        ("struct<a: int8, b b: struct<>>", "struct<a: int8, b b: struct<>>"),
        ("BIGINT", "int64"),
        (int, "int64"),
        (float, "float64"),
        (str, "string"),
        (bool, "bool"),
        (bytes, "binary"),
        (dt.date, "date32"),
        (dt.datetime, "timestamp[us]"),
        (np.int16, "int16"),
        (np.dtype("datetime64[ms]"), "timestamp[ms]"),
        (np.dtype("U7"), "string"),
        (pl.Int32, "int32"),
        (pl.Datetime("ns", "UTC"), "timestamp[ns, tz=UTC]"),
        (pl.List(pl.UInt8), "large_list<uint8>"),
        (pa.list_(pa.field("x", pa.float16())), "list<float16>"),
        (pd.Int8Dtype(), "int8"),
        (pd.DatetimeTZDtype("us", "UTC"), "timestamp[us, tz=UTC]"),
        (bs.array([1]), "int64"),
    ]:
        got = bs.DataType(type)
        assert str(got) == name and got == name and got == type and hash(got) == hash(bs.DataType(name))
    assert bs.DataType("list<int8>").value_type == "int8"
    assert pa.int32() == bs.DataType("int32") and bs.DataType("int32") != "int33" and bs.DataType("int32") != 1
    with pytest.raises(AttributeError):
        bs.DataType("int8").value_type
    for wrong, words in [("Int33", "mean \"int32\""), ("flaot64", "mean \"float64\""), ("timestamp[xs]", "no type"), ("", "no type")]:
        with pytest.raises(ValueError, match=words):
            bs.DataType(wrong)
    for wrong in ["list<" * 5000, "List(" * 5000, "decimal128(99", "list<int8", "int8>", "map<a, b>", "binary[-1]x"]:
        with pytest.raises(ValueError, match="type: no type"):
            bs.array([1], wrong)
    for wrong in [7, Decimal, object, pl.Series]:
        with pytest.raises(TypeError, match="to: a type is needed"):
            bs.cast([1], wrong)


@pytest.mark.parametrize("name", ARRAYS)
def test_types_are_read_as_they_are_written(name: str) -> None:
    type = bs.array(ARRAYS[name]).type
    assert type == ARRAYS[name].type and pa.field("", ARRAYS[name].type) == pa.field(type).with_name("")
    if "union" not in name and name != "uuid":
        assert bs.DataType(str(type)) == type and bs.DataType(str(ARRAYS[name].type)) == type


def test_schemas() -> None:
    schema = bs.Schema({"a": "int8", "b": pa.string()})
    assert schema.names == ["a", "b"] and schema.types == ["int8", "string"] and len(schema) == 2
    assert schema["a"] == schema.field(-2) == bs.Field("a", "int8") and "b" in schema and "c" not in schema
    assert [field.name for field in schema] == ["a", "b"] and str(schema) == "a: int8\nb: string"
    assert pa.schema(schema) == pa.schema({"a": pa.int8(), "b": pa.string()}) and schema == pa.schema(schema)
    assert schema != bs.Schema({"a": "int16", "b": "string"}) and hash(schema) == hash(bs.Schema(pa.schema(schema)))
    said = pa.schema([pa.field("a", pa.int8(), nullable=False, metadata={"k": "v"})], {"s": "t"})
    assert bs.Schema(said).metadata == {b"s": b"t"} and bs.Schema(said)["a"].metadata == {b"k": b"v"}
    assert not bs.Schema(said)["a"].nullable and str(bs.Schema(said)["a"]) == "a: int8 not null"
    with pytest.raises(KeyError, match="mean .*price"):
        bs.Schema({"price": int})["prize"]
    with pytest.raises(TypeError, match=r"obj\['a'\]: a type is needed"):
        bs.Schema({"a": 1})
