"""Compares the answers in tests/slt with DuckDB's: a third opinion, besides DataFusion's and ours.

Usage: python tests/third_opinion.py [joins groups ...]. It needs the package duckdb.
"""

import datetime
import decimal
import math
import pathlib
import sys

import duckdb


def text(value) -> str:
    """A value as the files have it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return str(value)


def main(names: list[str]) -> int:
    wrong = 0
    for name in names or ["groups", "joins"]:
        path = pathlib.Path(__file__).parent / "slt" / f"{name}.slt"
        connection, asked = duckdb.connect(), 0
        for part in path.read_text().split("\n\n"):
            lines = [line for line in part.strip().splitlines() if not line.startswith("#")]
            if not lines:
                continue
            at = lines.index("----") if "----" in lines else len(lines)
            sql, right = "\n".join(lines[1:at]), lines[at + 1 :]
            answer = connection.execute(sql)
            if lines[0] != "query":
                continue
            asked += 1
            rows = ["|".join(text(value) for value in row) for row in answer.fetchall()]
            if rows != right:
                wrong += 1
                print(f"{name}: {sql}\n  DataFusion: {right}\n  DuckDB:     {rows}")
        print(f"{name}: {asked} queries asked, {wrong} answers differ so far")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
