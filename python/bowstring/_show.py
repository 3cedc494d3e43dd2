"""The texts that show arrays and batches to people: a few rows each, from any device."""

from __future__ import annotations

from html import escape

from ._bowstring import Array, RecordBatch

# The number of rows shown at each end, and of columns shown in all.
_ROWS = 5
_COLUMNS = 8
_WIDTH = 40
_GAP = "…"


def _place(value: Array | RecordBatch) -> str:
    kind, _, rest = repr(value.device).removeprefix("<bowstring.Device ").rstrip(">").partition(":")
    return f"{kind}:{rest}" if rest else kind


def _counted(rows: int, what: str = "row") -> str:
    return f"{rows} {what}" if rows == 1 else f"{rows} {what}s"


def _texts(column: Array) -> list[str]:
    """Return the rows at both ends as text, or the error that reading them raises."""
    rows = len(column)
    try:
        if rows <= 2 * _ROWS:
            found = column._texts()
        else:
            found = [*column.slice(0, _ROWS)._texts(), _GAP, *column.slice(rows - _ROWS)._texts()]
    except Exception as error:  # showing a value must not fail
        found = [f"({error})"[:_WIDTH]] + [""] * (min(rows, 2 * _ROWS + 1) - 1)
    return [text if len(text) <= _WIDTH else text[: _WIDTH - 1] + _GAP for text in found]


def _title(value: Array | RecordBatch) -> str:
    kind = f"Array {value.type}" if isinstance(value, Array) else "RecordBatch"
    return f"<bowstring.{kind} of {_counted(len(value))} on {_place(value)}>"


def array(value: Array) -> str:
    """Return the `repr` of an array."""
    return f"{_title(value)}\n[{', '.join(filter(None, _texts(value)))}]"


def _table(value: RecordBatch) -> list[list[str]]:
    """Return a list of texts for each column: its name, its type, and some rows."""
    named = list(zip(value.schema, value.columns, strict=True))
    gap = len(named) > _COLUMNS
    shown = [*named[: _COLUMNS // 2], *named[-_COLUMNS // 2 :]] if gap else named
    columns = [[field.name, str(field.type), *_texts(column)] for field, column in shown]
    if gap:
        columns.insert(_COLUMNS // 2, [_GAP] * len(columns[0]))
    return columns


def batch(value: RecordBatch) -> str:
    """Return the `repr` of a batch."""
    columns = _table(value)
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]
    return "\n".join([_title(value), *lines])


def _html(title: str, head: list[list[str]], rows: list[list[str]]) -> str:
    def line(cells: list[str], cell: str) -> str:
        return f"<tr>{''.join(f'<{cell}>{escape(text)}</{cell}>' for text in cells)}</tr>"

    tops = "".join(line(cells, "th") for cells in head)
    body = "".join(line(cells, "td") for cells in rows)
    return f"<div>{escape(title)}<table><thead>{tops}</thead><tbody>{body}</tbody></table></div>"


def array_html(value: Array) -> str:
    """Return the HTML that a notebook shows for an array."""
    return _html(_title(value), [[value.name, str(value.type)]], [["", text] for text in _texts(value)])


def batch_html(value: RecordBatch) -> str:
    """Return the HTML that a notebook shows for a batch."""
    rows = [list(row) for row in zip(*_table(value), strict=True)]
    return _html(_title(value), rows[:2], rows[2:])
