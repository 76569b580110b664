#!/usr/bin/env python3
"""usage: check_models.py [--state FILE] [--mode MODE,...] [NAME...]

Trains the models of models.tsv (random weights, small inputs) for three steps with and without
statrec.watch: eagerly, with both modes of activation checkpointing, under autocast, compiled, and
by two processes of DistributedDataParallel and of FSDP2.
Fails where a weight or buffer differs by a bit (compiled: by more than rounding), where an exception
is raised, and where a statistic differs from float64 sums over what hooks of this program have seen. Prints one line for each model
and mode; with --state it goes on where it has stopped. Models of packages that are missing are
skipped.
"""
import argparse
import copy
import csv
import importlib
import json
import os
import sys
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, os.pardir, os.pardir)
sys.path[:0] = [os.path.join(TOP, "python"), os.path.join(TOP, "python", "tests")]

import check_models_ranks  # noqa: E402
import torch  # noqa: E402
import torch._inductor.config  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from fake_recorder import FakeRecorder  # noqa: E402
from statrec.watch import watch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._pytree import tree_map  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

COMPILED = ("resnet50", "convnext_tiny", "vit_b_16", "timm_resnet18", "llama", "bert")
AUTOCAST = ("resnet50", "convnext_tiny", "timm_efficientnet_b0", "llama", "bert", "t5")
RANKS = ("resnet50", "convnext_tiny", "llama", "bert")
SMALL = ("timm_resnet18", "shufflenet_v2_x0_5", "timm_convnext_atto", "timm_convnextv2_atto",
         "bert", "llama", "t5", "gemma", "mamba", "detr")
STEPS = 3
# Error of sums, relative to the largest sum of absolute values (docs/python-watch.md, Precision). bfloat16 models are
# compared with a training that rounds elsewhere. So are compiled ones; their statistics are compared in float64. With
# few rows in the last layers, a rounding of float32 is a tenth of a gradient.
BOUND, AUTOCAST_BOUND = 1e-5, 2e-2
# A compiled graph contains the recording operations, and may be compiled differently. Its losses and weights, relative
# to the largest of their tensor, are within BOUND as well: a bias consists of gradients only, sums over rows. In other
# modes they are bit-identical.


# -- models -----------------------------------------------------------------------------------

def rows():
    with open(os.path.join(HERE, "models.tsv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def build(row):
    """The model in training mode; None if its package is missing."""
    try:
        package = importlib.import_module(row["package"])
    except ImportError:
        return None
    given = json.loads(row["arguments"])
    torch.manual_seed(1)
    if row["package"] == "transformers":
        cls = getattr(package, row["class"])
        if isinstance(given.get("backbone_config"), dict):
            (config, options), = given["backbone_config"].items()
            given["backbone_config"] = getattr(package, config)(**options)
        model = cls(cls.config_class(**given))
    elif row["package"] == "timm":
        model = package.create_model(row["class"], **given)
    else:
        model = package.models.get_model(row["class"], weights=None, **given)
    return model.train()


def inputs(row, seed=2):
    """Arguments of its forward."""
    torch.manual_seed(seed)
    text = row["input"]
    ids = torch.randint(3, 90, (2, 12))
    if text.startswith("two images"):
        boxes = torch.tensor([[4.0, 4.0, 40.0, 40.0]])
        targets = [dict(boxes=boxes, labels=torch.tensor([1])) for _ in range(2)]
        return ([torch.randn(3, 64, 64) for _ in range(2)], targets), {}
    if text.startswith("features"):
        return (), dict(input_features=torch.randn(2, 8, 40), decoder_input_ids=ids)
    if text.startswith("ids"):
        return (), dict(input_ids=ids, labels=ids)
    return (torch.randn(json.loads(text)),), {}


def floats(value):
    """All floating-point tensors of a model's output."""
    if torch.is_tensor(value):
        return [value] if value.is_floating_point() and value.requires_grad else []
    if isinstance(value, dict) or hasattr(value, "items"):
        value = list(value.values())
    return [one for part in value for one in floats(part)] if isinstance(value, (list, tuple)) else []


# -- tensors that this program's hooks record -----------------------------------------------

FUNCTIONS = [name for name in ("batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm")
             if hasattr(F, name)]


class Spy:
    """x and g of each site: of the functional norm within the module, or else of the module."""

    def __init__(self, model, sites):
        self.seen, self.inside, self.handles, self.kept = {}, [], [], {}
        modules = {plain(name): module for name, module in model.named_modules()}
        for name in sites:
            module = modules[name]
            self.handles += [
                module.register_forward_pre_hook(lambda m, a, n=name: self.inside.append([n, False])),
                module.register_forward_hook(self.leave, with_kwargs=True)]
        for name in FUNCTIONS:
            self.kept[name] = getattr(F, name)
            setattr(F, name, self.wrapped(self.kept[name]))

    def close(self):
        for handle in self.handles:
            handle.remove()
        for name, function in self.kept.items():
            setattr(F, name, function)

    def wrapped(self, function):
        def called(input, *args, **kwargs):
            y = function(input, *args, **kwargs)
            if self.inside and y.requires_grad:
                self.inside[-1][1] = True
                self.note(self.inside[-1][0], function.__name__, input, y, args)
            return y
        return called

    def leave(self, module, args, kwargs, output):
        name, called = self.inside.pop()
        if not called and torch.is_tensor(output) and output.requires_grad:
            self.note(name, None, (*args, *kwargs.values())[0], output, ())

    def note(self, name, function, x, y, args):
        x = x.detach().clone()
        y.register_hook(lambda g: self.seen.__setitem__(name, (function, x, g.detach().clone())))


def plain(name):
    return ".".join(part for part in name.split(".") if part not in ("_orig_mod", "module"))


def reference(x, g, first):
    x, g = x.double(), g.double()
    if first and x.dim() > 2:
        x, g = x.movedim(1, -1), g.movedim(1, -1)
    return x, g


def sums(x, g, width):
    """(sums of a site, the largest of the same sums of absolute values) by name."""
    x, g = (t.reshape(-1, width) for t in (x, g))
    mean = x.mean(0)
    terms = dict(mean=x, variance=(x - mean).square(), sum_g=g, sum_gc=g * (x - mean),
                 sum_gg=g.square())
    mean_of = {"mean", "variance"}
    return {key: (one.mean(0) if key in mean_of else one.sum(0),
                  (one.abs().mean(0) if key in mean_of else one.abs().sum(0)).max())
            for key, one in terms.items()}


# -- training ---------------------------------------------------------------------------------

def checkpointed(model, reentrant):
    """Every stage of the model is a checkpointed segment."""
    if getattr(model, "supports_gradient_checkpointing", False):
        model.gradient_checkpointing_enable(dict(use_reentrant=reentrant))
        if reentrant and isinstance(embeddings(model), nn.Embedding):
            model.enable_input_require_grads()
        return
    stages = [part for child in model.children() for part in
              (child.children() if isinstance(child, (nn.Sequential, nn.ModuleList)) else [child])]
    for stage in stages:
        if any(True for _ in stage.parameters()):
            stage.forward = segment(stage.forward, reentrant)


def embeddings(model):
    try:
        return model.get_input_embeddings()
    except NotImplementedError:
        return None


def segment(forward, reentrant):
    def called(*args, **kwargs):
        if len(args) != 1 or kwargs or not torch.is_tensor(args[0]):
            return forward(*args, **kwargs)
        return checkpoint(forward, args[0], use_reentrant=reentrant)
    return called


class NoGradient(Exception):
    """torch's checkpoint with reentry passes no gradient through outputs that are dictionaries."""


def train(model, given, mode, run=None, spy=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    forward = torch.compile(model) if mode == "compiled" else model
    losses, seen = [], []
    for step in range(STEPS):
        torch.manual_seed(10 + step)
        args, kwargs = copy.deepcopy(given)
        plain = args and torch.is_tensor(args[0]) and not hasattr(model, "config")
        if mode == "reentrant" and plain:
            args = (args[0].clone().requires_grad_(), *args[1:])
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=mode == "autocast"):
            output = floats(forward(*args, **kwargs))
            if not output:
                raise NoGradient
            loss = sum(wide(one).square().mean() for one in output)
        loss.backward()
        if run is not None:
            run.step(loss=loss)
        optimizer.step()
        losses.append(loss.item())
        if spy is not None:
            seen.append(spy.seen)
            spy.seen = {}
    return losses, seen


def wide(x):
    return x if x.dtype == torch.float64 else x.float()


def made(row, mode):
    model = build(row)
    if model is not None and mode in ("checkpoint", "reentrant"):
        checkpointed(model, mode == "reentrant")
    return model


def check(row, mode):
    """(verdict, text) of a model: "ok", "fault" or "skip"."""
    given = inputs(row)
    plain_model, model = made(row, mode), made(row, mode)
    if model is None:
        return "skip", f"{row['package']} is not installed"
    torch._dynamo.reset()
    try:
        want, _ = train(plain_model, given, mode)
    except NoGradient:
        return "skip", "no output has a gradient, unwatched too"
    try:
        run = watch(model, "run.h5", recorder=FakeRecorder, verbose=False)
    except ValueError as error:
        return "ok", f"no sites: {error}"
    got, told = watched(run, model, given, mode)
    if run.failure:
        return "fault", run.failure
    moved = difference(dict(plain_model.state_dict(), loss=torch.tensor(want)),
                       dict(model.state_dict(), loss=torch.tensor(got)))
    if moved > (BOUND if mode == "compiled" else 0):
        return "fault", f"the weights differ by {moved:.1e}"
    if mode == "compiled":
        given = tree_map(lambda one: one.double() if is_float(one) else one, given)
        model = made(row, mode).double()
        run = watch(model, "run.h5", recorder=FakeRecorder, verbose=False)
        _, told = watched(run, model, given, mode)
    verdict, text = compared(row, mode, run, told, given)
    return verdict, text + (f"; weights differ by {moved:.1e}" if moved else "")


def is_float(value):
    return torch.is_tensor(value) and value.is_floating_point()


def watched(run, model, given, mode):
    """(losses, names of sites that a warning names) of a training that run records."""
    torch._dynamo.reset()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        losses, _ = train(model, given, mode, run)
        run.close()
    said = [str(one.message) for one in caught if str(one.message).startswith("statrec")]
    return losses, {text.split(" is not recorded")[0].removeprefix("statrec: ") for text in said}


def difference(a, b):
    """The largest difference of two state_dict(), of the largest number of its tensor; 0: no bit."""
    worst = 0.0
    for name in a:
        x, y = a[name].nan_to_num(), b[name].nan_to_num()
        if not torch.equal(x, y):
            x, y = x.double(), y.double()
            worst = max(worst, ((x - y).abs().max() / x.abs().max().clamp_min(1e-300)).item())
    return worst


def compared(row, mode, run, told, given):
    """Returns the verdict on a run, from a second training with a spy on its sites."""
    again = "eager" if mode == "compiled" else mode
    model = made(row, again)
    model = model.double() if mode == "compiled" else model
    spy = Spy(model, spied(model, run.recorder.sites))
    try:
        _, seen = train(model, given, again, spy=spy)
    finally:
        spy.close()
    return judged(run, seen, told, AUTOCAST_BOUND if mode == "autocast" else BOUND)


def spied(model, sites):
    """The names of those sites that are modules of the model."""
    modules = {plain(name) for name, _ in model.named_modules()}
    return [site["name"] for site in sites if site["name"] in modules]


def judged(run, seen, told, bound):
    """Returns (verdict, text) of a run; seen: the spy's records at its sites, step by step."""
    if not any(seen):
        return "skip", "no gradient reaches a site, unwatched too"
    sites = {site["name"]: site for site in run.recorder.sites}
    worst, missing = (0.0, "", ""), []
    for step, want in enumerate(seen):
        for name, (function, x, g) in want.items():
            got = run.recorder.passes(name, step)
            if got:
                worst = max(worst, *errors(got, sites[name]["width"], function, x, g,
                                           f"{name}, step {step + 1}"))
            elif name not in told:
                missing.append(name)
    text = f"{len(sites)} sites, {len(run.sites_left_out)} left out, {len(told)} with a warning; "
    text += "worst %.1e (%s of %s)" % worst
    if missing:
        return "fault", f"{text}; silent: {len(missing)} passes, {missing[0]}"
    return ("ok" if worst[0] <= bound else "fault"), text


def errors(got, width, function, x, g, where):
    """(error, statistic, where) of a site in a step. got: its passes, one of each rank."""
    last = function in ("layer_norm", "rms_norm") or x.shape[1] != width
    for key, (value, scale) in sums(*reference(x, g, not last), width).items():
        error = (united(got, key) - value).abs().max() / scale.clamp(min=1e-30)
        yield float(error), key, where


def united(passes, key):
    """A statistic of several passes as one batch; of the last one if passes repeat."""
    passes = passes if len(passes) == passes_of_ranks() else passes[-1:]
    rows = torch.tensor([one["rows"] for one in passes], dtype=torch.float64)[:, None]
    each = {name: torch.tensor([one[name] for one in passes], dtype=torch.float64)
            for name in ("mean", "variance", key, "sum_g")}
    mean = (rows * each["mean"]).sum(0) / rows.sum()
    apart = each["mean"] - mean
    if key == "mean":
        return mean
    if key == "variance":
        return (rows * (each[key] + apart.square())).sum(0) / rows.sum()
    return (each[key] + (each["sum_g"] * apart if key == "sum_gc" else 0)).sum(0)


def passes_of_ranks():
    return dist.get_world_size() if dist.is_initialized() else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--state")
    parser.add_argument("--small", action="store_true", help="ten small models, eagerly")
    parser.add_argument("--mode", default="eager,checkpoint,reentrant,autocast,compiled,ddp,fsdp2")
    given = parser.parse_args()
    torch.set_num_threads(2)
    torch._inductor.config.fallback_random = True  # compiled: dropout draws as eagerly
    done = {}
    if given.state and os.path.exists(given.state):
        with open(given.state, encoding="utf-8") as file:
            done = {tuple(line.split("\t")[:2]): line for line in file}
    faults = 0
    modes = ["eager"] if given.small else given.mode.split(",")
    for row in rows():
        for mode in modes:
            if (given.names and row["name"] not in given.names
                    or given.small and row["name"] not in SMALL
                    or mode == "autocast" and row["name"] not in AUTOCAST
                    or mode == "compiled" and row["name"] not in COMPILED
                    or mode in ("ddp", "fsdp2") and row["name"] not in RANKS):
                continue
            line = done.get((row["name"], mode))
            if line is None:
                began = time.time()
                try:
                    one = check_models_ranks if mode in ("ddp", "fsdp2") else sys.modules[__name__]
                    verdict, text = one.check(row, mode)
                except Exception as error:
                    verdict, text = "fault", f"{type(error).__name__}: {error}".replace("\n", " ")
                line = f"{row['name']}\t{mode}\t{verdict}\t{time.time() - began:.0f} s\t{text}\n"
                if given.state:
                    with open(given.state, "a", encoding="utf-8") as file:
                        file.write(line)
            print(line, end="", flush=True)
            faults += line.split("\t")[2] == "fault"
    print(f"models: {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
