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
_packed = struct.Struct("@" + _abi.TENSOR).pack


@functools.lru_cache(maxsize=None)
def _functions():
    """sr_moments, sr_gradient_sums and sr_row_norms, or None: the library does not load."""
    try:
        loaded = library()
        return loaded.sr_moments, loaded.sr_gradient_sums, loaded.sr_row_norms
    except Error:
        return None


def reads(x, g=None):
    """Whether moments(x), or the functions of g and x, may be called: x [R, d] or [N, d, L]."""
    return (x.is_cpu and x.dtype in _ELEMENTS and x.is_contiguous()
            and (g is None or g.is_cpu and g.dtype in _ELEMENTS and g.is_contiguous())
            and torch.get_num_threads() <= _THREADS and _functions() is not None)


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
