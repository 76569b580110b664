"""same_run.py A.h5 B.h5: are two run files of one run? Every dataset must have the same bytes but for
what a clock wrote; every attribute but for the lineage and the name of the output."""
import sys

import h5py
import numpy

CLOCK = {"steps/seconds", "state/wall_seconds", "state/finished", "state/reason"}
OWN = {"parent", "created", "command"}


def names(f):
    found = []
    f.visititems(lambda name, o: found.append(name) if isinstance(o, h5py.Dataset) else None)
    return sorted(found)


def config(text):
    lines = (text.decode() if isinstance(text, bytes) else str(text)).split("\n")
    return [line for line in lines if not line.startswith(("output =", "threads =", "checkpoint"))]


def attributes(o):
    return {k: config(v) if k == "config" else v for k, v in o.attrs.items()
            if k not in OWN and not k.startswith(("DIMENSION", "REFERENCE")) and k != "threads"}


def same_attributes(a, b):
    x, y = attributes(a), attributes(b)
    return x.keys() == y.keys() and all(numpy.array_equal(x[k], y[k]) for k in x)


def main(first, second):
    wrong = []
    with h5py.File(first, "r") as a, h5py.File(second, "r") as b:
        if names(a) != names(b):
            wrong.append("other datasets")
        if not same_attributes(a, b):
            wrong.append("attributes of the root")
        for name in set(names(a)) & set(names(b)):
            if name in CLOCK:
                continue
            if a[name].shape != b[name].shape or a[name][()].tobytes() != b[name][()].tobytes():
                wrong.append("%s %s %s" % (name, a[name].shape, b[name].shape))
            if not same_attributes(a[name], b[name]):
                wrong.append("attributes of " + name)
    print("\n".join(sorted(wrong)) or "the same run")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
