"""Intervals over batches, and statistics of a site with its noise subtracted.

A batch k of n_k rows has the mean m_k and the biased variance v_k of each feature, in double. A
difference of means has the length

    ||sum_k w_k (m_k - mu)||,    w_k = n_k / sum n,

which is positive for equal distributions, too: the means of batches vary. From its square the
unbiased estimate of this noise is subtracted,

    sum_k w_k^2 ||m_k - m||^2 / (1 - sum_k w_k^2),    m = sum_k w_k m_k,

exact where the variance of m_k is proportional to 1/n_k. Its interval comes from the jackknife over
batches, with Student's quantile.
"""
import functools
import itertools
import math
from typing import NamedTuple

import torch


class Interval(NamedTuple):
    """A value with its 95 % interval over batches; low and high are NaN with too few batches."""

    value: float
    low: float = math.nan
    high: float = math.nan

    def __str__(self):
        text = number(self.value)
        return text if math.isnan(self.low) else f"{text} [{number(self.low)}, {number(self.high)}]"


def number(value):
    """Three digits."""
    return f"{value:.3g}"


@functools.lru_cache(maxsize=None)
def student(freedom):
    """t with P(|T| < t) = 0.95; freedom: degrees of freedom (Abramowitz and Stegun 26.7.3-4)."""
    if freedom < 1:
        return math.nan
    low, high = 0.0, math.pi / 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _between(middle, freedom) < 0.95 else (low, middle)
    return math.tan(low) * math.sqrt(freedom)


def _between(angle, freedom):
    """P(|T| < tan(angle) sqrt(freedom))."""
    sine, cosine = math.sin(angle), math.cos(angle)
    if freedom == 1:
        return 2 * angle / math.pi
    odd = freedom % 2
    term = total = cosine if odd else 1.0
    for i in range(2 + odd, freedom - 1, 2):
        term *= (i - 1) / i * cosine * cosine
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def mean_of(values):
    """Mean of numbers, one of each batch, with Student's interval."""
    count = len(values)
    mean = math.fsum(values) / count if count else math.nan
    if count < 2 or not math.isfinite(mean):
        return Interval(mean)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = student(count - 1) * math.sqrt(variance / count)
    return Interval(mean, mean - half, mean + half)


# -- vectors ----------------------------------------------------------------------------------

class Group(NamedTuple):
    """Vectors of the batches of one data set. parts: [K, d]; weights: [K]; in double."""

    parts: torch.Tensor
    weights: torch.Tensor

    def mean(self):
        """[d]."""
        return self.weights @ self.parts / self.weights.sum()

    def noise(self):
        """Estimate of the mean's variance, summed over features; 0 for a single batch."""
        w = self.weights / self.weights.sum()
        rest = 1 - w.square().sum().item()
        if not rest > 1e-12:
            return 0.0
        return (w.square() @ (self.parts - self.mean()).square().sum(1)).item() / rest

    def without(self, batch):
        """The group without one batch."""
        weights = self.weights.clone()
        weights[batch] = 0.0
        return Group(self.parts, weights)


def _square(groups):
    """||sum of the groups' means||^2 without noise; may be negative."""
    whole = sum(group.mean() for group in groups).square().sum().item()
    return whole - sum(group.noise() for group in groups)


def _spread(groups, function):
    """Jackknife: standard error of function(groups), and degrees of freedom."""
    variance, freedom = 0.0, math.inf
    for place, group in enumerate(groups):
        count = len(group.weights)
        left = [function([*groups[:place], group.without(i), *groups[place + 1:]])
                for i in range(count)]
        mean = math.fsum(left) / count
        variance += (count - 1) / count * math.fsum((value - mean) ** 2 for value in left)
        freedom = min(freedom, count - 1)
    return math.sqrt(variance), freedom


def length(groups, scale):
    """Interval of ||sum of the groups' means|| / scale, noise subtracted.

    One group: its distance from zero. Two: give one of them negative. At least three batches of
    each give an interval.
    """
    square = _square(groups)
    if not math.isfinite(square) or not scale > 0:
        return Interval(math.nan)
    value = math.sqrt(max(square, 0.0)) / scale
    if min(len(group.weights) for group in groups) < 3:
        return Interval(value)
    error, freedom = _spread(groups, _square)
    half = student(freedom) * error
    ends = (square - half, square + half)
    return Interval(value, *(math.sqrt(max(end, 0.0)) / scale for end in ends))


def largest(groups, scale):
    """(feature, Interval) of the largest |sum of the groups' means| / scale. scale: [d].

    The interval covers this feature; it is not widened for the choice.
    """
    mean = sum(group.mean() for group in groups) / scale
    feature = int(mean.abs().nan_to_num(nan=math.inf).argmax())
    value = mean[feature].item()
    if min(len(group.weights) for group in groups) < 2 or not math.isfinite(value):
        return feature, Interval(value)
    column = [Group(group.parts[:, feature:feature + 1] / scale[feature], group.weights)
              for group in groups]
    error, freedom = _spread(column, lambda some: sum(group.mean() for group in some).item())
    half = student(freedom) * error
    return feature, Interval(value, value - half, value + half)


# -- a site -----------------------------------------------------------------------------------

class Moments:
    """Rows, means and biased variances of the batches of a site, on the CPU in double. A module may
    be called several times for a batch: each call is normalized by its own statistics, and PyTorch
    averages these. So variances are within calls; differences of their means are not in them.

    lost: number of batches with values that are not finite, which only at() has.
    """

    def __init__(self):
        self._at, self._calls, self._means, self.lost = {}, [], [], 0

    def add(self, place, passes):
        """The forward passes (rows, mean, variance) of the batch with this number."""
        rows, mean, variance = joined(passes)
        self._at[place] = rows, mean.contiguous(), variance.contiguous()
        if mean.isfinite().all() and variance.isfinite().all():
            self._calls.append(list(passes))
            self._means.append(mean)
        else:
            self.lost += 1

    def at(self, place):
        """(rows, mean, variance) of the batch with this number, its calls as one, or None."""
        return self._at.get(place)

    def __len__(self):
        return len(self._calls)

    @property
    def calls(self):
        """Of a batch, at most."""
        return max(map(len, self._calls), default=0)

    @property
    def seen(self):
        """Whether there was a batch, finite or not."""
        return len(self._at) > 0

    @property
    def rows(self):
        """[K]."""
        return self._of_batches(lambda n: n)

    @property
    def freedom(self):
        """[K]: rows without one for each call; rows where that is 0 in all batches."""
        freedom = self._of_batches(lambda n: n - 1)
        return freedom if freedom.sum() > 0 else self.rows

    def _of_batches(self, function):
        """[K] sums of a function of the rows of each call."""
        return torch.tensor([sum(function(n) for n, _, _ in calls) for calls in self._calls],
                            dtype=torch.float64, device="cpu")

    @property
    def means(self):
        """[K, d]."""
        return torch.stack(self._means)

    def unbiased(self):
        """Variances [K, d] with the divisor n - 1, as PyTorch averages them; 0 for one row."""
        squares = torch.stack([sum(n * v for n, _, v in calls) for calls in self._calls])
        return squares / self._of_batches(lambda n: n - 1).clamp(min=1)[:, None]

    def apart(self, mean, sigma):
        """[K] each: ||m - mean|| and ||sqrt(v) - sigma|| of single calls, mean over a batch's."""
        pairs = [[((m - mean).norm().item(), (v.sqrt() - sigma).norm().item()) for _, m, v in calls]
                 for calls in self._calls]
        return [[math.fsum(one) / len(calls) for one in zip(*calls)] for calls in pairs]

    def pooled(self):
        """Mean [d] of the rows of all batches, and the unbiased variance [d]: of the first calls of
        all batches, of the second ones and so on, mean by rows."""
        parts = [joined([call for call in calls if call is not None])
                 for calls in itertools.zip_longest(*self._calls)]
        rows, mean, _ = joined(parts)
        return mean, sum(n * v * n / max(n - 1, 1) for n, _, v in parts) / rows


def joined(passes):
    """(rows, mean, biased variance) of several as if their rows were one batch."""
    if len(passes) == 1:
        return passes[0]
    rows = sum(n for n, _, _ in passes)
    mean = sum(n * m for n, m, _ in passes) / rows
    variance = sum(n * (v + (m - mean).square()) for n, m, v in passes) / rows
    return rows, mean, variance


def deviations(moments, variance):
    """Group of sqrt(mean variance) - sqrt(variance), as contributions of the batches.

    (v_k - variance) / (sqrt(v) + sqrt(variance)) with the unbiased v_k; their weighted mean is
    sqrt(v) - sqrt(variance), v the weighted mean of v_k.
    """
    weights = moments.freedom
    unbiased = moments.unbiased()
    mean = weights @ unbiased / weights.sum()
    both = mean.sqrt() + variance.sqrt()
    return Group((unbiased - variance) / both.clamp(min=torch.finfo(both.dtype).tiny), weights)
