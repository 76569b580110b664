"""The runs that are open: closed when the interpreter ends, silent in forked children."""
import atexit
import os
import weakref

runs: "weakref.WeakSet" = weakref.WeakSet()
_registered: list = []


def add(run):
    """run: a Watch."""
    runs.add(run)
    if not _registered:  # after the first recorder: what is registered last ends first
        _registered.append(atexit.register(_close))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forked)


def _close():
    for run in list(runs):
        run._end("interrupted", "the interpreter ended before close()")


def _forked():
    for run in list(runs):
        run._silence()
