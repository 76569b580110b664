"""Running statistics that modules keep themselves, as they are between two steps."""
import torch
from torch.nn.parameter import is_lazy

from ._caught import copy_all


def kept(taps):
    """Copies [2, width] of running mean and variance by site, of taps whose modules have them.

    On the CPU in doubles that are made once, by one call for all of them. What was kept by the call
    before stays as it is.
    """
    found, to, tensors = {}, [], []
    for tap in taps:
        module = tap.module()
        buffers = {} if module is None else module._buffers
        mean, variance = buffers.get("running_mean"), buffers.get("running_var")
        if mean is None or variance is None or is_lazy(mean) or mean.is_meta:
            continue
        if mean.device.type != "cpu":
            found[tap.site] = torch.stack([mean.detach(), variance.detach()])
            continue
        block, rows = _rows(tap, mean.shape[0])
        found[tap.site] = block
        to += rows
        tensors += mean, variance
    if to:
        with torch.no_grad():
            copy_all(to, tensors)
    return found


def initial(taps):
    """What a lazy module starts with, by site: it had no buffers before its first forward pass."""
    return {tap.site: torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, tap.width)
            for tap in taps if tap.width is not None}


def _rows(tap, width):
    """The older one of the tap's two blocks, and its rows."""
    if tap.running is None or tap.running[0][0].shape[1] != width:
        tap.running = [(block, block.unbind())
                       for block in torch.empty(2, 2, width, dtype=torch.float64)]
    tap.running.reverse()
    return tap.running[0]
