"""usage: test_torch_step.py [-v]

Compares PyTorch with `statrec train` (found on PATH): loads the initial weights of a run and trains on the same batches
in float64. Compares loss, gradient norm, learning rate, every weight and every running value after every update. Runs
in the current directory; prints one line per case, with -v the largest deviations too. Exit status 1 if a deviation is
too large, 77 after "skip: ..." without torch or numpy.

Compared values and tolerances: torch_compare.py.
"""
import math
import sys

try:
    import numpy
    import torch
except ImportError as missing:
    print(f"skip: no python3 with torch and numpy ({missing})")
    sys.exit(77)

from torch_compare import FairseqAdam, compare
from torch_models import ResNet20, Transformer

IMAGES = ["--data", "synth-images", "--model", "resnet20", "--limit", "96", "--batch-size", "16"]
PAIRS = ["--data", "synth-pairs", "--model", "transformer", "--preset", "mini", "--norm", "bn",
         "--decoder-norm", "ln", "--limit", "400", "--max-tokens", "256", "--dropout", "0",
         "--attention-dropout", "0", "--relu-dropout", "0", "--label-smoothing", "0.1",
         "--adam-eps", "1e-4", "--warmup-updates", "2", "--warmup-init-lr", "5e-4", "--lr", "0.002",
         "--weight-decay", "1e-2"]


def step_lr(u):
    """--lr 0.02, halved at updates 1 and 2; u: updates made before."""
    return 0.02 * 0.5 ** min(u, 2)


def inverse_sqrt_lr(u):
    """Two updates from 5e-4 towards 0.002, then 0.002 sqrt(2/u)."""
    return 5e-4 + u * (0.002 - 5e-4) / 2 if u < 2 else 0.002 * math.sqrt(2 / u)


def sgd(weights):
    return torch.optim.SGD(weights, lr=0, momentum=0.9, weight_decay=1e-4)


def adam(weights):
    return torch.optim.Adam(weights, lr=0, betas=(0.9, 0.98), eps=1e-4, weight_decay=1e-2)


def adamw(weights):
    return torch.optim.AdamW(weights, lr=0, betas=(0.9, 0.98), eps=1e-4, weight_decay=1e-2)


def adam_fairseq(weights):
    return FairseqAdam(weights, betas=(0.9, 0.98), eps=1e-4, weight_decay=1e-2)


def mini(pre):
    return lambda arrays: Transformer(arrays, alpha=0.95, heads=4, layers=3, pre=pre)


# name: options, steps to dump, updates in them, bound of the gradient norm, model,
# optimizer, learning rate
CASES = {
    "resnet20, sgd": (
        IMAGES + ["--optimizer", "sgd", "--momentum", "0.9", "--weight-decay", "1e-4", "--lr", "0.02",
                  "--lr-steps", "1,2", "--lr-steps-in", "updates", "--lr-factor", "0.5"],
        3, 3, math.inf, lambda arrays: ResNet20(arrays, alpha=0.9), sgd, step_lr),
    "transformer, pre-norm, adam": (
        PAIRS + ["--optimizer", "adam"], 3, 3, math.inf, mini(True), adam, inverse_sqrt_lr),
    "transformer, post-norm, adamw": (
        PAIRS + ["--optimizer", "adamw", "--placement", "post"],
        2, 2, math.inf, mini(False), adamw, inverse_sqrt_lr),
    "transformer, adam-fairseq, two steps an update, clipped": (
        PAIRS + ["--optimizer", "adam-fairseq", "--update-freq", "2", "--clip-norm", "0.5"],
        7, 3, 0.5, mini(True), adam_fairseq, inverse_sqrt_lr),
}


def main():
    verbose, failed = "-v" in sys.argv[1:], False
    for name, case in CASES.items():
        comparison, wrong = compare(*case)
        print(f"{name}: {'; '.join(wrong) if wrong else 'agree'}")
        failed = failed or bool(wrong)
        if verbose:
            for kind, (units, text) in comparison.worst.items():
                print(f"    {kind}: {units:.3g} of what is allowed ({text})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
