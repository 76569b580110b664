"""usage: test_torch_records.py [-v] [NAME...]

The same model in both engines, from the same weights and batches: `statrec train` (found on PATH) records its run;
PyTorch makes the same steps, recorded by statrec.watch. Both run files must contain the same sites and descriptions,
and every vector and scalar of every step. Needs PYTHONPATH and STATREC_LIBRARY as tests/run_python.sh sets them. Exit
status 77: skipped.

PyTorch computes in float64 and starts each step at the weights of `statrec train`. A vector must satisfy || ours -
theirs || <= RELATIVE || theirs ||, a scalar the same over all steps. A program in double agrees to the float32
precision of the file. One in float32 rounds on the way. If a ReLU's input is within rounding of zero, a whole term of a
sum of gradients comes or goes.
"""
import os
import sys

try:
    import numpy as np
    import torch
    import statrec
except ImportError as missing:
    print(f"skip: no python3 with torch, numpy and statrec ({missing})")
    sys.exit(77)

from test_torch_weights import IMAGES, PAIRS, statrec as program
from torch_compare import group, tensors
from torch_modules import PAD, ResNet20, Transformer, our_name

STEPS = 3
FORWARD = {"mu_B", "sigma2_B", "psi2_B", "mu", "sigma2", "psi2", "gamma", "rows", "samples", "padded",
           "nonfinite"}
RELATIVE = {"float32": dict(forward=2e-4, backward=3e-2), "float64": dict(forward=2e-6, backward=4e-6)}
DESCRIPTION = ("norm", "family", "axis", "uses", "width", "eps", "alpha", "observed")
# Statistics of single rows, which sums over a batch cannot give. The position encoding, which only statrec's embedding
# has. Samples, since sentences of [N, L, d] are passed as rows.
NOT_SHARED = {"row_grad_mean", "row_grad_var", "row_g_mean", "row_g_var", "row_exact_mean",
              "row_exact_var", "row_free_var", "g_sigma2_rowmean", "g_psi2_rowmean", "samples", "position_B",
              "position"}
OF_LN = {"dx_norm", "direct_norm"}  # the same

CASES = {
    "resnet20, bn": (IMAGES + ["--vectors-every", "1", "--lr", "0.1"], ResNet20, {}),
    "transformer, ln with batch statistics observed": (
        PAIRS + ["--vectors-every", "1", "--optimizer", "adam", "--lr", "0.002", "--observe", "batch",
                 "--norm-alpha", "0.95"],
        lambda: Transformer(1088), {"alpha": 0.95}),
}


def train(options, module):
    """Records ours.h5 and dumps weights and batches of STEPS steps."""
    np.savez("start.npz", **{n: value.numpy() for n, value in module.state().items()})
    program("train", "--quiet", "--threads", "1", "--force", "-o", "ours.h5", "--dump-weights",
            "weights.npz", "--dump-batches", "batches.npz", "--dump-steps", STEPS, "--max-steps", STEPS,
            "--weights", "start.npz", "--epochs", "1", *options)
    return np.load("weights.npz"), np.load("batches.npz")


def set_masks(run, batch):
    if "source" in batch:
        run.mask(torch.tensor(batch["source"] != PAD), sites="encoder*")
        run.mask(torch.tensor(batch["target_in"] != PAD), sites="decoder*")


def watch(module, weights, batches, options):
    run = statrec.watch(module, "theirs.h5", force=True, loss_reduction="sum", vectors_every=1,
                        **options)
    for step in range(1, STEPS + 1):
        module.load(tensors(group(weights, f"update{step - 1}/")))
        run._keep_running()  # the running values just loaded
        batch = group(batches, f"step{step}/")
        set_masks(run, batch)
        loss = module.loss(batch)
        loss.backward()
        run.step(loss=loss, lr=0.1, tokens=int(batch["tokens"]))
        module.zero_grad()
    run.close()
    if run.failure:
        raise run.failure


class Comparison:
    def __init__(self, dtype):
        self.relative, self.worst, self.wrong, self.compared = RELATIVE[dtype], {}, [], 0

    def same(self, name, where, ours, theirs):
        missing = np.isnan(ours)
        if not np.array_equal(missing, np.isnan(theirs)):
            self.wrong.append(f"{name} of {where}: one of the two has none")
            return
        kind = "forward" if name in FORWARD or name.startswith(("dist", "tid", "rel")) else "backward"
        off, size = np.linalg.norm((ours - theirs)[~missing]), np.linalg.norm(theirs[~missing])
        units = off / (self.relative[kind] * size) if size > 0 else (0 if off == 0 else np.inf)
        self.compared += int((~missing).sum())
        if units > self.worst.get(kind, (0,))[0]:
            self.worst[kind] = units, f"{name} of {where}: off by {off / size if size else off:.3g}"
        if not units <= 1:
            self.wrong.append(f"{name} of {where}: off by {off:.3g} of {size:.3g}")


def compare(ours, theirs, dtype):
    c = Comparison(dtype)
    of_ours = dict(ours.sites)
    for site in theirs.sites.values():
        own = of_ours.pop(our_name(site.name), None)
        if own is None:
            c.wrong.append(f"no site {our_name(site.name)} in ours")
            continue
        for what in DESCRIPTION:
            a, b = getattr(own, what), getattr(site, what)
            if a != b and not (isinstance(a, float) and np.isclose(a, b, rtol=1e-12)):
                c.wrong.append(f"{own.name}: {what} {a!r}, watched {b!r}")
        for name in [*ours.vectors, *ours.scalars]:
            if name in NOT_SHARED or own.family == "row" and name in OF_LN:
                continue
            c.same(name, own.name, values(ours, name, own), values(theirs, name, site))
    c.wrong += [f"{name} is not watched" for name in of_ours]
    return c


def values(run, name, site):
    return np.asarray(run[name][site.name][:], dtype=float)


def main():
    names = [a for a in sys.argv[1:] if a != "-v"]
    failed = False
    for name, (options, make, watched) in CASES.items():
        if names and not any(n in name for n in names):
            continue
        module = make().begin(seed=3)
        weights, batches = train(options, module)
        watch(module, weights, batches, watched)
        with statrec.open("ours.h5") as ours, statrec.open("theirs.h5") as theirs:
            c = compare(ours, theirs, str(weights[weights.files[0]].dtype))
        wrong = c.wrong[:5] + ([f"and {len(c.wrong) - 5} more"] if len(c.wrong) > 5 else [])
        print(f"{name}: {'; '.join(wrong) if wrong else 'agree'}", flush=True)
        if "-v" in sys.argv:
            print(f"    {c.compared} numbers", *(f"    {kind}: {units:.3g} of what is allowed ({text})"
                                                for kind, (units, text) in c.worst.items()), sep="\n")
        failed = failed or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    os.chdir(os.environ.get("TMPDIR", "."))
    sys.exit(main())
