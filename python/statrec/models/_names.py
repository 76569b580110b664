"""The tensors of a model by the names that they have in checkpoints of `statrec train`."""

from typing import Dict, Iterator, NamedTuple

from torch import Tensor, nn

from ..nn import Norm, UnitNorm
from ..nn._base._running_norm import RunningNorm

# Parameters and running values of norms that have another name there.
_PARAMETERS = {"weight": "gamma", "bias": "beta", "ln_weight": "ln_gamma", "ln_bias": "ln_beta"}
_RUNNING = {
    "running_mean": "mu",
    "running_var": "sigma2",
    "running_std": "sigma",
    "running_psi2": "psi2",
    "lam": "lambda",
}
_WINDOWS = {"window_x2": "buf_x2", "window_gz": "buf_gz"}  # of mabn


class Stored(NamedTuple):
    """A tensor, in the shape that a checkpoint has; a view of the model's memory. group:
    "parameters" or "running"."""

    group: str
    name: str
    tensor: Tensor


def stored(model: nn.Module) -> Iterator[Stored]:
    """All parameters and running values of the model."""
    for name, module in model.named_modules():
        if isinstance(module, Norm):
            yield from _norm(name, module)
        elif isinstance(module, nn.Conv2d):  # here [out, in, height, width]
            weight = _original(module).permute(0, 2, 3, 1)
            yield Stored("parameters", name.replace("_conv", "") + ".weight", weight)
        elif isinstance(module, nn.Embedding):
            yield Stored("parameters", name, module.weight)
        elif isinstance(module, nn.Linear):
            yield Stored("parameters", name + ".weight", module.weight)
            yield Stored("parameters", name + ".bias", module.bias)


def _norm(name: str, norm: Norm) -> Iterator[Stored]:
    parameters: Dict[str, str] = {"weight": "s"} if isinstance(norm, UnitNorm) else _PARAMETERS
    for attribute, parameter in norm.named_parameters(recurse=False):
        value = parameter if parameter.dim() else parameter.view(1)
        yield Stored("parameters", f"{name}.{parameters.get(attribute, attribute)}", value)
    names = {**_RUNNING, **(_WINDOWS if norm.method == "mabn" else {})}
    for attribute, buffer in norm.named_buffers(recurse=False):
        if attribute == "num_batches_tracked":
            continue
        if attribute == "lam":  # one number for all features there
            buffer = buffer.expand(norm.num_features)
        yield Stored("running", f"{name}.{names.get(attribute, attribute)}", buffer)


def calls(model: nn.Module) -> Iterator[Stored]:
    """The number of training calls of each norm that counts them."""
    for name, module in model.named_modules():
        if isinstance(module, RunningNorm):
            yield Stored("progress", f"{name}.calls", module.num_batches_tracked)


def _original(conv: nn.Conv2d) -> Tensor:
    """The weight before a parametrization (MABN's centering)."""
    return dict(conv.named_parameters()).get("parametrizations.weight.original", conv.weight)
