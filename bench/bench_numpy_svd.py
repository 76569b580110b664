#!/usr/bin/env python3
"""Singular values of a 37,000 x 1,024 float32 matrix by numpy, for bench_svd: its default call and values only. The
default call computes vectors, but not the full U, which would take 5 GB. usage: bench_numpy_svd.py [ROUNDS] [ROWS]
[COLS]"""
import sys
import time

import numpy as np

rounds, rows, cols = (int(x) for x in sys.argv[1:] + ["3", "37000", "1024"][len(sys.argv) - 1:])
a = np.random.default_rng(1).standard_normal((rows, cols), np.float32)
print("# numpy", np.__version__, "singular values of", rows, "x", cols, "seconds")
print("round\tvectors_s\tvalues_s")
for i in range(rounds):
    start = time.perf_counter()
    np.linalg.svd(a, full_matrices=False)
    middle = time.perf_counter()
    np.linalg.svd(a, compute_uv=False)
    print(f"{i + 1}\t{middle - start:.3f}\t{time.perf_counter() - middle:.3f}", flush=True)
