"""usage: compare_runs.py A.h5 B.h5 [TOLERANCE]

Compares every number of two run files, except clocks: NaN at the same positions, and values that differ by at most
TOLERANCE (0) times the largest one of their dataset. row_grad_mean is rounding around 0, so a tolerance skips it.
Exit status 1 and a line for each dataset that differs."""
import sys

import h5py
import numpy


def numbers(path):
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu" and "seconds" not in name:
            found[name] = item[()].astype(float)

    with h5py.File(path) as f:
        f.visititems(visit)
    return found


def difference(a, b):
    """Returns None, or the difference."""
    if a.shape != b.shape:
        return f"shapes {a.shape} and {b.shape}"
    if (numpy.isnan(a) != numpy.isnan(b)).any():
        return "NaN in other places"
    there = ~numpy.isnan(a)
    most = numpy.abs(a[there]).max(initial=0)
    return numpy.abs(a[there] - b[there]).max(initial=0) / (most or 1)


def main(first, second, tolerance=0.0):
    a, b = numbers(first), numbers(second)
    bad = [f"{name}: in one alone" for name in sorted(a.keys() ^ b.keys())]
    for name in sorted(a.keys() & b.keys()):
        if tolerance and name.endswith("row_grad_mean"):
            continue
        found = difference(a[name], b[name])
        if isinstance(found, str) or found > tolerance:
            bad.append(f"{name}: {found}")
    print("\n".join(bad) if bad else f"{len(a)} datasets agree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 0.0))
