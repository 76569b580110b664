#!/usr/bin/env python3
"""thin.py -- every tenth step of a long run, for a file that is small enough to keep.

    thin.py RUN.h5 THIN.h5

Evaluations and the last step stay, checksums do not. Needs h5py, and h5repack of HDF5's tools.
"""
import os
import subprocess
import sys

import h5py

EVERY = 10


def thin(rows):
    """Shortens a dataset whose first dimension is steps."""
    kept = rows[EVERY - 1::EVERY]
    rows.resize(len(kept), axis=0)
    rows[...] = kept


def main(source, target):
    copy = target + ".new"
    with open(source, "rb") as file:
        data = file.read()
    # without what statrec appends to the HDF5 file: checksums and second copies of what changes here
    with open(copy, "wb") as file:
        file.write(data[:int.from_bytes(data[28:36], "little")])
    with h5py.File(copy, "r+") as file:
        steps = file["state/committed_steps"][()]
        for rows in [file["step"], *file["steps"].values(), *file["scalars"].values()]:
            if rows.shape[0] == steps:
                thin(rows)
        file["state/committed_steps"][()] = steps // EVERY
    subprocess.run(["h5repack", copy, target], check=True)
    os.remove(copy)


if __name__ == "__main__":
    main(*sys.argv[1:])
