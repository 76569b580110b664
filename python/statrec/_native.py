"""libstatrec's own sums of tensors (statrec/moments.h): one pass over memory, all in double.

Called where the tensor is contiguous on the CPU and torch works with few threads: a call runs in
one. Half the time of torch's kernels there, and as exact as double is.
"""
import ctypes
import functools
import struct

import torch

from . import _abi
from ._library import Error, library

_ELEMENTS = {torch.float32: 0, torch.float64: 1}  # sr_element
_THREADS = 2  # with more of them torch's kernels need less time


_SIZE = ctypes.sizeof(_abi.Tensor)
_SIZE_BYTES = struct.calcsize("@N")  # of the size that a struct begins with
_packed = struct.Struct("@" + _abi.TENSOR).pack
_pass_sums = struct.Struct("@" + _abi.PASS_SUMS)
_seven = struct.Struct("@7P").pack_into


@functools.lru_cache(maxsize=None)
def _functions():
    """sr_moments, sr_gradient_sums, sr_row_norms and sr_sum_pass; None: the library does not load."""
    try:
        loaded = library()
        return (loaded.sr_moments, loaded.sr_gradient_sums, loaded.sr_row_norms,
                loaded.sr_sum_pass)
    except Error:
        return None


def reads(x, g=None):
    """Whether moments(x), or the functions of g and x, may be called: x [R, d] or [N, d, L]."""
    return (x.is_cpu and x.dtype in _ELEMENTS and x.is_contiguous()
            and (g is None or g.is_cpu and g.dtype in _ELEMENTS and g.is_contiguous())
            and torch.get_num_threads() <= _THREADS and _functions() is not None)


def ready():
    """Whether torch has so few threads that the library is called."""
    return torch.get_num_threads() <= _THREADS and _functions() is not None


def element(dtype):
    """The number of this type of elements, or None."""
    return _ELEMENTS.get(dtype)


class PassSums:
    """sr_sum_pass of tensors of one shape [outer, width, inner] and type, its arguments prepared.

    to [6, width] and square [2] or None: doubles that live as long. The call takes addresses, which
    may be None: of g, x, mean, variance, sum g, sum g (x - mean) and the gain.
    """
    __slots__ = ("_given", "_at", "_call")

    def __init__(self, shape, dtype, vector_dtype, to, square, eps, root):
        self._given = ctypes.create_string_buffer(_pass_sums.size)
        self._at, self._call = ctypes.addressof(self._given), _functions()[3]
        _pass_sums.pack_into(self._given, 0, _pass_sums.size, *[0] * 7, _ELEMENTS[dtype],
                             _ELEMENTS[vector_dtype], *shape, to.data_ptr(),
                             0 if square is None else square.data_ptr(), eps, root)

    def __call__(self, *addresses):
        _seven(self._given, _SIZE_BYTES, *addresses)
        self._call(self._at)


def _given(g, x):
    """Both as an _abi.Tensor; width. g has the shape of x."""
    shape = x.shape
    sizes = shape[0], shape[1], shape[2] if len(shape) == 3 else 1, 0, 0
    return (_packed(_SIZE, g.data_ptr(), _ELEMENTS[g.dtype], *sizes),
            _packed(_SIZE, x.data_ptr(), _ELEMENTS[x.dtype], *sizes), shape[1])


def moments(x):
    """Mean, biased variance and mean square, [3, d] in double."""
    shape = x.shape
    width, inner = shape[1], shape[2] if len(shape) == 3 else 1
    found = torch.empty(3, width, dtype=torch.float64)
    at, row = found.data_ptr(), 8 * width
    _functions()[0](_packed(_SIZE, x.data_ptr(), _ELEMENTS[x.dtype], shape[0], width, inner, 0, 0),
                    at, at + row, at + 2 * row)
    return found


def gradient_sums(g, x, center):
    """sum g, sum g (x - center), sum g^2, [3, d] in double; center [d] in double."""
    of_g, of_x, width = _given(g, x)
    found, center = torch.empty(3, width, dtype=torch.float64), center.contiguous()
    at, row = found.data_ptr(), 8 * width
    _functions()[1](of_g, of_x, center.data_ptr(), at, at + row, at + 2 * row)
    return found


def row_norms(g, x, gamma, eps, root):
    """|| dx ||^2 and || gamma g / s ||^2 [2] in double, of a norm of each row of x [R, d]; root: by
    its root mean square alone."""
    square = torch.empty(2, dtype=torch.float64)
    if gamma is not None:
        gamma = gamma.double().contiguous()
    of_g, of_x, _ = _given(g, x)
    _functions()[2](of_g, of_x, None if gamma is None else gamma.data_ptr(), eps, root,
                    square.data_ptr())
    return square
