"""Models on the meta device, torch.func, vmap, foreign graphs: training continues, and the file names missing sites."""
import re
import unittest
import warnings

from watch_help import fake_watch
from watch_models import mlp, same_weights, train

import statrec
import torch
import torch.nn.functional as F
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx


def quiet():
    return warnings.catch_warnings(record=True)


class Activated(nn.BatchNorm1d):
    """Its site is a functional call."""

    def forward(self, x):
        return super().forward(x).relu()


class Block(nn.Module):
    """Its site is a tensor; its call of a norm function is noticed."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return F.layer_norm(statrec.tap(self.linear(x), "tensor"), (8,)) + F.layer_norm(x, (8,))


def of_every_kind():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.LayerNorm(8), Activated(8), Block())


def operations(graph):
    """Operations of a graph, without names."""
    if not isinstance(graph, torch.jit.ScriptModule):
        return [(node.op, str(node.target)) for node in graph.graph.nodes]
    return [node.kind() for node in graph.inlined_graph.nodes()]


class Tracer(torch.fx.Tracer):
    def is_leaf_module(self, module, name):
        return isinstance(module, (Activated, nn.Linear)) or super().is_leaf_module(module, name)


class Exported(unittest.TestCase):
    def graphs(self, model):
        """Operations of every graph that a model can be made."""
        x = torch.randn(6, 5)
        yield "export", operations(torch.export.export(model, (x,)))
        yield "strict", operations(torch.export.export(model, (x,), strict=True))
        yield "fx", [(node.op, str(node.target)) for node in Tracer().trace(model).nodes]
        yield "make_fx", operations(make_fx(lambda x: model(x))(x))
        with quiet():
            yield "trace", operations(torch.jit.trace(model, x))

    def test_nothing_of_the_recorder(self):
        """Before and after the first step; the steps around are recorded in full."""
        want = list(self.graphs(of_every_kind()))
        for begun in (False, True):
            model = of_every_kind()
            with quiet() as said, fake_watch(model) as run:
                warnings.simplefilter("always")
                if begun:
                    train(model, torch.randn(1, 6, 5), run)
                for got, wanted in zip(self.graphs(model), want):
                    self.assertEqual(got, wanted)
                train(model, torch.randn(1, 6, 5), run)
            self.assertIsNone(run.failure)
            self.assertEqual([str(one.message) for one in said if "statrec" in str(one.message)], [])
            self.assertEqual([len(run.recorder.passes(name)) for name in run.sites], [1] * 4)

    def test_scripted(self):
        """Hooks cannot be compiled; one line reports it."""
        for norm in (nn.LayerNorm(8), Activated(8)):
            model = nn.Sequential(nn.Linear(5, 8), norm)
            with fake_watch(model), quiet(), self.assertRaisesRegex(AttributeError, "statrec.watch: call close"):
                torch.jit.script(model)
        model = nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8))
        with fake_watch(model), quiet():
            pass
        with quiet():
            torch.jit.script(model)


class Transforms(unittest.TestCase):
    def test_meta_and_to_empty(self):
        with torch.device("meta"):
            model = mlp(nn.BatchNorm1d)
        run = fake_watch(model)
        model.to_empty(device="cpu")
        for module in model:
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        train(model, [torch.randn(6, 5) for _ in range(3)], run)
        run.close()
        self.assertIsNone(run.failure)
        self.assertEqual(len(run.recorder.passes("1")), 1)
        self.assertEqual(run.recorder.steps[0]["vectors"]["1", "sigma2"], [1.0] * 8)

    def gradient(self, model, batch):
        weights = {name: value.detach() for name, value in model.named_parameters()}

        def loss(weights, x):
            return torch.func.functional_call(model, weights, (x,)).square().mean()
        return torch.func.grad(loss)(weights, batch)

    def hidden(self, act):
        """A run of two steps that executes act(model); returns its results unwatched and watched."""
        plain = mlp(nn.LayerNorm, inplace=False)
        torch.manual_seed(1)
        want = act(plain)
        model = mlp(nn.LayerNorm, inplace=False)
        run = fake_watch(model)
        with quiet() as said:
            warnings.simplefilter("always")
            torch.manual_seed(1)
            got = act(model)
            run.step(loss=1.0)
            model(torch.randn(6, 5)).square().mean().backward()
            run.step(loss=1.0)
            run.close()
        return want, got, run, [str(one.message) for one in said]

    def judge(self, run, said):
        self.assertIsNone(run.failure)
        self.assertTrue(any(re.search("'1' is not recorded: .*torch.func and vmap", text) for text in said), said)
        self.assertRegex(run.recorder.reason, "not recorded in 1 of 2 steps: '1' and 1 more: .*torch.func")
        self.assertEqual(run.recorder.status, "complete")
        self.assertEqual(len(run.recorder.steps[1]["passes"]), 2)

    def test_functional_gradient(self):
        want, got, run, said = self.hidden(lambda m: self.gradient(m, torch.randn(6, 5)))
        self.assertTrue(all(torch.equal(want[name], got[name]) for name in want))
        self.judge(run, said)

    def test_vmap(self):
        want, got, run, said = self.hidden(lambda m: torch.func.vmap(m)(torch.randn(3, 6, 5)))
        self.assertTrue(torch.equal(want, got))
        self.judge(run, said)

    def test_a_graph_of_another_model(self):
        """torch.compile's graph of an unwatched model of the same class is used again."""
        def forward(model, x):
            return model(x)
        compiled = torch.compile(forward, backend="eager")
        torch._dynamo.reset()
        unwatched, model = mlp(nn.LayerNorm, inplace=False), mlp(nn.LayerNorm, inplace=False)
        compiled(unwatched, torch.randn(6, 5)).sum().backward()
        with quiet() as said:
            warnings.simplefilter("always")
            with fake_watch(model) as run:
                compiled(model, torch.randn(6, 5)).sum().backward()
                run.step()
        if run.recorder.steps[0]["passes"]:
            return  # this torch guards the hooks
        self.assertTrue(any("torch.compiler.reset()" in str(one.message) for one in said))
        self.assertIn("torch.compiler.reset()", run.recorder.reason)

    def test_trains_as_unwatched(self):
        plain, watched = mlp(), mlp()
        for model in (plain, watched):
            run = fake_watch(model) if model is watched else None
            with quiet():
                warnings.simplefilter("ignore")
                torch.manual_seed(2)
                torch.func.vmap(model)(torch.randn(3, 6, 5))
                train(model, [torch.randn(6, 5) for _ in range(2)], run)
        self.assertTrue(same_weights(plain, watched))


if __name__ == "__main__":
    unittest.main()
