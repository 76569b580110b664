"""The forward passes of statrec.audit: their number, kinds of modules, wrappers."""
import copy
import math
import tempfile
import warnings

from audit_cases import Case, loss_of, mean, mlp, norms_of, pairs, trained

import statrec
import torch
import torch.nn.functional as F
from torch import nn


class Forwards(Case):
    def counting(self, model):
        calls = []
        model.register_forward_pre_hook(lambda *_: calls.append(0))
        return calls

    def wrong(self, depth=12):
        torch.manual_seed(0)
        layers = [part for _ in range(depth) for part in (nn.Linear(5, 5), nn.BatchNorm1d(5))]
        model = trained(nn.Sequential(*layers, nn.Linear(5, 2)), pairs(), 1)
        for norm in norms_of(model):
            norm.running_mean += 1
        return model

    def test_six_passes(self):
        for batches in (1, 2, 3, 8, 20):
            for loss in (F.cross_entropy, None):
                model, loads = self.wrong(), []
                calls = self.counting(model)

                def loader():
                    for batch in pairs(30):
                        loads.append(0)
                        yield batch
                audit = statrec.audit(model, loader(), loss, batches=batches)
                self.assertEqual(len(calls), audit.forwards)
                self.assertLessEqual(len(calls), 6 * batches)
                self.assertEqual(len(loads), batches)
                if batches > 3:
                    self.assertEqual(audit.verdict, "severe")
                    self.assertEqual(audit.tried, 12 if batches > 7 or loss else 7)
                    self.assertGreater(len(calls), 5 * batches)

    def test_each_site(self):
        model = self.wrong(4)
        calls = self.counting(model)
        audit = statrec.audit(model, pairs(), F.cross_entropy, each_site=True, batches=10)
        self.assertEqual(len(calls), 10 * (3 + 4))
        for site in audit.sites:
            parts = [loss_of(model, batch, (site.name,)) for batch in pairs(10)]
            whole = [loss_of(model, batch, ()) for batch in pairs(10)]
            gap = mean(whole) - mean([loss_of(model, batch, True) for batch in pairs(10)])
            self.near(site.share, (mean(whole) - mean(parts)) / gap, 1e-3)
            self.near(site.value.value, mean(parts), 1e-4)

    def same_as_training(self, model, make):
        """Running and batch statistics give what torch's modes give."""
        batches = [(make(), None) for _ in range(3)]
        model.eval()
        audit = statrec.audit(model, batches, lambda output, _: output.square().mean())
        for regime, training in (("running", False), ("batch", True)):
            for got, (x, _) in zip(audit.measures["loss"].values[regime], batches):
                twin = copy.deepcopy(model).train(training)
                with torch.no_grad():
                    self.near(got, twin(x).double().square().mean().item(), 3e-6)
        return audit

    def test_kinds(self):
        class Act(nn.BatchNorm2d):
            def forward(self, x):
                y = F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
                                 self.training, self.momentum, self.eps)
                return F.relu(y)

        class Last(nn.BatchNorm1d):
            """Features last; the norm within it has them in dimension 1."""

            def forward(self, x):
                y = F.batch_norm(x.transpose(1, 2), self.running_mean, self.running_var,
                                 self.weight, self.bias, self.training, self.momentum, self.eps)
                return F.relu(y.transpose(1, 2))
        torch.manual_seed(8)
        for norm, shape in ((nn.BatchNorm1d(4), (6, 4)), (nn.BatchNorm1d(4), (6, 4, 7)),
                            (nn.BatchNorm2d(4), (6, 4, 3, 5)), (nn.BatchNorm3d(4), (6, 4, 3, 2, 2)),
                            (nn.SyncBatchNorm(4), (6, 4, 3)), (Act(4), (6, 4, 3, 5)),
                            (Last(4), (6, 5, 4)), (nn.BatchNorm2d(4, momentum=None), (6, 4, 3, 5))):
            norm.running_mean.uniform_(-1, 1)
            norm.running_var.uniform_(0.5, 2)
            audit = self.same_as_training(nn.Sequential(norm, nn.Tanh()),
                                          lambda: 3 * torch.randn(shape) + 1)
            self.assertEqual(len(audit.sites), 1, norm)
            rows = math.prod(shape) / 4
            self.assertEqual(audit.sites[0].rows, rows, norm)

    def test_shared_module(self):
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(5)

            def forward(self, x):
                return self.norm(self.norm(x) * 2 + 1)
        audit = self.same_as_training(Twice(), lambda: torch.randn(6, 5) * 3)
        self.assertEqual(audit.sites[0].rows, 12)

    def test_calls_of_other_means(self):
        """Buffers that are PyTorch's own averages have no drift, and repair() is as good."""
        class Siamese(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.out = nn.BatchNorm1d(5), nn.Linear(10, 2)

            def forward(self, x):
                return self.out(torch.cat([self.norm(x), self.norm(x + 4)], 1))
        batches = pairs()
        model = trained(Siamese(), batches)
        torch.optim.swa_utils.update_bn(batches, model)
        audit = statrec.audit(model.train(), batches, F.cross_entropy)
        site = audit.sites[0]
        self.assertEqual((site.calls, site.rows), (2, 128))
        self.assertIn("2 calls for a batch, each with batch statistics of its own", site.notes)
        self.assertNotIn("drift", site.notes)
        self.assertLess(site.spread.value, 1e-3)
        rows = [batch[0] + shift for batch in batches for shift in (0, 4)]
        sigma = model.norm.running_var.sqrt()
        self.near(site.tid_mean.value, mean([
            ((x.mean(0) - model.norm.running_mean).norm() / sigma.norm()).item() for x in rows]))
        self.near(site.tid_var.value, mean([
            ((x.std(0, correction=0) - sigma).norm() / sigma.norm()).item() for x in rows]), 1e-4)
        losses = audit.measures["loss"]
        self.near(losses.mean("recomputed").value, losses.mean("running").value, 0.02)

    def test_scripted_part(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            part = torch.jit.script(nn.Sequential(nn.Dropout(), nn.BatchNorm1d(5)))
        model = nn.Sequential(part, nn.BatchNorm1d(5)).train()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        audit = statrec.audit(model, pairs(3))
        self.assertEqual([site.name for site in audit.sites], ["1"])
        self.assertTrue(all(module.training for module in model.modules()))
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)

    def test_each_site_of_a_sound_model(self):
        batches = pairs(30, 128)
        model = trained(mlp(nn.BatchNorm1d), batches, 4)
        audit = statrec.audit(model, batches, F.cross_entropy, each_site=True)
        for site in audit.sites:
            self.assertIsNone(site.share)
            self.near(site.value.value, mean([loss_of(model, batch, (site.name,))
                                              for batch in batches]), 1e-4)
        self.assertIn("alone", str(audit))

    def test_dropout_is_off(self):
        batches = pairs(4)
        model = nn.Sequential(nn.Dropout(0.9), nn.BatchNorm1d(5), nn.Linear(5, 2)).train()
        audit = statrec.audit(model, batches, F.cross_entropy)
        for got, batch in zip(audit.measures["loss"].values["batch"], batches):
            self.near(got, loss_of(model, batch, True))

    def test_random_models_are_paired(self):
        class Noisy(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(5)

            def forward(self, x):
                return self.norm(x) + torch.randn(len(x), 5)
        model, batches = Noisy(), pairs(1) * 4
        model.norm.running_mean.copy_(batches[0][0].mean(0))
        model.norm.running_var.copy_(batches[0][0].var(0, correction=0))
        audit = statrec.audit(model, batches, lambda output, _: output.sum())
        self.assertLess(abs(audit.measures["loss"].cost("running", "batch").value), 1e-3)

    def test_wrappers(self):
        batches, plain = pairs(4), mlp(nn.BatchNorm1d)
        want = statrec.audit(plain, batches, F.cross_entropy)
        for wrapped, prefix in self.wrapped(plain):
            audit = statrec.audit(wrapped, batches, F.cross_entropy)
            self.assertEqual(audit.measures["loss"].values, want.measures["loss"].values)
            self.assertEqual([site.name for site in audit.sites], ["1", "4"])
            self.assertIn(f"{prefix}1.running_mean", audit.repair())
            taken = wrapped.load_state_dict(audit.repair(), strict=False)
            self.assertEqual(taken.unexpected_keys, [])
            plain.load_state_dict(mlp(nn.BatchNorm1d).state_dict())

    def wrapped(self, model):
        yield nn.DataParallel(model), "module."
        compiled = torch.compile(model, backend="eager")
        yield compiled, "_orig_mod."
        with torch.no_grad():
            compiled.eval()(torch.randn(3, 5))
        yield compiled, "_orig_mod."
        inside = nn.Sequential(model, nn.Identity())
        model.compile(backend="eager")
        self.addCleanup(torch.compiler.reset)
        if torch.distributed.is_available() and torch.distributed.is_gloo_available():
            with tempfile.TemporaryDirectory() as where:
                torch.distributed.init_process_group("gloo", init_method=f"file://{where}/store",
                                                     rank=0, world_size=1)
                try:
                    yield nn.parallel.DistributedDataParallel(model), "module."
                finally:
                    torch.distributed.destroy_process_group()
        del inside


class Unaudited(Case):
    """Sites that evaluate by running statistics, but not as batch norms do."""

    class Moving(nn.Module):
        """A BatchNorm whose buffers have other names."""

        def __init__(self, width):
            super().__init__()
            self.weight, self.eps = nn.Parameter(torch.ones(width)), 1e-5
            self.register_buffer("moving_mean", torch.zeros(width))
            self.register_buffer("moving_var", torch.ones(width))

        def forward(self, x):
            mean, variance = self.moving_mean, self.moving_var
            if self.training:
                variance, mean = torch.var_mean(x, (0, 2), correction=0)
                with torch.no_grad():
                    self.moving_mean.lerp_(mean, 0.1)
                    self.moving_var.lerp_(variance, 0.1)
            scale = self.weight * (variance + self.eps).rsqrt()
            return (x - mean[:, None]) * scale[:, None]

    class Second(nn.BatchNorm1d):
        """A BatchNorm with a second pair of buffers, which it uses."""

        def __init__(self, width):
            super().__init__(width)
            self.register_buffer("other_mean", torch.zeros(width))
            self.register_buffer("other_var", torch.ones(width))

        def forward(self, x):
            return F.batch_norm(x, self.other_mean, self.other_var, self.weight, self.bias,
                                self.training, 0.1, self.eps)

    class Batches(nn.BatchNorm1d):
        """Batch statistics in evaluation, too."""

        def forward(self, x):
            return F.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)

    class Fixed(nn.Module):
        """A LayerNorm whose bias is a buffer that no training moves."""

        def __init__(self, width):
            super().__init__()
            self.weight, self.eps = nn.Parameter(torch.ones(width)), 1e-5
            self.register_buffer("beta", torch.zeros(width))

        def forward(self, x):
            return F.layer_norm(x, x.shape[-1:], self.weight, self.beta, self.eps)

    def model(self, norm):
        return nn.Sequential(norm, nn.BatchNorm1d(4), nn.Flatten(), nn.Linear(20, 2))

    def batches(self):
        make = torch.Generator().manual_seed(4)
        return [(torch.randn(6, 4, 5, generator=make), torch.arange(6) % 2) for _ in range(3)]

    def test_they_are_named(self):
        import statrec.nn as sn
        for norm in (nn.InstanceNorm1d(4, track_running_stats=True), self.Moving(4),
                     self.Second(4), sn.PowerNorm(4)):
            name = type(norm).__name__
            audit = statrec.audit(self.model(norm), self.batches(), F.cross_entropy)
            self.assertEqual(audit.unaudited, [("0", name)])
            self.assertEqual([site.name for site in audit.sites], ["1"])
            self.assertIn(f"not audited: 0 ({name})", str(audit))
            with self.assertRaisesRegex(ValueError, r"not audited: 0 \("):
                statrec.audit(nn.Sequential(norm), self.batches())

    def test_others_are_not(self):
        for norm in (self.Fixed(5), nn.InstanceNorm1d(4), nn.GroupNorm(2, 4), self.Batches(4)):
            audit = statrec.audit(self.model(norm), self.batches(), F.cross_entropy)
            self.assertEqual(audit.unaudited, [], norm)
            self.assertEqual([site.name for site in audit.sites], ["1"], norm)
            with self.assertRaisesRegex(ValueError, "evaluation normalizes as training does"):
                statrec.audit(nn.Sequential(norm), self.batches())

    def test_nothing_random_is_used(self):
        model = self.model(self.Moving(4))
        before = torch.get_rng_state()
        statrec.audit(model, self.batches(), F.cross_entropy)
        self.assertTrue(torch.equal(before, torch.get_rng_state()))
