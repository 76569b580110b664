"""statrec.watch records modules of statrec.nn as their family, with their own running values."""

import copy
import math
from unittest import mock

import statrec
from support import InDirectory, module, wants

numpy, torch = module("numpy"), module("torch")
if torch is not None:
    from torch import nn

    import statrec.nn as sn
    from statrec._watching import _ranks, _sites

SITES = {
    "bn": ("bn", "sigma"),
    "rbn": ("rbn", "sigma"),
    "pnv": ("pnv", "psi"),
    "pn": ("pn", "pn"),
    "ln": ("ln", "row"),
    "unit": ("unit", "row"),
    "pn+ls": ("pn+ls", "none"),
    "mabn": ("mabn", "none"),
    "detach-std": ("detach-std", "none"),
    "dyt": ("dyt", "none"),
}
VALUES = {
    "bn": {"mu": "running_mean", "sigma2": "running_var"},
    "rbn": {"mu": "running_mean", "sigma2": "running_var"},
    "pnv": {"psi2": "running_psi2"},
    "pn": {"psi2": "running_psi2", "nu": "nu"},
}


@wants("torch", "numpy")
class Watched(InDirectory):
    def recorded(self, name, shape, mask=None, **options):
        """The recorded norms and parts of dx, and ||dx||_F by autograd in float64."""
        torch.manual_seed(4)
        norm = sn.make(name, 6, **options)
        x, weight, twin = torch.randn(shape), torch.randn(shape), copy.deepcopy(norm).double()
        model = nn.ModuleList([nn.Identity(), norm])
        run = statrec.watch(model, "run.h5", verbose=False, force=True)
        run.mask(mask)
        loss = norm(x.requires_grad_() * 1.0, mask).mul(weight).sum() + sn.penalty(model)
        loss.backward()
        run.step()
        run.close()
        wide = x.detach().double().requires_grad_()
        loss = twin(wide, mask).mul(weight.double()).sum() + sn.penalty(twin)
        (dx,) = torch.autograd.grad(loss, wide)
        with statrec.open("run.h5") as file:
            got = {one: file.scalar(one, "1")[0] for one in file.scalars}
        return got, dx.norm().item()

    def test_gradient_of_the_input(self):
        """dx_norm, by autograd. The initial rows do not have length sqrt(d)."""
        for name, options in (
            ("unit", {"s_init": 1.7}),
            ("unit", {"eps": 0.5}),
            ("ln", {}),
            ("ln", {"unbiased": True, "eps": 0.3}),
            ("ln-simple", {"unbiased": True}),
            ("rmsnorm", {}),
            ("bn", {"eps": 0.5, "unbiased": True}),
            ("rbn", {"lambda_mean": 0, "lambda_std": 0}),
            ("pnv", {"eps": 0.5}),
            ("pn", {"eps": 0.5}),
        ):
            for channels_last, shape in ((True, (9, 6)), (False, (5, 6, 4))):
                with self.subTest(name=name, shape=shape, **options):
                    got, dx = self.recorded(name, shape, channels_last=channels_last, **options)
                    self.assertAlmostEqual(got["dx_norm"] / dx, 1, 5)

    def test_gradients_that_the_sums_do_not_give(self):
        """They are not recorded; statistics from the sums are."""
        padded = torch.arange(9) < 6
        for name, options, mask, missing in (
            ("ln-simple", {"placement": "outside"}, None, {"dx_norm", "direct_norm"}),
            ("rmsnorm", {"placement": "outside"}, None, {"dx_norm", "direct_norm"}),
            ("ls", {"groups": 2}, None, {"dx_norm", "direct_norm"}),
            ("rbn", {}, padded, {"dx_norm"}),
            ("rbn-released", {}, None, {"dx_norm", "direct_norm"}),
            (
                "rbn-released",
                {"lambda_mean": 0, "lambda_std": 0},
                padded,
                {"dx_norm", "direct_norm", "g_mu", "g_sigma2"},
            ),
        ):
            with self.subTest(name=name, **options):
                got, _ = self.recorded(name, (9, 6), mask, channels_last=True, **options)
                wanted = {"dx_norm", "direct_norm", "g_mu", "g_sigma2"} - missing
                found = {one for one in got if math.isfinite(got[one])}
                self.assertEqual(found & (wanted | missing), wanted)

    def test_families_and_running_values(self):
        torch.manual_seed(3)
        norms = [
            sn.make(name, 6, **({"alpha": 0.8, "alpha_bwd": 0.6} if name == "pn" else {}))
            for name in SITES
        ]
        model = nn.Sequential(nn.Linear(6, 6), *norms)
        model(torch.randn(9, 6)).sum().backward()  # running values that differ from a new module's
        sn.penalty(model)
        kept, moments = [], []
        run = statrec.watch(model, "run.h5", vectors_every=1, verbose=False)
        pn = norms[list(SITES).index("pn")]
        pn.register_forward_pre_hook(lambda _, x: moments.append(x[0].detach().double()))
        for step in range(4):
            model.zero_grad()
            kept.append(copy.deepcopy([dict(norm._buffers) for norm in norms]))
            loss = (model(torch.randn(9, 6)) * torch.randn(9, 6)).sum() + sn.penalty(model)
            loss.backward()
            run.step(loss=loss)
        run.close()
        with statrec.open("run.h5") as file:
            sites = list(file.sites.values())
            self.assertEqual([(s.norm, s.family) for s in sites], list(SITES.values()))
            given = [getattr(norm, "alpha_bwd", math.nan) for norm in norms]
            numpy.testing.assert_equal([site.alpha_bwd for site in sites], given)
            for place, (name, site) in enumerate(zip(SITES, sites)):
                for statistic, buffer in VALUES.get(name, {}).items():
                    got = torch.tensor(file.vector(statistic, site.name)).double()
                    want = torch.stack([state[place][buffer] for state in kept]).double()
                    torch.testing.assert_close(
                        got, want, rtol=1e-6, atol=1e-7, msg=f"{name} {statistic}"
                    )
            site, psi2 = sites[list(SITES).index("pn")], [
                s[list(SITES).index("pn")]["running_psi2"] for s in kept
            ]
            big = torch.stack(
                [x.pow(2).mean(0) / (p.double() + 1e-5) for x, p in zip(moments, psi2)]
            )
            torch.testing.assert_close(
                torch.tensor(file.vector("Gamma_t", site.name)).double(), big, rtol=1e-5, atol=0
            )

    def test_synchronized_modules_merge_ranks(self):
        """Their statistics cover all ranks, as SyncBatchNorm's."""
        for sync in (False, True):
            model = nn.Sequential(nn.Linear(4, 4), sn.PowerNorm(4, sync=sync))
            with mock.patch.multiple(
                _ranks.dist,
                is_available=lambda: True,
                is_initialized=lambda: True,
                get_world_size=lambda group: 2,
                get_rank=lambda group: 0,
            ):
                found = _ranks.choose(None, _sites.find_sites(model)[0])
            self.assertEqual(found.merge, sync)

    def test_alpha_bwd_of_the_diagnosis(self):
        """nu is judged by the module's alpha_bwd, not by its alpha."""
        for alpha_bwd, text in ((0.9, "with alpha_bwd 0.9"), (0.999, "HEALTHY")):
            norm = sn.PowerNorm(16, alpha=0.9, alpha_bwd=alpha_bwd)
            self.assertIn(text, " ".join(self.failing(norm).split()))

    def failing(self, *norms):
        """The diagnosis of sixty steps; two of them have inputs eight times as large."""
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 16), *norms, nn.Linear(16, 1))
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        run = statrec.watch(model, "run.h5", verbose=False, force=True)
        for step in range(1, 61):
            x = torch.randn(64, 8) * (8 if step in (31, 32) else 1)
            optimizer.zero_grad()
            loss = (model(x) - x[:, :1]).square().mean()
            loss.backward()
            run.step(loss=loss)
            optimizer.step()
        run.close()
        return str(run.diagnose())

    def test_pn_past_its_bound(self):
        """The known failure of PN: nu grows if a batch has a power unknown to psi2. The diagnosis finds it, and its
        advice helps."""
        text = " ".join(self.failing(sn.PowerNorm(16)).split())
        self.assertIn("PN's nu (severe, nu)", text)
        self.assertIn("The first such step is 31, the last 32", text)
        self.assertIn("try a layer scale, which bounds Gamma", text)
        self.assertIn("HEALTHY", self.failing(sn.LayerScale(16), sn.PowerNorm(16)))
