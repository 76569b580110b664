"""Sums over rows on a GPU: Triton kernels that read each tensor once, as it is.

One launch for each backward pass of a site reads x and g (float32, bfloat16, float16), and adds five sums by
feature to doubles: x, x^2, g, g x, g^2. A program sums its rows in float32, centred at the mean of its first
valid rows; it adds the centre in double, so that a large mean costs no digits. For norms of rows the same launch
has || dx ||^2 and || gamma g / s ||^2. If the node of a batch norm has the sums, its launch copies them and reads g
alone, for g^2. For small tensors the launch takes longer than the kernel: up to TOGETHER sites with tensors of one
kind share one (Together).

Without Triton there is no `load()`, and torch's operations take the sums (_sums.py). With TRITON_INTERPRET=1
the kernels run on the CPU.
"""
import contextlib
import functools
import os

import torch

_WIDEST = 8192  # features of a row that a program has at a time
_TILE = 4096    # elements of such a part
_ROOT = 2
_TRIES = 3      # comparisons of both ways of a launch whose sums are all zero
TOGETHER = 4       # sites of a launch, the pointers of rows_together
SMALL = 128 << 10  # bytes of an x; those of TOGETHER - 1 sites and their g wait: 0.75 MiB at most


@functools.lru_cache(maxsize=None)
def load():
    """This module's kernels, or None without Triton."""
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


def _cut(count, high, most):
    """Tiles of `high` that each program takes of `count`, and programs; about `most` of them."""
    parts = max(1, min(-(-count // high), most))
    each = -(-(-(-count // parts)) // high)
    return each, -(-count // (each * high))


class Launch:
    """A kernel with its grid and what does not change: launched with few steps of Python.

    Triton examines every argument of every call. The code compiled for the first call is called directly, by
    addresses. It assumes only that all addresses are multiples of 16. The first call compares both ways, in copies of
    the slot; if they differ the direct one is never used.
    """

    def __init__(self, kernel, grid, numbers, constants, warps):
        """numbers: integers and floats of the kernel after `stride`."""
        self.kernel, self.grid, self.warps = kernel, (*grid, 1, 1)[:3], warps
        self.numbers, self.constants = numbers, constants
        self.run, self.direct = None, hasattr(kernel, "device_caches")
        self.stride, self.tail, self.tries = None, (), _TRIES  # 0: both ways are the same

    def __call__(self, tensors, parts, at, stride, grid=None):
        """tensors: of the host, with any address. parts: of slots, and `at` their addresses, multiples of 16.
        grid: another grid for the same kernel."""
        if self.run is not None and stride == self.stride:
            addresses, all_ = [tensor.data_ptr() for tensor in tensors], 0
            for one in addresses:
                all_ |= one
            if not all_ & 15:
                self.run(*(grid or self.grid), torch._C._cuda_getCurrentRawStream(tensors[0].get_device()),
                         *self.compiled, *addresses, *at, *self.tail)
                return
        made = self._by_triton(tensors, parts, stride, grid)
        if self.direct and all(tensor.data_ptr() % 16 == 0 for tensor in (*tensors, *parts)):
            self._keep(made, tensors, parts, stride, grid)

    def _by_triton(self, tensors, parts, stride, grid):
        return self.kernel[grid or self.grid](*tensors, *parts, stride, *self.numbers, **self.constants,
                                              num_warps=self.warps)

    def _keep(self, made, tensors, parts, stride, grid):
        """The arguments of a launch, as CompiledKernel.run takes them: made once."""
        if not all(hasattr(made, name) for name in ("run", "function", "packed_metadata")):
            self.direct = False
            return
        self.run, self.stride = made.run, stride
        self.compiled = made.function, made.packed_metadata, None, None, None
        self.tail = (stride, *self.numbers, *self.constants.values())
        if self.tries:
            self.tries -= 1
            try:
                changed, alike = self._compared(tensors, parts, stride, grid)
            except Exception:  # a launcher with other arguments than those of Triton 3
                changed, alike = True, False
            if changed and alike:
                self.tries = 0
            else:
                self.run, self.direct = None, alike and self.tries > 0

    def _compared(self, tensors, parts, stride, grid):
        """Whether Triton's own launch adds anything, and the direct one the same."""
        one, other = ([part.clone() for part in parts] for _ in range(2))
        self._by_triton(tensors, one, stride, grid)
        self(tensors, other, [part.data_ptr() for part in other], stride, grid)
        return (any(not torch.equal(a, part) for a, part in zip(one, parts)),
                all(_near(a, b) for a, b in zip(one, other)))


def _near(a, b):
    """Whether they differ by no more than the order of additions makes."""
    least = 1e-9 if a.dtype is torch.float64 else 1e-6
    largest = a.abs().nan_to_num(0.0, 0.0, 0.0).max().item() if a.numel() else 0.0
    return torch.allclose(a, b, rtol=0, atol=least * largest, equal_nan=True)


class Sums:
    """The launch for x and g of one shape and layout.

    planes: x is [N, width, L], otherwise rows of `width` features. norm: (eps, whether the root mean square
    alone divides) of a norm of rows whose gradients are wanted, or None. squares: whether g^2 is.
    """

    def __init__(self, device, planes, shape, width, masked, squares, norm=None, gain=False):
        self.rows_norm = norm is not None and not planes and width <= _WIDEST
        constants = dict(SQUARES=squares)
        if planes:
            wide = min(power(shape[1]), 1024)
            high = max(1, _TILE // 2 // wide)
            each, parts = _cut(shape[0], high, 4 * _processors(device) // width)
            grid, numbers, warps = (width, parts), (shape[0], width, shape[1], each), 4
            constants.update(HIGH=high, WIDE=wide)
        else:
            wide = power(width) if self.rows_norm else min(power(width), 128)
            high, columns = max(1, _TILE // wide), -(-width // wide)
            each, parts = _cut(shape[0], high, _processors(device) // columns)  # registers for one each
            grid, numbers = (parts, columns), (shape[0], width, each,
                                               float(norm[0]) if self.rows_norm else 0.0)
            constants.update(HIGH=high, WIDE=wide, NORM=(_ROOT if norm[1] else 1) if self.rows_norm else 0,
                             GAIN=gain)
            warps = 16 if wide > _TILE else 8
        one, several = (("plane_sums", "planes_together") if planes else ("row_sums", "rows_together"))
        kernels = load()
        self.launch = Launch(getattr(kernels, one), grid, numbers, dict(MASKED=masked, **constants), warps)
        self.together = Launch(getattr(kernels, several), grid, numbers, constants, warps)

    def __call__(self, x, g, valid, slot):
        self.launch((x, g, x if valid is None else valid), slot.parts, slot.at, slot.stride)

    def of_several(self, parts):
        """parts: up to TOGETHER (x, g, slot) without masks, all of one stride."""
        grid = (*self.together.grid[:2], len(parts))
        padded = [*parts, *[parts[0]] * (TOGETHER - len(parts))]
        self.together([tensor for x, g, _ in padded for tensor in (x, g)],
                      [part for *_, slot in padded for part in slot.parts],
                      [one for *_, slot in padded for one in slot.at], parts[0][2].stride, grid)


@functools.lru_cache(maxsize=1024)
def sums_of(dtypes, *given):
    """The Sums of these arguments, the same one for all sites. dtypes: of x and g."""
    return Sums(*given)


class NodeSums:
    """The launch that takes what a batch norm's node has, and sums g^2 if `squares`."""

    def __init__(self, device, planes, shape, width, squares):
        wide = min(power(shape[1] if planes else width), 1024 if planes else 128)
        high = max(1, (_TILE if planes else 2 * _TILE) // wide)
        columns = width if planes else -(-width // wide)
        each, parts = _cut(shape[0], high, 4 * _processors(device) // columns)
        parts = parts if squares else 1
        kernels, constants = load(), dict(SQUARES=squares, HIGH=high, WIDE=wide)
        if planes:
            self.launch = Launch(kernels.plane_node, (width, parts), (shape[0], width, shape[1], each),
                                 constants, 4)
        else:
            self.launch = Launch(kernels.row_node, (parts, columns), (shape[0], width, each), constants, 8)

    def __call__(self, g, vectors, slot):
        """vectors: mean, 1/s, sum g, sum g xhat, float32 [width] each."""
        self.launch((g, *vectors), slot.parts, slot.at, slot.stride)


def _stream(x):
    return torch._C._cuda_getCurrentRawStream(x.device.index) if x.is_cuda else None


class Together:
    """Backward passes of small tensors that wait for others of their kind, to be read in one launch."""

    def __init__(self):
        self._waiting = {}  # (Sums, stride, stream): [(x, g, slot, versions, dropped)]

    def add(self, sums, x, g, slot, dropped):
        """dropped(): x or g was overwritten before it was read."""
        key = sums, slot.stride, _stream(x)
        here = self._waiting.setdefault(key, [])
        here.append((x, g, slot, (x._version, g._version), dropped))
        if len(here) == TOGETHER:
            self._launch(key, self._waiting.pop(key))

    def flush(self):
        """Reads what waits."""
        waiting, self._waiting = self._waiting, {}
        for key, here in waiting.items():
            self._launch(key, here)

    @staticmethod
    def _launch(key, waiting):
        sums, _, stream = key
        found = []
        for x, g, slot, versions, dropped in waiting:
            if (x._version, g._version) != versions:
                dropped()
                continue
            found.append((x, g, slot))
        if found and _stream(found[0][0]) != stream:
            _follow(stream, found)
        if not found:
            return
        x, g, slot = found[0]
        with torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext():
            if len(found) > 1:
                sums.of_several(found)
            else:
                sums(x, g, None, slot)


def _follow(stream, found):
    """The current stream waits for the stream of the backward pass, whose memory stays until it is read."""
    device = found[0][0].device
    current = torch.cuda.current_stream(device)
    current.wait_stream(torch.cuda.ExternalStream(stream, device) if stream
                        else torch.cuda.default_stream(device))
    for x, g, _ in found:
        x.record_stream(current)
        g.record_stream(current)
