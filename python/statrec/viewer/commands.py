"""The commands of pictures: a call of statplot or a stat-* program that shows the same."""
from __future__ import annotations

import os
import shlex
import tempfile
from typing import Any, Optional, Sequence

from .. import _plot

FIGURE_FORMATS = ("pdf", "svg", "png")


def path(run: Any) -> str:
    """The path of a run as an argument; a path that starts with a dash is no option."""
    name = os.fsdecode(run.path)
    return os.path.join(".", name) if name.startswith("-") else name


def site(name: str) -> str:
    """A glob that means this site alone."""
    quoted = "".join(f"[{c}]" if c in "*?[" else c for c in name)
    return quoted.replace(",", "\\,")


def statplot(figure: str, runs: Sequence[Any], steps: Optional[tuple[int, int]] = None,
             **options: Any) -> list[str]:
    """`statplot FIGURE RUN... --steps=A:B --name=value`; None and False leave an option out."""
    return ["statplot", figure, *map(path, runs), *_range("steps", steps), *_flags(options)]


def table(program: str, runs: Sequence[Any], steps: Optional[tuple[int, int]] = None,
          **options: Any) -> list[str]:
    """`stat-NAME RUN... --phase A:B --name=value`."""
    return [program, *map(path, runs), *_range("phase", steps), *_flags(options)]


def shown(command: Sequence[str]) -> str:
    """The command as a shell takes it."""
    return " ".join(map(shlex.quote, command))


def drawn(command: Sequence[str], ending: str) -> tuple[bytes, list[str]]:
    """The figure of a command of statplot(), and statplot's warnings. Raises statrec.Error."""
    with tempfile.TemporaryDirectory(prefix="statrec-") as directory:
        output = os.path.join(directory, f"figure.{ending}")
        result = _plot._run(command[0], [*command[1:], "-o", output])
        with open(output, "rb") as file:
            return file.read(), warnings_of(result.stderr)


def warnings_of(text: str) -> list[str]:
    """The lines that statplot warns with."""
    return [line.split(": warning: ", 1)[1] for line in text.splitlines() if ": warning: " in line]


def _range(option, steps):
    return [f"--{option}={steps[0]}:{steps[1]}"] if steps else []


def _flags(options):
    return _plot._flags({name: value for name, value in options.items()
                         if value is not None and value is not False and value != 0})
