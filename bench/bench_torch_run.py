#!/usr/bin/env python3
"""Time of an epoch of training in PyTorch as `statrec train` makes it: updates, validation, BLEU, checkpoints.

    bench_torch_run.py BATCHES.npz DICTIONARY TEXT [--variant plain] [--threads 2] [--serve]

BATCHES.npz  batches of an epoch, in their order, as `statrec train --dump-batches` writes them; one in 32
             of them is validated on too
DICTIONARY   as in bench_torch_translate.py, which translates TEXT, the validation's sources, with a beam of 5

The mini Transformer of bench_torch.py with LN, padding hidden from attention and loss, Adam, label smoothing
0.1. A round: updates on all batches with the learning rates of the dump, a checkpoint of weights and optimizer
every 100 updates and at the end, the validation loss, the translation. Variants as in bench_torch.py; compiled:
with dynamic shapes, after updates on the longest, the shortest and a middling batch. What is read and made before
is not part of a round. Prints seconds a round, the loss and how many words were written.
"""
import argparse
import os
import sys
import tempfile
import time

from bench_torch import VARIANTS, Transformer, make_optimizer

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from bench_torch_translate import PAD, Translator, read_text, translate


class Padded(Transformer):
    """The same on batches of any length, with padding."""

    def __init__(self, sdpa, vocabulary, longest):
        super().__init__(sdpa, nn.LayerNorm, vocabulary, length=longest)

    def embed(self, token):
        return self.drops.of_branch(self.embedding(token) * self.scale + self.position[:token.shape[1]])

    def forward(self, source, target):
        padding = torch.zeros(source.shape).masked_fill(source == PAD, -torch.inf)[:, None, None]
        causal = self.causal[:target.shape[1], :target.shape[1]]
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, hidden=padding)
        memory, x = self.encoder_norm(x), self.embed(target)
        for layer in self.decoder:
            x = layer(x, memory, causal, padding)
        return self.logits(self.decoder_norm(x))


def names_of_layer(theirs, ours, attention, norms, state):
    """[(our name, tensor)] of one layer."""
    for part, name in attention.items():
        if part == "attend":
            for kind in ("weight", "bias"):
                thirds = state[f"{theirs}.{part}.query.{kind}"].chunk(3)
                yield from ((f"{ours}.{name}.{q}.{kind}", w) for q, w in zip("qkv", thirds))
        else:
            for kind in ("weight", "bias"):
                yield f"{ours}.{name}.q.{kind}", state[f"{theirs}.{part}.query.{kind}"]
                halves = state[f"{theirs}.{part}.memory.{kind}"].chunk(2)
                yield from ((f"{ours}.{name}.{q}.{kind}", w) for q, w in zip("kv", halves))
        for kind in ("weight", "bias"):
            yield f"{ours}.{name}.o.{kind}", state[f"{theirs}.{part}.out.{kind}"]
    for kind in ("weight", "bias"):
        yield f"{ours}.ffn_block.in.{kind}", state[f"{theirs}.fc1.{kind}"]
        yield f"{ours}.ffn_block.out.{kind}", state[f"{theirs}.fc2.{kind}"]
    for i, name in enumerate(norms):
        yield f"{ours}.{name}.gamma", state[f"{theirs}.norms.{i}.weight"]
        yield f"{ours}.{name}.beta", state[f"{theirs}.norms.{i}.bias"]


def by_our_names(net):
    state = net.state_dict()
    found = {"embedding": state["embedding.weight"]}
    for i in range(len(net.encoder)):
        found.update(names_of_layer(f"encoder.{i}", f"encoder.{i}", {"attend": "attention"},
                                    ("norm1", "norm2"), state))
        found.update(names_of_layer(f"decoder.{i}", f"decoder.{i}",
                                    {"attend": "self_attention", "cross": "cross_attention"},
                                    ("self", "cross", "ffn"), state))
    for stack in ("encoder", "decoder"):
        found[stack + ".final.gamma"] = state[stack + "_norm.weight"]
        found[stack + ".final.beta"] = state[stack + "_norm.bias"]
    return found


class Run:
    def __init__(self, given, words):
        dump = np.load(given.batches)
        count = sum(name.endswith("/source") for name in dump.files)
        self.batch = [[torch.from_numpy(dump[f"step{i + 1}/{part}"]).long()
                       for part in ("source", "target_in", "target_out")] for i in range(count)]
        self.lr = [float(dump[f"step{i + 1}/lr"]) for i in range(count)]
        longest = max(part.shape[1] for batch in self.batch for part in batch)
        fused = given.variant != "plain"
        self.net = Padded(fused, words, longest)
        self.optimizer = make_optimizer("transformer", self.net, fused)
        self.forward = self.net
        if given.variant == "compiled":
            self.forward = torch.compile(self.net, dynamic=True)
            by_length = sorted(self.batch, key=lambda batch: batch[0].shape[1])
            for batch in (by_length[0], by_length[-1], by_length[len(by_length) // 2]):
                self.update(batch, 0)

    def loss(self, batch, smoothing):
        source, into, out = batch
        return F.cross_entropy(self.forward(source, into), out.flatten(), ignore_index=PAD,
                               label_smoothing=smoothing)

    def update(self, batch, lr):
        self.optimizer.param_groups[0]["lr"] = lr
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(batch, 0.1).backward()
        self.optimizer.step()

    def save(self, path):
        torch.save({"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}, path)

    def epoch(self, source, directory):
        self.net.train()
        for i, batch in enumerate(self.batch):
            self.update(batch, self.lr[i])
            if (i + 1) % 100 == 0 or i + 1 == len(self.batch):
                self.save(os.path.join(directory, f"{i // 100 % 2}.pt"))
        self.net.eval()
        with torch.inference_mode():
            loss = [self.loss(batch, 0).item() for batch in self.batch[::32]]
            found = translate(Translator(by_our_names(self.net), 4), source, 5, 128)
        return sum(loss) / len(loss), sum(map(len, found))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("batches")
    parser.add_argument("dictionary")
    parser.add_argument("text")
    parser.add_argument("--variant", choices=VARIANTS, default="plain")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    words, source = read_text(given.dictionary, given.text)
    run = Run(given, len(words))
    if given.serve:
        print("ready", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        for _ in sys.stdin if given.serve else range(1):
            began = time.perf_counter()
            loss, count = run.epoch(source, directory)
            print(f"torch\t{given.variant}\t{time.perf_counter() - began:.3f}\tloss {loss:.3f}, {count} words",
                  flush=True)


if __name__ == "__main__":
    main()
