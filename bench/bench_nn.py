"""usage: bench_nn.py [--device cpu|cuda] [--dtype float32|bfloat16] [--compile] [--rows N]
                  [--features N] [--rounds N] [METHOD...]

Forward and backward pass of every method of statrec.nn (or of those named) on one tensor [rows, features], relative
to torch's BatchNorm1d. Rounds are interleaved. Prints the medians and the lowest tenth of the rounds, which other
programs that use the memory disturb less. On a CPU it measures processor time, and freed memory stays with the
process. Otherwise the pages of each tensor would be new at one point of the round and not at others. The package
must be importable, as with PYTHONPATH=python.
"""
import argparse
import os
import statistics
import sys
import time

import torch

import statrec.nn


def chosen():
    p = argparse.ArgumentParser(description="times of statrec.nn")
    p.add_argument("method", nargs="*", help="names of statrec train --norm (default: all)")
    p.add_argument("--device", default="cpu")
    p.add_argument("--dtype", default="float32")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--rows", type=int, default=4096)
    p.add_argument("--features", type=int, default=512)
    p.add_argument("--rounds", type=int, default=15)
    return p.parse_args()


def seconds(norm, x, g):
    """Time of one training call and its backward pass."""
    cuda = x.is_cuda
    clock = time.perf_counter if cuda else time.process_time
    if cuda:
        torch.cuda.synchronize()
    begin = clock()
    norm(x).backward(g)
    if cuda:
        torch.cuda.synchronize()
    return clock() - begin


def keep_freed_memory():
    """Starts this program again with an allocator that gives nothing back to the system."""
    kept = {"MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_MMAP_THRESHOLD_": str(2**40)}
    if not kept.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **kept})


def main():
    o = chosen()
    if o.device == "cpu":
        keep_freed_memory()
    place = {"device": o.device, "dtype": getattr(torch, o.dtype)}
    x = torch.randn(o.rows, o.features, **place, requires_grad=True)
    g = torch.randn(o.rows, o.features, **place)
    norms = {"torch BatchNorm1d": torch.nn.BatchNorm1d(o.features, device=o.device),
             "torch LayerNorm": torch.nn.LayerNorm(o.features, **place)}
    norms.update((name, statrec.nn.make(name, o.features, device=o.device))
                 for name in o.method or statrec.nn.METHODS)
    if o.compile:  # all share one forward(), and dynamo gives up after eight
        torch._dynamo.config.recompile_limit = 4 * len(norms)
    runs = {name: torch.compile(norm) if o.compile else norm for name, norm in norms.items()}
    times = {name: [] for name in runs}
    for _ in range(o.rounds + 2):  # two to warm up
        for name, run in runs.items():
            times[name].append(seconds(run, x, g))
            statrec.nn.penalty(norms[name])
    print("norm\tms\tratio\tlowest_tenth_ms\tratio")
    found = {name: (statistics.median(values[2:]), statistics.quantiles(values[2:], n=10)[0])
             for name, values in times.items()}
    for name, values in found.items():
        print(name, *(f"{1e3 * value:.2f}\t{value / reference:.2f}"
                      for value, reference in zip(values, found["torch BatchNorm1d"])), sep="\t")


if __name__ == "__main__":
    main()
