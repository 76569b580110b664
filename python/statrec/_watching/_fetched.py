"""A step of the CPU's way, on its way to the host: everything that is on a device comes in one copy."""
import math

import torch

from . import _passes, _running
from ._rows import number

_NAN = math.nan


def failed(numbers):
    """The value of `fetched` for a step that could not be fetched."""
    return [], [_NAN] * len(numbers), {}, {}, {}


def fetched(passes, numbers, scale, running, tables, blocks):
    """HostPasses, the numbers as floats, running statistics [2, width] by site before and after the step, and
    {"dx_norm": {site: value}, "direct_norm": ...} of row norms.

    running: (before, after), of _running.Keeper. tables: a list with dicts in it, whose tensors are replaced
    by their values. blocks: Blocks of the run. One copy for each device: nothing else here waits for it.
    """
    tables = [(one, name) for one in tables if isinstance(one, dict) for name in one
              if torch.is_tensor(one[name])]
    tensors = [value for value in numbers if torch.is_tensor(value)]
    kept = running if passes else [{}, {}]
    if not all(_running.on_cpu(one) for one in kept):
        kept = [dict(one) for one in kept]
    away = [(one, site) for one in kept if not _running.on_cpu(one)
            for site, values in one.items() if not values.is_cpu]
    normed = [(caught.site, caught.norms) for caught in passes if caught.norms is not None]
    tensors = [value.detach().reshape(()) for value in
               (*tensors, *(one[name] for one, name in tables))]
    hosts, got, scale = _passes.to_host(
        passes, [*tensors, *(one[site] for one, site in away),
                 *(norms for _, norms in normed if type(norms) is not list)], scale, blocks)
    norms = _passes.row_norms(normed, got[len(tensors) + len(away):], scale)
    values = iter(got[:len(tensors)])
    numbers = [float(next(values)) if torch.is_tensor(value) else number(value) for value in numbers]
    for (one, name), here in zip(tables, values):
        one[name] = here.item()
    for (one, site), here in zip(away, got[len(tensors):]):
        one[site] = here
    return hosts, numbers, *kept, norms
