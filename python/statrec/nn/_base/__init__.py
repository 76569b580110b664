"""Shared parts of the modules of statrec.nn: options, rows, running values, calls of a checkpointed
region."""

from ._checks import POSITIVE, check_module, count
from ._kept import for_each_row, kept_between
from ._moments import Moments, centered, layer_scaled, root, row_centered
from ._norm import Norm, Texts
from ._options import (
    Default,
    Options,
    RowOptions,
    RunningOptions,
    ScaledOptions,
    SyncOptions,
    Unpack,
)
from ._penalized import Penalized, penalty
from ._quadratic import QuadraticNorm, corrected, divide, keep, only_once
from ._row_norm import RowNorm
from ._rows import Rows
from ._running_norm import RunningNorm
from ._tanh import tanh

__all__ = [
    "Default",
    "Moments",
    "Norm",
    "Options",
    "POSITIVE",
    "Penalized",
    "QuadraticNorm",
    "RowNorm",
    "RowOptions",
    "Rows",
    "RunningNorm",
    "RunningOptions",
    "ScaledOptions",
    "SyncOptions",
    "Texts",
    "Unpack",
    "centered",
    "check_module",
    "corrected",
    "count",
    "divide",
    "for_each_row",
    "keep",
    "kept_between",
    "layer_scaled",
    "only_once",
    "penalty",
    "root",
    "row_centered",
    "tanh",
]
