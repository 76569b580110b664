"""The answer of `statrec diagnose` for a run: one line, and the rest to fold out."""
from __future__ import annotations

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Optional

from .. import _plot
from .._library import Error
from . import commands
from .texts import number

PAUSE = 30  # seconds between two diagnoses of a growing run, as statrec diagnose --follow


class Verdict:
    """line; findings and others: rows of the table, the weightiest first; page: the whole text, ""
    before it is ready."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.page = ""
        self.findings = sorted((row for row in rows if row["verdict"] == "found"),
                               key=lambda row: row["rank"])
        self.others = [row for row in rows if row["verdict"] != "found"]
        self.line = _of_finding(self.findings[0]) if self.findings else (
            rows[0]["conclusion"] if rows else "no verdict")

    @property
    def healthy(self) -> bool:
        """Whether the page's verdict is HEALTHY."""
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


def diagnose(run: Any) -> Verdict:
    """Diagnoses a run by the program. Raises Error."""
    told = json.loads(_plot._run("statrec", ["diagnose", "--format", "json",
                                             commands.path(run)]).stdout)
    names = [column["name"] for column in told["columns"]]
    return Verdict([dict(zip(names, row)) for row in told["rows"]])


def page_of(run: Any) -> str:
    """The program's readable output, or why there is none."""
    try:
        return _plot._run("statrec", ["diagnose", commands.path(run)]).stdout
    except Error as why:
        return str(why)


class Watch:
    """Diagnoses runs in the background, a growing one again every PAUSE seconds."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(1, "diagnose")
        self._of: dict[str, tuple[Any, float, Future]] = {}
        self._last: dict[str, Verdict] = {}

    def get(self, run: Any) -> tuple[Optional[Verdict], str]:
        """(the last Verdict or None, a line on missing parts or ""). Returns at once."""
        stamp, now = run.stamp, time.monotonic()
        known = self._of.get(run.path)
        if known is None or (known[2].done() and known[0] != stamp and now - known[1] >= PAUSE):
            known = self._of[run.path] = (stamp, now, self._worker.submit(self._ask, run))
        if not known[2].done():
            return self._last.get(run.path), "statrec diagnose is at work"
        try:
            known[2].result()
        except (Error, OSError, ValueError, KeyError) as why:
            return self._last.get(run.path), f"statrec diagnose: {why}"
        return self._last[run.path], ""

    def _ask(self, run):
        """The verdict first: its page takes as long again."""
        verdict = diagnose(run)
        before = self._last.get(run.path)
        verdict.page = before.page if before else ""
        self._last[run.path] = verdict
        verdict.page = page_of(run)

    def close(self) -> None:
        """Begins no other diagnosis."""
        self._worker.shutdown(wait=False, cancel_futures=True)
