"""torch's functions for norms, heard while a module's forward runs."""
import inspect
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

# function: norm, (family, axis, uses), whether features are dimension 1
FUNCTIONS: dict[Any, Any] = {
    F.batch_norm: ("bn", ("sigma", None, None), True),
    F.layer_norm: ("ln", ("row", "row", "mu,sigma2"), False),
    F.group_norm: ("groupnorm", ("row", "sample", "mu,sigma2"), True),
    F.instance_norm: ("instancenorm", ("row", "sample", "mu,sigma2"), True),
}
if hasattr(F, "rms_norm"):
    FUNCTIONS[F.rms_norm] = "rmsnorm", ("row", "row", "psi2"), False
_SIGNATURES = {function: inspect.signature(function) for function in FUNCTIONS}


class Call:
    """A call of one of these functions: its input, its result and its settings."""

    def __init__(self, function, args, kwargs, output):
        given = _SIGNATURES[function].bind(*args, **kwargs)
        given.apply_defaults()
        given = given.arguments
        self.norm, self.kind, self.first = FUNCTIONS[function]
        self.input, self.output, self.weight = given["input"], output, given.get("weight")
        shape = given.get("normalized_shape")
        self.trailing = 1 if shape is None else len(shape)
        self.width = self.input.shape[1] if shape is None else math.prod(shape)
        eps = given.get("eps")
        self.eps = float(torch.finfo(self.input.dtype).eps if eps is None else eps)
        self.trains = bool(given.get("training", True))


class Listening(TorchFunctionMode):
    """Calls hear(Call) for each of these functions; its return value, if not None, is the result."""

    def __init__(self, hear):
        super().__init__()
        self.hear = hear

    def __torch_function__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        if function in FUNCTIONS:
            other = self.hear(Call(function, args, kwargs or {}, output))
            return output if other is None else other
        return output
