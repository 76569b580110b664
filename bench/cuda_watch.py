"""usage: cuda_watch.py [--quick] [--cpu] [--dry] [--part NAME]... [--seconds S]

statrec.watch on a GPU, in at most six minutes (--quick: 90 s). Lines of TSV go to the standard output, the
first word names the table; lines that begin with # are text. Parts, in this order:

  nodes      what torch's node of batch norm itself is off by, for each dtype and layout (_believed.py)
  bits       whether the weights after three steps are those of an unwatched model, bit by bit
  accuracy   every adapter in fp32, bf16, fp16 against float64, eager; then six compiled cells. Errors are
             relative to the largest value of a kind. "autocast": weights in fp32 under torch.autocast;
             "whole": module and input in this dtype
  overhead   percent of the bare step, medians of rounds in which all ways take turns
  syncs      synchronizations of a step: warnings of torch.cuda.set_sync_debug_mode, and calls of the CUDA
             runtime by torch.profiler. The thread that writes waits once a step (cudaEventSynchronize)

Models that the time is too short for are named at the end. --cpu runs bits and accuracy on the CPU, with
small tensors. --dry runs every part on the CPU with the smallest ones, the kernels in Triton's interpreter:
its times mean nothing, and synchronizations are not seen there. Needs torch (with CUDA), PYTHONPATH and
STATREC_LIBRARY as tests/run_python.sh sets them.
"""
import argparse
import contextlib
import math
import os
import statistics
import sys
import tempfile
import time
import traceback
import warnings

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
if "--dry" in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "python"))
sys.path.insert(0, os.path.join(HERE, os.pardir, "python", "tests"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import cuda_models as models  # noqa: E402
import statrec  # noqa: E402
import statrec._watching._taps  # noqa: E402
from fake_recorder import FakeRecorder  # noqa: E402

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
BOUND = 1e-5
LIMIT = 350  # seconds of all parts
started = time.monotonic()


def told_failures():
    """Prints each error of a hook once, with its traceback."""
    whole, seen = statrec._watching._taps.Shared.fail, set()

    def fail(self, error):
        if repr(error)[:200] not in seen:
            seen.add(repr(error)[:200])
            traceback.print_exception(error)
        whole(self, error)
    statrec._watching._taps.Shared.fail = fail


def line(*words):
    print("\t".join(str(word) for word in words), flush=True)


def text(words):
    print(f"# {words} [{time.monotonic() - started:.0f} s]", flush=True)


# -- float64 ----------------------------------------------------------------------------------

def rows_of(t, first):
    t = t.detach().double()
    return t.movedim(1, -1).reshape(-1, t.shape[1]) if first else t.reshape(-1, t.shape[-1])


def reference(x, g, first):
    x, g = rows_of(x, first), rows_of(g, first)
    mean = x.mean(0)
    c = x - mean
    return dict(mean=mean, variance=c.square().mean(0), mean_square=x.square().mean(0),
                sum_g=g.sum(0), sum_gc=(g * c).sum(0), sum_gg=g.square().sum(0))


def errors(got, want):
    """{kind: error}, relative to the largest value of the kind."""
    found = {}
    for kind, value in want.items():
        have = torch.as_tensor(got[kind], dtype=torch.float64, device=value.device)
        found[kind] = ((have - value).abs().max() / value.abs().max()).item()
    return found


# -- accuracy ---------------------------------------------------------------------------------

class Between(nn.Module):
    """A factor of one, the norm, relu, a product: x and g are known without hooks."""

    def __init__(self, norm):
        super().__init__()
        self.norm, self.factor = norm, nn.Parameter(torch.tensor(1.0))
        with torch.no_grad():
            for parameter in norm.parameters():
                parameter.uniform_(0.5, 1.5)

    def forward(self, batch, weight):
        return (self.norm(self.factor * batch).relu() * weight).float().sum()


class Cell:
    """One line of the table: a norm, a dtype, a layout."""

    def __init__(self, case, dtype, whole, last, device, small):
        self.case, self.dtype, self.whole, self.last, self.device = case, dtype, whole, last, device
        torch.manual_seed(3)
        shape = case.small if small else case.shape
        self.model = Between(case.make(shape[1] if case.first else shape[-1])).to(device)
        width = [1, shape[1]] + [1] * (len(shape) - 2) if case.first else [shape[-1]]
        scale, offset = (torch.rand(width, device=device) for _ in range(2))
        batch = (torch.randn(shape, device=device) + offset) * (0.5 + scale)
        self.batch, self.weight = self.formed(batch), self.formed(torch.randn(shape, device=device))
        if whole:
            self.model.to(DTYPES[dtype])

    def formed(self, t):
        t = t.to(DTYPES[self.dtype])
        if not self.last:
            return t
        return t.contiguous(memory_format=torch.channels_last if t.dim() == 4
                            else torch.channels_last_3d)

    def cast(self):
        on = self.dtype != "fp32" and not self.whole
        return torch.autocast(self.device.type, DTYPES[self.dtype]) if on else contextlib.nullcontext()

    def truth(self):
        """x and g of the norm, and float64's norms of its dx if a row norm has them."""
        norm = self.model.norm
        state = {name: value.clone() for name, value in norm.state_dict().items()}
        with self.cast():
            x = (self.model.factor * self.batch).detach()
            y = getattr(norm, "inner", norm)(x).detach().requires_grad_()
            tail = norm.act(y) if hasattr(norm, "inner") else y
            g, = torch.autograd.grad((tail.relu() * self.weight).float().sum(), y)
        norm.load_state_dict(state)
        want = reference(x, g, self.case.first)
        if self.case.norms:
            twin = self.case.make(x.shape[1] if self.case.first else x.shape[-1])
            twin = twin.to(self.device).double()
            twin.load_state_dict({name: value.double() for name, value in state.items()})
            x64 = x.double().requires_grad_()
            dx, = torch.autograd.grad(twin(x64), x64, g.double())
            want["dx_norm"] = dx.norm().reshape(1)
        return want

    def measured(self, backend):
        """The same by statrec.watch: the second of two steps."""
        options = dict(observe="norm", sites=[]) if self.case.observed else {}
        run = statrec.watch(self.model, "run.h5", recorder=FakeRecorder, verbose=False, **options)
        model = torch.compile(self.model, backend=backend) if backend else self.model
        for _ in range(2):
            with self.cast():
                loss = model(self.batch, self.weight)
            loss.backward()
            run.step(loss=loss)
        run.close()
        if run.failure:
            raise RuntimeError(run.failure)
        passes = run.recorder.passes("norm")
        if not passes:
            return None
        got = dict(passes[0])
        norms = run.recorder.steps[-1]["scalars"]
        if ("norm", "dx_norm") in norms:
            got["dx_norm"] = [norms["norm", "dx_norm"]]
        return got

    def line(self, backend=None):
        """Prints the cell. Whether it is right, or named as not recorded."""
        mode = "compiled" if backend else "eager"
        words = ("accuracy", self.case.name, self.case.adapter, self.dtype,
                 "whole" if self.whole else "autocast", "last" if self.last else "plain", mode)
        try:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                got = self.measured(backend)
            if got is None:
                told = [str(one.message) for one in heard if "not recorded" in str(one.message)]
                line(*words, "nan", told[0] if told else "no pass", "named" if told else "WRONG")
                return bool(told)
            want = self.truth()
            if backend or "dx_norm" not in got:
                want.pop("dx_norm", None)
            found = errors(got, want)
        except Exception as error:  # torch lacks the kernel; the table shows it
            line(*words, "nan", f"{type(error).__name__}: {error}".split("\n")[0][:90], "failed")
            return False
        kind = max(found, key=lambda one: found[one] if found[one] == found[one] else 9e9)
        right = found[kind] <= BOUND
        line(*words, f"{found[kind]:.1e}", kind, "ok" if right else "WRONG")
        return right


def modes(case, dtype):
    """Whether whole, of the ways that this dtype comes about."""
    if dtype == "fp32":
        return [True]
    return [True, False] if case.mixed else [True]


def accuracy(device, quick, small, dry=False):
    line("accuracy", "norm", "adapter", "dtype", "weights", "layout", "mode", "error", "kind", "verdict")
    cells = [(case, dtype, whole, last) for case in models.CASES for dtype in DTYPES
             for whole in modes(case, dtype) for last in ([False, True] if case.last else [False])
             if (device.type == "cuda" or not case.cuda) and not (quick and dtype == "fp16")
             and not (dry and dtype != "bf16")]
    right = [Cell(*one, device, small).line() for one in cells]
    backend = "aot_eager" if device.type == "cpu" else "inductor"
    by_name = {case.name: case for case in models.CASES}
    compiled = models.COMPILED[:2 if quick and device.type == "cuda" else None]
    for name, dtype, whole, last in [] if dry else compiled:
        torch._dynamo.reset()
        right.append(Cell(by_name[name], dtype, whole, last, device, small).line(backend))
    text(f"accuracy: {sum(right)} of {len(right)} cells within {BOUND} or named")
    return all(right)


# -- torch's node alone -----------------------------------------------------------------------

def nodes(device, small):
    line("nodes", "norm", "dtype", "layout", "mean", "variance", "sum_g", "sum_gx", "verdict")
    for name in ("BatchNorm1d", "BatchNorm1d NCL", "BatchNorm2d", "BatchNorm3d"):
        case = next(one for one in models.CASES if one.name == name)
        for dtype in DTYPES:
            for last in ([False, True] if case.last else [False]):
                cell = Cell(case, dtype, dtype == "fp32", last, device, small)
                x, norm = cell.batch.clone().requires_grad_(), cell.model.norm
                y = norm(x)
                node = y.grad_fn
                mean, inverse = node._saved_result1, node._saved_result2
                got = dict(mean=mean, variance=inverse.double() ** -2 - norm.eps)
                g = torch.randn_like(y)
                y.backward(g)
                want = reference(x, g, True)
                got["sum_g"], got["sum_gx"] = norm.bias.grad, norm.weight.grad
                want["sum_gx"] = want.pop("sum_gc") * (want["variance"] + norm.eps).rsqrt()
                want.pop("sum_gg"), want.pop("mean_square")
                found = errors(got, want)
                line("nodes", name, dtype, "last" if last else "plain",
                     *(f"{found[kind]:.1e}" for kind in ("mean", "variance", "sum_g", "sum_gx")),
                     f"{node.name()} {'exact' if max(found.values()) < BOUND / 2 else 'rounds'}")


# -- weights ----------------------------------------------------------------------------------

def trained(dtype, device, watched):
    torch.manual_seed(5)
    model = models.mixed().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    run = statrec.watch(model, "run.h5", recorder=FakeRecorder, verbose=False) if watched else None
    for _ in range(3):
        x = torch.randn(16, 3, 16, 16, device=device).to(memory_format=torch.channels_last)
        with torch.autocast(device.type, DTYPES[dtype], enabled=dtype != "fp32"):
            loss = model(x).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if run is not None:
            run.step(loss=loss)
        optimizer.step()
    if run is not None:
        run.close()
        assert run.failure is None and len(run.recorder.steps) == 3, run.failure
    return model.state_dict()


def bits(device):
    line("bits", "dtype", "watched", "control")
    torch.use_deterministic_algorithms(True, warn_only=True)
    right = True
    for dtype in DTYPES:
        plain, again, watched = (trained(dtype, device, on) for on in (False, False, True))
        same = [all(torch.equal(plain[name], one[name]) for name in plain) for one in (watched, again)]
        line("bits", dtype, *("same" if one else "DIFFERENT" for one in same))
        right = right and same[0]
    torch.use_deterministic_algorithms(False)
    return right


# -- overhead ---------------------------------------------------------------------------------

def finished(device):
    """Waits for the card."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def peak(device, again=False):
    """MiB on the card at most since the last call with `again`."""
    if device.type != "cuda":
        return 0.0
    if again:
        torch.cuda.reset_peak_memory_stats()
    return torch.cuda.max_memory_allocated() / 2 ** 20


WAYS = {"bare": None, "bare2": None, "everything": dict(vectors_every=1),
        "scalars": dict(vectors=False, gradient_norms=False),
        "every10": dict(vectors_every=1, every=10)}


class Training:
    """A model and its step."""

    def __init__(self, name, device):
        torch.manual_seed(1)
        self.device = device
        model, self.x, self.target = models.TRAININGS[name]()
        self.model = model.to(device)
        self.x, self.target = self.x.to(device), self.target.to(device)
        if self.x.dim() == 4:
            self.x = self.x.contiguous(memory_format=torch.channels_last)
            self.model.to(memory_format=torch.channels_last)
        kind = torch.optim.SGD if "resnet" in name else torch.optim.AdamW
        self.optimizer = kind(self.model.parameters(), lr=1e-3, fused=device.type == "cuda")

    def step(self, run=None):
        self.optimizer.zero_grad()
        with torch.autocast(self.device.type, torch.bfloat16):
            out = self.model(self.x)
            loss = F.cross_entropy(out.flatten(0, -2), self.target.flatten())
        loss.backward()
        if run is not None:
            run.step(loss=loss, lr=1e-3, tokens=self.target.numel())
        self.optimizer.step()

    @contextlib.contextmanager
    def recorded(self, way, directory):
        options = WAYS[way]
        if options is None:
            yield None
            return
        run = statrec.watch(self.model, os.path.join(directory, f"{way}.h5"), force=True, verbose=False,
                            **options)
        yield run
        run.close()
        assert run.failure is None, run.failure

    def turn(self, way, steps, directory):
        """Seconds of a step; MiB on the card at most; ms to issue a step; ms of close(). The steps begin after two
        that are recorded: the first one compiles and plans."""
        with self.recorded(way, directory) as run:
            for _ in range(1 + 2 * (WAYS[way] or {}).get("every", 1)):
                self.step(run)
            finished(self.device)
            peak(self.device, True)
            start = time.perf_counter()
            for _ in range(steps):
                self.step(run)
            issued = time.perf_counter()
            finished(self.device)
            seconds = (time.perf_counter() - start) / steps
            most = peak(self.device)
            ended = time.perf_counter()
        return seconds, most, 1e3 * (issued - start) / steps, 1e3 * (time.perf_counter() - ended)


def overhead(device, name, limit, rounds, steps=20):
    """limit: seconds of a model."""
    begin, training = time.monotonic(), Training(name, device)
    found = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as directory:
        for way in WAYS:  # compiles and warms up
            training.turn(way, 2, directory)
        for done in range(1, rounds + 1):
            for way, turns in found.items():
                turns.append(training.turn(way, steps, directory))
            spent = time.monotonic() - begin
            if spent + spent / done > limit:
                break
    bare = [turn[0] for turn in found["bare"]]
    for way, turns in found.items():
        ratio = statistics.median(turn[0] / one for turn, one in zip(turns, bare))
        least = min(turn[0] for turn in turns) / min(bare)
        line("overhead", name, way, f"{1e3 * statistics.median(turn[0] for turn in turns):.2f}",
             f"{100 * (ratio - 1):+.1f}", f"{100 * (least - 1):+.1f}",
             f"{statistics.median(turn[2] for turn in turns):.2f}",
             f"{statistics.median(turn[3] for turn in turns):.0f}",
             f"{turns[-1][1] - found['bare'][-1][1]:.2f}", len(turns))
    text(f"overhead of {name} took {time.monotonic() - begin:.0f} s")
    del training
    if device.type == "cuda":
        torch.cuda.empty_cache()


# -- synchronizations -------------------------------------------------------------------------

_CALLS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy",
          "cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx",
          "cudaMemcpyAsync", "cudaMemsetAsync")


def warned(training, run, steps):
    """Warnings of synchronizing operations per step."""
    if training.device.type != "cuda":
        return math.nan
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for _ in range(steps):
                training.step(run)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(one.message) for one in heard) / steps


def profiled(training, run, steps):
    """{call: times per step}, and milliseconds of the kernels of a step."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if training.device.type == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=kinds) as profile:
        for _ in range(steps):
            training.step(run)
        finished(training.device)
    found = {one.key: one for one in profile.key_averages()}
    counts = {name: found[name].count / steps for name in _CALLS if name in found}
    device = sum(getattr(one, "self_device_time_total", 0) for one in found.values())
    return counts, device / steps / 1e3


def syncs(device, name, steps=10):
    training = Training(name, device)
    with tempfile.TemporaryDirectory() as directory:
        for way in ("bare", "everything", "scalars", "every10"):
            with training.recorded(way, directory) as run:
                for _ in range(1 + 2 * (WAYS[way] or {}).get("every", 1)):
                    training.step(run)
                count = warned(training, run, steps)
                counts, spent = profiled(training, run, steps)
            line("syncs", name, way, count, f"{spent:.2f}",
                 " ".join(f"{call}={times:g}" for call, times in counts.items()))
    del training
    if device.type == "cuda":
        torch.cuda.empty_cache()


# -- all --------------------------------------------------------------------------------------

def tried(part, *given):
    """Whether it ran to its end; the other models are measured in any case."""
    try:
        part(*given)
        return True
    except Exception:
        traceback.print_exc()
        return False


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="90 s")
    parser.add_argument("--cpu", action="store_true", help="bits and accuracy on the CPU")
    parser.add_argument("--dry", action="store_true", help="every part on the CPU, as small as can be")
    parser.add_argument("--part", action="append", help="nodes, bits, accuracy, overhead, syncs")
    parser.add_argument("--model", action="append", help=" ".join(models.TRAININGS))
    parser.add_argument("--seconds", type=float, default=0, help="of overhead for each model")
    return parser.parse_args()


def left():
    """Seconds."""
    return LIMIT - (time.monotonic() - started)


def costs(device, given, parts):
    """Overhead and synchronizations of all models, in the time that there is. Whether all of them
    were measured."""
    names = given.model or (["tiny"] if given.dry else ["resnet18", "gpt_rms"] if given.quick else
                            [name for name in models.TRAININGS if name != "tiny"])
    rounds, steps, right, short = (1, 2, True, []) if given.dry else (12, 20, True, [])
    line("overhead", "model", "way", "ms", "percent", "least_percent", "issue_ms", "close_ms", "more_mib",
         "rounds")
    for place, name in enumerate(names if "overhead" in parts else []):
        share = (left() - (8 * len(names) if "syncs" in parts else 0)) / (len(names) - place)
        if share < 4:
            short.append(name)
            continue
        limit = given.seconds or min(share, 8 if given.quick else 28)
        right = tried(overhead, device, name, limit, rounds, steps) and right
    line("syncs", "model", "way", "warned", "device_ms", "calls")
    for name in names if "syncs" in parts else []:
        if left() < 4:
            short.append(name)
        else:
            right = tried(syncs, device, name, steps // 2) and right
    if short:
        text(f"no time for {', '.join(dict.fromkeys(short))}")
    return right and not short


def main():
    given = arguments()
    given.cpu = given.cpu or given.dry
    device = torch.device("cpu" if given.cpu else "cuda")
    parts = given.part or (["bits", "accuracy"] if given.cpu and not given.dry else
                           ["nodes", "bits", "accuracy", "overhead", "syncs"])
    card = "CPU" if given.cpu else torch.cuda.get_device_name()
    try:
        import triton
        more = f"triton {triton.__version__}"
    except ImportError:
        more = "no triton"
    text(f"{card}, torch {torch.__version__}, {more}, python {sys.version.split()[0]}, "
         f"statrec {statrec.__version__}")
    told_failures()
    right = True
    if "nodes" in parts:
        nodes(device, given.dry)
    if "bits" in parts:
        right = bits(device) and right
    if "accuracy" in parts:
        right = accuracy(device, given.quick, given.cpu, given.dry) and right
    if "overhead" in parts or "syncs" in parts:
        right = costs(device, given, parts) and right
    text("done")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
