"""The test case of statrec.watch on a GPU."""
import watch_help as help_
from watch_help import WatchCase, fake_watch

import torch
from torch import nn

from statrec._watching import _sums


class CardCase(WatchCase):
    """Tensors of the CPU take the way of those on a GPU."""

    def setUp(self):
        torch.manual_seed(8)
        self.patch(_sums, "moments", self.no_sums)  # nothing takes the other way

    @staticmethod
    def no_sums(*_):
        raise AssertionError("not by the kernels")

    def step(self, norm, x, weight, steps=1, **options):
        """The run of some equal steps, and x and g of the norm."""
        model = nn.Sequential(nn.Identity(), norm)
        factor = torch.ones((), dtype=x.dtype, requires_grad=True)
        state = help_.weights(model)
        y = norm(x).detach().requires_grad_()
        g, = torch.autograd.grad((y.relu() * weight).float().sum(), y)
        model.load_state_dict(state)
        with fake_watch(model, **options) as run:
            for _ in range(steps):
                (model(factor * x).relu() * weight).float().sum().backward()
                run.step(loss=1.0)
                run._drain()  # the next step uses its observations
        return run, g
