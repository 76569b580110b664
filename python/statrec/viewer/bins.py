"""Reduces many steps to the bins of a screen: smallest, median and largest finite value of each.

The bins are as in `stat-scalar --per-step --buckets N` (src/base/buckets.c): N equal parts of
[first, last] of x; no extreme value is lost. Up to three rows a bin, every row is kept unchanged.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy

WHOLE = 3  # rows a bin up to which every row is kept
BLOCK = 1 << 21  # values that are read and sorted at once


class Binned(NamedTuple):
    """B bins of C columns. x [B]: median of a bin's x; first, last [B]: its rows; least, median,
    largest [B, C]: float64, NaN where no value is finite; whole: every row is a separate bin."""

    x: Any
    first: Any
    last: Any
    least: Any
    median: Any
    largest: Any
    whole: bool


def bin_numbers(x: Any, bins: int) -> Any:
    """The number from 0 of the bin of each x [n]; x does not fall."""
    low, high = float(x[0]), float(x[-1])
    if not high > low:
        return numpy.zeros(len(x), dtype=numpy.int64)
    part = (x - low) / (high - low) * bins
    return numpy.minimum(part.astype(numpy.int64), bins - 1)


def starts_of(x: Any, bins: int, whole: int = WHOLE) -> Any:
    """The first row of each bin with rows; all rows if bins have at most `whole`."""
    if len(x) <= whole * bins:
        return numpy.arange(len(x))
    numbers = bin_numbers(numpy.asarray(x, dtype=numpy.float64), bins)
    return numpy.flatnonzero(numpy.diff(numbers, prepend=-1))


def reduce(x: Any, read: Callable[[int, int], Any], bins: int, whole: int = WHOLE) -> Binned:
    """Binned rows of read(first, last) -> [last - first, C] or [last - first]; x [n] of them."""
    count = len(x)
    starts = starts_of(x, bins, whole)
    ends = numpy.append(starts[1:], count)
    whole = len(starts) == count
    parts = []
    for low, high in _blocks(starts, ends, read):
        values = numpy.asarray(read(int(starts[low]), int(ends[high - 1])))
        values = values.reshape(len(values), -1)
        begin = starts[low]
        parts.append(_of_block(values, starts[low:high] - begin, ends[low:high] - begin))
    least, median, largest = (numpy.concatenate([part[i] for part in parts]) if parts
                              else numpy.zeros((0, 1)) for i in range(3))
    return Binned(_middles(x, starts, ends), starts, ends - 1, least, median, largest, whole)


def _middles(x, starts, ends):
    """Median of the x of each bin, which is sorted."""
    if not len(starts):
        return numpy.zeros(0)
    low, high = x[(starts + ends - 1) // 2], x[(starts + ends) // 2]
    return 0.5 * (low.astype(numpy.float64) + high)


def _blocks(starts, ends, read):
    """Ranges of bins whose rows together are small enough to be read at once."""
    columns = getattr(read, "columns", 1)
    most = max(1, BLOCK // columns)
    low = 0
    while low < len(starts):
        high = int(numpy.searchsorted(ends, starts[low] + most, side="right"))
        high = max(high, low + 1)
        yield low, high
        low = high


def _of_block(values, starts, ends):
    """(least, median, largest), each [bins, C], of the rows of each bin."""
    lengths = ends - starts
    if len(lengths) and lengths.max() == 1:
        rows = _finite(values[starts]).astype(numpy.float64)
        return rows, rows, rows
    found = numpy.full((3, len(starts), values.shape[1]), numpy.nan)
    columns = _finite(values).T  # [C, rows]
    for length in numpy.unique(lengths):
        which = numpy.flatnonzero(lengths == length)
        at = starts[which][:, None] + numpy.arange(length)
        ordered = numpy.sort(columns[:, at], axis=2)  # NaN comes last
        found[:, which] = numpy.stack(_ends_and_middle(ordered)).transpose(0, 2, 1)
    return found[0], found[1], found[2]


def _finite(values):
    """The values, NaN where one is infinite."""
    if numpy.isfinite(values).all():
        return values
    return numpy.where(numpy.isfinite(values), values, numpy.nan)


def _ends_and_middle(ordered):
    """Smallest, median and largest along the last axis of sorted values with NaN at their end."""
    count = ordered.shape[2] - numpy.isnan(ordered).sum(axis=2)
    if (count == ordered.shape[2]).all():
        n = ordered.shape[2]
        low, high = ordered[:, :, (n - 1) // 2], ordered[:, :, n // 2]
        return [ordered[:, :, 0].astype(float), _middle(low, high), ordered[:, :, -1].astype(float)]
    picked = []
    for place in ((count - 1) // 2, count // 2, count - 1):
        place = numpy.clip(place, 0, ordered.shape[2] - 1)
        picked.append(numpy.take_along_axis(ordered, place[:, :, None], axis=2)[:, :, 0])
    return [ordered[:, :, 0].astype(float), _middle(picked[0], picked[1]),
            picked[2].astype(float)]


def _middle(low, high):
    return 0.5 * low.astype(numpy.float64) + 0.5 * high.astype(numpy.float64)


def smooth(values: Any, window: int) -> Any:
    """Running medians over `window` bins (odd) of [B, C], as `statplot --smooth`; NaN stays NaN."""
    if window < 3:
        return values
    half = window // 2
    padded = numpy.pad(values, ((half, half), (0, 0)), constant_values=numpy.nan)
    near = numpy.lib.stride_tricks.sliding_window_view(padded, window, axis=0)
    ordered = numpy.sort(near, axis=2)
    _, median, _ = _ends_and_middle(ordered)
    return numpy.where(numpy.isnan(values), numpy.nan, median)
