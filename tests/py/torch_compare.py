"""Compares updates of PyTorch with dumped ones of `statrec train`: compared values and tolerances.

The changes by an update are compared, not the weights. With w the dumped and v PyTorch's weights:

    || (w_u - w_(u-1)) - (v_u - v_(u-1)) ||  <=  RELATIVE size + STORED || w_u ||

The norms are over one parameter. size is || v_u - v_(u-1) || plus a tenth of the update of an average parameter with as
many numbers. Some gradients are zero but for rounding (the bias of the keys; any bias before BN). STORED is the cost of
storing w_u and w_(u-1) in their type, half a unit in the last place each.

RELATIVE for weights is 3e-2 in float32. Rounding alone makes 1e-4. But if a ReLU's input is within rounding of zero,
its sign may differ, and a whole term of a sum over rows comes or goes. There are millions of such inputs. One that
flipped made up to 7e-3 of an update (seeds 1 to 4), and more of the following updates, because ResNet20's first
steps are chaotic. So in float32 PyTorch starts every update at the dumped weights and running values of the previous
one, with its own momentum. In float64 it continues from its own start: a program built with MODE=double stays within
1e-12. Loss and running values come from the forward pass, which has no jumps: 4e-6 at most.

Adam runs with eps 1e-4 instead of 1e-8. Its step g/(|g| + eps) has full size for a gradient that is only rounding,
so 1e-8 would compare signs of noise. And only a large eps shows its position, which differs between fairseq's form
and PyTorch's.
"""
import math
import subprocess

import numpy as np
import torch

# by type of the weights: RELATIVE of each kind of number, and STORED
TOLERANCE = {"float32": dict(weights=3e-2, norm=1e-3, running=1e-4, loss=1e-5, lr=1e-12,
                             stored=2.0**-23),
             "float64": dict(weights=1e-9, norm=1e-10, running=1e-10, loss=1e-12, lr=1e-12,
                             stored=2.0**-52)}


class FairseqAdam(torch.optim.Optimizer):
    """Decoupled weight decay; eps beside the root of the uncorrected second moment."""

    def __init__(self, weights, betas, eps, weight_decay):
        super().__init__(weights, dict(lr=0))
        self.betas, self.eps, self.weight_decay, self.count = betas, eps, weight_decay, 0

    @torch.no_grad()
    def step(self):
        self.count += 1
        b1, b2 = self.betas
        for group in self.param_groups:
            size = group["lr"] * math.sqrt(1 - b2**self.count) / (1 - b1**self.count)
            for p in group["params"]:
                s = self.state[p] or {"m": torch.zeros_like(p), "v": torch.zeros_like(p)}
                s["m"] = b1 * s["m"] + (1 - b1) * p.grad
                s["v"] = b2 * s["v"] + (1 - b2) * p.grad**2
                self.state[p] = s
                p.mul_(1 - group["lr"] * self.weight_decay)
                p.sub_(size * s["m"] / (s["v"].sqrt() + self.eps))


class Comparison:
    """Deviations in units of the tolerance."""

    def __init__(self, dtype):
        self.relative, self.worst = TOLERANCE[dtype], {}
        self.begins_again = dtype == "float32"

    def note(self, kind, name, deviation, allowed):
        units = deviation / allowed if allowed > 0 else (0 if deviation == 0 else math.inf)
        if not units <= self.worst.get(kind, (0, ""))[0]:
            self.worst[kind] = (units, f"{name}: off by {deviation:.3g}, allowed {allowed:.3g}")

    def number(self, kind, name, ours, theirs):
        self.note(kind, name, abs(float(ours) - theirs), self.relative[kind] * abs(theirs))

    def update(self, u, ours, before, theirs, theirs_before):
        """All arrays before and after update u."""
        wanted = {n: theirs[n] - theirs_before[n] for n in theirs}
        running = {n for n in theirs if n.endswith((".mu", ".sigma2"))}
        average = torch.cat([wanted[n].flatten() for n in theirs if n not in running])
        average = average.square().mean().sqrt()
        for name, value in theirs.items():
            off = (ours[name] - before[name] - wanted[name]).norm()
            if name.endswith(".mu"):  # means are rounded in units of the deviation
                least = theirs[name[:-3] + ".sigma2"].sqrt().norm()
            else:
                least = 0 if name in running else average * math.sqrt(value.numel())
            kind = "running" if name in running else "weights"
            allowed = (self.relative[kind] * (wanted[name].norm() + 0.1 * least)
                       + self.relative["stored"] * value.norm())
            self.note(kind, f"update {u}, {name}", float(off), float(allowed))

    def failures(self):
        return [text for units, text in self.worst.values() if not units <= 1]


def group(archive, prefix):
    return {n[len(prefix):]: archive[n] for n in archive.files if n.startswith(prefix)}


def tensors(arrays):
    return {n: torch.tensor(v, dtype=torch.float64) for n, v in arrays.items()}


def run_statrec(options, steps, updates):
    subprocess.run(["statrec", "train", "--quiet", "--threads", "1", "--record", "none", "--force",
                    "--dump-weights", "weights.npz", "--dump-batches", "batches.npz", "--dump-steps",
                    str(steps), "--max-steps", str(updates + 1), *options],
                   check=True, stdout=subprocess.DEVNULL)
    return np.load("weights.npz"), np.load("batches.npz")


def take_update(model, optimizer, tokens, clip, lr):
    """One update from summed gradients; their mean's norm."""
    weights = list(model.parameters())
    for p in weights:
        p.grad /= tokens
    norm = torch.nn.utils.clip_grad_norm_(weights, clip).item()
    for g in optimizer.param_groups:
        g["lr"] = lr
    optimizer.step()
    optimizer.zero_grad()
    return norm


def compare(options, steps, updates, clip, make_model, make_optimizer, schedule):
    weights, batches = run_statrec(options, steps, updates)
    before = tensors(group(weights, "update0/"))
    comparison = Comparison(str(weights[weights.files[0]].dtype))
    model = make_model(group(weights, "update0/"))
    optimizer = make_optimizer(model.parameters())
    theirs, done, tokens = model.state(), 0, 0
    if theirs.keys() != before.keys():
        return comparison, [f"other arrays: {theirs.keys() ^ before.keys()}"]
    for i in range(1, steps + 1):
        b = group(batches, f"step{i}/")
        loss = model.loss(b)
        loss.backward()
        comparison.number("loss", f"step {i}, loss", b["loss_sum"], loss.item())
        tokens += int(b["tokens"])
        if math.isnan(b["lr"]):
            continue
        lr = schedule(done)
        norm = take_update(model, optimizer, tokens, clip, lr)
        done, tokens = done + 1, 0
        comparison.number("lr", f"step {i}, lr", b["lr"], lr)
        comparison.number("norm", f"step {i}, gradient norm", b["grad_norm"], norm)
        ours, last = tensors(group(weights, f"update{done}/")), theirs
        theirs = model.state()
        comparison.update(done, ours, before, theirs, last)
        before = ours
        if comparison.begins_again:
            model.load(ours)
            theirs = ours
    wrong = comparison.failures()
    if done != updates or group(weights, f"update{updates + 1}/") or group(batches, f"step{steps + 1}/"):
        wrong.append(f"not {updates} updates in {steps} steps")
    if clip < math.inf and norm <= clip:
        wrong.append(f"the gradient norm {norm:.3g} was not clipped")
    return comparison, wrong
