"""By which buffers a module normalizes in evaluation: its copy is run once on random numbers."""
import warnings

import torch

from .._watching import _probe
from .._watching._adapters import batch

PAIR = ("running_mean", "running_var")


def statistics(module):
    """Names of the running statistics that evaluation reads: buffers that a forward pass in
    training changes, and PAIR where it is read. None: the module cannot be copied."""
    own = {name for name, value in module._buffers.items()
           if value is not None and value.is_floating_point()}
    if batch.fits(module) or not own:
        return own.intersection(PAIR)
    try:
        with _probe._apart(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _asked(module, own)
    except Exception:  # no copy, or no input that it accepts
        return None


def _asked(module, own):
    twin = _alone(module)
    _, x, _, _ = next(_probe._answers(twin))
    old = _alone(module)._buffers
    moved = {name for name in own if not torch.equal(twin._buffers[name], old[name])}
    twin.eval()
    return {name for name in moved.union(own.intersection(PAIR)) if _is_read(twin, name, x)}


def _alone(module):
    """A copy with the same numbers at each call, which waits for no other process."""
    torch.default_generator.manual_seed(1)
    twin = _probe._random_copy(module)
    for part in twin.modules():
        if getattr(part, "sync", False) is True:
            part.sync = False
    return twin


def _is_read(twin, name, x):
    """Whether the output depends on a buffer."""
    before = twin(x.clone())
    twin._buffers[name] += 1
    after = twin(x.clone())
    twin._buffers[name] -= 1
    return not torch.equal(before, after)
