"""State that an audit restores: buffers, modes, random states; and the inputs of a model."""
import collections.abc
import contextlib
import copy
import itertools
import random
import sys

import torch
from torch import nn

from .._watching import _sites
from .._watching._say import warn

_GIBI = 1 << 30


# -- batches ----------------------------------------------------------------------------------

def first(loader, count):
    """The first batches of a loader, at most count, one at a time."""
    if count < 1:
        raise ValueError(f"batches: at least 1 is wanted, got {count}")
    return itertools.islice(iter(loader), count)


def load(loader, count):
    """The first batches of a loader, at most count. They stay in memory, where the loader left
    them, because a second iteration could shuffle or augment them otherwise."""
    found = []
    for batch in first(loader, count):
        found.append(batch)
        if len(found) == 1 and size(batch) * count > 4 * _GIBI:
            warn(f"up to {count} batches of {size(batch) / _GIBI:.2g} GiB stay in memory; "
                 "batches=N takes fewer")
    if not found:
        raise ValueError("the loader has no batch")
    return found


def size(batch):
    """Bytes of its tensors."""
    if torch.is_tensor(batch):
        return batch.numel() * batch.element_size()
    if isinstance(batch, collections.abc.Mapping):
        return sum(map(size, batch.values()))
    return sum(map(size, batch)) if isinstance(batch, (list, tuple)) else 0


def moved(batch, device):
    """A copy with copies of its tensors on the device: a model may write into its input."""
    if torch.is_tensor(batch):
        return batch.detach().to(device, copy=True)
    if isinstance(batch, collections.abc.Mapping):
        other = copy.copy(batch)
        for key, value in batch.items():
            other[key] = moved(value, device)
        return other
    if hasattr(batch, "to"):
        return (batch.clone() if hasattr(batch, "clone") else copy.copy(batch)).to(device)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(moved(part, device) for part in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(moved(part, device) for part in batch)
    return batch


def is_pair(batch):
    """Whether it is (input, target)."""
    return isinstance(batch, (list, tuple)) and len(batch) == 2


def target_of(batch):
    """The arguments of the loss besides the output."""
    return batch[1] if is_pair(batch) else batch


def output_of(model, batch, call):
    """The output of the model for a batch: model(input), or call(model, batch)."""
    if call is not None:
        return call(model, batch)
    if isinstance(batch, (list, tuple)):
        if not 1 <= len(batch) <= 2:
            raise ValueError(f"the loader yields {len(batch)} values, not (input, target): give "
                             "call=lambda model, batch: ...")
        batch = batch[0]
    if isinstance(batch, collections.abc.Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, (list, tuple)) else model(batch)


# -- the model --------------------------------------------------------------------------------

def unwrapped(model):
    """The model within DistributedDataParallel, DataParallel and torch.compile: a wrapper would
    broadcast buffers to other processes, or run a graph that has no hooks."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"a torch.nn.Module is wanted, got {model!r:.80}")
    model = _sites.unwrapped(model)
    if any(map(nn.parameter.is_lazy, itertools.chain(model.parameters(), model.buffers()))):
        raise ValueError("the model has parameters without a shape: run it on one batch first")
    return model


def device_of(model):
    """The device of its first parameter or buffer."""
    tensor = next(itertools.chain(model.parameters(), model.buffers()), None)
    return torch.device("cpu") if tensor is None else tensor.device


def prefixes(model):
    """Beginning of each module's keys in model.state_dict(), by id."""
    return {id(module): f"{name}." if name else "" for name, module in model.named_modules()}


def seed(number):
    """The same random numbers for each forward pass of a batch."""
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)


class _Random:
    """Random states: of Python, NumPy if it is imported, torch on CPU and CUDA, the loader's."""

    def __init__(self, loaders):
        self._python, self._torch = random.getstate(), torch.get_rng_state()
        numpy = sys.modules.get("numpy")
        self._numpy = None if numpy is None else (numpy.random, numpy.random.get_state())
        started = torch.cuda.is_available() and torch.cuda.is_initialized()
        self._cuda = torch.cuda.get_rng_state_all() if started else None
        owners = [owner for loader in loaders
                  for owner in (loader, getattr(loader, "sampler", None))]
        generators = [getattr(owner, "generator", None) for owner in owners]
        self._own = [(one, one.get_state()) for one in generators
                     if isinstance(one, torch.Generator)]

    def restore(self):
        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._numpy is not None:
            self._numpy[0].set_state(self._numpy[1])
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        for generator, state in self._own:
            generator.set_state(state)


class _Modules:
    """Modes and buffers. The model works with copies of its buffers; the tensors themselves are
    never written. train() and eval() are not called, since modules may do more in them (merge
    weights, for instance)."""

    def __init__(self, model):
        self._saved = [(module, module.training, _buffers(module)) for module in model.modules()]
        copies = {}
        for module, _, buffers in self._saved:
            module.training = False
            for name, value in buffers.items():
                if value is not None:
                    if id(value) not in copies:
                        copies[id(value)] = value.detach().clone()
                    module._buffers[name] = copies[id(value)]

    def restore(self):
        for module, training, buffers in self._saved:
            module.training = training
            if not isinstance(module, torch.jit.ScriptModule):
                module._buffers.clear()
                module._buffers.update(buffers)


def _buffers(module):
    """Its buffers, by name. TorchScript's cannot be exchanged: evaluation only reads them.
    """
    return {} if isinstance(module, torch.jit.ScriptModule) else dict(module._buffers)


@contextlib.contextmanager
def untouched(model, loaders):
    """Within it the model evaluates without gradients; afterwards all is as it was."""
    states = _Random(loaders)
    modules = _Modules(model)
    try:
        with torch.no_grad(), _eager():
            yield
    finally:
        modules.restore()
        states.restore()


def _eager():
    """Compiled parts run as they are written: their graphs have no hooks."""
    stance = getattr(torch.compiler, "set_stance", None)
    compiles = stance is not None and "torch._dynamo" in sys.modules
    return stance("force_eager") if compiles else contextlib.nullcontext()
