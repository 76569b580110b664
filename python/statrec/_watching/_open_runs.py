"""The runs that are open: closed when the interpreter ends, silent in forked children."""
import atexit
import os
import weakref

runs: "weakref.WeakSet" = weakref.WeakSet()
_registered: list = []


def add(run, recorder):
    """run: a Watch; recorder: its own, or None.

    A cycle of references is collected in two steps: what weak references call, then __del__. A recorder within it
    would give its file back in the first, before the run closes it; so it is held from here until then."""
    runs.add(run)
    weakref.finalize(run, _release, recorder).atexit = False
    if not _registered:  # after the first recorder: the function registered last runs first
        _registered.append(atexit.register(_close))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forked)


def _release(_):
    """The recorder is the run's alone again."""


def _close():
    for run in list(runs):
        run._end("interrupted", "the interpreter ended before close()")


def _forked():
    for run in list(runs):
        run._silence()
