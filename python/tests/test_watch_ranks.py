"""statrec.watch with DistributedDataParallel: two processes on the CPU (gloo)."""
import os
import pickle
import socket
import tempfile
import traceback
import unittest
import warnings
from unittest import mock

import watch_help as help_
from fake_recorder import FakeRecorder
from watch_help import WatchCase, fake_watch, merged

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from statrec._watching import _ranks
from statrec._watching._sites import Site

WORLD = 2


def model_of(norm=nn.BatchNorm1d):
    torch.manual_seed(9)
    return nn.Sequential(nn.Linear(5, 8), norm(8), nn.ReLU(inplace=True), nn.Linear(8, 1))


def batches(steps=3):
    """[steps, WORLD, rows, 5]"""
    return torch.randn(steps, WORLD, 12, 5, generator=torch.Generator().manual_seed(10))


def train(model, rank, run, uses=1, silent=False):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches():
        optimizer.zero_grad()
        for part in batch[rank].chunk(uses):
            loss = model(part).square().mean() / uses
            loss.backward()
        if run is not None:
            run.step(loss=None if silent and rank else loss, tokens=12)
        optimizer.step()


def told(run):
    recorder = run.recorder
    return None if recorder is None else dict(
        steps=recorder.steps, sites=recorder.sites, options=recorder.options,
        status=recorder.status)


def work_train(rank, options):
    """A run of plain DistributedDataParallel; returns the recorder's values and the weights."""
    norm, uses = options.pop("norm", nn.BatchNorm1d), options.pop("uses", 1)
    silent = options.pop("silent", False)
    model = nn.parallel.DistributedDataParallel(model_of(norm))
    run = None if options.pop("plain", False) else fake_watch(model, **options)
    train(model, rank, run, uses, silent)
    if run is None:
        return dict(run=None, weights=help_.weights(model))
    run.close()
    return dict(run=told(run), weights=help_.weights(model))


def work_one_rank(rank, options):
    """The norm runs on one rank alone; what the recorder has, and its weight."""
    model = model_of()
    nn.init.uniform_(model[1].weight, 0.5, 1.5)
    norm = model[1].weight.detach().clone()

    class Some(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = model

        def forward(self, x):
            x = self.parts[0](x)
            return self.parts[3](self.parts[1](x) if rank == options["only"] else x)
    some = nn.parallel.DistributedDataParallel(Some(), find_unused_parameters=True)
    run = fake_watch(some, ranks="merge")
    some(batches()[0, rank]).square().mean().backward()
    run.step()
    run.close()
    return dict(run=told(run), weight=norm)


def work_failure(rank, options):
    """Rank 0's disk is full in step 2; no rank waits for another afterwards."""
    model = nn.parallel.DistributedDataParallel(model_of())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = fake_watch(model, ranks="merge",
                         recorder=lambda path, **o: FakeRecorder(path, 2, **o))
        if rank == options.get("tap_fails", -1):
            run._shared.fail(RuntimeError("a tap failed"))
        train(model, rank, run)
        run.close()
    return dict(run=told(run), failure=run.failure, weights=help_.weights(model),
                warnings=[str(one.message) for one in said if "statrec" in str(one.message)])


def work_alone(rank, options):
    """Rank 0 alone has a run: the others never call step()."""
    model = nn.parallel.DistributedDataParallel(model_of())
    run = fake_watch(model, **options) if rank == 0 else None
    train(model, rank, run)
    if run is None:
        return dict(run=None)
    run.close()
    return dict(run=told(run))


def work_losses(rank, options):
    """The losses of this rank, and its batch means at the norm with rank 0's buffers around them."""
    model, seen = nn.parallel.DistributedDataParallel(model_of()), []
    norm = model.module[1]
    norm.register_forward_pre_hook(lambda module, args: seen.append(
        [args[0].detach().double().mean(0), module.running_mean.double().clone()]))
    norm.register_forward_hook(lambda module, args, y: seen[-1].append(
        module.running_mean.double().clone()))
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for batch in batches():
        optimizer.zero_grad()
        loss = model(batch[rank]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return dict(losses=losses, seen=seen)


def work_resume(rank, options):
    """A file that only rank 0 may read continues; with another model all ranks fail."""
    path = os.path.join(tempfile.gettempdir(), f"resume-{os.environ['MASTER_PORT']}.h5")
    steps = []
    for more in ({"force": True}, {"resume": True}):
        model = nn.parallel.DistributedDataParallel(model_of())
        mine = path if rank == 0 else "elsewhere.h5"
        run = help_.watch(model, mine, ranks="merge", verbose=False, **more)
        train(model, rank, run)
        run.close()
        steps.append(run.steps)
    try:
        help_.watch(model_of(nn.LayerNorm), mine, ranks="merge", verbose=False, resume=True)
    except Exception as error:
        failure = str(error)
    if rank == 0:
        os.remove(path)
    return dict(steps=steps, failure=failure)


JOBS = {
    "resume": (work_resume, dict()),
    "losses": (work_losses, dict()),
    "alone": (work_alone, dict(ranks="own")),
    "silent": (work_train, dict(ranks="merge", silent=True)),
    "plain": (work_train, dict(plain=True)),
    "plain ln": (work_train, dict(plain=True, norm=nn.LayerNorm)),
    "merge": (work_train, dict(ranks="merge")),
    "merge ln": (work_train, dict(ranks="merge", norm=nn.LayerNorm)),
    "rank 0 alone": (work_one_rank, dict(only=0)),
    "rank 1 alone": (work_one_rank, dict(only=1)),
    "merge of uses": (work_train, dict(ranks="merge", repeat="merge", uses=3, norm=nn.LayerNorm)),
    "own": (work_train, dict(ranks="own")),
    "default": (work_train, dict()),
    "recorder fails": (work_failure, dict()),
    "tap fails": (work_failure, dict(tap_fails=1)),
}


def _process(rank, port, where):
    """Runs all jobs in turn: starting two processes takes longer than the jobs."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    results = {}
    try:
        for name, (work, options) in JOBS.items():
            results[name] = work(rank, dict(options))
    except Exception:
        results["error"] = f"rank {rank}, {name}: {traceback.format_exc()}"
    with open(os.path.join(where, str(rank)), "wb") as file:
        pickle.dump(results, file)
    if "error" not in results:
        dist.barrier()
    dist.destroy_process_group()


def all_jobs():
    """Returns the results of the jobs in each of two processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    results = []
    with tempfile.TemporaryDirectory() as where:
        mp.spawn(_process, (port, where), nprocs=WORLD)
        for rank in range(WORLD):
            with open(os.path.join(where, str(rank)), "rb") as file:
                results.append(pickle.load(file))
    return results


def alone(norm=nn.LayerNorm):
    """The same training in one process; the model has no statistics over the batch."""
    model = model_of(norm)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fake_watch(model) as run:
        for batch in batches():
            optimizer.zero_grad()
            model(batch.reshape(-1, 5)).square().mean().backward()
            run.step()
            optimizer.step()
    return run.recorder


@unittest.skipUnless(dist.is_available() and dist.is_gloo_available(), "torch without gloo")
class Ranks(WatchCase):
    @classmethod
    def setUpClass(cls):
        cls.results = all_jobs()
        errors = [result["error"] for result in cls.results if "error" in result]
        if errors:
            raise AssertionError("\n".join(errors))

    def job(self, name):
        return [result[name] for result in self.results]

    def one_process(self, run):
        want = alone()
        self.assertEqual(len(run["steps"]), 3)
        for step, other in zip(run["steps"], want.steps):
            self.assertEqual([one["rows"] for one in step["passes"]], [12, 12])
            one, = other["passes"]
            self.close_to(merged(step["passes"]),
                          {name: torch.tensor(value, dtype=torch.float64)
                           if isinstance(value, list) else value for name, value in one.items()},
                          1e-5)

    def test_merge_is_one_process(self):
        """Two ranks with half of the rows each: the sums of one process with all rows."""
        first, second = self.job("merge ln")
        self.assertIsNone(second["run"])
        self.assertEqual(first["run"]["options"]["ranks"], "all of 2")
        self.assertEqual(first["run"]["options"]["model"], "Sequential")
        self.assertEqual(first["run"]["sites"][0]["repeat"], "merge")
        self.assertEqual(first["run"]["sites"][0]["name"], "1")
        self.one_process(first["run"])

    def test_merge_of_accumulated_passes(self):
        first, _ = self.job("merge of uses")
        self.one_process(first["run"])

    def test_row_norms_of_all_ranks(self):
        """dx_norm and direct_norm of row norms are of the rows of all ranks, as the sums."""
        want = alone().steps
        for job in ("merge ln", "merge of uses"):
            for step, other in zip(self.job(job)[0]["run"]["steps"], want):
                for name in ("dx_norm", "direct_norm"):
                    got = step["scalars"]["1", name]
                    self.assertLessEqual(abs(got / other["scalars"]["1", name] - 1), 1e-5, (job, name))

    def test_gain_where_one_rank_has_the_pass(self):
        for rank in (0, 1):
            first, _ = self.job(f"rank {rank} alone")
            one, = first["run"]["steps"][0]["passes"]
            self.assertEqual((one["site"], one["rows"]), ("parts.1", 12))
            self.assertEqual(one["gamma"], first["weight"].double().tolist())

    def test_norms_that_a_rank_lacks(self):
        """NaN, and not those of the others; no norms of sites for which no rank has them."""
        class Two(_ranks.Merging):
            def __init__(self):
                self.world = 2
        nan = float("nan")
        found = Two()._norms({"a": [(9.0, 16.0), (7.0, 9.0)], "b": [(1.0, 1.0), (nan, nan)],
                              "c": [(nan, nan)]})
        self.assertEqual(found["dx_norm"].pop("a"), 2.0)
        self.assertEqual(found["direct_norm"].pop("a"), 2.5)
        self.assertEqual(str(found), "{'dx_norm': {'b': nan}, 'direct_norm': {'b': nan}}")

    def test_resume(self):
        """Both ranks count from rank 0's file, and its error reaches both."""
        first, second = self.job("resume")
        self.assertEqual((first["steps"], second["steps"]), ([3, 6], [3, 6]))
        self.assertIn("its sites are not the model's: '1' is bn of 8 features in the file and ln of 8", first["failure"])
        self.assertIn("rank 0: ", second["failure"])

    def test_own(self):
        """Rank 0's rows alone, said in the file; the others have neither file nor hooks."""
        for name in ("own", "default"):
            first, second = self.job(name)
            self.assertIsNone(second["run"])
            self.assertEqual(first["run"]["options"]["ranks"],
                             "rank 0 of 2; running statistics: buffers of rank 0")
            step = first["run"]["steps"][0]
            self.assertEqual([one["rows"] for one in step["passes"]], [12])
            x = model_of()[0](batches()[0, 0]).detach().double()
            got = torch.tensor(step["passes"][0]["mean"], dtype=torch.float64)
            self.assertTrue(torch.allclose(got, x.mean(0), rtol=1e-5, atol=1e-6))

    def test_whose_buffers(self):
        """Reported if a BatchNorm is not synchronized, in both modes; not for other norms."""
        first, _ = self.job("merge")
        self.assertEqual(first["run"]["options"]["ranks"],
                         "all of 2; running statistics: buffers of rank 0")
        sites = [Site("1", nn.SyncBatchNorm(3)), Site("2", nn.BatchNorm1d(3))]
        for site in sites:
            site.own_running, site.norm = True, "bn"
        for chosen, merge, end in ((sites[:1], True, "all of 2"), (sites, True, "buffers of rank 0"),
                                   (sites[1:], False, "buffers of rank 0")):
            with mock.patch.multiple(_ranks.dist, is_available=lambda: True,
                                     is_initialized=lambda: True, get_world_size=lambda group: 2,
                                     get_rank=lambda group: 0):
                found = _ranks.choose(None, chosen)
            self.assertEqual((found.merge, found.told.endswith(end)), (merge, True))

    def test_loss_is_the_mean(self):
        """With merge, the mean of all ranks' losses; otherwise rank 0's own, and no rank waits."""
        mine, other = (job["losses"] for job in self.job("losses"))
        means = [(a + b) / 2 for a, b in zip(mine, other)]
        for name, want in (("merge", means), ("silent", mine), ("own", mine), ("alone", mine)):
            first = self.job(name)[0]["run"]["steps"]
            self.assertEqual(len(first), 3)
            for step, loss in zip(first, want):
                self.assertAlmostEqual(step["loss"] / loss, 1, 6, name)

    def test_movement_of_the_running_mean(self):
        """Rank 0's buffers against the batch mean of the rows that are recorded."""
        ranks = [job["seen"] for job in self.job("losses")]
        for name, count in (("own", 1), ("merge", 2)):
            for number, step in enumerate(self.job(name)[0]["run"]["steps"]):
                _, before, after = ranks[0][number]
                apart = sum(rank[number][0] for rank in ranks[:count]) / count - before
                for scalar, want in (("mu_moved", ((after - before) * apart).sum()),
                                     ("mu_apart", apart.square().sum())):
                    got = step["scalars"]["1", scalar]
                    self.assertLessEqual(abs(got - want), 1e-6 * abs(want) + 1e-12, (name, scalar))

    def test_weights_are_the_same_bits(self):
        for plain, names in (("plain", ("merge", "own")), ("plain ln", ("merge ln",))):
            for name in names:
                for a, b in zip(self.job(plain), self.job(name)):
                    self.assertTrue(help_.same(a["weights"], b["weights"]), name)

    def test_failure_on_one_rank(self):
        """The recorder of rank 0 fails, or a tap of rank 1: all stop recording, no rank waits, training continues."""
        for name, told in (("recorder fails", ("no space", "another rank")),
                           ("tap fails", ("another rank", "a tap failed"))):
            for rank, (plain, result) in enumerate(zip(self.job("plain"), self.job(name))):
                self.assertEqual(len(result["warnings"]), 1, result["warnings"])
                self.assertIn(told[rank], result["failure"])
                self.assertTrue(help_.same(plain["weights"], result["weights"]))


if __name__ == "__main__":
    unittest.main()
