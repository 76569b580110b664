"""python3 -m statrec.study plan|run|report [OPTIONS] FILE.conf|DIRECTORY|PAGE.md..."""
from __future__ import annotations

import argparse
import os
import sys
from typing import Optional, Sequence

from .._library import Error
from .._plot import program_path
from .documents import report
from .experiment import stop
from .running import plan, run


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="statrec study", description="Runs of experiments, and their tables.")
    made.add_argument("command", choices=["plan", "run", "report"])
    made.add_argument("paths", nargs="+", metavar="FILE.conf|DIRECTORY|PAGE.md")
    made.add_argument("--jobs", type=int, default=1)
    made.add_argument("--out", default="study")
    made.add_argument("--data", default="")
    made.add_argument("--samples", default="")
    made.add_argument("--published", default="")
    return made


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The exit status: 0 done, 1 a run failed, 2 usage, 128+n after signal n."""
    args = parser().parse_args(arguments)
    args.docs = [path for path in args.paths if path.endswith(".md")]
    args.confs = [path for path in args.paths if not path.endswith(".md")]
    if not args.confs:
        stop("no experiment given, FILE.conf or a directory of them")
    if args.docs and args.command != "report":
        stop(f"{args.docs[0]}: report alone writes pages")
    try:
        args.bin = os.path.dirname(program_path("statrec"))
    except Error as why:
        stop(str(why))
    below = os.path.relpath(args.bin) # tables name the command that made them: without the path to the checkout
    args.bin = args.bin if below.startswith(os.pardir) else below
    try:
        done = {"plan": plan, "run": run, "report": report}[args.command](args)
        sys.stdout.flush()
    except BrokenPipeError: # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0 if args.command == "plan" else done


if __name__ == "__main__":
    sys.exit(main())
