"""Columns of a run file. Indexing reads the requested rows."""
from __future__ import annotations

import operator
from typing import Any

from . import _arrays

_BLOCK = 1 << 20  # numbers that a slice with a step reads at once


class Column:
    """Numbers of a run file, [rows] or [rows, columns], not read yet.

    column[i], column[a:b], column[a:b, c:d] read these rows and no others; column[:] reads all.
    They return NumPy arrays if NumPy is installed, else array.array, or a list of them for two
    dimensions. Every access reads the file again: store values that you use twice.
    """

    def __init__(self, name, shape, typecode, fill, definition=""):
        """fill(first, count, address) writes the rows [first, first + count)."""
        self.name, self.definition = name, definition
        self._shape, self._typecode, self._fill = shape, typecode, fill

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows,) or (rows, columns); a file that was reopened may have more rows."""
        return self._shape()

    @property
    def ndim(self) -> int:
        """1 or 2."""
        return len(self.shape)

    @property
    def dtype(self) -> str:
        """"float32", "float64" or "int64"."""
        return _arrays.DTYPES[self._typecode]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self):
        return f"<{self.name} {list(self.shape)} {self.dtype}>"

    def __iter__(self):
        return iter(self[:])

    def __array__(self, dtype=None, copy=None):
        values = self[:]
        return values if dtype is None else values.astype(dtype)

    def __getitem__(self, key):
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        if rows is Ellipsis:
            rows = slice(None)
        if columns is not None and self.ndim == 1:
            raise IndexError(f"{self.name} has one dimension, got {key!r}")
        if isinstance(rows, slice):
            values = self._slice(*rows.indices(len(self)))
            return values if columns is None else _of_each(values, columns)
        try:
            row = operator.index(rows)
        except TypeError:
            return self._picked(key)
        values = self._row(row)
        return values if columns is None else values[columns]

    def _picked(self, key):
        if _arrays.numpy() is None or isinstance(key, str):
            raise TypeError(f"{self.name}: an index is an integer or a slice, got {key!r:.80}")
        return self[:][key]

    def _row(self, row):
        count = len(self)
        if not -count <= row < count:
            raise IndexError(f"{self.name}: row {row} of {count}")
        return self._read(row % count, 1)[0]

    def _read(self, first, count):
        return _arrays.read(lambda where: self._fill(first, count, where), self._typecode,
                            (count, *self.shape[1:]))

    def _slice(self, start, stop, step):
        picked = range(start, stop, step)
        if step == 1 or not picked:
            return self._read(start if picked else 0, len(picked))
        width = self.shape[1] if self.ndim > 1 else 1
        each = max(1, _BLOCK // (abs(step) * width))  # picked rows of a block
        return _arrays.joined([self._block(picked[at:at + each])
                               for at in range(0, len(picked), each)], self._typecode)

    def _block(self, picked):
        first, last = min(picked), max(picked)
        values = self._read(first, last - first + 1)[::abs(picked.step)]
        return values if picked.step > 0 else values[::-1]


def _of_each(values, columns):
    """Columns of rows: values[:, columns] for lists of arrays too."""
    if _arrays.numpy() is not None:
        return values[:, columns]
    return [row[columns] for row in values]


class Statistic(Column):
    """A statistic of every site: statistic["norm1"] is one site's, also not read yet.

    Indexed by rows it has all sites: [T, S] of a scalar; [V, W] of a vector, with one site after
    the other (Site.offset, Site.width).
    """

    def __init__(self, *described, of_site, **more):
        super().__init__(*described, **more)
        self._of_site = of_site

    def __getitem__(self, key):
        if isinstance(key, str) or hasattr(key, "number"):
            return self._of_site(key)
        return super().__getitem__(key)


