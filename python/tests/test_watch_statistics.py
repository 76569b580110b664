"""statrec.watch: the sums of every kind of module equal plain float64 code."""
import copy
import unittest

import watch_help as help_
from watch_help import WatchCase, fake_watch, reference

from statrec import _native
from statrec._watching import _nodes

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

# name, module, shape of its input, features first, dimensions of the features
KINDS = [
    ("bn1d", lambda: nn.BatchNorm1d(6), (37, 6), True, 1),
    ("bn1d rows of many blocks", lambda: nn.BatchNorm1d(6), (1501, 6), True, 1),
    ("bn1d ncl", lambda: nn.BatchNorm1d(6), (7, 6, 11), True, 1),
    ("bn2d", lambda: nn.BatchNorm2d(6), (5, 6, 4, 3), True, 1),
    ("bn2d without gain", lambda: nn.BatchNorm2d(6, affine=False), (5, 6, 4, 3), True, 1),
    ("bn2d cumulative", lambda: nn.BatchNorm2d(6, momentum=None), (5, 6, 4, 3), True, 1),
    ("bn2d no running", lambda: nn.BatchNorm2d(6, track_running_stats=False), (5, 6, 4, 3), True,
     1),
    ("bn3d", lambda: nn.BatchNorm3d(4), (3, 4, 2, 3, 5), True, 1),
    ("ln", lambda: nn.LayerNorm(6), (5, 9, 6), False, 1),
    ("ln rows of many blocks", lambda: nn.LayerNorm(6), (19, 67, 6), False, 1),
    ("ln without gain", lambda: nn.LayerNorm(6, elementwise_affine=False), (5, 9, 6), False, 1),
    ("ln of three dimensions", lambda: nn.LayerNorm((3, 4, 5)), (8, 3, 4, 5), False, 3),
    ("groupnorm", lambda: nn.GroupNorm(3, 6), (5, 6, 4, 3), True, 1),
    ("groupnorm rows", lambda: nn.GroupNorm(3, 6), (37, 6), True, 1),
    ("instancenorm", lambda: nn.InstanceNorm2d(6, affine=True), (5, 6, 4, 3), True, 1),
    ("rmsnorm", lambda: nn.RMSNorm(6), (5, 9, 6), False, 1),
]


class Between(nn.Module):
    """scale -> norm -> relu: x and the gradient after the norm are available without hooks."""

    def __init__(self, norm, offset=0.0, inplace=False):
        super().__init__()
        self.norm, self.offset, self.inplace = norm, offset, inplace
        self.scale = nn.Parameter(torch.tensor(1.7))
        with torch.no_grad():
            for parameter in norm.parameters():
                parameter.uniform_(0.5, 1.5)

    def before(self, batch):
        return self.scale * batch + self.offset

    def after(self, y, weight):
        y = y.relu_() if self.inplace else y.relu()
        return (y * weight).mean()

    def forward(self, batch, weight):
        return self.after(self.norm(self.before(batch)), weight)


def truth(model, batch, weight):
    """x of the norm and the gradient of the loss with respect to its output."""
    state = help_.weights(model)
    x = model.before(batch).detach()
    y = model.norm(x).detach().requires_grad_()
    g, = torch.autograd.grad((y.relu() * weight).mean(), y)
    model.load_state_dict(state)
    return x, g


class Statistics(WatchCase):
    def setUp(self):
        torch.manual_seed(1)

    def one(self, make, shape, first, trailing, **more):
        model = Between(make(), inplace=more.pop("inplace", False), offset=more.pop("offset", 0.0))
        batch, weight = torch.randn(shape), torch.randn(shape)
        batch = more.pop("form", lambda t: t)(batch)
        x, g = truth(model, batch, weight)
        with fake_watch(model) as run:
            valid = more.pop("valid", None)
            if valid is not None:
                run.mask(valid)
            model(batch, weight).backward()
            run.step(loss=1.0)
        one, = run.recorder.passes("norm")
        self.close_to(one, reference(x, g, first, trailing, more.pop("rows", valid)),
                      more.pop("tolerance", 2e-6))
        return run, model, one

    def test_every_kind(self):
        for name, make, shape, first, trailing in KINDS:
            with self.subTest(name):
                self.one(make, shape, first, trailing)

    def test_inplace_relu_behind(self):
        for name, make, shape, first, trailing in KINDS:
            with self.subTest(name):
                self.one(make, shape, first, trailing, inplace=True)

    def test_mask(self):
        for name, make, shape, first, trailing in KINDS:
            with self.subTest(name):
                inside = (shape[0], *shape[2:]) if first else shape[:len(shape) - trailing]
                valid = torch.rand(inside) < 0.6
                run, _, one = self.one(make, shape, first, trailing, valid=valid)
                self.assertEqual(one["padded"], int((~valid).sum()))

    def test_mask_of_samples(self):
        valid = torch.tensor([True, False, True, True, False])
        rows = valid.reshape(5, 1, 1).expand(5, 4, 3)
        self.one(lambda: nn.BatchNorm2d(6), (5, 6, 4, 3), True, 1, valid=valid, rows=rows)

    def test_mask_of_gathered_rows(self):
        valid = torch.rand(4, 9) < 0.5
        self.one(lambda: nn.BatchNorm1d(6), (36, 6), True, 1, valid=valid)

    def test_padding_may_be_nan(self):
        """Values in padded rows are not read."""
        model = Between(nn.LayerNorm(6))
        batch, weight = torch.randn(4, 5, 6), torch.randn(4, 5, 6)
        valid = torch.rand(4, 5) < 0.5
        x, g = truth(model, batch, weight)
        batch[~valid] = float("nan")
        with fake_watch(model) as run:
            run.mask(valid)
            model(batch, weight).backward()
            run.step()
        self.close_to(run.recorder.passes("norm")[0], reference(x, g, valid=valid))

    def test_memory_formats(self):
        """Transposed and channels-last inputs, gradients of another layout than the input."""
        last = (lambda t: t.contiguous(memory_format=torch.channels_last))
        turned = (lambda t: t.transpose(1, 2).contiguous().transpose(1, 2))
        strided = (lambda t: torch.stack([t, t], -1)[..., 0])
        for make, shape, form in [
                (lambda: nn.BatchNorm2d(6), (5, 6, 4, 3), last),
                (lambda: nn.GroupNorm(2, 6), (5, 6, 4, 3), last),
                (lambda: nn.BatchNorm1d(6), (5, 6, 40), turned),
                (lambda: nn.BatchNorm2d(6), (5, 6, 4, 3), strided)]:
            self.one(make, shape, True, 1, form=form)
        self.one(lambda: nn.LayerNorm(6), (5, 9, 6), False, 1, form=strided)

    def test_large_mean(self):
        """mean 1e4, deviation 1.7: mean(x^2) - mean(x)^2 in float32 would be noise."""
        for name, make, shape, first, trailing in KINDS:
            if "bn2d" in name or "blocks" in name or name == "groupnorm":
                with self.subTest(name):
                    self.one(make, shape, first, trailing, offset=1e4, tolerance=2e-4)

    def test_gradient_of_the_input(self):
        """dx_norm and direct_norm of row norms, against autograd in float64."""
        cases = ((lambda: nn.LayerNorm(6), (5, 7, 6)), (lambda: nn.RMSNorm(6), (5, 7, 6)),
                 (lambda: nn.LayerNorm((4, 3)), (5, 4, 3)), (lambda: nn.GroupNorm(2, 6), (5, 6, 4, 3)),
                 (lambda: nn.GroupNorm(1, 6), (9, 6)),
                 (lambda: nn.InstanceNorm2d(6, affine=True), (5, 6, 4, 3)), (lambda: nn.GroupNorm(2, 6), (5, 6, 1, 1)))
        last = [(make, shape, torch.channels_last) for make, shape in cases[3:] if len(shape) == 4]
        for make, shape, form in [*((*one, torch.contiguous_format) for one in cases), *last]:
            for forward in (None, "checkpoint"):
                with self.subTest(repr(make()), forward=forward, form=form):
                    model, weight = Between(make()), torch.randn(shape)
                    batch = torch.randn(shape).contiguous(memory_format=form)
                    twin = copy.deepcopy(model).double()
                    x = twin.before(batch.double()).detach().requires_grad_()
                    y = twin.norm(x)
                    y.retain_grad()
                    (y.relu() * weight.double()).mean().backward()
                    with fake_watch(model) as run:
                        for _ in range(2):
                            call = (lambda *t: checkpoint(model, *t, use_reentrant=False)) \
                                if forward else model
                            (3 * call(batch, weight)).backward()
                            run.step(grad_scale=3.0)
                    got = run.recorder.steps[1]["scalars"]
                    self.assertAlmostEqual(got["norm", "dx_norm"] / x.grad.norm().item(), 1, 5)
                    direct = self.direct(twin.norm, x.detach(), y.grad)
                    self.assertAlmostEqual(got["norm", "direct_norm"] / direct, 1, 5)

    def test_gradient_of_a_norm_by_the_unbiased_deviation(self):
        """dx_norm of a LayerNorm of the user's that divides by std(), in narrow and wide layers."""
        class StdNorm(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.gain, self.bias = nn.Parameter(torch.rand(width) + 0.5), nn.Parameter(torch.zeros(width))

            def forward(self, x):
                return self.gain * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) + self.bias
        for width in (6, 640):
            with self.subTest(width):
                model = nn.Sequential(nn.Identity(), StdNorm(width))
                x, weight = torch.randn(9, width, requires_grad=True), torch.randn(9, width)
                with fake_watch(model) as run:
                    (model(x) * weight).sum().backward()
                    run.step()
                wide = x.detach().double().requires_grad_()
                dx, = torch.autograd.grad(model.double()(wide), wide, weight.double())
                got = run.recorder.steps[0]["scalars"]["1", "dx_norm"]
                self.assertAlmostEqual(got / dx.norm().item(), 1, 5)

    def direct(self, norm, x, g):
        """|| gamma g / s ||: the gradient with constant mean and s."""
        root = isinstance(norm, nn.RMSNorm)
        if isinstance(norm, (nn.LayerNorm, nn.RMSNorm)):
            parts = x.flatten(-len(norm.normalized_shape))
            gain = norm.weight
        else:
            groups = getattr(norm, "num_groups", x.shape[1])
            parts = x.reshape(x.shape[0], groups, -1)
            gain = norm.weight.view([1, -1] + [1] * (x.dim() - 2))
        mean = 0 if root else parts.mean(-1, keepdim=True)
        eps = norm.eps if norm.eps is not None else torch.finfo(torch.float32).eps
        inverse = ((parts - mean).square().mean(-1, keepdim=True) + eps).rsqrt()
        scaled = (g * gain).reshape(parts.shape) * inverse
        return scaled.norm().item()

    def test_many_rows(self):
        """Float32 sums over rows one after the other would be off by 3e-5."""
        self.one(lambda: nn.LayerNorm(3), (100003, 3), False, 1)
        self.one(lambda: nn.GroupNorm(1, 3), (11, 3, 9000), True, 1)

    def test_double(self):
        model = Between(nn.LayerNorm(6)).double()
        batch, weight = (torch.randn(40, 6, dtype=torch.float64) for _ in range(2))
        x, g = truth(model, batch, weight)
        with fake_watch(model) as run:
            model(batch, weight).backward()
            run.step()
        self.close_to(run.recorder.passes("norm")[0], reference(x, g), 1e-13)

    def test_batch_norm_takes_what_its_node_has(self):
        """Frozen gain: the node makes no sums, the tap does; both agree with the reference."""
        for frozen in (False, True):
            def make(frozen=frozen):
                norm = nn.BatchNorm2d(6)
                norm.bias.requires_grad_(not frozen)
                return norm
            self.one(make, (5, 6, 4, 3), True, 1)

    def test_without_gradient_norms(self):
        for norm, shape in ((nn.BatchNorm2d(6), (5, 6, 4, 3)), (nn.GroupNorm(2, 6), (5, 6, 4, 3)),
                            (nn.LayerNorm(6), (1501, 6))):
            model = Between(norm)
            batch, weight = torch.randn(shape), torch.randn(shape)
            x, g = truth(model, batch, weight)
            with fake_watch(model, gradient_norms=False) as run:
                model(batch, weight).backward()
                run.step()
            one, = run.recorder.passes("norm")
            self.assertIsNone(one["sum_gg"])
            want = reference(x, g, not isinstance(norm, nn.LayerNorm))
            self.close_to({**one, "sum_gg": want["sum_gg"]}, want)

    def test_description(self):
        run, model, one = self.one(lambda: nn.BatchNorm2d(6, eps=1e-3, momentum=0.05),
                                   (5, 6, 4, 3), True, 1)
        site, = run.recorder.sites
        self.assertEqual((site["norm"], site["family"], site["observed"], site["kind"]),
                         ("bn", "sigma", False, "conv"))
        self.assertEqual((site["eps"], site["alpha"], site["width"]), (1e-3, 0.95, 6))
        self.assertEqual(one["gamma"], model.norm.weight.double().tolist())
        self.assertEqual((one["samples"], one["padded"]), (5, 0))
        run, _, one = self.one(lambda: nn.LayerNorm((2, 3), elementwise_affine=False),
                               (5, 2, 3), False, 2, )
        site, = run.recorder.sites
        self.assertEqual((site["norm"], site["family"], site["observed"], site["alpha"]),
                         ("ln-simple", "row", True, 0.9))
        self.assertIsNone(one["gamma"])

    def test_running_statistics(self):
        """Those from before the forward pass of the step, as the module keeps them (unbiased)."""
        norm = nn.BatchNorm1d(3)
        model = nn.Sequential(norm, nn.Linear(3, 1))
        before = []
        with fake_watch(model) as run:
            for _ in range(3):
                before.append((norm.running_mean.tolist(), norm.running_var.tolist()))
                for _ in range(2):  # two forward passes: it is the state before the first
                    model(torch.randn(8, 3)).sum().backward()
                run.step()
        for step, (mu, sigma2) in zip(run.recorder.steps, before):
            self.assertEqual(step["vectors"]["0", "mu"], mu)
            self.assertEqual(step["vectors"]["0", "sigma2"], sigma2)

    def test_cumulative_average_has_no_alpha(self):
        run, _, _ = self.one(lambda: nn.BatchNorm2d(6, momentum=None), (5, 6, 4, 3), True, 1)
        alpha = run.recorder.sites[0]["alpha"]
        self.assertNotEqual(alpha, alpha)
        self.assertEqual(run.recorder.steps[0]["vectors"]["norm", "sigma2"], [1.0] * 6)

    def test_without_running_statistics_the_recorder_has_its_own(self):
        run, _, _ = self.one(lambda: nn.BatchNorm2d(6, track_running_stats=False), (5, 6, 4, 3),
                             True, 1)
        self.assertEqual(run.recorder.sites[0]["alpha"], 0.9)
        self.assertEqual(run.recorder.steps[0]["vectors"], {})


class StatisticsByTorch(Statistics):
    """The same with torch's kernels for sums, as with many threads."""

    def setUp(self):
        super().setUp()
        self.patch(_native, "_THREADS", 0)


class StatisticsByReading(Statistics):
    """The same with every batch norm's tensors read, as if its node were not exact enough."""

    def setUp(self):
        super().setUp()
        self.patch(_nodes, "caught", lambda *_: False)


class Observed(WatchCase):
    def setUp(self):
        torch.manual_seed(2)

    def test_in_place_of_a_module(self):
        """Identity between sigmoid (which saves its output) and an in-place operation."""
        first, here, last = nn.Linear(5, 6), nn.Identity(), nn.Linear(6, 1)
        model = nn.Sequential(first, nn.Sigmoid(), here, last)
        batch = torch.randn(40, 5)
        x = first(batch).sigmoid().detach().requires_grad_()
        g, = torch.autograd.grad(last(x).square().sum(), x)
        with fake_watch(model, sites=[], observe="2") as run:
            model(batch).square().sum().backward()
            run.step()
        site, = run.recorder.sites
        self.assertEqual((site["family"], site["observed"], site["width"]), ("none", True, 6))
        self.close_to(run.recorder.passes("2")[0], reference(x, g))

    def test_behind_a_module(self):
        model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1))
        batch = torch.randn(40, 5)
        x = model[0](batch).detach().requires_grad_()
        g, = torch.autograd.grad(model[2](x.tanh()).square().sum(), x)
        with fake_watch(model, sites=[], observe_output="0") as run:
            model(batch).square().sum().backward()
            run.step()
        self.close_to(run.recorder.passes("0")[0], reference(x, g))

    def test_own_normalization(self):
        class Centre(nn.Module):
            def forward(self, x):
                return x - x.mean(-1, keepdim=True)
        model = nn.Sequential(nn.Linear(5, 6), Centre(), nn.Linear(6, 1))
        batch = torch.randn(40, 5)
        x = model[0](batch).detach()
        y = model[1](x).requires_grad_()
        g, = torch.autograd.grad(model[2](y).square().sum(), y)
        with fake_watch(model, sites=[], observe=Centre, eps=1e-3) as run:
            model(batch).square().sum().backward()
            run.step()
        self.close_to(run.recorder.passes("1")[0], reference(x, g))
        self.assertEqual(run.recorder.sites[0]["eps"], 1e-3)

    def test_overwritten_input_is_told(self):
        class Late(nn.Module):
            def forward(self, x):
                return x * 2
        model = nn.Sequential(nn.Linear(3, 4), Late())
        with fake_watch(model, sites=[], observe=Late) as run:
            x = model[0](torch.randn(5, 3))
            y = model[1](x)
            x.add_(1)
            y.sum().backward()
            with self.assertWarnsRegex(RuntimeWarning, "overwritten"):
                run.step()
            self.assertEqual(run.recorder.passes("1"), [])

    def test_overwritten_input_after_steps_alike(self):
        """A norm that reads a copy of x, so that autograd does not notice."""
        class Copying(nn.LayerNorm):
            def forward(self, x):
                return super().forward(x.clone())
        model = nn.Sequential(nn.Linear(3, 4), Copying(4))
        with fake_watch(model) as run:
            for step in range(4):
                x = model[0](torch.randn(5, 3))
                y = model[1](x)
                if step == 2:
                    x.add_(1)
                y.square().sum().backward()
                if step == 2:
                    with self.assertWarnsRegex(RuntimeWarning, "overwritten"):
                        run.step()
                else:
                    run.step()
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [1, 1, 0, 1])

    def test_in_place_module_is_refused(self):
        with self.assertRaisesRegex(ValueError, "observe_output"):
            fake_watch(nn.Sequential(nn.ReLU(inplace=True)), sites=[], observe=nn.ReLU)


class StepsAlike(WatchCase):
    """A pass that looks like the one before takes a short way; here something is different."""

    def one(self, model, batch, by=lambda y: y):
        x = batch * torch.ones((), dtype=batch.dtype, requires_grad=True)
        y = model(x)
        y.retain_grad()
        z = by(y)
        (z * torch.randn(z.shape, dtype=z.dtype)).sum().backward()
        return x.detach(), y.grad

    def test_what_changes(self):
        torch.manual_seed(7)
        for make, first in ((lambda: nn.LayerNorm(6), False), (lambda: nn.BatchNorm1d(6), True)):
            model, want, gains, dtype = nn.Sequential(nn.Identity(), make()), [], [], torch.float32
            with fake_watch(model) as run:
                for step in range(12):
                    shape, by = (7 if step == 3 else 9, 6), (lambda y: y.t()) if step == 5 else (lambda y: y)
                    if step == 2:
                        model[1].weight = nn.Parameter((torch.rand(6, 2) + 0.5)[:, 0])  # strides of 2
                    if step == 9:
                        model.double()
                        dtype = torch.float64
                    batch = torch.randn(shape, dtype=dtype)
                    if step == 6:
                        batch = torch.randn(6, 9).t()
                    want.append(self.one(model, batch + 0.5, by))
                    gains.append(model[1].weight.tolist())
                    run.step()
                    with torch.no_grad():
                        model[1].weight.mul_(1.25)
            for step, (x, g) in enumerate(want):
                with self.subTest(norm=type(model[1]).__name__, step=step):
                    got, = run.recorder.passes("1", step)
                    self.close_to(got, reference(x, g, first), 4e-6)
                    self.assertEqual(got["gamma"], gains[step])

    def test_buffers_that_are_replaced(self):
        """The running mean of the step comes from the module's buffer."""
        model = nn.Sequential(nn.Identity(), nn.BatchNorm1d(6))
        want = []
        with fake_watch(model) as run:
            for step in range(5):
                want.append(model[1].running_mean.tolist())
                self.one(model, torch.randn(9, 6))
                if step == 2:
                    model[1].running_mean = torch.full((6,), 3.0)
                run.step()
        self.assertEqual([step["vectors"]["1", "mu"] for step in run.recorder.steps], want)

    def test_row_norms_of_several_passes(self):
        """Their squares add."""
        model, norms = nn.Sequential(nn.Identity(), nn.LayerNorm(6)), []
        with fake_watch(model, repeat="merge") as run:
            for _ in range(3):
                x, g = self.one(model, torch.randn(9, 6))
                wide = x.double().requires_grad_()
                dx, = torch.autograd.grad(nn.functional.layer_norm(wide, (6,)), wide, g.double())
                norms.append(dx.norm().item())
            run.step(grad_scale=2.0)
        got = run.recorder.steps[0]["scalars"]["1", "dx_norm"]
        self.assertAlmostEqual(2 * got / sum(one ** 2 for one in norms) ** 0.5, 1, 6)

    def test_masks_of_steps_that_are_not_recorded(self):
        """They end with their step."""
        model = nn.Sequential(nn.Identity(), nn.LayerNorm(6))
        with fake_watch(model, every=2) as run:
            for step in range(6):
                if step % 2 == 0:
                    run.mask(torch.arange(9) < 4)
                self.one(model, torch.randn(9, 6))
                run.step()
        self.assertEqual([one["rows"] for step in run.recorder.steps for one in step["passes"]], [9, 9, 9])


class Precision(WatchCase):
    def setUp(self):
        torch.manual_seed(3)

    def test_autocast(self):
        """bfloat16 inputs and gradients are summed in float32."""
        for make in (lambda: nn.LayerNorm(16), lambda: nn.RMSNorm(16), lambda: nn.BatchNorm1d(16)):
            first, norm, last = nn.Linear(8, 16), make(), nn.Linear(16, 4)
            model, batch = nn.Sequential(first, norm, nn.ReLU(), last), torch.randn(300, 8)
            with torch.autocast("cpu", torch.bfloat16):
                x = first(batch).detach()
                y = nn.Sequential(norm)(x).detach().requires_grad_()
                g, = torch.autograd.grad(last(y.relu()).float().square().sum(), y)
            with fake_watch(model) as run:
                with torch.autocast("cpu", torch.bfloat16):
                    loss = model(batch).float().square().sum()
                loss.backward()
                run.step()
            self.assertEqual(x.dtype, torch.bfloat16)
            self.close_to(run.recorder.passes("1")[0], reference(x, g))

    def test_bfloat16_model(self):
        for norm, shape in ((nn.BatchNorm2d(6), (5, 6, 4, 3)), (nn.GroupNorm(2, 6), (5, 6, 4, 3)),
                            (nn.LayerNorm(6), (50, 6))):
            model = Between(norm).bfloat16()
            batch, weight = torch.randn(shape).bfloat16(), torch.randn(shape).bfloat16()
            x, g = truth(model, batch, weight)
            with fake_watch(model) as run:
                model(batch, weight).backward()
                run.step()
            first = not isinstance(norm, nn.LayerNorm)
            self.close_to(run.recorder.passes("norm")[0], reference(x, g, first))

    def test_grad_scale(self):
        class Scaler:
            def get_scale(self):
                return 1024.0
        model = Between(nn.LayerNorm(6))
        batch, weight = torch.randn(30, 6), torch.randn(30, 6)
        x, g = truth(model, batch, weight)
        for told in (dict(scaler=Scaler()), dict(grad_scale=1024)):
            with fake_watch(model) as run:
                (model(batch, weight) * 1024).backward()
                run.step(**told)
            self.close_to(run.recorder.passes("norm")[0], reference(x, g))

    def test_one_pass_in_double(self):
        """libstatrec's sums equal float64 code, whatever the elements and the mean."""
        for shape, dtype in (((1501, 7), torch.float32), ((5, 7, 33), torch.float32),
                             ((40, 7), torch.float64), ((1, 7), torch.float32)):
            x, g = (torch.randn(shape).to(dtype) + offset for offset in (1e3, 0))
            self.assertTrue(_native.reads(x))
            x64, g64 = (help_.rows_of(t, True, 1) for t in (x, g))
            mean = x64.mean(0)
            for got, want in ((_native.moments(x), torch.stack(
                    [mean, (x64 - mean).square().mean(0), x64.square().mean(0)])),
                              (_native.gradient_sums(g, x, mean), torch.stack(
                                  [g64.sum(0), (g64 * (x64 - mean)).sum(0), g64.square().sum(0)]))):
                self.assertLess((got - want).abs().max(), 1e-11 * want.abs().max())

    def test_one_pass_wants_contiguous_tensors(self):
        x = torch.randn(6, 8)
        self.assertFalse(_native.reads(x.T) or _native.reads(x.half()))
        self.patch(torch, "get_num_threads", lambda: 64)
        self.assertFalse(_native.reads(x))

    def test_kernels_and_plain_sums_agree(self):
        from statrec._watching import _sums
        self.patch(_native, "_THREADS", 0)
        for shape in ((1501, 7), (5, 7, 33)):
            x, g = torch.randn(shape), torch.randn(shape)
            mean, variance = _sums.moments(x)
            other = _sums._plain_moments(x, 0 if len(shape) == 2 else (0, 2))
            self.assertTrue(torch.allclose(mean, other[0], atol=1e-6))
            self.assertTrue(torch.allclose(variance, other[1], rtol=1e-5))
            for a, b in zip(_sums.gradient_sums(g, x, mean), _sums._plain_sums(g, x, mean.float())):
                self.assertTrue(torch.allclose(a, b, rtol=1e-4, atol=1e-4))


if __name__ == "__main__":
    unittest.main()
