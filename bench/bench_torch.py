#!/usr/bin/python3
"""Time of one training step in PyTorch, tuned for a CPU, on the two models of the demo.

    bench_torch.py resnet20 | transformer [--threads 2] [--rounds 9] [--steps 5] [--batch 128]

resnet20     ResNet20 as in docs/models.md 1.1 (BN, option-A shortcuts), a batch of 128 images
             32x32x3, cross entropy, SGD with momentum 0.9 and weight decay 1e-4; channels_last.
transformer  the mini encoder-decoder: pre-norm LN, d 128, FFN 256, 4 heads, 3+3 layers, vocabulary
             4000 with shared embedding, dropout 0, 1024 target tokens (32 pairs of 32), label
             smoothing 0.1, Adam.

A step is forward, backward and update on data made beforehand. Prints one line per round, the
median milliseconds of its steps, so that a script can alternate rounds of two programs, and at the
end the median of the rounds. Everything that is commonly done to make PyTorch fast on a CPU is
done: ATEN_CPU_CAPABILITY=avx512 and OPENBLAS_CORETYPE=SkylakeX where the CPU has AVX-512 (OpenBLAS
0.3.21 takes slower kernels on CPUs newer than itself), flushed denormals, channels_last, gradients set
to None. Adam without foreach was measured to be the faster one on a CPU.
"""
import argparse
import math
import os
import statistics
import time


def has_avx512():
    try:
        with open("/proc/cpuinfo") as f:
            return " avx512f " in f.read()
    except OSError:
        return False


if has_avx512():
    os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx512")
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")

import torch  # noqa: E402  (reads the variables when it is loaded)
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402


class Block(nn.Module):
    def __init__(self, inside, out):
        super().__init__()
        stride = 1 if inside == out else 2
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.front = (out - inside) // 2

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)), inplace=True)
        h = self.norm2(self.conv2(h))
        if self.front:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.front, self.front))
        return F.relu(h + x, inplace=True)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        blocks, inside = [], 16
        for out in (16, 32, 64):
            for _ in range(3):
                blocks.append(Block(inside, out))
                inside = out
        self.blocks = nn.Sequential(*blocks)
        self.classify = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)), inplace=True)
        return self.classify(self.blocks(x).mean((2, 3)))


def resnet20(batch):
    net = ResNet20().to(memory_format=torch.channels_last)
    image = torch.randn(batch, 3, 32, 32).to(memory_format=torch.channels_last)
    label = torch.randint(0, 10, (batch,))
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(image), label).backward()
        optimizer.step()

    return step


class Attention(nn.Module):
    """All three projections of self-attention in one product; -inf added to hidden scores."""

    def __init__(self, d, heads, cross):
        super().__init__()
        self.heads, self.cross = heads, cross
        self.query = nn.Linear(d, d if cross else 3 * d)
        self.memory = nn.Linear(d, 2 * d) if cross else None
        self.out = nn.Linear(d, d)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, memory=None, hidden=None):
        if self.cross:
            q = self.query(x)
            k, v = self.memory(memory).chunk(2, -1)
        else:
            q, k, v = self.query(x).chunk(3, -1)
        q, k, v = self.split(q), self.split(k), self.split(v)
        score = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]))
        if hidden is not None:
            score = score + hidden
        y = score.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, d, ffn, heads, decoder):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if decoder else 2))
        self.attend = Attention(d, heads, False)
        self.cross = Attention(d, heads, True) if decoder else None
        self.fc1, self.fc2 = nn.Linear(d, ffn), nn.Linear(ffn, d)

    def forward(self, x, memory=None, hidden=None):
        x = x + self.attend(self.norms[0](x), hidden=hidden)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), memory)
        return x + self.fc2(F.relu(self.fc1(self.norms[-1](x)), inplace=True))


class Transformer(nn.Module):
    def __init__(self, vocabulary=4000, d=128, ffn=256, heads=4, layers=3):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, d)
        nn.init.normal_(self.embed.weight, std=d**-0.5)
        self.encoder = nn.ModuleList(Layer(d, ffn, heads, False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(d, ffn, heads, True) for _ in range(layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        position = torch.arange(64)[:, None] * torch.exp(
            torch.arange(d // 2) * (-math.log(1e4) / (d // 2 - 1)))
        self.register_buffer("position", torch.cat([position.sin(), position.cos()], 1))
        self.register_buffer("causal", torch.full((64, 64), -math.inf).triu(1))
        self.scale = math.sqrt(d)

    def forward(self, source, target):
        x = self.embed(source) * self.scale + self.position[:source.shape[1]]
        for layer in self.encoder:
            x = layer(x)
        memory, length = self.encoder_norm(x), target.shape[1]
        x = self.embed(target) * self.scale + self.position[:length]
        for layer in self.decoder:
            x = layer(x, memory, self.causal[:length, :length])
        return self.decoder_norm(x) @ self.embed.weight.t()


def transformer(_):
    net = Transformer()
    source, into, out = (torch.randint(4, 4000, (32, 32)) for _ in range(3))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, betas=(0.9, 0.98), foreach=False)

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = net(source, into).view(-1, 4000)
        F.cross_entropy(logits, out.view(-1), label_smoothing=0.1, reduction="sum").backward()
        optimizer.step()

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("resnet20", "transformer"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    step = {"resnet20": resnet20, "transformer": transformer}[given.model](given.batch)
    for _ in range(3):
        step()
    rounds = []
    for _ in range(given.rounds):
        times = []
        for _ in range(given.steps):
            start = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - start))
        rounds.append(statistics.median(times))
        print(f"torch\t{given.model}\t{rounds[-1]:.1f}", flush=True)
    print(f"# torch {torch.__version__} {given.model}, {given.threads} threads: median of "
          f"{given.rounds} rounds {statistics.median(rounds):.1f} ms, best {min(rounds):.1f} ms")


if __name__ == "__main__":
    main()
