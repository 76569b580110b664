"""statrec.watch on a GPU: its table, launches and copies; its kernels in Triton's interpreter."""
import ctypes
import importlib.util
import os
import subprocess
import sys
import unittest
from unittest import mock

from watch_help import torch

from statrec._gpu import _board, _fetch, _kernels
from statrec._watching import _believed


class Believed(unittest.TestCase):
    def test_table(self):
        planes = torch.zeros(2, 3, 4, 5)
        last = planes.contiguous(memory_format=torch.channels_last)
        for y, dtype, version, want in (
                (planes, torch.bfloat16, (2, 11), False), (last, torch.bfloat16, (2, 11), True),
                (planes, torch.float32, (2, 11), True), (planes, torch.float16, (2, 11), True),
                (planes, torch.float64, (2, 11), False), (last, torch.bfloat16, (2, 12), False),
                (planes[:, :, ::2], torch.float32, (2, 11), False)):
            self.assertEqual(_believed.believed(y.to(dtype) if y.is_contiguous() else y.to(dtype), version), want)


class CachedLaunch(unittest.TestCase):
    """Kernels compiled by Triton are called with prepared arguments, after a comparison of both ways."""

    class Kernel:
        """Adds 1 to the first double of a slot. slow: calls by Triton's own way; fast: direct ones."""
        device_caches = {}

        def __init__(self, direct=1.0):
            self.slow, self.fast, self.adds, self.direct = [], [], 1.0, direct

        def __getitem__(self, grid):
            def launch(x, slot, *given, num_warps, **constants):
                slot[0] += self.adds
                self.slow.append((grid, given, constants, num_warps))
                return mock.Mock(spec=("run", "function", "packed_metadata"), function="F",
                                 packed_metadata="M", run=self.run)
            return launch

        def run(self, *given):
            ctypes.c_double.from_address(given[10]).value += self.direct * self.adds
            self.fast.append(given)

    def setUp(self):
        patched = mock.patch.object(torch._C, "_cuda_getCurrentRawStream", lambda index: 7, create=True)
        patched.start()
        self.addCleanup(patched.stop)
        self.x, self.slot = torch.zeros(64), torch.zeros(64, dtype=torch.float64)
        self.make(self.Kernel())

    def make(self, kernel):
        self.kernel = kernel
        self.launch = _kernels.Launch(kernel, (3, 2), (10, 6, 0.5), dict(MASKED=False, HIGH=16), 8)

    def call(self, x=None, stride=16, *grid):
        self.launch((self.x if x is None else x,), (self.slot,), (self.slot.data_ptr(),), stride, *grid)

    def counts(self):
        return len(self.kernel.slow), len(self.kernel.fast)

    def test_once_by_triton(self):
        """And once for the comparison, in copies."""
        for count in (1, 2, 3):
            self.call()
            self.assertEqual(self.slot[0], count)
        self.assertEqual(self.kernel.slow, 2 * [((3, 2, 1), (16, 10, 6, 0.5), dict(MASKED=False, HIGH=16), 8)])
        self.assertEqual(self.kernel.fast[1:], 2 * [(3, 2, 1, 7, "F", "M", None, None, None, self.x.data_ptr(),
                                                     self.slot.data_ptr(), 16, 10, 6, 0.5, False, 16)])

    def test_what_is_not_the_same(self):
        """A launcher that does nothing, something else, or raises: never used again."""
        for direct in (0.0, 1 + 1e-6, "x"):
            self.make(self.Kernel(direct))
            self.slot.zero_()
            for count in (1, 2, 3):
                self.call()
                self.assertEqual(self.slot[0], count)
            self.assertEqual(self.counts()[0], 4)
            self.assertLessEqual(self.counts()[1], 1)

    def test_nothing_to_compare(self):
        """Sums of zeros show nothing; the comparison is tried again, not in every step."""
        self.kernel.adds = 0.0
        for _ in range(2):
            self.call()
        self.kernel.adds = 1.0
        for count in (1, 2):
            self.call()
            self.assertEqual(self.slot[0], count)
        self.assertEqual(self.counts(), (6, 4))
        self.make(self.Kernel())
        self.kernel.adds = 0.0
        for _ in range(9):
            self.call()
        self.assertEqual(self.counts(), (12, 3))

    def test_grid_of_several(self):
        for count in (2, 4, 3):
            self.call(None, 16, (3, 2, count))
        self.assertEqual([given[:3] for given in self.kernel.fast], [(3, 2, 2), (3, 2, 4), (3, 2, 3)])

    def test_what_the_code_assumes(self):
        """Another alignment or another stride goes through Triton."""
        odd = torch.zeros(65)[1:]
        self.call(odd)
        self.call(odd)
        self.assertEqual(self.counts(), (2, 0))
        self.call()
        self.call(odd)
        self.assertEqual(self.counts(), (5, 1))
        self.call(None, 32)
        self.call(None, 32)
        self.assertEqual(self.counts(), (6, 2))


class Copies(unittest.TestCase):
    def test_values_are_those_of_now(self):
        tensors = [torch.ones(2, 3), torch.tensor(4.0), torch.ones(5, dtype=torch.float64)]
        fetch = _fetch.Fetch(tensors)
        for tensor in tensors:
            tensor.zero_()
        self.assertEqual([one.sum().item() for one in fetch.get()], [6, 4, 5])

    def test_places_do_not_touch(self):
        taps = [mock.Mock(), mock.Mock()]
        taps[0].card.gain, taps[1].card.gain = None, torch.full((3,), 2.0)
        for tap in taps:
            tap.site.eps, tap.whole_gain = 0.1, lambda gain: gain
        board = _board.Board(torch.device("cpu"), {(taps[0], "read", 0): 17, (taps[1], "node", 0): 3,
                                                   (taps[1], "read", 0): 3})
        board.take_gains()
        for number, slot in enumerate(board.slots.values(), 1):
            slot.all.fill_(number)
            slot.more.fill_(number)
            self.assertEqual([slot.sums.data_ptr() % 16, slot.more.data_ptr() % 16], [0, 0])
        for number, slot in enumerate(board.slots.values(), 1):
            self.assertTrue(bool((slot.all == number).all()) and bool((slot.more == number).all()))
        self.assertEqual([slot.gained for slot in board.slots.values()], [False, True, True])


class Interpreted(unittest.TestCase):
    """Triton reads TRITON_INTERPRET when it is imported, so these run in a separate process."""

    def test_all(self):
        if importlib.util.find_spec("triton") is None:
            self.skipTest("triton is not installed")
        here = os.path.dirname(os.path.abspath(__file__))
        modules = sorted(name[:-3] for name in os.listdir(here) if name.startswith("interpreted_"))
        done = subprocess.run([sys.executable, "-m", "unittest", *modules], cwd=here, text=True,
                              capture_output=True, env={**os.environ, "TRITON_INTERPRET": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Ran 0 tests", done.stderr)


if __name__ == "__main__":
    unittest.main()
