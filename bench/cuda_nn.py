"""usage: cuda_nn.py [--dry] [--eager] [--part NAME]... [--seconds S] [--features N]

statrec.nn on a GPU, in at most two minutes. Prints lines of TSV to standard output, whose first word names the table;
lines that start with # are text. Parts, in this order:

  accuracy   output, input gradient and running values after three training calls on
             [4096, features], against the same module in float64 on equal numbers. Errors are
             relative to the largest number, in units of the type's epsilon (24 is the bound)
  speed      forward and backward pass on [16384, features] in bfloat16, in times of torch's BatchNorm1d
             (methods with statistics of columns) or LayerNorm (the others) on the same tensor;
             eager, and compiled beside the compiled peer. Rounds are interleaved, medians

Prints the names of methods left out for lack of time. --eager compiles nothing. --dry runs both parts on the CPU with
small tensors: its times mean nothing. Needs torch (with CUDA) alone, and PYTHONPATH=python.
"""
import argparse
import copy
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "python"))

import torch  # noqa: E402

import statrec.nn as sn  # noqa: E402
from statrec.nn._base import RunningNorm  # noqa: E402

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
EPSILONS = 24  # python/tests/nn_cases.py
CALLS = 3  # per measured time
started = time.monotonic()


def line(*words):
    print("\t".join(str(word) for word in words), flush=True)


def text(words):
    print(f"# {words} [{time.monotonic() - started:.0f} s]", flush=True)


def called(norm, x, g):
    """y, dx and the running values after three training calls of a copy."""
    norm = copy.deepcopy(norm)
    for _ in range(3):
        x = x.detach().requires_grad_()
        y = norm(x)
        sn.penalty(norm)
        y.backward(g)
    state = [b for b in norm.buffers() if b.is_floating_point()]
    return [y.detach(), x.grad, *state]


def epsilons(got, want, dtype):
    """The largest error of `got` by the largest number of `want`, in epsilons of dtype."""
    largest = float(want.abs().max())
    error = float((got.double() - want).abs().max())
    return error / largest / torch.finfo(dtype).eps if largest else error


def accuracy(o):
    generator = torch.Generator().manual_seed(0)
    rows = 64 if o.dry else 4096
    x, g = (torch.randn(rows, o.features, generator=generator) for _ in range(2))
    x += torch.randn(o.features, generator=generator)  # means that are not near 0 beside their rounding
    x, g = x.to(o.device), g.to(o.device)
    worst = {}
    for name in sn.METHODS:
        norm = sn.make(name, o.features, device=o.device)
        cells = []
        for dtype in DTYPES:
            a, b = x.to(dtype), g.to(dtype)
            want = called(norm.double(), a.double(), b.double())
            got = called(norm.float(), a, b)
            own = [dtype, dtype, *[torch.float32] * (len(got) - 2)]
            errors = [epsilons(*three) for three in zip(got, want, own)]
            cells += [f"{errors[0]:.1f}", f"{errors[1]:.1f}", f"{max(errors[2:], default=0):.1f}"]
            worst[dtype] = max(worst.get(dtype, 0), *errors)
        line("accuracy", name, *cells)
    for dtype, value in worst.items():
        text(f"{dtype}: at most {value:.1f} epsilon, {'within' if value <= EPSILONS else 'ABOVE'} {EPSILONS}")


def seconds(run, x, g):
    """Time of a training call and its backward pass."""
    cuda = x.is_cuda
    if cuda:
        torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        run(x).backward(g)
    if cuda:
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / CALLS


class Forgetful(torch.nn.Module):
    """Without the penalty of a call that no loss takes."""

    def __init__(self, norm, compiled):
        super().__init__()
        self.norm, self.run = norm, torch.compile(norm, dynamic=False) if compiled else norm

    def forward(self, x):
        y = self.run(x)
        sn.penalty(self.norm)
        return y


def peers(o, compiled):
    place = {"device": o.device}
    norms = {"BatchNorm1d": torch.nn.BatchNorm1d(o.features, **place),
             "LayerNorm": torch.nn.LayerNorm(o.features, dtype=torch.bfloat16, **place)}
    return {name: torch.compile(norm, dynamic=False) if compiled else norm
            for name, norm in norms.items()}


def measured(run, peer, x, g, warm=3, rounds=12):
    """Medians of both, in turn, after `warm` rounds."""
    times = ([], [])
    for i in range(warm + rounds):
        for way, kept in zip((run, peer), times):
            took = seconds(way, x, g)
            if i >= warm:
                kept.append(took)
    return [statistics.median(kept) for kept in times]


def speed(o, end):
    rows = 64 if o.dry else 16384
    place = {"device": o.device, "dtype": torch.bfloat16}
    x = torch.randn(rows, o.features, **place).requires_grad_()
    g = torch.randn(rows, o.features, **place)
    for compiled in (False,) if o.eager else (False, True):
        beside, way = peers(o, compiled), "compiled" if compiled else "eager"
        for name in sn.METHODS:
            if time.monotonic() > end:
                text(f"no time for {name}, {way}")
                continue
            norm = sn.make(name, o.features, device=o.device)
            peer = "BatchNorm1d" if isinstance(norm, RunningNorm) else "LayerNorm"
            own, other = measured(Forgetful(norm, compiled), beside[peer], x, g, *((0, 1) if o.dry else ()))
            line("speed", way, name, peer, f"{1e3 * own:.3f}", f"{1e3 * other:.3f}", f"{own / other:.2f}")


def arguments():
    p = argparse.ArgumentParser(description="statrec.nn on a GPU: accuracy and speed")
    p.add_argument("--dry", action="store_true")
    p.add_argument("--eager", action="store_true")
    p.add_argument("--part", action="append", choices=("accuracy", "speed"))
    p.add_argument("--seconds", type=float, default=110)
    p.add_argument("--features", type=int, default=768)
    return p.parse_args()


def main():
    o = arguments()
    torch._dynamo.config.recompile_limit = 100  # all share one forward(), and dynamo gives up after eight
    o.device = "cpu" if o.dry else "cuda"
    if o.dry:
        torch.set_num_threads(1)
    parts = o.part or ["accuracy", "speed"]
    card = "CPU" if o.dry else torch.cuda.get_device_name()
    text(f"{card}, torch {torch.__version__}, Python {sys.version.split()[0]}")
    if "accuracy" in parts:
        accuracy(o)
    if "speed" in parts:
        speed(o, started + o.seconds)
    text("done")


if __name__ == "__main__":
    main()
