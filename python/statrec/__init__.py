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
           "tap", "version", "watch"]


def watch(*arguments, **options):
    """Records a PyTorch model; see docs/python-watch.md."""
    from .watch import watch as begin
    return begin(*arguments, **options)


def tap(x, name, features=-1):
    """Records a tensor and its gradient as the site `name` of every open run; returns x.

    For functional norms and for any other tensor: statistics as a BN in this place would have them.
    x: result of an operation, [rows, ..., features], or features in dimension 1. The first step
    decides which names there are. Not within torch.compile, and not under torch.no_grad().
    """
    torch = sys.modules.get("torch")
    if torch is None or torch.compiler.is_compiling():
        return x
    from .watch import tap as record
    return record(x, name, features)


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
