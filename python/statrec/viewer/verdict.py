"""The answer of `statrec diagnose` for a run: one line, and the rest to fold out."""
from __future__ import annotations

import json
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Optional

from .. import _plot
from .._library import Error
from . import commands
from .texts import number

PAUSE = 30  # seconds between two diagnoses of a growing run, as statrec diagnose --follow


class Verdict:
    """line; findings and others: rows of the table, the weightiest first; page: the whole text."""

    def __init__(self, rows: list[dict[str, Any]], page: str) -> None:
        self.page = page
        self.findings = sorted((row for row in rows if row["verdict"] == "found"),
                               key=lambda row: row["rank"])
        self.others = [row for row in rows if row["verdict"] != "found"]
        self.line = _of_finding(self.findings[0]) if self.findings else _without(page)

    @property
    def healthy(self) -> bool:
        """Whether the page says HEALTHY."""
        return self.line.startswith("HEALTHY")

    @property
    def severity(self) -> str:
        """"severe", "notable", "minor", or ""."""
        return self.findings[0]["severity"] if self.findings else ""


def _of_finding(row):
    """"severe: inference at encoder.final: gap 0.2 [0.1, 0.3], limit 0.01. ... Try: ..." """
    where = "" if row["site"] == "-" else f" at {row['site']}"
    measured = f"{row['statistic']} {number(row['value'])}"
    if row["low"] is not None:
        measured += f" [{number(row['low'])}, {number(row['high'])}]"
    limit = "" if row["limit"] is None else f", limit {number(row['limit'])}"
    says = f" {row['text']}" if row["text"] not in ("", "-") else ""
    advice = f" Try: {row['advice']}" if row["advice"] not in ("", "-") else ""
    return f"{row['severity']}: {row['question']}{where}: {measured}{limit}.{says}{advice}"


def _without(page):
    """The line of the page that begins with the verdict in capitals."""
    for line in page.splitlines():
        if line.startswith(("HEALTHY", "NOTHING FOUND", "NO VERDICT")):
            return line
    return "no verdict"


def diagnose(run: Any) -> Verdict:
    """Diagnoses a run by the program. Raises Error."""
    path, page = commands.path(run), []
    other = threading.Thread(target=lambda: page.append(_page(path)))
    other.start()
    try:
        told = json.loads(_plot._run("statrec", ["diagnose", "--format", "json", path]).stdout)
    finally:
        other.join()
    names = [column["name"] for column in told["columns"]]
    return Verdict([dict(zip(names, row)) for row in told["rows"]], page[0])


def _page(path):
    try:
        return _plot._run("statrec", ["diagnose", path]).stdout
    except Error as why:
        return str(why)


class Watch:
    """Diagnoses runs in the background, a growing one again every PAUSE seconds."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(1, "diagnose")
        self._of: dict[str, tuple[Any, float, Future]] = {}
        self._last: dict[str, Verdict] = {}

    def get(self, run: Any) -> tuple[Optional[Verdict], str]:
        """(the last Verdict or None, a line on what it lacks or ""). Returns at once."""
        stamp, now = run.stamp, time.monotonic()
        known = self._of.get(run.path)
        if known is None or (known[2].done() and known[0] != stamp and now - known[1] >= PAUSE):
            known = self._of[run.path] = (stamp, now, self._worker.submit(diagnose, run))
        if not known[2].done():
            return self._last.get(run.path), "statrec diagnose is at work"
        try:
            self._last[run.path] = known[2].result()
        except (Error, OSError, ValueError, KeyError) as why:
            return self._last.get(run.path), f"statrec diagnose: {why}"
        return self._last[run.path], ""

    def close(self) -> None:
        """Begins no other diagnosis."""
        self._worker.shutdown(wait=False, cancel_futures=True)
