"""statrec: statistics of normalization layers, recorded in any training loop and read as arrays.

    run = statrec.watch(model, "run.h5")         # record a PyTorch model
    run = statrec.open("run.h5")                 # read what any program recorded
    statrec.plot("fair", "cv.h5", "nlp.h5", output="fair.pdf")

Importing it loads neither libstatrec nor any other package; they are loaded at first use.
"""
from ._file import File, check, open
from ._library import Error
from ._plot import plot, table
from ._recorder import Recorder
from ._version import version

__version__ = version
__all__ = ["Error", "File", "Recorder", "check", "open", "plot", "table", "version", "watch"]


def watch(*arguments, **options):
    """Records a PyTorch model; see statrec.watch in docs/python.md."""
    from .watch import watch as begin
    return begin(*arguments, **options)
