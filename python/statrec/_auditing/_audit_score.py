"""Measures of an output in an audit: loss, metrics, or the difference from another output."""
import collections.abc
import inspect
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from ._audit_numbers import Interval, mean_of
from ._audit_sites import BATCH, RECOMPUTED, RUNNING
from ._audit_state import target_of

LOSS, OUTPUTS = "loss", "outputs"
UNKNOWN, NOTHING, NOTABLE, SEVERE = "no verdict", "nothing", "notable", "severe"
WORDS = (UNKNOWN, NOTHING, NOTABLE, SEVERE)  # in the order of severity
_NATS: set[Any] = {F.cross_entropy, F.nll_loss, F.binary_cross_entropy,
                   F.binary_cross_entropy_with_logits, F.kl_div, F.gaussian_nll_loss,
                   F.poisson_nll_loss, F.ctc_loss}
_SIGNATURES = {function: inspect.signature(function) for function in _NATS}
# limits of a cost: notable, severe
LIMITS = {"nats": (0.01, 0.1), "": (0.002, 0.02), OUTPUTS: (0.02, 0.2)}


class Measure:
    """A loss or metric. values: {regime: [number of each batch]}.

    more: whether larger is better. unit: "nats", or "" where the cost is relative. Batches in which
    it is not finite with batch statistics are in no mean: they compare nothing.
    """

    def __init__(self, name, more=False, unit=""):
        self.name, self.more, self.unit, self.values = name, more, unit, {}

    @property
    def kept(self):
        """Numbers from 0 of the batches in which it is finite with batch statistics."""
        return [place for place, value in enumerate(self.values[BATCH]) if math.isfinite(value)]

    @property
    def lost(self):
        """Numbers from 0 of the other batches."""
        return sorted(set(range(len(self.values[BATCH]))).difference(self.kept))

    def of(self, regime, places=None):
        """Its values in batches with these numbers; default: kept."""
        return [self.values[regime][place] for place in (self.kept if places is None else places)]

    def mean(self, regime):
        """Interval of its mean over batches."""
        return mean_of(self.of(regime))

    def cost(self, regime, other):
        """Interval of how much worse regime is than the other one, paired by batches."""
        sign = -1 if self.more else 1
        return mean_of([sign * (a - b) for a, b in zip(self.of(regime), self.of(other))])

    def broken(self):
        """Whether running statistics give something not finite where batch statistics do not."""
        return not all(map(math.isfinite, self.of(RUNNING)))

    def size(self, cost):
        """A cost in the unit of the limits: nats, or a fraction of the value."""
        if self.unit == "nats" or self.name == OUTPUTS:
            return cost.value
        running, batch = abs(self.mean(RUNNING).value), abs(self.mean(BATCH).value)
        return cost.value / (running or batch or math.nan)

    def word(self, cost):
        """Severity of a cost."""
        notable, severe = LIMITS[OUTPUTS if self.name == OUTPUTS else self.unit]
        if not cost.low > 0:
            return NOTHING
        size = self.size(cost)
        return SEVERE if size >= severe else NOTABLE if size >= notable else NOTHING

    def worst(self):
        """(one of WORDS, regime that running statistics are worse than, Interval of the cost)."""
        if self.broken():
            return SEVERE, BATCH, Interval(math.nan)
        others = (RECOMPUTED,) if self.name == OUTPUTS else (BATCH, RECOMPUTED)
        found = [(other, self.cost(RUNNING, other)) for other in others]
        if len(self.kept) < 2:
            return (UNKNOWN, *found[0])
        words = [self.word(cost) for _, cost in found]
        for word in (SEVERE, NOTABLE):
            if word in words:
                return (word, *found[words.index(word)])
        return (NOTHING, *found[0])


class Score:
    """The measures of an audit. loss(output, target), metrics {name: function(output, target)}."""

    def __init__(self, loss, metric, unit):
        self._loss, self._unit, self._own = loss, unit, False
        self._metrics = _named(metric)
        if loss is not None and not callable(loss):
            raise TypeError(f"loss: a function of output and target is wanted, got {loss!r:.80}")
        self.measures = [Measure(name, more=True) for name in self._metrics]
        if loss is not None:
            self.measures.insert(0, Measure(LOSS, unit=unit or ""))

    def listen(self):
        """A mode for the first forward pass: a loss in its output is then known to be in nats."""
        self._heard = _Likelihoods()
        return self._heard

    def begin(self, output):
        """The first output. Without loss and metric: the loss that it has, or the output itself."""
        if self.measures:
            return
        self._own = torch.is_tensor(getattr(output, "loss", None)) and output.loss.numel() == 1
        unit = self._unit
        if self._own and unit is None:
            unit = "nats" if self._heard.made(output.loss) else ""
        self.measures = [Measure(LOSS, unit=unit or "") if self._own else Measure(OUTPUTS)]

    @property
    def compares(self):
        """Whether numbers() needs the output with batch statistics."""
        return bool(self.measures) and self.measures[0].name == OUTPUTS

    def numbers(self, output, batch, reference):
        """{name: number} of an output. reference: the batch's output with batch statistics."""
        if self.compares:
            return {OUTPUTS: difference(output, reference)}
        found, target = {}, target_of(batch)
        if self._own:
            found[LOSS] = number_of(output.loss, LOSS)
        elif self._loss is not None:
            with _Likelihoods() as heard:
                value = self._loss(output, target)
            if self._unit is None and RUNNING not in self.measures[0].values:
                self.measures[0].unit = "nats" if heard.made(value) else ""
            found[LOSS] = number_of(value, LOSS)
        for name, function in self._metrics.items():
            found[name] = number_of(function(output, target), name)
        return found


def _named(metric):
    """{name: function} of one function or a dict of them."""
    if metric is None:
        return {}
    if isinstance(metric, collections.abc.Mapping):
        found = dict(metric)
    else:
        name = getattr(metric, "__name__", "") or type(metric).__name__
        found = {"metric" if name == "<lambda>" else name: metric}
    for name, function in found.items():
        if not callable(function):
            raise TypeError("metric: a function of output and target is wanted, got "
                            f"{function!r:.80}")
        if name in (LOSS, OUTPUTS):
            raise ValueError(f"metric: the name {name} means something else here")
    return found


def number_of(value, name):
    """A float of a number, or of the mean of a tensor."""
    if torch.is_tensor(value):
        return value.detach().double().mean().item()
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: a number is wanted, got {value!r:.80}") from None


def tensors_of(output):
    """The floating-point tensors within an output."""
    if torch.is_tensor(output):
        return [output] if output.is_floating_point() else []
    if isinstance(output, collections.abc.Mapping):
        output = list(output.values())
    elif not isinstance(output, (list, tuple)) and hasattr(output, "__dict__"):
        output = list(vars(output).values())
    if isinstance(output, (list, tuple)):
        return [tensor for part in output for tensor in tensors_of(part)]
    return []


def difference(output, reference):
    """||output - reference|| / ||reference|| over all of their tensors, in double."""
    apart = whole = 0.0
    pairs = list(zip(tensors_of(output), tensors_of(reference)))
    if not pairs:
        raise TypeError("the output has no tensor to compare: give loss= or metric=")
    for one, other in pairs:
        one, other = one.detach().cpu().double(), other.detach().cpu().double()
        apart += (one - other).square().sum().item()
        whole += other.square().sum().item()
    return math.sqrt(apart / whole) if whole > 0 else (0.0 if apart == 0 else math.inf)


class _Likelihoods(TorchFunctionMode):
    """Which tensors are means of log-likelihoods, and therefore in nats."""

    def __init__(self):
        super().__init__()
        self._made = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        value = function(*args, **(kwargs or {}))
        if function in _NATS:
            given = _SIGNATURES[function].bind(*args, **(kwargs or {}))
            if given.arguments.get("reduction", "mean") in ("mean", "batchmean"):
                self._made.append(value)
        return value

    def made(self, value):
        """Whether it is one of them as it is."""
        return any(value is one for one in self._made)
