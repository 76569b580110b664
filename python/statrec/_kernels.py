"""Sums over rows on a GPU: Triton kernels that read each tensor once, as it is.

One launch for each backward pass of a site reads x and g (float32, bfloat16, float16), and adds five sums by
feature to doubles: x, x^2, g, g x, g^2. A program sums its rows in float32, centred at the mean of its first
rows; it adds the centre in double, so that a large mean costs no digits. For norms of rows the same launch
has || dx ||^2 and || gamma g / s ||^2. Where the node of a batch norm has the sums, its launch copies them
and reads g alone, for g^2.

Without Triton there is no `load()`, and torch's operations take the sums (_sums.py). With TRITON_INTERPRET=1
the kernels run on the CPU.
"""
import functools
import os

import torch

_WIDEST = 8192  # features of a row that a program has at a time
_TILE = 4096    # elements of such a piece
_ROOT = 2


@functools.lru_cache(maxsize=None)
def load():
    """This module's kernels, or None where there is no Triton."""
    try:
        from . import _triton
    except Exception:  # ImportError, or a Triton that cannot work here
        return None
    return _triton


def interpreted():
    """Whether Triton's interpreter takes tensors of the CPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@functools.lru_cache(maxsize=None)
def _processors(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def power(n):
    """The least power of two that is not below n."""
    return 1 << max(0, n - 1).bit_length()


class Launch:
    """A kernel with its grid and what does not change: launched with few steps of Python.

    Triton looks at every argument of every call. What it compiled for the first call is called
    directly as long as all addresses are multiples of 16, which is all that the compiled code assumes.
    """

    def __init__(self, kernel, grid, constants, warps):
        self.kernel, self.grid, self.warps = kernel, (*grid, 1, 1)[:3], warps
        self.constants, self.compiled, self.direct = constants, None, hasattr(kernel, "device_caches")

    def __call__(self, tensors, numbers):
        """tensors: pointers of the kernel; numbers: its integers and floats, always the same ones."""
        compiled = self.compiled
        if compiled is not None:
            at = 0
            for tensor in tensors:
                at |= tensor.data_ptr()
            if not at & 15:
                stream = torch._C._cuda_getCurrentRawStream(tensors[0].device.index)
                compiled.run(*self.grid, stream, compiled.function, compiled.packed_metadata, None, None,
                             None, *tensors, *numbers, *self.constants.values())
                return
        made = self.kernel[self.grid](*tensors, *numbers, **self.constants, num_warps=self.warps)
        if self.direct and all(tensor.data_ptr() % 16 == 0 for tensor in tensors):
            self._keep(made)

    def _keep(self, made):
        if all(hasattr(made, name) for name in ("run", "function", "packed_metadata")):
            self.compiled = made


class Sums:
    """The launch for x and g of one shape and layout.

    planes: x is [N, width, L], otherwise rows of `width` features. norm: (eps, whether the root mean square
    alone divides) of a norm of rows whose gradients are wanted, or None. squares: whether g^2 is.
    """

    def __init__(self, device, planes, shape, width, masked, squares, norm=None, gain=False):
        kernels = load()
        self.rows_norm = norm is not None and not planes and width <= _WIDEST
        constants = dict(MASKED=masked, SQUARES=squares)
        if planes:
            n, length = shape
            wide = min(power(length), 1024)
            high = max(1, 2 * _TILE // 4 // wide)
            parts = max(1, min(-(-n // high), 4 * _processors(device) // width))
            each = -(-(-(-n // parts)) // high)
            grid = width, -(-n // (each * high))
            self.numbers = n, width, length, each
            constants.update(HIGH=high, WIDE=wide)
            self.launch = Launch(kernels.plane_sums, grid, constants, 4)
            return
        rows, = shape
        wide = power(width) if self.rows_norm else min(power(width), 128)
        high = max(1, _TILE // wide)
        columns = -(-width // wide)
        parts = max(1, min(-(-rows // high), _processors(device) // columns))  # registers for one each
        each = -(-(-(-rows // parts)) // high)
        constants.update(HIGH=high, WIDE=wide, NORM=(_ROOT if norm[1] else 1) if self.rows_norm else 0,
                         GAIN=gain)
        self.numbers = rows, width, each, float(norm[0]) if self.rows_norm else 0.0
        self.launch = Launch(kernels.row_sums, (-(-rows // (each * high)), columns), constants,
                             16 if wide > _TILE else 8)

    def __call__(self, x, g, valid, slot):
        self.launch((x, g, x if valid is None else valid, slot.gain, slot.sums, slot.more),
                    (slot.stride, *self.numbers))


class NodeSums:
    """The launch that takes what a batch norm's node has, and sums g^2 if `squares`."""

    def __init__(self, device, planes, shape, width, squares):
        kernels = load()
        constants = dict(SQUARES=squares)
        if planes:
            n, length = shape
            wide = min(power(length), 1024)
            high = max(1, _TILE // wide)
            parts = max(1, min(-(-n // high), 4 * _processors(device) // width)) if squares else 1
            each = -(-(-(-n // parts)) // high)
            self.numbers = n, width, length, each
            constants.update(HIGH=high, WIDE=wide)
            grid = width, -(-n // (each * high)) if squares else 1
            self.launch = Launch(kernels.plane_node, grid, constants, 4)
            return
        rows, = shape
        wide = min(power(width), 128)
        high, columns = max(1, 2 * _TILE // wide), -(-width // wide)
        parts = max(1, min(-(-rows // high), 4 * _processors(device) // columns)) if squares else 1
        each = -(-(-(-rows // parts)) // high)
        self.numbers = rows, width, each
        constants.update(HIGH=high, WIDE=wide)
        self.launch = Launch(kernels.row_node, (-(-rows // (each * high)) if squares else 1, columns), constants,
                             8)

    def __call__(self, g, vectors, slot):
        """vectors: mean, 1/s, sum g, sum g xhat, float32 [width] each."""
        self.launch((g, *vectors, slot.sums, slot.rows), (slot.stride, *self.numbers))
