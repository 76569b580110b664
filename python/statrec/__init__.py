"""statrec: statistics of normalization layers, recorded in any training loop and read as arrays.

    run = statrec.watch(model, "run.h5")         # record a PyTorch model
    run = statrec.open("run.h5")                 # read what any program recorded
    statrec.plot("fair", "cv.h5", "nlp.h5", output="fair.pdf")

Importing it loads neither libstatrec nor any other package; they are loaded at first use.
"""
import sys
import types

from ._file import File, check, open
from ._library import Error
from ._plot import diagnose, plot, table
from ._recorder import Recorder
from ._version import version

__version__ = version
__all__ = ["Error", "File", "Recorder", "check", "diagnose", "open", "plot", "register", "table",
           "version", "watch"]


def watch(*arguments, **options):
    """Records a PyTorch model; see statrec.watch in docs/python.md."""
    from .watch import watch as begin
    return begin(*arguments, **options)


def register(cls, like="none", **options):
    """Records a class of your own in every watch() from now on; see docs/python-watch.md."""
    from ._adapters.custom import register as add
    add(cls, like, **options)


class _Package(types.ModuleType):
    """This module. The import system binds a submodule to its name in the package, also that of
    watch.py; statrec.watch stays the function."""

    def __setattr__(self, name, value):
        if not (name == "watch" and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
