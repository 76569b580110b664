#!/usr/bin/env python3
"""thin.py -- every tenth step of a long run, for a file that is small enough to keep.

    thin.py RUN.h5 THIN.h5 [--every N] [--scalars NAME,NAME...]

With --scalars only these of a site and the loss, tokens and epoch of a step stay, and no vectors.
Evaluations stay, checksums do not. N divides the number of steps, so that the last one stays. Needs
h5py, and h5repack of HDF5's tools.
"""
import argparse
import os
import subprocess
import sys

import h5py


def thin(rows, every):
    """Shortens a dataset whose first dimension is steps."""
    kept = rows[every - 1::every]
    rows.resize(len(kept), axis=0)
    rows[...] = kept


def drop(file, kept):
    """Leaves /vectors without rows, and other scalars without values: they read as NaN."""
    for rows in file["vectors"].values():
        if rows.maxshape[0] is None:
            rows.resize(0, axis=0)
    file["state/committed_vectors"][()] = 0
    kept = {"step", "update", "loss", "tokens", "epoch", *kept}
    for name, rows in [*file["steps"].items(), *file["scalars"].items()]:
        if name not in kept:
            steps = len(rows)
            rows.resize(0, axis=0)
            rows.resize(steps, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--scalars")
    given = parser.parse_args()
    source, target, every = given.source, given.target, given.every
    copy = target + ".new"
    with open(source, "rb") as file:
        data = file.read()
    # without what statrec appends to the HDF5 file: checksums and second copies of what changes here
    with open(copy, "wb") as file:
        file.write(data[:int.from_bytes(data[28:36], "little")])
    with h5py.File(copy, "r+") as file:
        steps = file["state/committed_steps"][()]
        if steps % every:
            sys.exit(f"{source}: {steps} steps are no multiple of {every}")
        for rows in [file["step"], *file["steps"].values(), *file["scalars"].values()]:
            if rows.shape[0] == steps:
                thin(rows, every)
        file["state/committed_steps"][()] = steps // every
        if given.scalars:
            drop(file, given.scalars.split(","))
    subprocess.run(["h5repack", copy, target], check=True)
    os.remove(copy)


if __name__ == "__main__":
    main()
