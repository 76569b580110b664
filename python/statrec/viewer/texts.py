"""Texts from run files on their way to the page: short, without markup, and escaped once."""
from __future__ import annotations

import html
import math
import unicodedata
from typing import Any, Iterable, Sequence

MOST = 80  # characters of a name; 64 bytes is the format's limit, other texts have none
_SCANNED = 4000  # characters of a text that are read


def plain(text: Any, most: int = MOST) -> str:
    """The text in one line of at most `most` characters, without control characters.

    Bokeh takes $$...$$, \\[...\\] and \\(...\\) for TeX: their marks get an invisible mark between.
    """
    line = str(text)[:_SCANNED + 1]
    line = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in line)
    line = line.replace("$$", "$\u2060$").replace("\\[", "\\\u2060[").replace("\\(", "\\\u2060(")
    if len(line) <= most:
        return line
    return line[:most // 3] + "…" + line[len(line) - (most - most // 3 - 1):]


def escaped(text: Any, most: int = MOST) -> str:
    """plain() for HTML, also within attributes."""
    return html.escape(plain(text, most), quote=True)


def literal(text: Any, most: int = 200) -> str:
    """plain() for a hover text, where @name and $name are columns and {} formats."""
    return (plain(text, most).replace("@", "＠").replace("$", "＄")
            .replace("{", "｛").replace("}", "｝"))


def number(value: Any) -> str:
    """Six significant digits; "–" for NaN and None."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    value = float(value)
    return "–" if math.isnan(value) else f"{value:.6g}"


def with_unit(name: str, unit: str) -> str:
    """"valid_accuracy (percent)"; metrics without a unit are declared with the unit 1."""
    return name if unit in ("", "1") else f"{name} ({unit})"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], most: int = MOST) -> str:
    """An HTML table of numbers and texts of at most `most` characters, escaped here."""
    head = "".join(f'<th scope="col">{escaped(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escaped(number(cell), most)}</td>" for cell in row)
                   + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
