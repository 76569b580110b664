"""Warnings that point at the line of the host."""
import os
import sys
import warnings

_HERE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def level():
    """stacklevel of warnings.warn, as its caller gives it, for the first frame outside of this package."""
    count, frame = 1, sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        count, frame = count + 1, frame.f_back
    return count


def warn(message):
    """A RuntimeWarning of statrec, at the first caller outside of this package."""
    warnings.warn(f"statrec: {message}", RuntimeWarning, stacklevel=level())
