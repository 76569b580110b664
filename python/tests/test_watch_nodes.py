"""statrec.watch: batch norm by the values of its autograd node, and the cases that do not use it."""
import gc
import unittest
import weakref
from unittest import mock

from watch_help import WatchCase, fake_watch, joined, merged, reference, rows_of, same, weights
from watch_models import mlp, parts, same_weights, train

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from statrec._watching import _caught, _nodes, _sums


class Net(nn.Module):
    """A norm between a factor and in-place ReLU, used `uses` times."""

    def __init__(self, norm, uses=1):
        super().__init__()
        self.norm, self.uses = norm, uses
        self.factor = nn.Parameter(torch.tensor(1.3))
        for parameter in norm.parameters():
            nn.init.uniform_(parameter, 0.5, 1.5)

    def forward(self, x):
        for _ in range(self.uses):
            x = self.norm(self.factor * x).relu_()
        return x


def truth(model, batch, weight):
    """(x, g) [rows, features] in float64 of every use of the norm; the loss is (y weight).mean()."""
    state, x, made = weights(model), batch, []
    for _ in range(model.uses):
        x = model.factor * x
        y = model.norm(x)
        y.retain_grad()
        made.append((x, y))
        x = y.relu()
    (x * weight).mean().backward()
    model.zero_grad()
    model.load_state_dict(state)
    return [(rows_of(x, True, 1), rows_of(y.grad, True, 1)) for x, y in made]


class NodeCase(WatchCase):
    def setUp(self):
        torch.manual_seed(6)
        self.read = []  # shapes of the tensors that were read
        whole, in_place = _sums.moments, _caught.Stored.read
        self.patch(_sums, "moments", lambda x: (self.read.append(tuple(x.shape)), whole(x))[1])
        self.patch(_caught.Stored, "read", lambda stored, layout, *given: (
            self.read.append(layout.native if layout.planes else layout.native[:2]),
            in_place(stored, layout, *given))[1])

    def one_step(self, model, batch, weight, **options):
        with fake_watch(model, **options) as run:
            (model(batch) * weight).mean().backward()
            run.step()
        return run

    def compare(self, norm, shape, by_node, offset=0.0, size=1.0, tolerance=4e-6, form=None):
        model, batch, weight = Net(norm), torch.randn(shape) * size + offset, torch.randn(shape)
        batch = form(batch) if form else batch
        (x, g), = truth(model, batch, weight)
        self.read.clear()
        run = self.one_step(model, batch, weight)
        self.assertEqual(not self.read, by_node, (norm, shape))
        one, = run.recorder.passes("norm")
        self.close_to(one, reference(x, g), tolerance)
        return run


class Exact(NodeCase):
    def test_nothing_is_read(self):
        last = (lambda t: t.contiguous(memory_format=torch.channels_last))
        for make, shape, form in [
                (lambda: nn.BatchNorm1d(6), (37, 6), None),
                (lambda: nn.BatchNorm1d(6), (4096, 6), None),
                (lambda: nn.BatchNorm1d(6), (7, 6, 11), None),
                (lambda: nn.BatchNorm2d(6), (5, 6, 4, 3), None),
                (lambda: nn.BatchNorm2d(6), (5, 6, 4, 3), last),
                (lambda: nn.BatchNorm2d(6), (50, 6, 1, 1), None),
                (lambda: nn.BatchNorm3d(6), (3, 6, 2, 3, 5), None),
                (lambda: nn.BatchNorm2d(6, momentum=None), (5, 6, 4, 3), None),
                (lambda: nn.BatchNorm2d(6, eps=0.1), (5, 6, 4, 3), None),
                (lambda: nn.BatchNorm2d(6, track_running_stats=False), (5, 6, 4, 3), None)]:
            self.compare(make(), shape, True, form=form)

    def test_counts(self):
        run = self.compare(nn.BatchNorm2d(6), (5, 6, 4, 3), True)
        one, = run.recorder.passes("norm")
        self.assertEqual((one["rows"], one["samples"], one["padded"]), (60, 5, 0))
        run = self.compare(nn.BatchNorm1d(6), (37, 6), True)
        self.assertEqual(run.recorder.passes("norm")[0]["samples"], 0)

    def test_gain_is_that_of_the_forward_pass(self):
        model = Net(nn.BatchNorm1d(6))
        gain = model.norm.weight.detach().double().tolist()
        with fake_watch(model) as run:
            model(torch.randn(30, 6)).sum().backward()
            with torch.no_grad():
                model.norm.weight.mul_(3)
            run.step()
        self.assertEqual(run.recorder.passes("norm")[0]["gamma"], gain)

    def test_accumulation(self):
        """Each micro-batch by itself, whatever is in .grad already."""
        for make, shape in ((lambda: nn.BatchNorm2d(6), (5, 6, 4, 3)),
                            (lambda: nn.BatchNorm1d(6), (50, 6))):
            model = Net(make())
            data = [(torch.randn(shape), torch.randn(shape)) for _ in range(3)]
            want = [truth(model, *pair)[0] for pair in data]
            for parameter in model.parameters():
                parameter.grad = torch.full_like(parameter, 1e3)
            for repeat in ("merge", "last"):
                with fake_watch(model, repeat=repeat) as run:
                    for batch, weight in data:
                        (model(batch) * weight).mean().backward()
                    run.step()
                passes = run.recorder.passes("norm")
                if repeat == "merge":
                    self.assertEqual(len(passes), 3)
                    self.close_to(merged(passes), joined(want))
                else:
                    self.close_to(passes[0], reference(*want[2]))

    def test_shared_module(self):
        model, batch, weight = Net(nn.BatchNorm1d(6), uses=3), torch.randn(40, 6), torch.randn(40, 6)
        want = truth(model, batch, weight)
        run = self.one_step(model, batch, weight, repeat="merge")
        self.assertEqual(len(run.recorder.passes("norm")), 3)
        self.close_to(merged(run.recorder.passes("norm")), joined(want), 4e-6)
        one, = self.one_step(model, batch, weight).recorder.passes("norm")
        self.close_to(one, reference(*want[-1]), 4e-6)
        run = self.one_step(model, batch, weight, gradient_norms=False)
        one, = run.recorder.passes("norm")
        wanted = reference(*want[-1])
        self.close_to({**one, "sum_gg": wanted["sum_gg"]}, wanted, 4e-6)

    def test_several_sites(self):
        """Each site its own eps, width and gain, in the one block that is handed over."""
        sizes, inputs, modules = ((4, 1e-5), (6, 0.5), (5, 1e-3)), 3, []
        for width, eps in sizes:
            modules += nn.Linear(inputs, width), nn.BatchNorm1d(width, eps=eps), nn.ReLU()
            inputs = width
        model, batch, weight = nn.Sequential(*modules), torch.randn(60, 3), torch.randn(60, 5)
        norms, x, made = modules[1::3], batch, []
        for norm in norms:
            nn.init.uniform_(norm.weight, 0.5, 1.5)
        for module in model:
            before, x = x, module(x)
            if module in norms:
                x.retain_grad()
                made.append((before, x))
        (x * weight).mean().backward()
        run = self.one_step(model, batch, weight)
        for name, (x, y), norm in zip(("1", "4", "7"), made, norms):
            got, = run.recorder.passes(name)
            self.close_to(got, reference(x, y.grad, True), 1e-5)
            self.assertEqual(got["gamma"], norm.weight.double().tolist())

    def test_checkpointing(self):
        model, batch, weight = Net(nn.BatchNorm1d(6)), torch.randn(40, 6), torch.randn(40, 6)
        (x, g), = truth(model, batch, weight)
        model.register_forward_pre_hook(lambda *_: self.calls.append(self.calls.pop() + 1))
        for reentrant in (False, True):
            with fake_watch(model, repeat="merge") as run:
                self.calls = []
                for plain in (False, True, True, False):
                    self.calls.append(0)
                    y = (model(batch) if plain else
                         checkpoint(model, batch.clone().requires_grad_(), use_reentrant=reentrant))
                    (y * weight).mean().backward()
                    run.step()
                    one, = run.recorder.passes("norm")
                    self.close_to(one, reference(x, g), 4e-6)
                self.assertEqual(self.calls, [2, 1, 1, 2])  # nothing is made once more for us

    def test_twice_backward_counts_once(self):
        model, batch = Net(nn.BatchNorm1d(6)), torch.randn(40, 6)
        with fake_watch(model, repeat="merge") as run:
            loss = model(batch).square().mean()
            loss.backward(retain_graph=True)
            loss.backward(create_graph=True)
            run.step()
        self.assertEqual(len(run.recorder.passes("norm")), 1)

    def test_create_graph(self):
        """The sums are copied, not made part of the graph of gradients."""
        model, batch, weight = Net(nn.BatchNorm1d(6)), torch.randn(40, 6), torch.randn(40, 6)
        (x, g), = truth(model, batch, weight)
        with fake_watch(model) as run:
            (model(batch) * weight).mean().backward(create_graph=True)
            self.assertFalse(any(t.requires_grad for t in run._taps[0].passes[0].tensors))
            run.step()
        self.close_to(run.recorder.passes("norm")[0], reference(x, g), 4e-6)
        model.zero_grad()  # gradients with a graph are a cycle of torch's own


class NotByNode(NodeCase):
    def test_where_its_sums_are_not_the_gradients(self):
        frozen = nn.BatchNorm2d(6)
        frozen.weight.requires_grad_(False)
        for norm in (nn.BatchNorm2d(6, affine=False), frozen):
            self.compare(norm, (5, 6, 4, 3), False)

    def test_where_its_rounding_shows(self):
        self.compare(nn.BatchNorm1d(6), (9001, 6), False, tolerance=2e-6)
        for offset, by_node in ((1.0, True), (4.0, False)):  # in deviations
            self.compare(nn.BatchNorm1d(6), (3000, 6), by_node, offset, tolerance=6e-6)
            self.compare(nn.BatchNorm2d(6), (9, 6, 8, 8), by_node, offset, tolerance=3e-6)

    def test_small_variance_beside_eps(self):
        """The node has only 1/sqrt(variance + eps), in float32; with 1e-9 beside 1e-5 that would leave an error of
        1e-3."""
        for size, by_node in ((1e-2, True), (3e-5, False)):
            for norm, shape in ((nn.BatchNorm1d(6), (37, 6)), (nn.BatchNorm2d(6), (5, 6, 4, 3))):
                self.compare(norm, shape, by_node, size=size, tolerance=6e-6)

    def test_a_dead_feature(self):
        def form(batch):
            batch[:, 2] = 0.25
            return batch
        run = self.compare(nn.BatchNorm1d(6), (64, 6), False, form=form)
        self.assertEqual(run.recorder.passes("norm")[0]["variance"][2], 0)

    def test_mask(self):
        model, batch, weight = Net(nn.BatchNorm1d(6)), torch.randn(40, 6), torch.randn(40, 6)
        (x, g), = truth(model, batch, weight)
        valid, every = torch.arange(40) % 3 > 0, slice(None)
        with fake_watch(model) as run:
            for counted in (every, every, valid, every):
                run.mask(None if counted is every else counted)
                (model(batch) * weight).mean().backward()
                run.step()
                self.close_to(run.recorder.passes("norm")[0], reference(x[counted], g[counted]),
                              4e-6)

    def test_frozen_while_it_is_watched(self):
        model, batch, weight = Net(nn.BatchNorm1d(6)), torch.randn(40, 6), torch.randn(40, 6)
        with fake_watch(model) as run:
            for frozen in (False, True, False):
                model.norm.weight.requires_grad_(not frozen)
                (x, g), = truth(model, batch, weight)
                self.read.clear()
                (model(batch) * weight).mean().backward()
                self.assertEqual(bool(self.read), frozen)
                run.step()
                self.close_to(run.recorder.passes("norm")[0], reference(x, g), 4e-6)

    def test_evaluation_mode(self):
        model = Net(nn.BatchNorm1d(6))
        model.norm.eval()
        with fake_watch(model) as run, self.assertWarnsRegex(RuntimeWarning, "no backward pass"):
            model(torch.randn(40, 6)).sum().backward()
            run.step()
        self.assertEqual(run.recorder.passes("norm"), [])

    def test_gradients_of_the_input_alone(self):
        """The node then computes no sums; a warning reports it."""
        model, x = Net(nn.BatchNorm1d(6)), torch.randn(40, 6, requires_grad=True)
        with fake_watch(model) as run:
            torch.autograd.grad(model(x).square().sum(), x)
            with self.assertWarnsRegex(RuntimeWarning, "gradients of its weight and bias"):
                run.step()
        self.assertEqual(run.recorder.passes("norm"), [])


    def test_gain_is_taken_away(self):
        model, batch, weight = Net(nn.BatchNorm1d(6)), torch.randn(40, 6), torch.randn(40, 6)
        with fake_watch(model) as run:
            for gain in (model.norm.weight, None):
                model.norm.weight = gain
                (model(batch) * weight).mean().backward()
                run.step()
                one, = run.recorder.passes("norm")
                self.assertEqual(one["gamma"] is None, gain is None)


class Trust(NodeCase):
    """Values that were far from a limit in the last step are not checked again; values near a limit are."""

    def steps(self, norm, *batches, **options):
        model, looked = Net(norm), []
        whole = torch.Tensor.amax
        def amax(*args):
            looked.append(1)
            return whole(*args)
        with fake_watch(model, **options) as run, mock.patch.object(torch.Tensor, "amax", amax):
            for batch in batches:
                looked.append(0)
                model(batch).square().mean().backward()
                run.step()
        text = "".join(map(str, looked))
        return [len(part) for part in text.split("0")[1:]], run

    def test_looked_at(self):
        sound, low, far = torch.randn(64, 6), 1.3e-3 * torch.randn(64, 6), torch.randn(64, 6) + 0.9
        looked, _ = self.steps(nn.BatchNorm1d(6), sound, sound, low, low, sound, sound)
        self.assertEqual(looked, [2, 0, 0, 1, 1, 0])
        looked, _ = self.steps(nn.BatchNorm1d(6), sound, far, far, sound, sound)
        self.assertEqual(looked, [2, 0, 1, 1, 0])
        planes, off = torch.randn(8, 6, 4, 4), torch.randn(8, 6, 4, 4) + 9
        looked, _ = self.steps(nn.BatchNorm2d(6), planes, off, off)
        self.assertEqual(looked, [2, 0, 1])

    def test_all_passes_count(self):
        sound, low = torch.randn(64, 6), 1.3e-3 * torch.randn(64, 6)

        class Both(Net):
            def forward(self, x):
                return super().forward(x) + super().forward(low)
        model = Both(nn.BatchNorm1d(6))
        with fake_watch(model, repeat="merge") as run:
            model(sound).square().mean().backward()
            run.step()
            self.assertEqual(run._taps[0].trusted[0], False)

    def test_by_site_and_by_the_last_step(self):
        """One site with small variances, and a step that leaves one site unrecorded."""
        model = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 6), nn.BatchNorm1d(6))
        nn.init.eye_(model[1].weight).data.mul_(1.6e-3)  # variance 2.6e-6, eps/4
        nn.init.zeros_(model[1].bias)
        with fake_watch(model) as run:
            model(torch.randn(64, 6)).square().mean().backward()
            run.step()
            self.assertEqual(self.read, [])
            self.assertEqual([tap.trusted[0] for tap in run._taps], [True, False])
            with self.assertWarns(RuntimeWarning):
                run.step()
            self.assertEqual([tap.trusted for tap in run._taps], [_nodes.UNKNOWN] * 2)

    def test_many_rows_are_never_trusted(self):
        small, large = torch.randn(64, 6), torch.randn(9001, 6)
        looked, run = self.steps(nn.BatchNorm1d(6), small, large)
        self.assertEqual(looked, [2, 0])
        self.assertEqual(self.read, [(9001, 6)])

    def test_nan(self):
        looked, run = self.steps(nn.BatchNorm1d(6), torch.full((64, 6), torch.nan),
                                 torch.randn(64, 6))
        self.assertEqual(looked, [1, 2])
        self.assertTrue(all(v != v for v in run.recorder.passes("norm", 0)[0]["mean"]))


class Usual(NodeCase):
    """After a trusted step a similar pass is not checked; any difference is detected."""

    def taken(self, norm, batch, change, later=None, tolerance=4e-6):
        """Returns how often a pass was checked in a step of batch, and in one of later after change."""
        model, looked, whole = Net(norm), [], _nodes.caught
        later = batch if later is None else later
        self.patch(_nodes, "caught", lambda *args: (looked.append(1), whole(*args))[1])
        with fake_watch(model) as run:
            for step, x in enumerate((batch, batch, later)):
                if step == 2:
                    change(model)
                    x = x.to(model.norm.running_mean.dtype)
                weight = torch.randn(x.shape).to(x.dtype)
                (told, g), = truth(model, x, weight)
                looked.clear()
                (model(x) * weight).mean().backward()
                run.step()
                one, = run.recorder.passes("norm")
                self.close_to(one, reference(told, g), tolerance)
                self.same(one["gamma"], model.norm.weight.detach().double().tolist())
                self.assertEqual(len(looked), 0 if step == 1 else (1 if step == 0 else len(looked)))
        return len(looked)

    def same(self, found, wanted):
        self.assertEqual([float(v) for v in found], wanted)

    def test_nothing_changes(self):
        for norm, shape in ((nn.BatchNorm1d(6), (40, 6)), (nn.BatchNorm2d(6), (5, 6, 4, 3))):
            self.assertEqual(self.taken(norm, torch.randn(shape), lambda model: None), 0)

    def test_shape(self):
        self.assertEqual(self.taken(nn.BatchNorm1d(6), torch.randn(40, 6), lambda model: None,
                                    torch.randn(24, 6)), 1)

    def test_memory_format(self):
        """Planes are summed otherwise than rows: channels last, and too many rows for that."""
        batch = torch.randn(12, 6, 28, 28)
        self.assertEqual(self.taken(nn.BatchNorm2d(6), batch, lambda model: None,
                                    batch.contiguous(memory_format=torch.channels_last)), 1)
        self.assertEqual(set(self.read), {(9408, 6)})

    def test_parameters(self):
        def replace(name):
            def change(model):
                setattr(model.norm, name, nn.Parameter(torch.full((6,), 0.75)))
            return change

        def freeze(model):
            model.norm.bias.requires_grad_(False)
        for change in (replace("weight"), replace("bias"), freeze):
            self.assertEqual(self.taken(nn.BatchNorm1d(6), torch.randn(40, 6), change), 1)

    def test_evaluation(self):
        """With gradients, but with running statistics."""
        model, batch = Net(nn.BatchNorm1d(6)), torch.randn(40, 6)
        with fake_watch(model) as run:
            for mode in (True, True, False):
                model.train(mode)
                model(batch).square().mean().backward()
                self.assertEqual(len(run._taps[0].passes), int(mode))
                self.assertIsNone(run._shared.failure)
                if mode:
                    run.step()

    def test_phase(self):
        """A pass of another phase does not belong to a trusted tap."""
        model, batch = Net(nn.BatchNorm1d(6)), torch.randn(40, 6)
        with fake_watch(model, phases=("a", "b")) as run:
            for size in (1.0, 2.0, 3.0):
                for name in run.phases:
                    with run.phase(name):
                        model(size * (1 + (name == "b")) * batch).square().mean().backward()
                self.assertEqual([len(tap.passes) for tap in run._taps], [1, 1])
                run.step()
        for one in "ab":
            found = [run.recorder.passes(f"{one}:norm", step)[0]["variance"][0] for step in range(3)]
            for step, value in enumerate(found):
                self.assertAlmostEqual(value / found[0], (step + 1) ** 2, 3)
        first, second = (run.recorder.passes(f"{one}:norm")[0]["variance"][0] for one in "ab")
        self.assertAlmostEqual(second / first, 4, 3)

    def test_type(self):
        self.assertEqual(self.taken(nn.BatchNorm1d(6), torch.randn(40, 6),
                                    lambda model: model.double()), 1)


class NoTrace(NodeCase):
    def test_weights_are_the_same_bits(self):
        batches = torch.randn(5, 32, 5)
        plain, watched = mlp(nn.BatchNorm1d), mlp(nn.BatchNorm1d)
        losses = train(plain, batches)
        with fake_watch(watched) as run:
            self.assertEqual(train(watched, batches, run), losses)
        self.assertTrue(same_weights(plain, watched))
        self.assertEqual(self.read, [])
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [2] * 5)

    def test_nothing_is_held(self):
        gc.collect()
        gc.disable()
        try:
            model = mlp(nn.BatchNorm1d)
            run, seen = fake_watch(model), []
            model[0].register_forward_hook(
                lambda m, args, y: seen.append(weakref.ref(y.untyped_storage())))
            train(model, torch.randn(2, 32, 5), run)
            model(torch.randn(32, 5))  # no backward pass
            self.assertEqual([ref() for ref in seen], [None] * 3)
            here = [weakref.ref(model), weakref.ref(run), weakref.ref(run._taps[0])]
            run.close()
            del model, run
            self.assertEqual([ref() for ref in here], [None] * 3)
        finally:
            gc.enable()

    def test_later_steps_leave_earlier_sums_alone(self):
        model = mlp(nn.BatchNorm1d)
        batches = torch.randn(3, 32, 5)
        want = []
        with fake_watch(model) as run:
            for batch in batches:
                want.append(reference(*parts(model, 4, batch)))
                model(batch).square().mean().backward()
                run.step()
        for step, one in enumerate(want):
            self.close_to(run.recorder.passes("4", step)[0], one, 4e-6)
        self.assertTrue(same(weights(model), weights(model)))


if __name__ == "__main__":
    unittest.main()
