"""statrec.watch of tensors without their own memory: their site is left out by name, others continue."""

import unittest
import warnings

from watch_help import WatchCase, fake_watch, reference

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import return_and_correct_aliasing

from statrec._watching import _kinds


class Wrapper(torch.Tensor):
    """A tensor with another one in it, as quantized and distributed ones are."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )

    def __init__(self, inner):
        self.held = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def bare(one):
            return torch.utils._pytree.tree_map(lambda t: getattr(t, "held", t), one)

        found = function(*bare(args), **bare(kwargs or {}))
        again = torch.utils._pytree.tree_map(
            lambda t: Wrapper(t) if isinstance(t, torch.Tensor) else t, found
        )
        return return_and_correct_aliasing(function, args, kwargs or {}, again)


class Named(torch.Tensor):
    """A subclass that has its own memory."""


def nested(layout):
    parts = [torch.randn(3, 8), torch.randn(5, 8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor(parts, layout=layout, requires_grad=True)


def summed(y):
    y = y.values() if y.is_nested and y.layout is torch.jagged else y
    return torch.nested.to_padded_tensor(y, 0.0).sum() if y.is_nested else y.square().sum()


def distributed():
    """Returns a function that makes DTensors of this process alone, and one that ends its group."""
    from torch import distributed as dist
    from torch.distributed.tensor import Replicate, distribute_tensor

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    mesh = dist.init_device_mesh("cpu", (1,))
    return lambda x: distribute_tensor(x, mesh, [Replicate()]), dist.destroy_process_group


class Kinds(WatchCase):
    def judge(self, pass_of, kind, norm=nn.LayerNorm):
        """Four steps; in every second one pass_of(module) runs in place of a plain pass. With few and many threads."""
        for threads in (1, 4):
            torch.set_num_threads(threads)
            self.addCleanup(torch.set_num_threads, 1)
            model = nn.ModuleDict({"strange": norm(8), "plain": norm(8)})
            x, weight = torch.randn(2, 4, 8, requires_grad=True)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                run = fake_watch(model)
                for step in range(4):
                    (model["plain"](x * 1) * weight).sum().backward()
                    if step % 2 == 0:
                        (model["strange"](x * 1) * weight).sum().backward()
                    else:
                        pass_of(model["strange"])
                    run.step()
                run.close()
            self.assertIsNone(run.failure)
            counts = [len(step["passes"]) for step in run.recorder.steps]
            self.assertEqual(counts, [2, 1, 2, 1])
            texts = [str(one.message) for one in said if "statrec" in str(one.message)]
            self.assertEqual(len(texts), 1, texts)
            self.assertIn("'strange' is not recorded: ", texts[0])
            self.assertIn(kind, texts[0])
            self.assertIn(kind, run.recorder.reason)
            self.close_to(run.recorder.passes("plain", 3)[0], reference(x, weight))

    def test_nested(self):
        for layout in (torch.jagged, torch.strided):
            self.judge(
                lambda module: summed(module(nested(layout))).backward(),
                "NestedTensor" if layout is torch.jagged else "nested tensor",
            )

    def test_wrapper(self):
        def run(module):
            g = torch.ones(4, 8)
            module(Wrapper(torch.randn(4, 8)).requires_grad_()).backward(Wrapper(g))

        self.judge(run, "a Wrapper")

    @unittest.skipUnless(torch.distributed.is_available(), "no torch.distributed")
    def test_distributed(self):
        spread, end = distributed()
        self.addCleanup(end)

        def run(module):
            own = dict(module._parameters)
            for name, value in own.items():
                module._parameters[name] = nn.Parameter(spread(value.detach()))
            module(spread(torch.randn(4, 8))).sum().backward()
            module._parameters.update(own)

        self.judge(run, "a DTensor")

    def test_fake(self):
        def forward(module):
            with FakeTensorMode(allow_non_fake_inputs=True):
                module(torch.randn(4, 8, requires_grad=True)).sum().backward()
            module.zero_grad()

        def backward(module):
            y = module(torch.randn(4, 8, requires_grad=True)).sum()
            with FakeTensorMode(allow_non_fake_inputs=True):
                y.backward()
            module.zero_grad()

        for norm in (nn.LayerNorm, nn.BatchNorm1d, lambda width: nn.GroupNorm(2, width)):
            self.judge(forward, "FakeTensor", norm)
            self.judge(backward, "FakeTensor", norm)

    def test_meta(self):
        def run(module):
            module.to("meta")
            module(torch.randn(4, 8, device="meta", requires_grad=True)).sum().backward()
            module.to_empty(device="cpu").reset_parameters()

        self.judge(run, "device meta")

    def test_gradients_without_memory(self):
        def batched(module):
            x = torch.randn(4, 8, requires_grad=True)
            y = module(x)
            torch.autograd.grad(y, x, torch.randn(3, 4, 8), is_grads_batched=True)

        def zero(module):
            g = torch._efficientzerotensor(4, 8)
            module(torch.randn(4, 8, requires_grad=True)).backward(g)

        self.judge(batched, "torch.func and vmap")
        self.judge(zero, "no memory")

    def test_subclass_with_memory(self):
        model, weight = nn.LayerNorm(8), torch.randn(4, 8)
        x = torch.randn(4, 8).as_subclass(Named)
        with fake_watch(model) as run:
            for _ in range(2):
                (model(x) * weight).sum().backward()
                run.step()
        self.close_to(run.recorder.passes("LayerNorm", 1)[0], reference(x, weight))

    def test_names(self):
        self.assertEqual(_kinds.strange(nn.Parameter(torch.ones(2))), "")
        self.assertIn("sparse", _kinds.strange(torch.ones(2, 2).to_sparse()))


if __name__ == "__main__":
    unittest.main()
