"""SQL over Arrow tables, Parquet files and arrays on a GPU: DataFusion with bowstring's operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._bowstring_sql import Answer, Session, __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Answer", "Session", "__version__", "sql"]


def sql(
    query: str,
    tables: Mapping[str, Any] | None = None,
    *,
    device: str = "auto",
    partitions: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Answer:
    """Plan a query over tables in a session of its own. It runs when its answer is read.

    Each of `tables` is the path of a Parquet or CSV file, or of a folder of such files, or any object that
    speaks the Arrow PyCapsule interface, such as a table of pyarrow, polars, pandas or DuckDB.

    >>> import pyarrow as pa
    >>> sql("select sum(x) as s from t where x > 1", {"t": pa.table({"x": [1, 2, 3]})}).to_arrow().to_pydict()
    {'s': [5]}
    """
    session = Session(device=device, partitions=partitions, settings=dict(settings) if settings else None)
    return session.sql(query, dict(tables) if tables else None)
