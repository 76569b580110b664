#!/usr/bin/python3
"""Time of one training step in PyTorch, tuned for a CPU, on the models of bench_step.

    bench_torch.py CASE [--variant plain] [--threads 2] [--rounds 9] [--steps 5]
    bench_torch.py CASE --serve ...     a round for each line on standard input

Cases, sizes and optimizers are those of the table in bench_step.c:

resnet20         ResNet20 as in docs/models.md 1.1 (BN, option-A shortcuts), 128 images 32x32x3, SGD with
                 momentum 0.9 and weight decay 1e-4; channels_last
resnet18         its form for small images, 64 to 512 filters, option-B shortcuts
transformer      mini: pre-norm, d 128, FFN 256, 4 heads, 3+3 layers, vocabulary 4000, BN in the encoder and LN
                 in the decoder, dropout 0, 1024 target tokens (32 pairs of 32), label smoothing 0.1, Adam
transformer-ln   the same with LN everywhere
lm, tensorized   preset ptb: 3 layers, d 256, FFN 2100, 70 windows of 32, vocabulary 10000, dropout 0.3
iwslt            d 512, FFN 1024, 4 heads, 6+6 layers, 4096 tokens, BN in the encoder, dropout 0.3, 0.1 of the
                 attention and behind the ReLU

Variants: plain; fused: scaled_dot_product_attention and the optimizer's fused kernel; compiled: that, and the loss
under torch.compile. A step is forward, backward and update on data made beforehand. Prints one line per round, the
median milliseconds of its steps, and at the end the median of the rounds and the largest memory.
ATEN_CPU_CAPABILITY=avx512 and OPENBLAS_CORETYPE=SkylakeX are set where the CPU has AVX-512 (OpenBLAS 0.3.21 takes
slower kernels on CPUs newer than itself); denormals are flushed, gradients set to None.
"""
import argparse
import math
import os
import resource
import statistics
import sys
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

VARIANTS = ("plain", "fused", "compiled")


# -- images ----------------------------------------------------------------------------------------

class Block(nn.Module):
    """option: A, strided pixels between channels of zeros; B, a 1x1 convolution with a norm."""

    def __init__(self, inside, out, option):
        super().__init__()
        stride = 1 if inside == out or (option == "B" and out == 64) else 2
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.front = (out - inside) // 2 if option == "A" else 0
        self.shortcut = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False),
                                      nn.BatchNorm2d(out)) if stride == 2 and option == "B" else None

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)), inplace=True)
        h = self.norm2(self.conv2(h))
        if self.shortcut is not None:
            x = self.shortcut(x)
        elif self.front:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.front, self.front))
        return F.relu(h + x, inplace=True)


class ResNet(nn.Module):
    def __init__(self, filters, blocks, option):
        super().__init__()
        self.stem = nn.Conv2d(3, filters[0], 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(filters[0])
        made, inside = [], filters[0]
        for out in filters:
            for _ in range(blocks):
                made.append(Block(inside, out, option))
                inside = out
        self.blocks = nn.Sequential(*made)
        self.classify = nn.Linear(inside, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)), inplace=True)
        return self.classify(self.blocks(x).mean((2, 3)))


def images(net):
    net = net.to(memory_format=torch.channels_last)
    image = torch.randn(128, 3, 32, 32).to(memory_format=torch.channels_last)
    label = torch.randint(0, 10, (128,))
    return net, lambda: F.cross_entropy(net(image), label)


# -- text ------------------------------------------------------------------------------------------

class TokenNorm(nn.BatchNorm1d):
    """Over all tokens: there is no padding here."""

    def forward(self, x):
        return super().forward(x.flatten(0, 1)).view(x.shape)


class Attention(nn.Module):
    """All three projections of self-attention in one product; -inf added to hidden scores."""

    def __init__(self, d, heads, cross, dropout, sdpa):
        super().__init__()
        self.heads, self.cross, self.dropout, self.sdpa = heads, cross, dropout, sdpa
        self.query = nn.Linear(d, d if cross else 3 * d)
        self.memory = nn.Linear(d, 2 * d) if cross else None
        self.out = nn.Linear(d, d)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def weigh(self, q, k, v, hidden):
        """hidden: none; the causal triangle [T, T]; of padded keys, [N, 1, 1, T]"""
        causal = hidden is not None and hidden.dim() == 2
        if self.sdpa:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=None if causal else hidden,
                                                  dropout_p=self.dropout, is_causal=causal)
        score = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]))
        if hidden is not None:
            score = score + hidden
        p = score.softmax(-1)
        return (F.dropout(p, self.dropout) if self.dropout else p) @ v

    def forward(self, x, memory=None, hidden=None):
        if self.cross:
            q = self.query(x)
            k, v = self.memory(memory).chunk(2, -1)
        else:
            q, k, v = self.query(x).chunk(3, -1)
        y = self.weigh(self.split(q), self.split(k), self.split(v), hidden)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Drops(nn.Module):
    """Dropout of a residual branch, of attention weights, and after the ReLU."""

    def __init__(self, dropout=0.0, attention=0.0, relu=0.0):
        super().__init__()
        self.branch, self.attention, self.relu = dropout, attention, relu

    def of_branch(self, x):
        return F.dropout(x, self.branch) if self.branch else x

    def of_relu(self, x):
        return F.dropout(x, self.relu) if self.relu else x


class Layer(nn.Module):
    def __init__(self, d, ffn, heads, norm, drops, sdpa, decoder=False):
        super().__init__()
        self.drops = drops
        self.norms = nn.ModuleList(norm(d) for _ in range(3 if decoder else 2))
        self.attend = Attention(d, heads, False, drops.attention, sdpa)
        self.cross = Attention(d, heads, True, drops.attention, sdpa) if decoder else None
        self.fc1, self.fc2 = nn.Linear(d, ffn), nn.Linear(ffn, d)

    def forward(self, x, memory=None, hidden=None, hidden_memory=None):
        x = x + self.drops.of_branch(self.attend(self.norms[0](x), hidden=hidden))
        if self.cross is not None:
            x = x + self.drops.of_branch(self.cross(self.norms[1](x), memory, hidden_memory))
        h = self.drops.of_relu(F.relu(self.fc1(self.norms[-1](x)), inplace=True))
        return x + self.drops.of_branch(self.fc2(h))


def sinusoids(length, d):
    position = torch.arange(length)[:, None] * torch.exp(
        torch.arange(d // 2) * (-math.log(1e4) / (d // 2 - 1)))
    return torch.cat([position.sin(), position.cos()], 1)


class Embedded(nn.Module):
    """Parts shared by the text models: an embedding that is also the output matrix, and positions."""

    def __init__(self, vocabulary, d, length, drops):
        super().__init__()
        self.drops, self.scale = drops, math.sqrt(d)
        self.embedding = nn.Embedding(vocabulary, d)
        nn.init.normal_(self.embedding.weight, std=d**-0.5)
        self.register_buffer("position", sinusoids(length, d))
        self.register_buffer("causal", torch.full((length, length), -math.inf).triu(1))

    def embed(self, token):
        return self.drops.of_branch(self.embedding(token) * self.scale + self.position)

    def logits(self, x):
        return (x @ self.embedding.weight.t()).flatten(0, 1)


class Transformer(Embedded):
    def __init__(self, sdpa, norm, vocabulary=4000, d=128, ffn=256, heads=4, layers=3, drops=None,
                 length=32):
        drops = drops or Drops()
        super().__init__(vocabulary, d, length, drops)
        self.encoder = nn.ModuleList(Layer(d, ffn, heads, norm, drops, sdpa) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(d, ffn, heads, nn.LayerNorm, drops, sdpa, True)
                                     for _ in range(layers))
        self.encoder_norm, self.decoder_norm = norm(d), nn.LayerNorm(d)

    def forward(self, source, target):
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x)
        memory, x = self.encoder_norm(x), self.embed(target)
        for layer in self.decoder:
            x = layer(x, memory, self.causal)
        return self.logits(self.decoder_norm(x))


class LanguageModel(Embedded):
    def __init__(self, sdpa, vocabulary=10000, d=256, ffn=2100, heads=4, layers=3):
        super().__init__(vocabulary, d, 32, Drops(0.3))
        self.layers = nn.ModuleList(Layer(d, ffn, heads, nn.LayerNorm, self.drops, sdpa)
                                    for _ in range(layers))
        self.norm = nn.LayerNorm(d)

    def forward(self, token):
        x = self.embed(token)
        for layer in self.layers:
            x = layer(x, hidden=self.causal)
        return self.logits(self.norm(x))


class Multilinear(nn.Module):
    """sum_h c_h ((q_ih + u_h) k_jh + (q_ih + z_h) r_jh) v_kh, then one product (docs/models.md 3)."""

    def __init__(self, d, rank, window):
        super().__init__()
        self.qkv, self.r = nn.Linear(d, 3 * rank, bias=False), nn.Linear(d, rank, bias=False)
        self.core = nn.Parameter(torch.rand(rank))
        self.out = nn.Linear(window**2, d, bias=False)

    def forward(self, x, positions, u, z, seen):
        (q, k, v), r = self.qkv(x).chunk(3, -1), self.r(positions)
        both = (q + u)[:, :, None] * k[:, None] + (q + z)[:, :, None] * r
        t = (both * self.core) @ v[:, None].transpose(-1, -2)
        return self.out((t * seen).flatten(2))


class Tensorized(Embedded):
    def __init__(self, _, vocabulary=10000, d=256, ffn=2100, rank=40, layers=3):
        super().__init__(vocabulary, d, 32, Drops(0.3))
        self.u, self.z = nn.Parameter(torch.zeros(rank)), nn.Parameter(torch.zeros(rank))
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.attend = nn.ModuleList(Multilinear(d, rank, 32) for _ in range(layers))
        self.fc1 = nn.ModuleList(nn.Linear(d, ffn) for _ in range(layers))
        self.fc2 = nn.ModuleList(nn.Linear(ffn, d) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2 * layers))
        seen = torch.ones(32, 32).tril()
        self.register_buffer("seen", seen[:, :, None] * seen[:, None, :])

    def forward(self, token):
        x = self.drops.of_branch(self.embedding(token) * self.scale)
        for i, attend in enumerate(self.attend):
            x = self.norms[2 * i](x + self.drops.of_branch(
                attend(x, self.position, self.u, self.z, self.seen)))
            h = self.drops.of_relu(F.relu(self.fc1[i](x), inplace=True))
            x = self.norms[2 * i + 1](x + self.drops.of_branch(self.fc2[i](h)))
        return self.logits(x) + self.bias


def tokens(count, vocabulary):
    return torch.randint(4, vocabulary, (count, 32))


def pairs(net, count, vocabulary):
    source, into, out = (tokens(count, vocabulary) for _ in range(3))
    return net, lambda: F.cross_entropy(net(source, into), out.flatten(), label_smoothing=0.1)


def windows(net):
    into, out = tokens(70, 10000), tokens(70, 10000)
    return net, lambda: F.cross_entropy(net(into), out.flatten())


def iwslt(sdpa):
    return Transformer(sdpa, TokenNorm, 10000, 512, 1024, 4, 6, Drops(0.3, 0.1, 0.1))


CASES = {
    "resnet20": lambda _: images(ResNet((16, 32, 64), 3, "A")),
    "resnet18": lambda _: images(ResNet((64, 128, 256, 512), 2, "B")),
    "transformer": lambda sdpa: pairs(Transformer(sdpa, TokenNorm), 32, 4000),
    "transformer-ln": lambda sdpa: pairs(Transformer(sdpa, nn.LayerNorm), 32, 4000),
    "lm": lambda sdpa: windows(LanguageModel(sdpa)),
    "tensorized": lambda sdpa: windows(Tensorized(sdpa)),
    "iwslt": lambda sdpa: pairs(iwslt(sdpa), 128, 10000),
}


# -- a step -----------------------------------------------------------------------------------------

def make_optimizer(case, net, fused):
    if case.startswith("resnet"):
        return torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=1e-4,
                               fused=True if fused else None)
    # without foreach: measured to be the faster one on a CPU
    kind = {"fused": True} if fused else {"foreach": False}
    return torch.optim.Adam(net.parameters(), 1e-4, betas=(0.9, 0.98), **kind)


def make_step(case, variant):
    net, loss = CASES[case](variant != "plain")
    optimizer = make_optimizer(case, net, variant != "plain")
    if variant == "compiled":
        loss = torch.compile(loss)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()

    return step


def one_round(step, steps):
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--variant", choices=VARIANTS, default="plain")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    step = make_step(given.case, given.variant)
    for _ in range(3):
        step()
    if given.serve:
        print("ready", flush=True)
    rounds = []
    for _ in sys.stdin if given.serve else range(given.rounds):
        rounds.append(one_round(step, given.steps))
        print(f"torch\t{given.case}\t{rounds[-1]:.1f}", flush=True)
    if rounds:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"# torch {torch.__version__} {given.case}, {given.variant}, {given.threads} threads: median of "
              f"{len(rounds)} rounds {statistics.median(rounds):.1f} ms, best {min(rounds):.1f} ms\n"
              f"# peak: {peak:.0f} MB")


if __name__ == "__main__":
    main()
