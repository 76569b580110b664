"""python3 -m statrec.viewer [--port N] [--no-browser] [--export FILE.html] RUN.h5|DIRECTORY..."""
from __future__ import annotations

import argparse
import sys
from typing import Optional, Sequence

from . import NEEDED, lacking


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The exit status: 0 ended, 1 failed, 2 usage."""
    parser = argparse.ArgumentParser(prog="statrec view",
                                     description="A page of runs in the browser.")
    parser.add_argument("paths", nargs="+", metavar="RUN.h5|DIRECTORY")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--export", default="", metavar="FILE.html")
    chosen = parser.parse_args(arguments)
    missing = lacking()
    if missing:
        return _fail(f"{missing} does not import: {NEEDED}")
    from .._library import Error
    from .runs import absent, find
    from .serve import run
    try:
        found = find(chosen.paths)
        if not found:
            return _fail("no run file (*.h5) there")
        if chosen.export:
            return _export(found, chosen.export)
        for path in absent(found):
            print(f"statrec view: {path}: does not exist yet; the page waits for it",
                  file=sys.stderr)
        return run(chosen.paths, chosen.port, not chosen.no_browser)
    except (Error, OSError) as why:
        return _fail(str(why))


def _export(paths, output):
    """The exit status."""
    if not output.endswith(".html"):
        return _fail(f"--export {output}: the name of the file ends with .html") + 1
    from .export import write
    write(paths, output)
    return 0


def _fail(text):
    print(f"statrec view: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
