"""statrec.nn against the float64 vectors of $STATREC_SHARED/reference/vectors: forward and backward
pass, parameter gradients, running values after every call, penalties and evaluation."""

import os
import threading
import unittest
from unittest import mock

from support import TOP, module, wants

SHARED = os.path.join(
    os.environ.get("STATREC_SHARED") or os.path.join(TOP, os.pardir, "shared"),
    "reference",
    "vectors",
)
torch, h5py = module("torch"), module("h5py")
if torch is not None:
    import statrec.nn
    from statrec.nn._base import _running_norm, _sync

# Files of published modules are compared within their stated tolerance; the others within 1e-12 of the largest term.
# The stated atol is at least 5e-7 of that term.
OWN = 1e-12 / 5e-7
# name of the file: method, {attribute: option}, {dataset: buffer}
FILES = {
    "bn": ("bn", {"unbiased": "unbiased"}, {"run_mu": "running_mean", "run_sigma2": "running_var"}),
    "sync_bn": (
        "bn",
        {"unbiased": "unbiased"},
        {"run_mu": "running_mean", "run_sigma2": "running_var"},
    ),
    "pnv": ("pnv", {}, {"run_psi2": "running_psi2"}),
    "sync_pnv": ("pnv", {}, {"run_psi2": "running_psi2"}),
    "ln": ("ln", {"unbiased": "unbiased"}, {}),
    "ln_simple": ("ln-simple", {}, {}),
    "detachnorm": (None, {}, {}),
    "adanorm": ("adanorm", {"C": "C", "k": "k"}, {}),
    "adanorm_released": (
        None,
        {"C": "C", "k": "k", "unbiased": "unbiased", "eps_mode": "placement"},
        {},
    ),
    "rmsnorm": ("rmsnorm", {"eps_mode": "placement"}, {}),
    "pn": ("pn", {"alpha_bwd": "alpha_bwd"}, {"run_psi2": "running_psi2", "nu": "nu"}),
    "pn_ls": ("pn", {"alpha_bwd": "alpha_bwd"}, {"run_psi2": "running_psi2", "nu": "nu"}),
    "pn_released": (
        "pn-released",
        {"alpha_bwd": "alpha_bwd", "warmup": "warmup"},
        {"run_psi2": "running_psi2", "ema_gz": "nu"},
    ),
    "bn_powernorm_released": (
        "bn-powernorm",
        {},
        {"run_mu": "running_mean", "run_sigma2": "running_var"},
    ),
    "rbn": (
        "rbn",
        {"lam": "lambda_mean", "nu": "lambda_std", "penalty_running": "running"},
        {"run_mu": "running_mean", "run_sigma2": "running_var"},
    ),
    "rbn_released": (
        "rbn-released",
        {"lam": "lambda_mean", "nu": "lambda_std", "penalty": "penalty"},
        {"run_mu": "running_mean", "run_sigma2": "running_var"},
    ),
    "brn": ("brn", {}, {"run_mu": "running_mean", "run_sigma": "running_std"}),
    "mabn": (
        "mabn",
        {"buffer": "buffer", "warmup": "warmup"},
        {"run_psi2": "running_psi2", "buf_x2": "window_x2", "buf_gz": "window_gz"},
    ),
}
MODULES = ("adanorm_released", "pn_released", "bn_powernorm_released", "rbn_released", "mabn")
WORDS = {"var": "inside", "std": "outside", "pre": "before", "post": "after"}


def word(value):
    return value.decode() if isinstance(value, bytes) else value


def options_of(name, case):
    """Method and options of a case."""
    method, wanted, _ = FILES[name]
    given = {key: word(value) for key, value in case.attrs.items()}
    options = {
        ours: WORDS.get(given[key], given[key]) for key, ours in wanted.items() if key in given
    }
    for key, kind in (("unbiased", bool), ("warmup", int), ("buffer", int)):
        if key in options:
            options[key] = kind(options[key])
    if method is None:
        method = (
            "adanorm"
            if given.get("k", 0)
            else ("ln-simple" if given["detach"] == "none" else "detach-" + given["detach"])
        )
        if method != "adanorm":
            options.pop("C", None), options.pop("k", None)
    options["eps"] = float(given["eps"])
    for key, alpha in (
        ("alpha", lambda v: v),
        ("alpha_fwd", lambda v: v),
        ("momentum_new", lambda v: 1 - v),
    ):
        if key in given and FILES[name][2]:
            options["alpha"] = float(alpha(given[key]))
    if int(given.get("ls_groups", 0)) or name == "pn_released":
        options["layer_scale"] = int(given["ls_groups"])
    return method, {
        key: value if isinstance(value, (str, bool, int)) else float(value)
        for key, value in options.items()
    }


def tensor(array):
    return torch.tensor(array, dtype=torch.float64)


@wants("torch", "h5py")
class Vectors(unittest.TestCase):
    def check(self, case, name, step, got, factor, rows=None):
        want_set = case["out/" + name]
        want = tensor(want_set[()] if name == "y_eval" else want_set[step])
        atol = want_set.attrs["atol"]
        atol = float(
            atol[step]
            if getattr(atol, "shape", ()) and len(atol) > 1
            else getattr(atol, "flat", [atol])[0]
        )
        bound = factor * (atol + float(want_set.attrs["rtol"]) * want.abs())
        got = torch.as_tensor(got, dtype=torch.float64)
        self.assertEqual(got.shape, want.shape, name)
        if rows is not None:
            got, want, bound = got[rows], want[rows], bound[rows]
        off = ((got - want).abs() / bound).nan_to_num(nan=0)
        self.assertEqual(got.isnan().tolist(), want.isnan().tolist(), f"{name} step {step}")
        worst = float(off.max()) if off.numel() else 0
        self.assertLessEqual(
            worst, 1, f"{case.name} {name} step {step}: {worst:.3g} times the bound"
        )
        self.count += 1

    def layer(self, name, case):
        method, options = options_of(name, case)
        norm = statrec.nn.make(method, int(case.attrs["d"]), channels_last=True, **options).double()
        with torch.no_grad():
            if norm.weight is not None:
                norm.weight.copy_(tensor(case["in/gamma"][()]))
                norm.bias.copy_(tensor(case["in/beta"][()]))
            for theirs, ours in FILES[name][2].items():
                value = tensor(case["in/state_" + theirs][()])
                factor = 1 - float(case.attrs["alpha_bwd"]) if theirs == "ema_gz" else 1
                norm._buffers[ours].copy_(value * factor)
            if "state_iters" in case["in"]:
                norm.num_batches_tracked.fill_(int(case["in/state_iters"][()].flat[0]))
        return norm

    def step(self, norm, x, mask, dy):
        """y, dx, dgamma, dbeta, penalty of one training call."""
        norm.zero_grad()
        x = x.clone().requires_grad_()
        y = norm(x, mask)
        penalty = statrec.nn.penalty(norm)
        ((y * dy).sum() + penalty).backward()
        grads = [None if p is None else p.grad for p in (norm.weight, norm.bias)]
        return y.detach(), x.grad, *grads, penalty.detach()

    def run_case(self, name, case):
        factor = 1 if name in MODULES else OWN
        norm, masks = self.layer(name, case), None
        if "mask" in case["in"] and case.attrs.get("masked_rows") != b"none":
            masks = torch.tensor(case["in/mask"][()] != 0)
        padded = word(case.attrs["masked_rows"]) == "as_computed"
        for step in range(int(case.attrs["S"])):
            if name == "brn":
                norm.warmup = norm.r_calls = norm.d_calls = 0
                norm.r_max, norm.d_max = (float(case["in/" + k][step]) for k in ("rmax", "dmax"))
            x, dy = tensor(case["in/x"][step]), tensor(case["in/dy"][step])
            mask = None if masks is None else masks[step]
            rows = None if padded or mask is None else mask
            y, dx, dgamma, dbeta, penalty = self.step(norm, x, mask, dy)
            self.check(case, "y", step, y, factor, rows)
            self.check(case, "dx", step, dx, factor, rows)
            if rows is not None:
                self.assertFalse(y[~mask].any() or dx[~mask].any(), "rows of padding are 0")
            if dgamma is not None and "dgamma" in case["out"]:
                self.check(case, "dgamma", step, dgamma, factor)
                self.check(case, "dbeta", step, dbeta, factor)
            if "rec_penalty" in case["out"] and norm.method.startswith("rbn"):
                self.check(case, "rec_penalty", step, penalty, factor)
            self.states(name, case, norm, step, factor)
        if "y_eval" in case["out"]:
            norm.eval()
            self.check(case, "y_eval", step, norm(x, mask).detach(), factor, rows)

    def states(self, name, case, norm, step, factor):
        for theirs, ours in FILES[name][2].items():
            value = norm._buffers[ours]
            if theirs == "ema_gz":
                value = value / (1 - float(case.attrs["alpha_bwd"]))
            self.check(case, "state_" + theirs, step, value, factor)
        if "state_iters" in case["out"]:
            self.assertEqual(int(norm.num_batches_tracked), int(case["out/state_iters"][step]))

    def file(self, name):
        path = os.path.join(SHARED, name + ".h5")
        if not os.path.exists(path):
            self.skipTest("no test vectors in $STATREC_SHARED")
        return h5py.File(path)

    def test_every_vector(self):
        for name in FILES:
            if name.startswith("sync_"):
                continue
            with self.file(name) as file:
                self.count = 0
                for case in file:
                    with self.subTest(file=name, case=case):
                        self.run_case(name, file[case])
                self.assertGreater(self.count, 30, name)


@wants("torch", "h5py")
class Ranks(Vectors):
    """The files of several processes: each a thread with its own rows and module."""

    test_every_vector = None

    def setUp(self):
        self.count, self.failed = 0, []

    def summed(self, x, _group):
        """all_reduce among the threads."""
        mine = self.mine.rank
        self.slots[mine] = x.detach().clone()
        self.barrier.wait()
        total = sum(self.slots[rank] for rank in range(self.ranks))
        self.barrier.wait()
        return total

    def each(self, function):
        def run(rank):
            self.mine.rank = rank
            try:
                self.results[rank] = function(rank)
            except BaseException as error:  # the others wait otherwise
                self.failed.append(error)
                self.barrier.abort()

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(self.ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failed:
            raise self.failed[0]

    def test_synchronized(self):
        self.mine = threading.local()
        for name in ("sync_bn", "sync_pnv"):
            with (
                self.file(name) as file,
                mock.patch.object(_sync, "_reduced", self.summed),
                mock.patch.object(_running_norm, "group_of", lambda sync, _: "threads" if sync else None),
            ):
                for case in file:
                    with self.subTest(file=name, case=case):
                        self.run_ranks(name, file[case])
        self.assertGreater(self.count, 100)

    def run_ranks(self, name, case):
        self.ranks = int(case.attrs["ranks"])
        self.slots, self.results = [None] * self.ranks, [None] * self.ranks
        self.barrier = threading.Barrier(self.ranks, timeout=60)
        layers = [self.layer(name, case) for _ in range(self.ranks)]
        shard = torch.tensor(case["in/shard"][()])
        masks = torch.tensor(case["in/mask"][()] != 0) if "mask" in case["in"] else None
        for norm in layers:
            norm.sync = True
        for step in range(int(case.attrs["S"])):
            x, dy = tensor(case["in/x"][step]), tensor(case["in/dy"][step])
            valid = torch.ones(len(x), dtype=torch.bool) if masks is None else masks[step]
            self.each(
                lambda rank: self.step(
                    layers[rank],
                    x[shard == rank],
                    valid[shard == rank] if masks is not None else None,
                    dy[shard == rank],
                )
            )
            y, dx = torch.zeros_like(x), torch.zeros_like(x)
            for rank, result in enumerate(self.results):
                y[shard == rank], dx[shard == rank] = result[:2]
            self.check(case, "y", step, y, OWN, valid)
            self.check(case, "dx", step, dx, OWN, valid)
            if layers[0].weight is not None and "dgamma" in case["out"]:
                self.check(case, "dgamma", step, sum(r[2] for r in self.results), OWN)
            for norm in layers:
                self.states(name, case, norm, step, OWN)
