"""Shared by images.py and text.py: options, the training loop with statrec.watch, data files."""

import argparse
import gzip
import os
import time

import torch

import statrec
import statrec.nn


def options(description, output, norm):
    """A parser with the options of both programs."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--data", required=True, metavar="DIRECTORY", help="the data")
    p.add_argument("--norm", default=norm, help="METHOD(NAME=VALUE;...)+ls (default %(default)s)")
    p.add_argument("--steps", type=int, default=1000, help="steps (default %(default)s)")
    p.add_argument("--seconds", type=float, help="end after this time, not after --steps")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--limit", type=int, default=0, help="read the first N samples (default: all)")
    p.add_argument("-o", "--output", default=output, help="run file (default %(default)s)")
    p.add_argument("--force", action="store_true", help="replace an existing run file")
    return p


def train(model, chosen, batches, loss_of, optimizer, rate, metric, masks=None):
    """Trains until chosen.steps or chosen.seconds, and records every step.

    batches: an endless iterator. loss_of(model, batch): the summed loss and the number of its
    terms. rate(step, done): the learning rate, done from 0 to 1. metric: name, unit, definition and
    better direction of what finish writes. masks(batch): {glob of sites: valid rows}. Returns the
    Watch, which is open.
    """
    planned = {} if chosen.seconds else {"planned_steps": chosen.steps}
    run = statrec.watch(model, chosen.output, force=chosen.force, loss_reduction="sum", **planned)
    run.metric(*metric)
    begin, step, done = time.monotonic(), 0, 0.0
    while done < 1:
        step, batch = step + 1, next(batches)
        for sites, valid in (masks(batch) if masks else {}).items():
            run.mask(valid, sites)
        for group in optimizer.param_groups:
            group["lr"] = rate(step, done)
        loss, terms = loss_of(model, batch)
        (loss + statrec.nn.penalty(model)).backward()  # PowerNorm and RBN want the summed loss
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad /= terms
        run.step(loss=loss.detach() / terms, lr=group["lr"], tokens=terms)
        optimizer.step()
        optimizer.zero_grad()
        passed = time.monotonic() - begin
        done = passed / chosen.seconds if chosen.seconds else step / chosen.steps
        if step % 100 == 0 or done >= 1:
            print(f"step {step}  loss {loss.item() / terms:.4f}  {step / passed:.1f} steps/s")
    return run


def finish(run, metric, value):
    """Writes the metric of the trained model, and closes the run."""
    run.evaluate(**{metric[0]: value})
    run.close()
    print(f"{metric[0]} {value:.4g} {metric[1]}")
    print("statplot fig2 images.h5 text.h5 -o fig2.pdf")


def read(directory, name):
    """The bytes of a file, or of NAME.gz."""
    path = os.path.join(directory, name)
    if os.path.exists(path):
        with open(path, "rb") as file:
            return file.read()
    if not os.path.exists(path + ".gz"):
        raise SystemExit(f"{path}: no such file, nor with .gz")
    with gzip.open(path + ".gz") as file:
        return file.read()
