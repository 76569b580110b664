"""Shared by the tests of statrec.audit: batches, a short training, plain references."""
import copy
import unittest

from watch_help import rows_of
from watch_models import convnet, mlp  # noqa: F401

import torch
import torch.nn.functional as F
from torch import nn


def pairs(count=12, rows=64, shift=0.0, seed=1):
    """Batches (x [rows, 5], label) of two classes."""
    make = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        x = torch.randn(rows, 5, generator=make)
        found.append((x + shift, (x.sum(1) > 0).long()))
    return found


def trained(model, batches, rounds=8):
    """The model after some training; in training mode, without gradients."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches * rounds:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    optimizer.zero_grad()
    return model


def accuracy(output, target):
    return (output.argmax(1) == target).double().mean()


def norms_of(model):
    return [module for module in model.modules()
            if isinstance(module, nn.modules.batchnorm._BatchNorm)]


def inputs_of(model, module, x, training=True):
    """Input rows of a module of a copy in float64, with batch or running statistics everywhere."""
    twin = copy.deepcopy(model).double().eval()
    for norm in norms_of(twin):
        norm.training = training
    place = [id(one) for one in model.modules()].index(id(module))
    caught = []
    list(twin.modules())[place].register_forward_pre_hook(lambda _, args: caught.append(args[0]))
    twin(x.double())
    return rows_of(caught[0], True, 1)


def loss_of(model, batch, training):
    """Loss of a copy in float64; training: names of the norms that use batch statistics."""
    twin = copy.deepcopy(model).double().eval()
    for name, module in twin.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.training = training is True or name in training
    with torch.no_grad():
        return F.cross_entropy(twin(batch[0].double()), batch[1]).item()


def mean(values):
    return sum(values) / len(values)


class Case(unittest.TestCase):
    def near(self, got, want, tolerance=1e-5):
        self.assertLessEqual(abs(got - want), tolerance * max(1e-3, abs(want)), (got, want))

    def site(self, audit, name):
        return next(site for site in audit.sites if site.name == name)
