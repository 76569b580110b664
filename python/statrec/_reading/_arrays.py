"""Numbers to and from the library: NumPy if it is installed, else array.array and lists.

Nothing here imports numpy before the first array is made.
"""
import array
import ctypes
import functools

from .._library import Error

_DOUBLES = ("d", "<d", "=d", "@d")


@functools.lru_cache(maxsize=None)
def numpy():
    """The module, or None if it is not installed."""
    try:
        import numpy as module
    except ImportError:
        return None
    return module


# -- to the library ---------------------------------------------------------------------------

def address(value, count, what):
    """(address of `count` doubles, what must stay alive during the call).

    value: an object with the buffer protocol, a ctypes array, a sequence of numbers, or an int:
    the address itself, of contiguous doubles. None: NULL.
    """
    if value is None:
        return None, None
    if type(value) is int:
        if value <= 0:
            raise Error(f"{what}: address {value}")
        return value, None
    keep = _buffer(value, count, what)
    if keep is None:
        keep = _converted(value, count, what)
    return ctypes.addressof(keep), keep


def _wrong_length(what, got, count):
    return Error(f"{what}: {got} numbers for {count} features")


def _buffer(value, count, what):
    """The doubles of a contiguous buffer of them, not copied unless they are read-only; or None."""
    try:
        view = memoryview(value)
    except TypeError:
        return None
    if view.format not in _DOUBLES or not view.c_contiguous:
        return None
    if view.nbytes != 8 * count:
        raise _wrong_length(what, view.nbytes // 8, count)
    doubles = ctypes.c_double * count
    if view.readonly:
        return doubles.from_buffer_copy(view)
    return doubles.from_buffer(value)


def _converted(value, count, what):
    """A copy as doubles of a sequence of numbers."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError("a text")
        copy = array.array("d", [float(number) for number in value])
    except (TypeError, ValueError) as reason:
        raise Error(f"{what}: {type(value).__name__} holds no numbers: {reason}") from None
    if len(copy) != count:
        raise _wrong_length(what, len(copy), count)
    return (ctypes.c_double * count).from_buffer(copy)


# -- from the library -------------------------------------------------------------------------

def read(fill, typecode, shape):
    """The numbers that fill(address) writes: NumPy array [shape], or array.array; for two
    dimensions a list.

    typecode: "f", "d", "i" or "q", as in array.array.
    """
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    values = array.array(typecode, [0]) * max(count, 1)
    fill(values.buffer_info()[0])
    module = numpy()
    if module is not None:
        return module.frombuffer(values, dtype=module.dtype(typecode))[:count].reshape(shape)
    if len(shape) == 1:
        return values[:count]
    return [values[row * shape[1]:(row + 1) * shape[1]] for row in range(shape[0])]


def joined(parts, typecode):
    """Parts of one array, one after the other; there is at least one."""
    module = numpy()
    if module is not None:
        return module.concatenate(parts)
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


DTYPES = {"f": "float32", "d": "float64", "q": "int64"}
