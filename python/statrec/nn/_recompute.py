"""Running statistics of a whole data set (precise statistics)."""

import itertools
from typing import Any, Callable, Dict, Iterable, List, Optional

import torch
from torch import Tensor, nn

from ._base import RunningNorm, check_module, count

_STATISTICS = ("running_mean", "running_var", "running_std", "running_psi2")


class _Sums:
    """Moments of all rows of one module, in doubles."""

    def __init__(self, features: int) -> None:
        self.n = torch.zeros((), dtype=torch.float64)
        self.mean = torch.zeros(features, dtype=torch.float64)
        self.m2 = torch.zeros(features, dtype=torch.float64)

    def add(self, n: Any, mean: Tensor, variance: Tensor) -> None:
        """Merges a batch: its rows, mean and biased variance."""
        n, mean, variance = (
            torch.as_tensor(v).detach().double().cpu() for v in (n, mean, variance)
        )
        total = self.n + n
        if total == 0:
            return
        apart = mean - self.mean
        self.m2 += n * variance + apart * apart * (self.n * n / total)
        self.mean += apart * (n / total)
        self.n = total

    def values(self, module: RunningNorm) -> Dict[str, Tensor]:
        """Every running statistic that may be asked for."""
        variance = self.m2 / self.n
        unbiased = getattr(module, "unbiased", False) and self.n > 1
        return {
            "running_mean": self.mean,
            "running_std": (variance + module.eps).sqrt(),
            "running_psi2": variance + self.mean**2,
            "running_var": variance * (self.n / (self.n - 1)) if unbiased else variance,
        }


def recompute(
    model: nn.Module,
    loader: Iterable[Any],
    batches: Optional[int] = None,
    *,
    call: Optional[Callable[[nn.Module, Any], Any]] = None,
) -> nn.Module:
    """Replaces running statistics by statistics of whole batches of data; returns the model.

        statrec.nn.recompute(model, train_loader, batches=200)

    running_mean, running_var, running_std and running_psi2 of all modules of statrec.nn become the
    statistics of all valid rows that pass. Normalizations use their batch as in training, the rest
    of the model is in evaluation; no gradients. nu, windows and num_batches_tracked stay, and so do
    modes. The loader yields (input, target) or inputs; for other signatures call(model, batch) runs
    the model. batches: limit on their number, 1 or more; None: all. Raises ValueError without a
    module or a batch.
    """
    check_module("recompute", model)
    if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
        raise TypeError(
            f"recompute: the loader is of type {type(loader).__name__}, not an iterable"
        )
    if batches is not None:
        batches = count("recompute", "batches", batches, 1)
    modules = [
        m
        for m in model.modules()
        if isinstance(m, RunningNorm) and any(getattr(m, n, None) is not None for n in _STATISTICS)
    ]
    if not modules:
        raise ValueError("recompute: the model has no module of statrec.nn with running statistics")
    sums = {id(m): _Sums(m.num_features) for m in modules}
    _passes(model, modules, sums, itertools.islice(iter(loader), batches), call)
    if not any(bool(s.n > 0) for s in sums.values()):
        raise ValueError("recompute: the loader has no batch with a valid row")
    with torch.no_grad():
        for module in modules:
            if sums[id(module)].n > 0:
                for name, value in sums[id(module)].values(module).items():
                    if getattr(module, name, None) is not None:
                        getattr(module, name).copy_(value)
    return model


@torch.no_grad()
def _passes(
    model: nn.Module,
    modules: List[RunningNorm],
    sums: Dict[int, _Sums],
    batches: Iterable[Any],
    call: Any,
) -> None:
    modes = {m: m.training for m in model.modules()}
    saved = [{n: b.clone() for n, b in m._buffers.items() if b is not None} for m in modules]
    try:
        model.eval()
        for module in modules:
            module.training = True
            module._watcher = sums[id(module)].add
        for batch in batches:
            _run(model, batch, call)
    finally:
        for m, training in modes.items():
            m.training = training
        for module, buffers in zip(modules, saved):
            module._watcher = None
            module._calls.clear()
            for name, value in buffers.items():
                module._buffers[name].copy_(value)  # type: ignore[union-attr]


def _run(model: nn.Module, batch: Any, call: Any) -> None:
    if call is not None:
        call(model, batch)
    elif isinstance(batch, dict):
        model(**batch)
    else:
        model(batch[0] if isinstance(batch, (list, tuple)) else batch)
