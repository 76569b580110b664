"""Warnings that point at the line of the host."""
import os
import sys
import warnings

_HERE = os.path.dirname(os.path.abspath(__file__))


def warn(message):
    """A RuntimeWarning of statrec, at the first caller outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"statrec: {message}", RuntimeWarning, stacklevel=level + 1)
