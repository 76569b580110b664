"""The programs beside the library: statplot and stat-*, with Python's options and results."""
from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import warnings
from typing import Any, Optional, Union

from . import _html
from ._library import Error, library, path_of
from ._watching._say import level


class Figure(str):
    """The path of a file that statplot wrote; a notebook shows an SVG or PNG.

    messages: warnings of statplot, one line each.
    """

    messages: Union[list[str], tuple[()]] = ()

    def _shown(self, ending):
        if not self.endswith(ending):
            return None
        with open(self, "rb") as file:
            return file.read()

    def _repr_svg_(self):
        image = self._shown(".svg")
        return None if image is None else image.decode("utf-8")

    def _repr_png_(self):
        return self._shown(".png")


def plot(figure: str, *files: Any, output: Optional[Any] = None, **options: Any) -> Figure:
    """Draws a figure of `statplot list` or a template file. Returns its path.

        statrec.plot("fig2", "cv.h5", "nlp.h5", output="fig2.svg", form="relative")

    files: paths or open Files. output: .svg, .pdf, .png (tables: .md, .tex, .tsv; report: a
    directory); None: an SVG that exists until the interpreter ends. options: as in
    `statplot FIGURE --help`; smooth=9 is --smooth=9, log=True --log, log=False --no-log; a list
    becomes its elements separated by commas. Warnings of statplot become Python warnings;
    .messages of the path also contains them. A notebook shows the figure.
    """
    path = _scratch(figure) if output is None else os.fsdecode(output)
    result = _run("statplot", [figure, *map(os.fsdecode, files), "-o", path, *_flags(options)])
    drawn = Figure(path)
    drawn.messages = _said("statplot", result.stderr)
    return drawn


def table(program: str, *files: Any, **options: Any) -> Any:
    """Runs an analysis. Returns a dict of its --format json; with format="tsv" or "csv" its text.

        statrec.table("stat-gap", "bn.h5", "ln.h5", metric="valid_ppl")["rows"]

    The dict has program, version, command, notes (key, text), columns (name, definition) and rows.
    """
    options = {"format": "json", **options}
    result = _run(program, [*map(os.fsdecode, files), *_flags(options)])
    _said(program, result.stderr)
    return json.loads(result.stdout) if options["format"] == "json" else result.stdout


class Diagnosis(list):
    """Rows of `statrec diagnose`, one dict per run and question; print() shows the page."""

    page = ""

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The rows with a finding, the most severe of each run first."""
        found = [row for row in self if row["verdict"] == "found"]
        return sorted(found, key=lambda row: row["rank"])

    def __str__(self):
        return self.page or "\n".join(f"{row['question']}: {row['verdict']}" for row in self)

    __repr__ = __str__

    def _repr_html_(self):
        return _html.preformatted(str(self))


def diagnose(*files: Any) -> Diagnosis:
    """Diagnoses the normalization of runs (docs/diagnose.md). Returns a Diagnosis.

        print(statrec.diagnose("run.h5"))                  # a page
        statrec.diagnose("run.h5").findings[0]["site"]     # the worst one
    """
    found = diagnosed(files)
    found.page = _run("statrec", ["diagnose", *map(os.fsdecode, files)]).stdout
    return found


def diagnosed(files):
    """A Diagnosis without its page."""
    told = json.loads(_run("statrec", ["diagnose", *map(os.fsdecode, files), "--format",
                                       "json"]).stdout)
    names = [column["name"] for column in told["columns"]]
    return Diagnosis(dict(zip(names, row)) for row in told["rows"])


# -- running ----------------------------------------------------------------------------------

def _directories():
    """Folders that are searched for programs before the PATH."""
    chosen = os.environ.get("STATREC_BIN")
    if chosen:
        return [chosen]
    try:
        path = path_of(library())
    except Error:
        path = None
    return [os.path.join(os.path.dirname(path), os.pardir, "bin")] if path else []


def program_path(name):
    """The program of this name: in $STATREC_BIN, or beside the library, or on the PATH."""
    places = _directories()
    for place in places:
        found = shutil.which(name, path=place)
        if found:
            return found
    found = None if os.environ.get("STATREC_BIN") else shutil.which(name)
    if found:
        return found
    looked = [*places, *([] if os.environ.get("STATREC_BIN") else ["the PATH"])]
    raise Error(f"no program {name} in {', '.join(map(os.path.normpath, looked))}", "io",
                "set STATREC_BIN to the directory of statrec's programs")


def _flags(options):
    flags = []
    for name, value in options.items():
        key = name.replace("_", "-")
        if value is True or value is False:
            flags.append(f"--{key}" if value else f"--no-{key}")
        elif value is not None:
            flags.append(f"--{key}={_word(value)}")
    return flags


def _word(value):
    if isinstance(value, (list, tuple)):
        return ",".join(str(element).replace(",", "\\,") for element in value)
    return str(value)


def _run(name, arguments):
    result = subprocess.run([program_path(name), *arguments], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            encoding="utf-8", errors="replace", check=False)
    if result.returncode == 0:
        return result
    lines = [line for line in result.stderr.splitlines() if ": warning: " not in line]
    hints = [line.split(": hint: ", 1)[1] for line in lines if ": hint: " in line]
    told = [line for line in lines if ": hint: " not in line]
    text = "; ".join(told) or f"{name}: exit status {result.returncode}"
    raise Error(text, "usage" if result.returncode == 2 else "io", "; ".join(hints))


def _said(name, text):
    """The lines of a program that succeeded, each also a warning."""
    lines = [line.removeprefix(f"{name}: ").removeprefix("warning: ")
             for line in text.splitlines()]
    for line in lines:
        warnings.warn(f"{name}: {line}", stacklevel=level())
    return lines


_directory = None


def _scratch(figure):
    """A path for a figure without a name, in a directory that the interpreter removes at its end."""
    global _directory
    if _directory is None:
        _directory = tempfile.mkdtemp(prefix="statrec-")
        atexit.register(shutil.rmtree, _directory, ignore_errors=True)
    stem = os.path.splitext(os.path.basename(figure))[0]
    handle, path = tempfile.mkstemp(prefix=f"{stem}-", suffix=".svg", dir=_directory)
    os.close(handle)
    return path
