"""The answer of statrec diagnose in one line, the state of the run, and the rest to fold out."""
from __future__ import annotations

from html import escape

import numpy
import panel

from ..._library import Error
from .. import commands, texts
from ._panel import Panel

_COLUMNS = ("question", "verdict", "severity", "statistic", "value", "low", "high", "limit", "site",
            "text", "advice")


class VerdictPanel(Panel):
    name, title = "verdict", "Verdict"
    uses = frozenset({"run"})
    has_axis = False

    def build(self):
        self._line = panel.pane.HTML("", sizing_mode="stretch_width")
        self._state = panel.pane.HTML("", sizing_mode="stretch_width")
        self._more = panel.pane.HTML("", sizing_mode="stretch_width")
        self.card = panel.Column(self._line, self._state, self._more, sizing_mode="stretch_width",
                                 css_classes=["panel-verdict"])
        return self.card

    def words(self):
        """The same as HTML."""
        return "".join(pane.object for pane in (self._line, self._state, self._more))

    def refresh(self):
        try:
            verdict, lacks = self.page.watch.get(self.run)
            self._set(self._state, self._state_line())
        except (Error, OSError, LookupError, ValueError) as why:
            verdict, lacks = None, str(why)
        if verdict is None:
            self._set(self._line, _line(lacks, "wait"))
            return
        lacks = f" ({lacks})" if lacks and verdict.page else ""  # without: only the page lacks
        self._set(self._line, _line(verdict.line + lacks,
                                    verdict.severity or ("fine" if verdict.healthy else "open")))
        self._set(self._more, _more(verdict, self.run))

    def _state_line(self):
        """Status, progress, rate and loss."""
        run, info = self.run, self.run.info
        steps = run.steps
        told = [f"{texts.plain(run.name)}: {info['status']}", f"step {int(steps[-1])}"
                if len(steps) else "no step yet"]
        told += [texts.plain(info[name], 40) for name in ("model", "data") if info[name]]
        if len(steps) > 1:
            seconds = run.column("seconds")[-100:]
            spent = float(seconds[-1] - seconds[0])
            if spent > 0:
                told.append(f"{(len(seconds) - 1) / spent:.3g} steps/s")
        if len(steps):
            loss = run.column("loss")
            loss = loss[numpy.isfinite(loss)]
            told += [f"loss {texts.number(loss[-1])}"] if len(loss) else []
        if info["reason"]:
            told.append(texts.plain(info["reason"], 200))
        return f"<p class='state'>{escape(' · '.join(told))}</p>"


def _line(text, kind):
    return (f"<p class='verdict {escape(kind)}' role='status' aria-live='polite'>"
            f"{texts.escaped(text, 1500)}</p>")


def _more(verdict, run):
    rows = [[texts.plain("–" if row[name] in (None, "-") else texts.number(row[name])
                         if isinstance(row[name], (int, float)) else row[name], 1000)
             for name in _COLUMNS] for row in (*verdict.findings, *verdict.others)]
    command = commands.shown(["statrec", "diagnose", commands.path(run)])
    return ("<details><summary>All questions</summary>" + texts.table(_COLUMNS, rows, 1000)
            + f"</details><details><summary>The page of <code>{escape(command)}</code></summary>"
            f"<pre>{escape(verdict.page[:200_000])}</pre></details>")
