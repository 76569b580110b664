"""The runs of a page: files that were named, or found in directories, and their table."""
from __future__ import annotations

import os
from typing import Any, Iterable

import numpy

from .. import _config
from .._file import File
from .._library import Error
from .source import Run
from .texts import plain

MOST_FILES = 5000
_OPEN = 12  # files that stay open
_KEYS = 24  # columns of the configuration
_METRICS = 4  # columns of metrics


def find(paths: Iterable[Any]) -> list[str]:
    """Run files: those that were named, and *.h5 below directories, in their order, each once.

    Raises OSError for a directory that cannot be read.
    """
    found: dict[str, None] = {}
    for path in map(os.fsdecode, paths):
        if not os.path.isdir(path):
            found[path.removesuffix(".part") if not os.path.exists(path) else path] = None
            continue
        for place, folders, files in os.walk(path, onerror=_raise):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".h5", ".h5.part")) and len(found) < MOST_FILES:
                    found[os.path.join(place, name.removesuffix(".part"))] = None
    return list(found)


def absent(paths: Iterable[str]) -> list[str]:
    """The paths of `find` without a file, finished or growing."""
    return [path for path in paths
            if not os.path.exists(path) and not os.path.exists(path + ".part")]


def _raise(why):
    raise why


def names_of(paths: list[str]) -> list[str]:
    """Short names: paths without the folder that all have in common."""
    if len(paths) < 2:
        return [os.path.basename(path) for path in paths]
    top = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
    return [os.path.relpath(os.path.abspath(path), top) for path in paths]


class Runs:
    """Runs by name, in their order; at most _OPEN files stay open."""

    def __init__(self, paths: Iterable[Any]) -> None:
        paths = find(paths)
        self._of = {name: Run(path, name) for name, path in zip(names_of(paths), paths)}
        self._used: list[str] = []
        self._summaries: dict[str, tuple[Any, dict[str, Any]]] = {}

    def __len__(self):
        return len(self._of)

    def __iter__(self):
        return iter(self._of)

    def get(self, name: str) -> Run:
        """The run of a name; the first one for a name that is not there."""
        run = self._of.get(name) or next(iter(self._of.values()))
        self._used = [other for other in self._used if other != run.name] + [run.name]
        for other in self._used[:-_OPEN]:
            self._of[other].close()
        self._used = self._used[-_OPEN:]
        return run

    def __contains__(self, name):
        return name in self._of

    def close(self) -> None:
        """Closes all files."""
        for run in self._of.values():
            run.close()

    # -- their table --------------------------------------------------------------------------

    def summaries(self) -> list[dict[str, Any]]:
        """summary() of every run; read again if its file changed."""
        return [self._summary(run) for run in self._of.values()]

    def _summary(self, run):
        stamp = run.now()
        known = self._summaries.get(run.name)
        if known is None or known[0] != stamp:
            known = self._summaries[run.name] = (stamp, summary(run))
        return known[1]


def summary(run: Run) -> dict[str, Any]:
    """name, status, model, data, steps, loss (the last), metrics {name: last value}, config."""
    try:
        with File(run.path) as file:
            info = file.info
            evals = {name: _last(file.evals[name]) for name in list(file.metrics)[:32]}
            loss = _last(file.steps.lazy("loss")[-64:])
            return {"run": run.name, "status": info["status"], "model": info["model"],
                    "data": info["data"], "seed": info["seed"], "steps": info["steps"],
                    "loss": loss, "config": config_of(info["config"]),
                    "metrics": {name: value for name, value in evals.items()
                                if not numpy.isnan(value)}}
    except (Error, OSError) as why:
        return {"run": run.name, "status": f"not readable: {plain(why, 160)}", "model": "",
                "data": "", "seed": "", "steps": 0, "loss": float("nan"), "config": {},
                "metrics": {}}


def _last(values):
    """The last finite value; NaN without one."""
    values = numpy.asarray(values, dtype=numpy.float64)
    finite = values[numpy.isfinite(values)]
    return float(finite[-1]) if len(finite) else float("nan")


def config_of(text: str) -> dict[str, str]:
    """{key: value} of a configuration, cut for a page."""
    return {plain(key, 40): plain(value, 60) for key, value in _config.config_of(text).items()}


def columns(summaries: list[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Names and rows of the table: run, status, model, data, seed, steps, loss, the metrics that
    most runs have, and the options that differ."""
    fixed = ["run", "status", "model", "data", "seed", "steps", "loss"]
    counts: dict[str, int] = {}
    for one in summaries:
        for name in one["metrics"]:
            counts[name] = counts.get(name, 0) + 1
    metrics = sorted(counts, key=lambda name: -counts[name])[:_METRICS]
    keys = differing([one["config"] for one in summaries if one["config"]])
    keys = [key for key in keys if key not in fixed][:_KEYS]
    rows = [[*(one[name] for name in fixed),
             *(one["metrics"].get(name, float("nan")) for name in metrics),
             *(one["config"].get(key, "") for key in keys)] for one in summaries]
    return [*fixed, *metrics, *keys], rows


def differing(configs: list[dict[str, str]]) -> list[str]:
    """Keys whose values are not the same in all, in the order of their first appearance."""
    seen: dict[str, set] = {}
    for config in configs:
        for key, value in config.items():
            seen.setdefault(key, set()).add(value)
    return [key for key, values in seen.items()
            if len(values) > 1 or any(key not in config for config in configs)]
