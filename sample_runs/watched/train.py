"""Small healthy PyTorch trainings, recorded with statrec.watch.

    PYTHONPATH=python python sample_runs/watched/train.py DIRECTORY [NAME...]
    PYTHONPATH=python python sample_runs/watched/train.py DIRECTORY --calibrate
    PYTHONPATH=python python sample_runs/watched/train.py DIRECTORY --diagnose

The first writes DIRECTORY/NAME.h5 of the 20 trainings in TRAININGS, on which false alarms of
`statrec diagnose` are counted. --calibrate writes ten others, with other models, data and seeds,
from which limits are taken. --diagnose prints a table of what diagnose finds in the files of
DIRECTORY, and fails where that is more than false alarms may be. All data are generated; every
training takes seconds on one core and reaches a loss well below the one of its first steps (the
script checks it).
"""
import argparse
import glob
import math
import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import data
import models

import statrec

EVERY = 25  # steps between evaluations
FALSE_ALARMS = 2  # notable findings in all files


class Training:
    """name; task(seed): a data.Task; model(task): a module; optimizer: name; rate, batch, steps;
    schedule: "constant" or "cosine"."""

    def __init__(self, name, task, model, optimizer, rate, batch, steps, seed, schedule="constant"):
        self.name, self.task, self.model, self.optimizer = name, task, model, optimizer
        self.rate, self.batch, self.steps, self.seed = rate, batch, steps, seed
        self.schedule = schedule


def row(name, task, model, optimizer, rate, batch, steps, schedule="constant"):
    return name, (task, model, optimizer, rate, batch, steps, schedule)


TRAININGS = [
    row("mlp_bn_clusters", data.clusters, models.mlp(nn.BatchNorm1d), "sgd", 0.1, 128, 300),
    row("mlp_bn_spirals", data.spirals, models.mlp(nn.BatchNorm1d, 96), "adam", 3e-3, 256, 300),
    row("mlp_bn_friedman", data.friedman, models.mlp(nn.BatchNorm1d), "adam", 3e-3, 128, 300),
    row("mlp_bn_deep", data.clusters, models.mlp(nn.BatchNorm1d, 64, 5), "sgd", 0.05, 256, 300),
    row("mlp_ln_clusters", data.clusters, models.mlp(nn.LayerNorm), "adam", 1e-3, 32, 300),
    row("mlp_ln_friedman", data.friedman, models.mlp(nn.LayerNorm, 96), "adamw", 2e-3, 64, 300,
        "cosine"),
    row("cnn_bn_shapes", data.shapes, models.cnn(), "adam", 1e-3, 64, 400, "cosine"),
    row("cnn_bn_shapes_16", data.shapes, models.cnn(12), "adam", 1e-3, 16, 400,
        "cosine"),
    row("cnn_bn_gratings", data.gratings, models.cnn(16), "adam", 1e-3, 32, 300,
        "cosine"),
    row("cnn_bn_segment", data.masks, models.segmenter(), "adam", 2e-3, 16, 250),
    row("cnn_gn_shapes", data.shapes, models.cnn(16, lambda width: nn.GroupNorm(4, width)), "adam",
        2e-3, 32, 250),
    row("resnet_bn_shapes", data.shapes, models.resnet(), "sgd", 0.02, 64, 400, "cosine"),
    row("resnet_bn_gratings", data.gratings, models.resnet(12), "adamw", 3e-3, 128, 200, "cosine"),
    row("resnet_bn_colours", data.colours, models.resnet(8), "sgd", 0.02, 32, 300, "cosine"),
    row("vit_ln_gratings", data.gratings, models.vit(), "adamw", 1e-3, 64, 250, "cosine"),
    row("transformer_ln_chain", data.chain, models.transformer(), "adam", 1e-3, 32, 300),
    row("transformer_rms_chain", data.chain, models.transformer(nn.RMSNorm), "adamw", 2e-3, 16, 300,
        "cosine"),
    row("transformer_bn_motifs", data.motifs, models.encoder(), "adam", 1e-3, 32, 300),
    row("rnn_ln_waves", data.waves, models.recurrent(), "rmsprop", 1e-3, 64, 250),
    row("conv1d_bn_waves", data.waves, models.temporal(), "adam", 1e-3, 64, 300, "cosine"),
]

OTHERS = [
    row("c_mlp_bn_rings", data.rings, models.mlp(nn.BatchNorm1d, 80), "sgd", 0.05, 128, 300),
    row("c_mlp_bn_sines", data.sines, models.mlp(nn.BatchNorm1d, 48, 4), "adamw", 3e-3, 256, 250),
    row("c_mlp_ln_rings", data.rings, models.mlp(nn.LayerNorm, 80), "sgd", 0.05, 64, 300),
    row("c_cnn_bn_strokes", data.strokes, models.cnn(14), "sgd", 0.01, 32, 400, "cosine"),
    row("c_cnn_bn_strokes_16", data.strokes, models.cnn(10), "adamw", 2e-3, 16, 400, "cosine"),
    row("c_resnet_bn_strokes", data.strokes, models.resnet(10), "adam", 2e-3, 64, 250),
    row("c_segment_bn", data.masks, models.segmenter(12), "sgd", 0.1, 32, 250),
    row("c_encoder_bn_motifs", data.motifs, models.encoder(48), "adamw", 1e-3, 64, 250, "cosine"),
    row("c_transformer_ln_brackets", data.brackets, models.transformer(width=48), "adam", 1e-3, 64,
        250),
    row("c_conv1d_bn_noise", data.pulses, models.temporal(20), "rmsprop", 1e-3, 32, 300),
]


def trainings(calibrate):
    """The Trainings of a set; their seeds differ."""
    first, rows = (100, OTHERS) if calibrate else (1, TRAININGS)
    return [Training(name, *given[:6], first + number, given[6])
            for number, (name, given) in enumerate(rows)]


def optimizer_of(name, parameters, rate):
    """An optimizer with usual settings."""
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=1e-4)
    if name == "rmsprop":
        return torch.optim.RMSprop(parameters, lr=rate)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name](parameters, lr=rate)


def rate_at(training, step):
    """Five percent of the steps warm up; then constant, or half a cosine."""
    warm = max(1, training.steps // 20)
    if step <= warm:
        return training.rate * step / warm
    if training.schedule == "constant":
        return training.rate
    part = (step - warm) / (training.steps - warm)
    return training.rate * 0.5 * (1 + math.cos(math.pi * part))


def loss_of(task, output, target):
    """Mean over samples, or over the places of a sequence or an image."""
    if task.kind == "regression":
        return F.mse_loss(output.squeeze(-1), target)
    if task.kind == "binary":
        return F.binary_cross_entropy_with_logits(output, target)
    return F.cross_entropy(output.flatten(0, -2), target.flatten())


@torch.no_grad()
def validated(model, task, batch):
    """Mean loss of the validation set with running statistics, and with those of its batches.
    Nothing of the model changes."""
    norms = [module for module in model.modules()
             if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    kept = [{name: value.clone() for name, value in norm.named_buffers()} for norm in norms]
    losses = []
    for of_batch in (False, True):
        model.eval()
        for norm in norms:
            norm.train(of_batch)
        parts = [(loss_of(task, model(x), y).item(), len(x))
                 for x, y in zip(task.valid_x.split(batch), task.valid_y.split(batch))]
        losses.append(sum(loss * n for loss, n in parts) / sum(n for _, n in parts))
    for norm, buffers in zip(norms, kept):
        for name, value in norm.named_buffers():
            value.copy_(buffers[name])
    model.train()
    return losses


def train(training, directory):
    """Trains and records; returns the mean losses of the first and the last tenth of the steps."""
    torch.manual_seed(training.seed)
    task = training.task(training.seed)
    model = training.model(task)
    optimizer = optimizer_of(training.optimizer, model.parameters(), training.rate)
    order, losses = torch.Generator().manual_seed(training.seed), []
    unit = "1" if task.kind == "regression" else "nats"
    with statrec.watch(model, os.path.join(directory, f"{training.name}.h5"), force=True,
                       verbose=False, data=task.name, planned_steps=training.steps) as run:
        run.metric("valid_loss", unit, "mean over the validation set", "less")
        run.metric("valid_loss_batch", unit, "the same with statistics of each batch", "less")
        queue = []
        for step in range(1, training.steps + 1):
            if len(queue) < training.batch:
                queue = torch.randperm(len(task.x), generator=order).tolist()
            chosen, queue = queue[:training.batch], queue[training.batch:]
            for group in optimizer.param_groups:
                group["lr"] = rate_at(training, step)
            optimizer.zero_grad()
            loss = loss_of(task, model(task.x[chosen]), task.y[chosen])
            loss.backward()
            run.step(loss=loss, lr=rate_at(training, step), tokens=task.y[chosen].numel(),
                     epoch=step * training.batch / len(task.x))
            optimizer.step()
            losses.append(loss.item())
            if step % EVERY == 0:
                running, batch = validated(model, task, training.batch)
                run.evaluate(valid_loss=running, valid_loss_batch=batch)
    part = max(1, len(losses) // 10)
    return sum(losses[:part]) / part, sum(losses[-part:]) / part


def record(chosen, directory):
    """Records trainings; exits where one has not learned."""
    os.makedirs(directory, exist_ok=True)
    for training in chosen:
        start = time.perf_counter()
        first, last = train(training, directory)
        print(f"{training.name}: {training.steps} steps, loss {first:.3g} to {last:.3g}, "
              f"{time.perf_counter() - start:.1f} s")
        if not last < 0.9 * first:
            sys.exit(f"{training.name}: has not learned")


def diagnose(directory):
    """One row for each finding, and the number of findings by question and severity; exits where a
    severe one or more than FALSE_ALARMS notable ones are among them."""
    counted, files = {}, sorted(glob.glob(os.path.join(directory, "*.h5")))
    for path in files:
        for finding in statrec.diagnose(path).findings:
            name = os.path.basename(path)[:-3]
            columns = ("question", "severity", "site", "statistic", "value", "low", "high", "limit")
            print("\t".join([name, *(f"{finding[key]:.3g}" if isinstance(finding[key], float)
                                     else str(finding[key]) for key in columns)]))
            key = finding["question"], finding["severity"]
            counted[key] = counted.get(key, 0) + 1
    print(f"{len(files)} runs")
    for (question, severity), count in sorted(counted.items()):
        print(f"{question}\t{severity}\t{count}")
    of = {word: sum(n for key, n in counted.items() if key[1] == word)
          for word in ("notable", "severe")}
    if of["severe"] or of["notable"] > FALSE_ALARMS:
        sys.exit(f"{of['severe']} severe and {of['notable']} notable findings in healthy trainings")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("names", nargs="*", help="trainings; default: all of the set")
    parser.add_argument("--calibrate", action="store_true", help="the other ten")
    parser.add_argument("--diagnose", action="store_true", help="print findings, train nothing")
    given = parser.parse_intermixed_args()
    if given.diagnose:
        diagnose(given.directory)
        return
    torch.set_num_threads(1)
    known = trainings(given.calibrate)
    unknown = set(given.names) - {one.name for one in known}
    if unknown:
        parser.error(f"no training {', '.join(sorted(unknown))}")
    record([one for one in known if not given.names or one.name in given.names], given.directory)


if __name__ == "__main__":
    main()
