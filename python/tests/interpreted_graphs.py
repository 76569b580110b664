"""statrec.watch beside CUDA graphs: in Triton's interpreter, where a capture is pretended."""

import contextlib
import warnings
from unittest import mock

from card_case import CardCase
from watch_help import fake_watch

import torch
from torch import nn

from statrec._gpu import _kernels
from statrec._watching import _kinds


class Tapped(nn.Module):
    """Has a norm in a call, whose activation hides it."""

    def __init__(self, width):
        super().__init__()
        self.weight, self.width, self.eps = nn.Parameter(torch.ones(width)), (width,), 1e-5

    def forward(self, x):
        return torch.relu(nn.functional.layer_norm(x, self.width, self.weight, None, self.eps))


class Graphs(CardCase):
    def capture(self):
        """Nothing may be launched, copied or waited for within."""
        stack = contextlib.ExitStack()
        stack.enter_context(mock.patch.object(_kinds, "captured", torch.is_tensor))
        stack.enter_context(mock.patch.object(_kernels.Launch, "__call__", self.no_sums))
        return stack

    def model(self, dtype=torch.float32):
        return nn.Sequential(
            nn.Linear(5, 6),
            nn.LayerNorm(6),
            nn.BatchNorm1d(6),
            Tapped(6),
            nn.Linear(6, 6),
            nn.LayerNorm(6),
        ).to(dtype)

    def record(self, dtype, first):
        """Six steps of the modules up to `first`, and of the others apart. In the third the former
        are captured, and later steps are replays of theirs: the run, and its warnings."""
        model = self.model(dtype)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with fake_watch(model) as run:
                for step in range(6):
                    if step < 3:
                        with self.capture() if step == 2 else contextlib.nullcontext():
                            model[:first](torch.randn(7, 5, dtype=dtype)).square().sum().backward()
                    if first < len(model):
                        model[first:](torch.randn(7, 6, dtype=dtype)).square().sum().backward()
                    run.step()
                    run._drain()
        self.assertIsNone(run.failure)
        return run, [str(one.message) for one in said if "statrec" in str(one.message)]

    def test_who_is_asked(self):
        """Only for tensors of a GPU: the question would begin to use one."""
        for answer in (True, False):
            with mock.patch.object(torch.cuda, "is_current_stream_capturing", lambda: answer):
                self.assertEqual(_kinds.captured(mock.Mock(is_cuda=True)), answer)
        for value in (torch.ones(2), (torch.ones(2),), None):
            self.assertFalse(_kinds.captured(value))

    def test_a_part_of_the_model(self):
        for dtype in (torch.float32, torch.float64):
            self.doCleanups()
            run, said = self.record(dtype, 4)
            self.assertEqual(
                [sorted({one["site"] for one in step["passes"]}) for step in run.recorder.steps],
                2 * [["1", "2", "3", "5"]] + 4 * [["5"]],
            )
            self.assertEqual(
                run.recorder.reason,
                f"not recorded in 4 of 6 steps: '1' and 2 more: {_kinds.CAPTURED}",
            )
            self.assertEqual(len(said), 3)

    def test_all_of_it(self):
        for dtype in (torch.float32, torch.float64):
            self.doCleanups()
            run, said = self.record(dtype, 6)
            self.assertEqual(
                [len(step["passes"]) for step in run.recorder.steps], [4, 4, 0, 0, 0, 0]
            )
            self.assertEqual(
                run.recorder.reason,
                f"not recorded in 4 of 6 steps: '1' and 3 more: {_kinds.CAPTURED}",
            )

    def test_a_backward_pass_alone(self):
        model = nn.Sequential(nn.Identity(), nn.LayerNorm(6))
        with fake_watch(model) as run:
            for step in range(4):
                loss = model(torch.randn(7, 6, requires_grad=True) * 1).square().sum()
                with self.capture() if step == 2 else contextlib.nullcontext():
                    loss.backward()
                run.step()
                run._drain()
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [1, 1, 0, 1])

    def test_forward_alone(self):
        model = self.model()
        self.doCleanups()
        with (
            self.assertWarns(RuntimeWarning),
            fake_watch(model, forward=True) as run,
            torch.no_grad(),
        ):
            for step in range(2):
                with self.capture() if step else contextlib.nullcontext():
                    model(torch.randn(7, 5))
                run.step()
        self.assertEqual([len(step["passes"]) for step in run.recorder.steps], [4, 0])
