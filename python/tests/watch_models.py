"""Small models for the tests of statrec.watch, and a loop that trains them."""
import copy

from watch_help import rows_of, same, weights

import torch
from torch import nn


def mlp(norm=nn.LayerNorm, inplace=True):
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(5, 8), norm(8), nn.ReLU(inplace=inplace), nn.Linear(8, 8),
                         norm(8), nn.ReLU(inplace=inplace), nn.Linear(8, 2))


def convnet():
    torch.manual_seed(4)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                         nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                         nn.Flatten(), nn.Linear(128, 2))


def parts(model, at, batch):
    """x and g of the module `at` of an mlp: [rows, 8] in float64."""
    state = weights(model)
    x = model[:at](batch).detach()
    y = model[at](x).detach().requires_grad_()
    tail = copy.deepcopy(model[at + 1:])
    for module in tail:
        if isinstance(module, nn.ReLU):
            module.inplace = False
    g, = torch.autograd.grad(tail(y).square().mean(), y)
    model.load_state_dict(state)
    return rows_of(x, True, 1), rows_of(g, True, 1)


def train(model, batches, run=None, forward=None):
    """Plain SGD; the losses."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for batch in batches:
        optimizer.zero_grad()
        loss = (forward or model)(batch).square().mean()
        loss.backward()
        if run is not None:
            run.step(loss=loss, lr=0.1, tokens=len(batch))
        optimizer.step()
        losses.append(loss.item())
    return losses


def same_weights(a, b):
    return same(weights(a), weights(b))
