"""libstatrec's own sums of tensors (statrec/moments.h): one pass over memory, all in double.

Called where the tensor is contiguous on the CPU and torch works with few threads: a call runs in
one. Half the time of torch's kernels there, and as exact as double is.
"""
import ctypes
import functools

import torch

from . import _abi
from ._library import Error, library

_ELEMENTS = {torch.float32: 0, torch.float64: 1}  # sr_element
_THREADS = 2  # with more of them torch's kernels need less time


@functools.lru_cache(maxsize=None)
def _functions():
    """sr_moments and sr_gradient_sums, or None: the library does not load."""
    try:
        loaded = library()
        return loaded.sr_moments, loaded.sr_gradient_sums
    except Error:
        return None


def reads(x):
    """Whether moments(x) may be called: x [R, d] or [N, d, L]."""
    return (x.device.type == "cpu" and x.dtype in _ELEMENTS and x.is_contiguous()
            and torch.get_num_threads() <= _THREADS and _functions() is not None)


def _tensor(x):
    return _abi.Tensor(data=x.data_ptr(), element=_ELEMENTS[x.dtype], outer=x.shape[0],
                       channels=x.shape[1], inner=x.shape[2] if x.dim() == 3 else 1)


def moments(x):
    """Mean, biased variance and mean square, [3, d] in double."""
    found = torch.empty(3, x.shape[1], dtype=torch.float64)
    at, row = found.data_ptr(), 8 * x.shape[1]
    _functions()[0](ctypes.byref(_tensor(x)), at, at + row, at + 2 * row)
    return found


def gradient_sums(g, x, center):
    """sum g, sum g (x - center), sum g^2, [3, d] in double; center [d] in double."""
    found, center = torch.empty(3, x.shape[1], dtype=torch.float64), center.contiguous()
    at, row = found.data_ptr(), 8 * x.shape[1]
    _functions()[1](ctypes.byref(_tensor(g)), ctypes.byref(_tensor(x)), center.data_ptr(), at,
                    at + row, at + 2 * row)
    return found
