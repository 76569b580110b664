"""Size of a site's input in training: watch(..., activations_every=K).

Over all entries of the valid rows of x, the tensor that the site normalizes, as `statrec train
--activations-every` records them (src/observe/activations.c): the three largest |x|, its median,
and the share of saturated inputs; further the 99.9 % quantile, the kurtosis and the root mean
square of rows. Massive activations: Sun et al., COLM 2024, arXiv 2402.17762.

Quantiles come from a histogram by the bits of |x| as float32, exponent and five bits of the
mantissa: within 1/32 of the value. Histograms add up, and central moments do by the formulas of
Pébay, SAND2008-6212, so that merged passes are one batch.
"""
import math

import torch
from torch import nn

_SHIFT, _BINS, _TOP, _INFINITY = 18, 1 << 13, 3, 0x7F800000
_ROW_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm,
              *([nn.RMSNorm] if hasattr(nn, "RMSNorm") else []))

SCALARS = {
    "x_top1": "largest |x| of a valid row, x what the site normalises",
    "x_top2": "second largest |x|",
    "x_top3": "third largest |x|",
    "x_median": "median of |x| over valid rows and features, by a histogram: within 1/32 of it",
    "x_q999": "99.9 % quantile of |x| over valid rows and features, by a histogram: within 1/32",
    "x_kurtosis": "mean (x - m)^4 / (mean (x - m)^2)^2 over valid rows and features, m their mean",
    "x_row_rms": "mean over valid rows of sqrt(mean over features of x^2)",
    "saturated": "share of the inputs whose normalised value is below half of the line through the "
                 "smaller half of the inputs",
}


def declare(recorder):
    """Declares SCALARS."""
    for name, definition in SCALARS.items():
        recorder.declare_scalar(name, "1", definition, "site")


def as_rows(x, first, width, index):
    """x as [rows, width], the valid ones; float32 or float64."""
    x = (x.movedim(1, -1) if first and x.dim() > 2 else x).reshape(-1, width)
    x = x if index is None else x.index_select(0, index)
    return x if x.dtype == torch.float64 else x.float()


def normalized(module, gain, bias, y):
    """xhat = (y - bias)/gain of rows y [R, d] of one of torch's row norms, and where gain is not 0;
    (None, None) for other modules: the line of saturated inputs is theirs alone."""
    if not isinstance(module, _ROW_NORMS):
        return None, None
    y = y.double() if bias is None else y.double() - bias.detach().double().reshape(-1)
    if gain is None:
        return y, torch.ones(y.shape[1], dtype=torch.bool, device=y.device)
    return y / gain.double(), gain != 0


class Counts:
    """Counts of one or several passes, which add up."""

    def __init__(self, x, xhat=None, judged=None):
        """x [rows, width] of one pass; xhat, judged: of `normalized`."""
        size = x.detach().abs().reshape(-1)
        self.histogram = torch.bincount(size.float().view(torch.int32) >> _SHIFT, minlength=_BINS)
        self.top = size.topk(min(_TOP, size.numel())).values.double()
        wide = x.detach().double()
        square = wide.square()
        self.moments = _moments(wide)
        self.row_rms, self.rows = square.mean(1).sqrt().sum(), x.shape[0]
        self.below = self.judged = None
        if xhat is not None:
            self._judge(wide, xhat, judged)

    def _judge(self, x, xhat, judged):
        """below, judged: number of saturated inputs, and of inputs."""
        median = _quantile(self.histogram.cpu(), 1, 2)
        small = x.abs() <= median
        fits = small & judged
        slope = (x * xhat)[fits].sum() / x[fits].square().sum()
        under = (xhat.abs() < 0.5 * (slope * x).abs()) & ~small & judged
        self.below = torch.where(slope.isfinite(), under.sum().double(), math.nan)  # NaN: there is no line
        self.judged = judged.sum() * x.shape[0]

    def add(self, other):
        """The passes of another one, too."""
        self.histogram = self.histogram + other.histogram
        merged = torch.cat([self.top, other.top])
        self.top = merged.topk(min(_TOP, merged.numel())).values
        self.moments = _joined(self.moments, other.moments)
        self.row_rms, self.rows = self.row_rms + other.row_rms, self.rows + other.rows
        if self.below is not None and other.below is not None:
            self.below, self.judged = self.below + other.below, self.judged + other.judged

    def numbers(self):
        """{name of SCALARS: number}; none where x has a NaN."""
        top, histogram = self.top.tolist(), self.histogram.cpu()
        if math.isnan(top[0]):
            return {}
        found = {f"x_top{place + 1}": value for place, value in enumerate(top)}
        found["x_median"] = _quantile(histogram, 1, 2)
        found["x_q999"] = _quantile(histogram, 999, 1000)
        count, _, second, _, fourth = self.moments.tolist()
        found["x_kurtosis"] = count * fourth / second ** 2 if second > 0 else math.nan
        found["x_row_rms"] = float(self.row_rms) / self.rows
        if self.below is not None:
            found["saturated"] = float(self.below) / float(self.judged) if self.judged else math.nan
        return found


def _moments(x):
    """[5] of doubles: entries, their mean m, sums of (x - m)^2, (x - m)^3 and (x - m)^4."""
    mean = x.mean()
    centred = x - mean
    square = centred.square()
    return torch.stack([mean.new_tensor(float(x.numel())), mean, square.sum(),
                        (square * centred).sum(), square.square().sum()])


def _joined(a, b):
    """_moments of the entries of both (Pébay 2008, equations 2.1 and 3.1)."""
    (n, mean, a2, a3, a4), (k, other, b2, b3, b4) = a, b
    d, all_ = other - mean, n + k
    e = d / all_
    return torch.stack([
        all_, mean + k * e, a2 + b2 + n * k * d * e,
        a3 + b3 + n * k * (n - k) * d * e * e + 3 * e * (n * b2 - k * a2),
        a4 + b4 + n * k * (n * n - n * k + k * k) * d * e ** 3
        + 6 * e * e * (n * n * b2 + k * k * a2) + 4 * e * (n * b3 - k * a3)])


def _value(bits):
    return torch.tensor([bits], dtype=torch.int32, device="cpu").view(torch.float32).item()


def _quantile(histogram, part, parts):
    """The lower quantile part/parts; values of a bin are taken to be spread evenly."""
    rank = (int(histogram.sum()) - 1) * part // parts
    ends = histogram.cumsum(0)
    place = int((ends <= rank).sum())
    if place == 0 or place << _SHIFT >= _INFINITY:
        return 0.0 if place == 0 else math.inf
    low, high = _value(place << _SHIFT), _value(place + 1 << _SHIFT)
    if math.isinf(high):
        return low
    below, here = int(ends[place] - histogram[place]), int(histogram[place])
    return low + (high - low) * (rank - below + 0.5) / here


class Waiting:
    """Counts of a forward pass, until its backward pass arrives at the node that made the output."""
    __slots__ = ("tap", "counts", "serial")

    def __init__(self, tap, counts, serial):
        self.tap, self.counts, self.serial = tap, counts, serial

    def __call__(self, grads):
        counts, self.counts = self.counts, None
        if counts is not None and self.tap.shared.on:
            self.tap.activated(counts, self.serial)
