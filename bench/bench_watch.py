"""usage: bench_watch.py [ROUNDS] [CASE...]

Cost of recording in a PyTorch training step: medians of rounds. All ways take turns in a round, with one process,
one thread, synthetic data. Cases: resnet20: batch 128. bn and ln: a pre-norm encoder of 4,096 tokens, d 512, with
that norm at every site. small_bn and small_ln: 52 sites of 8,192 and 16,384 numbers, with steps as short as the
fixed cost of a site. Ways of each case:

  bare     the step alone
  bare2    the same once more: the noise of the machine
  all      statrec.watch, every vector and scalar of every step
  scalars  statrec.watch, scalars alone, without the norms of gradients
  hooks    hand-written forward and full backward hooks that take mean, variance and the two sums in float64
           and append them to h5py datasets, every step

more_percent is the median over rounds of the ratio to bare. least_percent is the ratio of the least of all rounds,
which other work on the machine disturbs less. own_percent, of statrec.watch: processor time between entry and return
of its hooks and of step(), relative to the rest of the same step. Almost nothing disturbs it, but it leaves out the
effect of the hooks on the caches.

Needs torch, numpy, h5py and, as tests/run_python.sh sets them, PYTHONPATH and STATREC_LIBRARY.
"""
import os
import statistics
import sys
import tempfile
import time

import h5py
import torch
from torch import nn

import statrec

STEPS = {"resnet20": 10, "bn": 3, "ln": 3, "small_bn": 30, "small_ln": 30}  # steps per turn, after one warm-up


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.stride, self.more = stride, outputs - inputs
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)

    def forward(self, x):
        y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu_()))
        x = nn.functional.pad(x[:, :, ::self.stride, ::self.stride],
                              (0, 0, 0, 0, self.more // 2, self.more // 2))
        return (y + x).relu()


def resnet20():
    blocks = [Block(*sizes) for sizes in
              [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2 + [(32, 64, 2)] + [(64, 64, 1)] * 2]
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return model, torch.randn(128, 3, 32, 32), torch.randint(10, (128,))


class TokenNorm(nn.Module):
    """BatchNorm of every token's features."""

    def __init__(self, d):
        super().__init__()
        self.bn = nn.BatchNorm1d(d)

    def forward(self, x):
        return self.bn(x.flatten(0, 1)).view_as(x)


class Layer(nn.Module):
    def __init__(self, norm, d=512, heads=8):
        super().__init__()
        self.norm1, self.norm2 = norm(d), norm(d)
        self.attention = nn.MultiheadAttention(d, heads, batch_first=True)
        self.ffn = nn.Sequential(nn.Linear(d, 4 * d), nn.ReLU(), nn.Linear(4 * d, d))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.ffn(self.norm2(x))


def encoder(norm):
    model = nn.Sequential(Layer(norm), Layer(norm), norm(512), nn.Linear(512, 10))
    return model, torch.randn(64, 64, 512), torch.randint(10, (4096,))


def small(norm, *shape):
    features = 1 if len(shape) == 4 else -1
    parts = [part for _ in range(52) for part in (norm(shape[features]), nn.Hardtanh())]
    x = torch.randn(shape)
    return (nn.Sequential(*parts, nn.Flatten(), nn.Linear(x[0].numel(), 10)), x,
            torch.randint(10, shape[:1]))


CASES = {"resnet20": resnet20, "bn": lambda: encoder(TokenNorm), "ln": lambda: encoder(nn.LayerNorm),
         "small_bn": lambda: small(nn.BatchNorm2d, 8, 16, 8, 8),
         "small_ln": lambda: small(nn.LayerNorm, 16, 16, 64)}
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm)


class Bare:
    own = 0.0  # seconds of the last step

    def __init__(self, model, path):
        pass

    def step(self, loss):
        pass

    def close(self):
        pass


class Watch(Bare):
    options = dict(vectors_every=1)

    def __init__(self, model, path):
        self.run = statrec.watch(model, path, force=True, **self.options)

    def step(self, loss):
        start, inside = time.process_time(), self.run._shared.seconds
        self.run.step(loss=loss)
        self.own = time.process_time() - start + inside

    def close(self):
        self.run.close()


class Scalars(Watch):
    options = dict(vectors=False, gradient_norms=False)


class Hooks(Bare):
    """Ordinary hooks and h5py."""

    def __init__(self, model, path):
        self.file, self.handles, self.sets, self.x = h5py.File(path, "w"), [], {}, {}
        for name, module in model.named_modules():
            if isinstance(module, NORMS):
                self.handles += [module.register_forward_hook(self.forward_of(name)),
                                 module.register_full_backward_hook(self.backward_of(name))]

    def rows(self, t):
        t = t.detach().double()
        return t.movedim(1, -1).reshape(-1, t.shape[1]) if t.dim() == 4 else t.reshape(-1, t.shape[-1])

    def put(self, name, value):
        if name not in self.sets:
            self.sets[name] = self.file.create_dataset(name, (0, len(value)), "f4", chunks=(64, len(value)),
                                                       maxshape=(None, len(value)))
        data = self.sets[name]
        data.resize(len(data) + 1, 0)
        data[-1] = value.numpy()

    def forward_of(self, name):
        def hook(module, inputs, output):
            x = self.x[name] = self.rows(inputs[0])
            self.put(name + "/mu_B", x.mean(0))
            self.put(name + "/sigma2_B", x.var(0, correction=0))
        return hook

    def backward_of(self, name):
        def hook(module, grad_in, grad_out):
            g, x = self.rows(grad_out[0]), self.x.pop(name)
            self.put(name + "/sum_g", g.sum(0))
            self.put(name + "/sum_gx", (g * (x - x.mean(0))).sum(0))
        return hook

    def close(self):
        for handle in self.handles:
            handle.remove()
        self.file.close()


WAYS = {"bare": Bare, "bare2": Bare, "all": Watch, "scalars": Scalars, "hooks": Hooks}


def turn(case, way, directory):
    """Returns the seconds of a step, the least of a turn, and the median of the recorder's part."""
    torch.manual_seed(1)
    model, x, target = CASES[case]()
    if way == "hooks":  # full backward hooks reject in-place operations after the norm
        for block in model.modules():
            if isinstance(block, Block):
                block.forward = lambda x, block=block: out_of_place(block, x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    recorder = WAYS[way](model, os.path.join(directory, f"{way}.h5"))
    seconds, shares = [], []
    for _ in range(STEPS[case] + 1):
        start = time.process_time()
        loss = nn.functional.cross_entropy(model(x).flatten(0, -2), target)
        loss.backward()
        recorder.step(loss)
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.process_time() - start)
        shares.append(recorder.own / (seconds[-1] - recorder.own))
    recorder.close()
    return min(seconds[1:]), statistics.median(shares[1:])


def out_of_place(block, x):
    y = block.norm2(block.conv2(block.norm1(block.conv1(x)).relu()))
    x = nn.functional.pad(x[:, :, ::block.stride, ::block.stride],
                          (0, 0, 0, 0, block.more // 2, block.more // 2))
    return (y + x).relu()


def main(words):
    rounds = int(words[0]) if words else 9
    torch.set_num_threads(1)
    time.perf_counter = time.process_time  # clock that the hooks use to measure themselves
    print("case\tway\tms\tmore_percent\tleast_percent\town_percent")
    with tempfile.TemporaryDirectory() as directory:
        for case in words[1:] or CASES:
            seconds, shares = {way: [] for way in WAYS}, {way: [] for way in WAYS}
            for _ in range(rounds):
                for way in WAYS:
                    least, share = turn(case, way, directory)
                    seconds[way].append(least)
                    shares[way].append(share)
            for way, values in seconds.items():
                more = statistics.median(v / b for v, b in zip(values, seconds["bare"])) - 1
                least = min(values) / min(seconds["bare"]) - 1
                print(f"{case}\t{way}\t{1e3 * statistics.median(values):.1f}\t{100 * more:.1f}\t"
                      f"{100 * least:.1f}\t{100 * statistics.median(shares[way]):.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
