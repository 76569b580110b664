"""statrec.watch on a GPU: whole steps, the thread that writes, running statistics, in Triton's interpreter."""
import gc
import threading
import weakref

import watch_help as help_
from card_case import CardCase
from fake_recorder import FakeRecorder, Refused
from watch_help import fake_watch, joined, merged, reference
from watch_models import mlp, same_weights, train

import torch
from torch import nn

from statrec._gpu import _cards, _sent
from statrec._watching import _writer


class Steps(CardCase):
    def test_several_passes(self):
        norm, pairs, want = nn.LayerNorm(6), [], []
        model = nn.Sequential(nn.Identity(), norm)
        for _ in range(3):
            x, weight = torch.randn(20, 6), torch.randn(20, 6)
            pairs.append((x, weight))
            want.append((x.double(), weight.double()))
        for repeat in ("merge", "last"):
            with fake_watch(model, repeat=repeat) as run:
                for _ in range(3):
                    for x, weight in pairs:
                        (model(x.requires_grad_() * 1) * weight).sum().backward()
                    run.step()
            for step in range(3):
                passes = run.recorder.passes("1", step)
                if repeat == "merge":
                    self.assertEqual(len(passes), 3)
                    self.close_to(merged(passes), joined(want))
                else:
                    self.close_to(passes[0], reference(*pairs[2]))

    def test_every(self):
        """Other steps: no hook records anything, and their rows exist."""
        model, called = mlp(), []
        for name in ("forward", "again"):
            whole = getattr(_cards.Cards, name)
            self.patch(_cards.Cards, name, lambda *given, whole=whole: (called.append(1), whole(*given))[1])
        with fake_watch(model, every=3) as run:
            train(model, torch.randn(7, 12, 5), run)
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [0, 0, 2, 0, 0, 2, 0])
        self.assertEqual(len(called), 2 * 3)  # also the first step, which gives the order of the sites
        self.assertEqual([step["step"] for step in run.recorder.steps], list(range(1, 8)))

    def test_weights_are_the_same_bits(self):
        for norm in (nn.LayerNorm, nn.BatchNorm1d):
            plain, watched, data = mlp(norm), mlp(norm), torch.randn(4, 12, 5)
            losses = train(plain, data)
            with fake_watch(watched) as run:
                self.assertEqual(train(watched, data, run), losses)
            self.assertTrue(same_weights(plain, watched))
            self.assertEqual([step["loss"] for step in run.recorder.steps], losses)

    def test_numbers_are_those_of_their_step(self):
        """Tensors that the host overwrites after step()."""
        model, loss, scale = mlp(), torch.zeros(()), torch.ones(())
        with fake_watch(model) as run:
            run.scalar("one", "1", "of the step")
            run.scalar("each", "1", "of the site", scope="site")
            for step in range(1, 4):
                loss.fill_(step)
                scale.fill_(2.0 ** step)
                (scale * model(torch.ones(4, 5)).sum()).backward()
                run.step(loss=loss, lr=loss * 2, one=loss * 3, each={"1": loss * 4}, grad_scale=scale)
                loss.fill_(-1)
                scale.fill_(-1)
        for number, step in enumerate(run.recorder.steps, 1):
            self.assertEqual((step["loss"], step["lr"]), (number, 2 * number))
            self.assertEqual(list(step["numbers"].values()), [3 * number])
            self.assertEqual(step["scalars"]["1", run.recorder.steps and 1002], 4 * number)
        sums = [step["passes"][0]["sum_g"] for step in run.recorder.steps]
        self.assertEqual(sums[0], sums[1])

    def test_gain_of_the_forward_pass(self):
        model = mlp()
        gains = []
        with fake_watch(model) as run:
            for _ in range(3):
                gains.append(model[1].weight.tolist())
                model(torch.randn(4, 5)).sum().backward()
                with torch.no_grad():
                    model[1].weight.mul_(3)
                run.step()
        self.assertEqual([step["passes"][0]["gamma"] for step in run.recorder.steps], gains)

    def test_nothing_is_held(self):
        gc.collect()
        gc.disable()
        try:
            model = mlp()
            run = fake_watch(model)
            train(model, torch.randn(3, 12, 5), run)
            here = [weakref.ref(model), weakref.ref(run), weakref.ref(run._taps[0])]
            run.close()
            del model, run
            self.assertEqual([one() for one in here], [None] * 3)
        finally:
            gc.enable()


class Slow(FakeRecorder):
    """A recorder whose steps wait for `gate`."""
    gate = None

    def end_step(self, **row):
        self.gate.wait()
        super().end_step(**row)


class Thread(CardCase):
    def test_steps_do_not_wait_and_close_does(self):
        """Three steps ended while the file has none of them; the fourth would wait."""
        Slow.gate = threading.Event()
        model = mlp()
        run = fake_watch(model, recorder=Slow)
        train(model, torch.randn(3, 12, 5), run)
        self.assertEqual(run._recorder.steps, [])
        late = threading.Thread(target=train, args=(model, torch.randn(1, 12, 5), run))
        late.start()
        late.join(0.3)
        self.assertTrue(late.is_alive())  # one is written, two wait
        Slow.gate.set()
        late.join()
        run.close()
        self.assertEqual([step["step"] for step in run.recorder.steps], [1, 2, 3, 4])
        self.assertEqual(run.recorder.status, "complete")

    def test_a_file_that_fails(self):
        model = mlp()
        run = fake_watch(model, recorder=lambda path, **options: FakeRecorder(path, fail_at=2, **options))
        train(model, torch.randn(2, 12, 5), run)
        run._cards.writer._jobs.join()
        with self.assertWarnsRegex(RuntimeWarning, "not recorded any further: Refused"):
            train(model, torch.randn(1, 12, 5), run)
        self.assertEqual(len(run.recorder.steps), 1)
        self.assertFalse(any(module._forward_hooks for module in model.modules()))
        self.assertEqual(run.recorder.status, "failed")

    def test_a_file_that_fails_at_the_end(self):
        model = mlp()
        run = fake_watch(model, on_error="raise",
                         recorder=lambda path, **options: FakeRecorder(path, fail_at=2, **options))
        train(model, torch.randn(2, 12, 5), run)
        with self.assertRaises(Refused):
            run.close()

    def test_diverged(self):
        model = mlp()
        run = fake_watch(model)
        model(torch.randn(4, 5)).sum().backward()
        run.step(loss=torch.tensor(torch.nan))
        run.close()
        self.assertEqual(run.recorder.status, "diverged")

    def test_evaluation_comes_after_its_step(self):
        model = mlp()
        with fake_watch(model) as run:
            run.metric("accuracy")
            for _ in range(2):
                train(model, torch.randn(1, 12, 5), run)
                run.evaluate(accuracy=1.0)
                self.assertEqual(len(run._recorder.steps), run.steps)

    def test_order_and_errors(self):
        seen, writer = [], _writer.Writer()
        for number in range(20):
            writer.put(lambda number=number: seen.append(number))
        writer.drain()
        self.assertEqual(seen, list(range(20)))
        writer.put(lambda: 1 / 0)
        writer._jobs.join()
        with self.assertRaises(ZeroDivisionError):
            writer.put(lambda: seen.append(-1))
        writer.stop()
        self.assertNotIn(-1, seen)


class Movement(CardCase):
    """mu_moved and mu_apart, of buffers on the CPU and of those that take the way of a GPU's."""

    def of_cpu(self, taps):
        """Running.of without its device check."""
        pairs = [(tap, tap.module().num_features) for tap in taps
                 if not nn.parameter.is_lazy(tap.module().running_mean)]
        return [_sent.Running(torch.device("cpu"), pairs)] if pairs else []

    def watched(self, model, batches, **options):
        """Pairs (got, want) of the steps that have them, of site "1"; want in float64."""
        want, norm = [], model[1]
        norm.register_forward_pre_hook(lambda module, args: want.append(
            [help_.rows_of(args[0], True, 1).mean(0), module.running_mean.double().clone()
             if not nn.parameter.is_lazy(module.running_mean) else torch.zeros(6).double()]))
        norm.register_forward_hook(lambda module, args, y: want[-1].append(
            module.running_mean.double().clone()))
        with fake_watch(model, **options) as run:
            for batch in batches:
                model(batch).square().mean().backward()
                run.step()
                for parameter in model.parameters():
                    parameter.grad = None
        pairs = []
        for step, (mean, before, after) in zip(run.recorder.steps, want):
            if ("1", "mu_moved") in step["scalars"]:
                apart, moved = mean - before, after - before
                pairs.append(([step["scalars"]["1", name] for name in ("mu_moved", "mu_apart")],
                              [(moved * apart).sum().item(), (apart * apart).sum().item()]))
                self.assertEqual(step["vectors"]["1", "mu"], before.tolist())
        return pairs

    def test_both_ways(self):
        for of in (_sent.Running.of, self.of_cpu):
            for lazy in (False, True):
                for every in (1, 2, 3):
                    with self.subTest(of=of, lazy=lazy, every=every):
                        self.patch(_sent.Running, "of", of)
                        norm = nn.LazyBatchNorm1d() if lazy else nn.BatchNorm1d(6)
                        model = nn.Sequential(nn.Linear(5, 6), norm, nn.Linear(6, 2))
                        pairs = self.watched(model, list(torch.randn(7, 12, 5)), every=every)
                        self.assertEqual(len(pairs), 7 // every)
                        for got, want in pairs:
                            self.assertLess(abs(want[0] / want[1] - 0.1), 1e-4)
                            for a, b in zip(got, want):
                                self.assertLess(abs(a / b - 1), 1e-5)
