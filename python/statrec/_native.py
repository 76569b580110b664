"""libstatrec's own sums (statrec/moments.h): of tensors, and of what a GPU has summed.

Tensors: one pass over memory, all in double. Called where the tensor is contiguous on the CPU and torch
works with few threads: a call runs in one. Half the time of torch's kernels there, and as exact as double is.

A thread that writes the steps of a GPU calls the library rather than torch: torch would hold the interpreter's lock
for each operation while the training waits.
"""
import array
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
def _library():
    """The library with the functions of moments.h; None: it does not load."""
    try:
        return library()
    except Error:
        return None


def reads(x, g=None):
    """Whether moments(x), or the functions of g and x, may be called: x [R, d] or [N, d, L]."""
    return (x.is_cpu and x.dtype in _ELEMENTS and x.is_contiguous()
            and (g is None or g.is_cpu and g.dtype in _ELEMENTS and g.is_contiguous())
            and torch.get_num_threads() <= _THREADS and _library() is not None)


def loaded():
    """Whether the library is available."""
    return _library() is not None


def ready():
    """Whether torch has so few threads that the library is called."""
    return torch.get_num_threads() <= _THREADS and _library() is not None


def element(dtype):
    """The number of this type of elements, or None."""
    return _ELEMENTS.get(dtype)


class PassSums:
    """sr_sum_pass of tensors of one shape [outer, width, inner] and type, its arguments prepared.

    to [6, width]: doubles that live as long. square: whether the squares of sr_row_norms are wanted, which
    are in `squares` after a call. The call takes addresses, which may be 0: of g, x, mean, variance, sum g,
    sum g (x - mean) and the gain.
    """
    __slots__ = ("_given", "_at", "_call", "squares")

    def __init__(self, shape, dtype, vector_dtype, to, square, eps, root):
        self._given, self.squares = ctypes.create_string_buffer(_pass_sums.size), (ctypes.c_double * 2)()
        self._at, self._call = ctypes.addressof(self._given), _library().sr_sum_pass
        _pass_sums.pack_into(self._given, 0, _pass_sums.size, *[0] * 7, _ELEMENTS[dtype],
                             _ELEMENTS[vector_dtype], *shape, to.data_ptr(),
                             ctypes.addressof(self.squares) if square else 0, eps, root)

    def __call__(self, *addresses):
        _seven(self._given, _SIZE_BYTES, *addresses)
        self._call(self._at)


class DeviceSums:
    """sr_read_device_sums of passes whose places in the buffer stay the same, its arguments prepared.

    places: the numbers of an sr_device_place for each pass. block [7, W]: what the call before has read, the
    passes side by side.
    """

    def __init__(self, places):
        size, count = struct.calcsize("@" + _abi.DEVICE_PLACE), len(places)
        self._places = b"".join(struct.pack("@" + _abi.DEVICE_PLACE, size, *one) for one in places)
        self._rows, self._found = (ctypes.c_int64 * count)(), (ctypes.c_double * (4 * count))()
        self.block = torch.empty(7, sum(one[0] for one in places), dtype=torch.float64, device="cpu")
        self._to, self._count = self.block.data_ptr(), count

    def __call__(self, buffer, scale, rows):
        """buffer: address; scale: factor of the loss; rows: of each pass, < 0 where the GPU has counted them.
        Returns the rows, and four numbers of each pass one after the other: two squared norms of rows, the
        least variance, the largest mean^2/variance."""
        self._rows[:] = rows
        _library().sr_read_device_sums(self._places, self._count, buffer, scale, self._rows, self._to, self._found)
        return self._rows[:], self._found[:]


class Joined:
    """sr_join_passes for passes whose blocks stay in place, with prepared arguments.

    passes: (block [6, width], eps of a batch norm whose node gave it, or -1) each. block [7, W]: what the call
    before has made, the passes side by side. bounds: two numbers of each pass one after the other, the least
    variance and the largest mean^2/variance.
    """

    def __init__(self, passes):
        size = struct.calcsize("@" + _abi.PASS_BLOCK)
        self._given = b"".join(struct.pack("@" + _abi.PASS_BLOCK, size, block.shape[1], block.data_ptr(), eps)
                               for block, eps in passes)
        self._count, self.bounds = len(passes), (ctypes.c_double * (2 * len(passes)))()
        self.block = torch.empty(7, sum(block.shape[1] for block, _ in passes), dtype=torch.float64, device="cpu")
        self._to = self.block.data_ptr()

    def __call__(self, scale):
        """scale: factor of the loss; the sums of g are divided by it."""
        _library().sr_join_passes(self._given, self._count, scale, self._to, self.bounds)


def read_vectors(tensors, to):
    """The tensors [n] as doubles in `to`, one after the other; False: not by the library."""
    dtype = tensors[0].dtype
    if dtype not in _ELEMENTS or _library() is None or not all(
            [one.dtype is dtype and one.is_contiguous() for one in tensors]):
        return False
    count = len(tensors)
    given = array.array("q", [one.data_ptr() for one in tensors] + [one.numel() for one in tensors])
    if sum(given[count:]) != to.numel():
        return False
    at = given.buffer_info()[0]
    _library().sr_read_vectors(at, at + 8 * count, count, _ELEMENTS[dtype], to.data_ptr())
    return True


def sum_moves(widths, batch, before, after):
    """Two sums of each site (sr_sum_moves). widths, and addresses of doubles [width]: lists."""
    count = len(widths)
    given = array.array("q", [*widths, *batch, *before, *after])
    found, at = array.array("d", bytes(16 * count)), given.buffer_info()[0]
    to = found.buffer_info()[0]
    _library().sr_sum_moves(count, *(at + 8 * count * row for row in range(4)), to, to + 8 * count)
    return found[:count].tolist(), found[count:].tolist()


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
    found = torch.empty(3, width, dtype=torch.float64, device="cpu")
    at, row = found.data_ptr(), 8 * width
    _library().sr_moments(_packed(_SIZE, x.data_ptr(), _ELEMENTS[x.dtype], shape[0], width, inner, 0, 0),
                    at, at + row, at + 2 * row)
    return found


def gradient_sums(g, x, center):
    """sum g, sum g (x - center), sum g^2, [3, d] in double; center [d] in double."""
    of_g, of_x, width = _given(g, x)
    found, center = torch.empty(3, width, dtype=torch.float64, device="cpu"), center.contiguous()
    at, row = found.data_ptr(), 8 * width
    _library().sr_gradient_sums(of_g, of_x, center.data_ptr(), at, at + row, at + 2 * row)
    return found


def row_norms(g, x, gamma, eps, root):
    """|| dx ||^2 and || gamma g / s ||^2 [2] in double, of a norm of each row of x [R, d]; root: by
    its root mean square alone."""
    square = torch.empty(2, dtype=torch.float64, device="cpu")
    if gamma is not None:
        gamma = gamma.double().contiguous()
    of_g, of_x, _ = _given(g, x)
    _library().sr_row_norms(of_g, of_x, None if gamma is None else gamma.data_ptr(), eps, root,
                    square.data_ptr())
    return square
