"""usage: test_torch_weights.py [-v] [NAME...]

Weights made by PyTorch go to `statrec train --weights` (found on PATH), and both make the updates of an epoch. Then
`statrec export` of the last checkpoint goes back to PyTorch, whose evaluation loss over the epoch's batches must equal
`statrec evaluate`. test_torch_step.py is the other direction: it starts from the program's weights and writes its
formulas out. These modules are PyTorch's own if it has them. NAME: words of the cases' names. Output and exit status as
there; compared values and tolerances: torch_compare.py.
"""
import math
import os
import subprocess
import sys

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"skip: no python3 with torch and numpy ({missing})")
    sys.exit(77)

from torch_compare import FairseqAdam, compare, group, tensors
from torch_modules import ResNet20, Tensorized, Transformer, TransformerLM, WordsBatchNorm

# relative, of the loss in evaluation; statrec prints nine digits
EVALUATED = {"float32": 2e-6, "float64": 1e-8}
WORDS = 47  # distinct words in the running text; <eos> is one more
VOCABULARY = WORDS + 1
WINDOW, SEQUENCES, WINDOWS = 8, 6, 4

IMAGES = ["--data", "synth-images", "--model", "resnet20", "--limit", "96", "--batch-size", "32",
          "--no-augment", "--norm", "bn", "--norm-unbiased", "1",  # as PyTorch's running variance
          "--optimizer", "sgd", "--momentum", "0.9", "--nesterov", "--weight-decay", "1e-3",
          "--clip-norm", "1"]
PAIRS = ["--data", "synth-pairs", "--model", "transformer", "--preset", "mini", "--norm", "ln",
         "--limit", "100", "--max-tokens", "256", "--label-smoothing", "0.1", "--dropout", "0",
         "--warmup-updates", "0", "--weight-decay", "1e-2"]
# beta2, clipping, zero weight decay and cosine as in the models' presets
TEXT = ["--data", "text", "--data-dir", ".", "--trainpref", "text.train", "--validpref", "text.valid",
        "--testpref", "", "--batch-size", str(SEQUENCES), "--eval-batch-size", str(SEQUENCES),
        "--tgt-len", str(WINDOW), "--layers", "2", "--embed-dim", "24", "--ffn-dim", "40",
        "--dropout", "0"]
TENSORIZED = TEXT + ["--model", "tensorized", "--head-dim", "10"]
TRANSFORMER_LM = TEXT + ["--model", "transformer_lm", "--heads", "3"]


def tensorized(**options):
    return Tensorized(VOCABULARY, 24, 10, 40, 2, WINDOW, **options)


def transformer_lm(**options):
    return TransformerLM(VOCABULARY, 24, 3, 40, 2, **options)


def sgd(weights):
    return torch.optim.SGD(weights, lr=0, momentum=0.9, nesterov=True, weight_decay=1e-3)


def adam(beta2=0.999, weight_decay=0.0):
    return lambda weights: torch.optim.Adam(weights, lr=0, betas=(0.9, beta2), eps=1e-4,
                                            weight_decay=weight_decay)


def adamw(weights):
    return torch.optim.AdamW(weights, lr=0, betas=(0.9, 0.999), eps=1e-4, weight_decay=1e-2)


def adam_fairseq(weights):
    return FairseqAdam(weights, betas=(0.9, 0.999), eps=1e-4, weight_decay=1e-2)


# Adam's steps hardly depend on the size of the gradients; SGD's steps show clipping fully
LR = {"sgd": 0.1}  # else 0.002
ADAMW = ("adamw", adamw, ["--weight-decay", "1e-2"])
FAIRSEQ = ("adam-fairseq", adam_fairseq, ["--weight-decay", "1e-2"])
ADAM = ("adam", adam(), [])

# name: options, updates of the epoch, bound of the gradient norm, module, optimizer
CASES = {
    "resnet20, sgd": (IMAGES, 3, 1, ResNet20, ("sgd", sgd, [])),
    "transformer, adam": (PAIRS, 6, 0.25, lambda: Transformer(1088),
                          ("adam", adam(0.98, 1e-2), ["--clip-norm", "0.25"])),
    "transformer, bn in the encoder, adam-fairseq": (
        PAIRS + ["--norm", "bn"], 6, 0.25, lambda: Transformer(1088, WordsBatchNorm),
        ("adam-fairseq", adam_fairseq, ["--clip-norm", "0.25", "--adam-beta2", "0.999"])),
    "tensorized, causal, adam": (TENSORIZED, WINDOWS, 0.25, tensorized, ADAM),
    "tensorized, causal, pre-norm, three cores, adamw": (
        TENSORIZED + ["--placement", "pre", "--core-number", "3"],
        WINDOWS, 0.25, lambda: tensorized(pre=True, cores=3), ADAMW),
    "tensorized, released, bn, adam-fairseq": (
        TENSORIZED + ["--lm-mask", "released", "--norm", "bn"],
        WINDOWS, 0.25, lambda: tensorized(causal=False, norm=WordsBatchNorm), FAIRSEQ),
    "tensorized, released, adaptive softmax, adam": (
        TENSORIZED + ["--lm-mask", "released", "--adaptive-cutoffs", "17,30"],
        WINDOWS, 0.25, lambda: tensorized(causal=False, cutoffs=(17, 30)), ADAM),
    "transformer_lm, causal, adam-fairseq": (
        TRANSFORMER_LM, WINDOWS, 0.25, lambda: transformer_lm(pre=True, causal=True), FAIRSEQ),
    "transformer_lm, released, post-norm, adamw": (
        TRANSFORMER_LM + ["--lm-mask", "released", "--placement", "post"],
        WINDOWS, 0.25, lambda: transformer_lm(pre=False, causal=False), ADAMW),
}


def write_text():
    """Files with as many tokens as make WINDOWS windows of every sequence; low numbers more often."""
    chosen = np.random.default_rng(1)
    tokens = SEQUENCES * (WINDOWS * WINDOW + 1)
    for name, first in (("text.train", range(WORDS)), ("text.valid", ())):
        more = (WORDS * chosen.random(tokens - 1 - len(first)) ** 2).astype(int)
        with open(name, "w") as f:
            print(*(f"w{i}" for i in [*first, *more]), file=f)  # <eos> is the last token


def statrec(*words):
    return subprocess.run(["statrec", *map(str, words)], check=True, capture_output=True,
                          text=True).stdout


def evaluated_loss():
    table = statrec("evaluate", "run.ckpt", "--split", "train", "--bleu", "off", "--quiet")
    return next(float(row.split("\t")[2]) for row in table.splitlines()
                if row.startswith("train_loss\t"))


def loss_of(module, updates):
    """Over the dumped batches, per target token or image."""
    batches = np.load("batches.npz")
    steps = [group(batches, f"step{i}/") for i in range(1, updates + 1)]
    module.eval()  # gradients on: else TransformerEncoderLayer uses its fast path, whatever its norms
    return sum(module.loss(b).item() for b in steps) / sum(int(b["tokens"]) for b in steps)


def compare_return(make_module, updates):
    """Returns the faults of a run's exported end in PyTorch, whose weights differed before."""
    os.replace(f"run-{updates:07}.ckpt", "run.ckpt")
    statrec("export", "run.ckpt", "--npz", "--force")
    end, module = np.load("run.npz"), make_module().begin(seed=2)
    dumped = group(np.load("weights.npz"), f"update{updates}/")
    if set(end.files) != module.state().keys():
        return [f"export has other arrays: {set(end.files) ^ module.state().keys()}"]
    wrong = [f"export's {n} is not the dump's" for n in end.files
             if not np.array_equal(end[n], dumped[n])]
    module.load(tensors(end))
    theirs, ours = loss_of(module, updates), evaluated_loss()
    if not abs(ours - theirs) <= EVALUATED[str(end[end.files[0]].dtype)] * theirs:
        wrong.append(f"evaluated loss {ours:.9g}, PyTorch's {theirs:.9g}")
    return wrong


def compare_start(module):
    begun = group(np.load("weights.npz"), "update0/")
    return [f"{n} is not what --weights gave" for n, value in module.items()
            if not np.array_equal(begun[n], value)]


def run(options, updates, clip, make_module, optimizer):
    name, make_optimizer, more = optimizer
    module = make_module().begin(seed=3)
    start = {n: value.numpy() for n, value in module.state().items()}
    np.savez("start.npz", **start)
    lr = LR.get(name, 0.002)
    options = options + ["--optimizer", name, "--lr", str(lr), "--lr-scheduler", "cosine",
                         "--weights", "start.npz", "--epochs", "1", "--max-steps", str(updates),
                         "--checkpoint", "run", "--checkpoint-every", "end"]
    if name != "sgd":
        options += ["--adam-eps", "1e-4"]
    comparison, wrong = compare(options + more, updates, updates, clip, lambda arrays: module,
                                make_optimizer,
                                lambda u: lr * (1 + math.cos(math.pi * u / updates)) / 2)
    return comparison, compare_start(start) + wrong + compare_return(make_module, updates)


def main():
    names = [a for a in sys.argv[1:] if a != "-v"]
    failed = False
    write_text()
    for name, case in CASES.items():
        if names and not any(n in name for n in names):
            continue
        comparison, wrong = run(*case)
        print(f"{name}: {'; '.join(wrong) if wrong else 'agree'}", flush=True)
        failed = failed or bool(wrong)
        for kind, (units, text) in comparison.worst.items() if "-v" in sys.argv else ():
            print(f"    {kind}: {units:.3g} of what is allowed ({text})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
