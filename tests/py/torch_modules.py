"""The models as PyTorch modules, from PyTorch's layers if it has them, with statrec's names for their weights.
torch_models.py has formulas over the arrays of a dump instead."""
import math

import torch
import torch.nn.functional as F
from torch import nn

PAD = 1
RENAMED = [(".self_attn.out_proj", ".attention.o"), (".self_attn", ".attention"),
           (".linear1", ".ffn_block.in"), (".linear2", ".ffn_block.out"), ("_final", ".final"),
           ("stem_norm", "stem")]
RENAMED_DECODER = [(".self_attn.out_proj", ".self_attention.o"), (".self_attn", ".self_attention"),
                   (".multihead_attn.out_proj", ".cross_attention.o"),
                   (".multihead_attn", ".cross_attention"), (".norm1", ".self"), (".norm2", ".cross"),
                   (".norm3", ".ffn")]


def our_name(name):
    for theirs, ours in (RENAMED_DECODER if name.startswith("decoder.") else []) + RENAMED:
        name = name.replace(theirs, ours)
    return name


def views(module):
    """(name, tensor) of all weights and running values: statrec's names, and its shapes as views of
    PyTorch's memory, so that they serve both directions."""
    left = dict(module.named_parameters())

    def take(module_name, parameter):
        return left.pop(f"{module_name}.{parameter}")

    for name, m in module.named_modules():
        ours = our_name(name)
        if isinstance(m, nn.MultiheadAttention):
            for kind in ("weight", "bias"):
                parts = take(name, "in_proj_" + kind).chunk(3)
                yield from ((f"{ours}.{part}.{kind}", p) for part, p in zip("qkv", parts))
        elif isinstance(m, (nn.LayerNorm, nn.BatchNorm1d, nn.BatchNorm2d)):
            yield ours + ".gamma", take(name, "weight")
            yield ours + ".beta", take(name, "bias")
            if not isinstance(m, nn.LayerNorm):
                yield ours + ".mu", m.running_mean
                yield ours + ".sigma2", m.running_var
        elif isinstance(m, nn.Conv2d):
            yield ours + ".weight", take(name, "weight").permute(0, 2, 3, 1)
        elif isinstance(m, nn.Embedding):
            yield ours, take(name, "weight")
        elif isinstance(m, nn.Linear):
            yield from ((f"{ours}.{k}", take(name, k)) for k, _ in list(m.named_parameters()))
    yield from left.items()


class Net(nn.Module):
    """In float64, from numbers that float32 holds."""

    def begin(self, seed):
        """PyTorch's own initialization with this seed; zeros and ones are moved, so that no two biases or gains are
        equal."""
        torch.manual_seed(seed)
        self.build()
        for m in self.modules():
            if isinstance(m, nn.Embedding):
                nn.init.normal_(m.weight, std=m.embedding_dim**-0.5)
        with torch.no_grad():
            for p in self.parameters():
                if p.dim() == 1:
                    p.add_(0.05 * torch.randn_like(p))
        return self.double()

    def state(self):
        return {name: view.detach().clone() for name, view in views(self)}

    @torch.no_grad()
    def load(self, values):
        for name, view in views(self):
            view.copy_(values[name])


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.more, self.stride = outputs - inputs, stride
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        x = x[:, :, ::self.stride, ::self.stride]
        return (y + F.pad(x, (0, 0, 0, 0, self.more // 2, self.more // 2))).relu()


class ResNet20(Net):
    def build(self):
        self.stem, self.stem_norm = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.stage1 = nn.Sequential(Block(16, 16, 1), Block(16, 16, 1), Block(16, 16, 1))
        self.stage2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.stage3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.classify = nn.Linear(64, 10)

    def loss(self, b):
        x = torch.tensor(b["image"]).double().permute(0, 3, 1, 2)
        x = self.stage3(self.stage2(self.stage1(self.stem_norm(self.stem(x)).relu())))
        return F.cross_entropy(self.classify(x.mean((2, 3))), torch.tensor(b["label"]).long(),
                               reduction="sum")


def sinusoids(place, d):
    """fairseq's, of every place [.., d]."""
    rate = torch.exp(torch.arange(d // 2).double() * -math.log(10000) / (d // 2 - 1))
    angle = place[..., None] * rate
    return torch.cat((angle.sin(), angle.cos()), -1)


class WordsBatchNorm(nn.BatchNorm1d):
    """BN of [B, T, d] over the rows that are not padding (words, set from outside) or over all. The running variance
    follows the biased one, alpha 0.95 weighs the old value."""

    words = None

    def forward(self, x):
        words = torch.ones(x.shape[:2], dtype=torch.bool) if self.words is None else self.words
        rows = x[words]
        mu, sigma2 = self.running_mean, self.running_var
        if self.training:
            mu.lerp_(rows.detach().mean(0), 0.05)
            sigma2.lerp_(rows.detach().var(0, unbiased=False), 0.05)
            mu = sigma2 = None
        y = torch.zeros_like(x)
        y[words] = F.batch_norm(rows, mu, sigma2, self.weight, self.bias, self.training, eps=self.eps)
        return y


def later(length):
    return torch.ones(length, length, dtype=torch.bool).triu(1)


class Transformer(Net):
    """fairseq's encoder-decoder, pre-norm; norm: of the encoder."""

    def __init__(self, vocabulary, norm=nn.LayerNorm, d=128, heads=4, ffn=256, layers=3):
        super().__init__()
        self.norm = norm
        self.size = vocabulary, d, layers
        self.layer = dict(d_model=d, nhead=heads, dim_feedforward=ffn, dropout=0, batch_first=True,
                          norm_first=True)

    def build(self):
        vocabulary, d, layers = self.size
        self.embedding = nn.Embedding(vocabulary, d, PAD)
        self.encoder = nn.ModuleList(nn.TransformerEncoderLayer(**self.layer) for _ in range(layers))
        self.decoder = nn.ModuleList(nn.TransformerDecoderLayer(**self.layer) for _ in range(layers))
        for layer in self.encoder:
            layer.norm1, layer.norm2 = self.norm(d), self.norm(d)
        self.encoder_final, self.decoder_final = self.norm(d), nn.LayerNorm(d)

    def embed(self, token):
        d, valid = self.embedding.embedding_dim, token != PAD
        return (math.sqrt(d) * self.embedding(token)
                + sinusoids(valid.cumsum(1) + PAD, d) * valid[..., None])

    def loss(self, b):
        source, target_in, target_out = (
            torch.tensor(b[k]).long() for k in ("source", "target_in", "target_out"))
        x, y, padding = self.embed(source), self.embed(target_in), source == PAD
        for m in self.modules():
            if isinstance(m, WordsBatchNorm):
                m.words = ~padding
        for layer in self.encoder:
            x = layer(x, src_key_padding_mask=padding)
        x = self.encoder_final(x)
        for layer in self.decoder:
            y = layer(y, x, tgt_mask=later(y.shape[1]), memory_key_padding_mask=padding)
        logits = F.linear(self.decoder_final(y), self.embedding.weight)
        return F.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=PAD,
                               label_smoothing=0.1, reduction="sum")


class TransformerLM(Net):
    def __init__(self, vocabulary, d, heads, ffn, layers, pre, causal):
        super().__init__()
        self.size = vocabulary, d, heads, ffn, layers
        self.pre, self.causal = pre, causal

    def build(self):
        vocabulary, d, heads, ffn, layers = self.size
        self.embedding = nn.Embedding(vocabulary, d)
        self.layer = nn.ModuleList(
            nn.TransformerEncoderLayer(d, heads, ffn, 0, batch_first=True, norm_first=self.pre)
            for _ in range(layers))
        if self.pre:
            self.layer_final = nn.LayerNorm(d)

    def loss(self, b):
        token, target = (torch.tensor(b[k]).long() for k in ("target_in", "target_out"))
        d, length = self.embedding.embedding_dim, token.shape[1]
        x = math.sqrt(d) * self.embedding(token) + sinusoids(torch.arange(length), d)
        for layer in self.layer:
            x = layer(x, src_mask=later(length) if self.causal else None)
        logits = F.linear(self.layer_final(x) if self.pre else x, self.embedding.weight)
        return F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum")


class Multilinear(nn.Module):
    """T1 + T2 = sum_h c_h ((q_ih + u_h) k_jh + (q_ih + z_h) r_jh) v_kh, then Wo."""

    def __init__(self, d, R, window, cores):
        super().__init__()
        self.q, self.k, self.v, self.r = (nn.Linear(d, R, bias=False) for _ in range(4))
        self.o = nn.Linear(window**2, d, bias=False)
        self.core = nn.Parameter(torch.rand(cores, R))

    def forward(self, x, positions, u, z, causal):
        q, k, v, r = self.q(x)[:, :, None], self.k(x)[:, None], self.v(x), self.r(positions)
        T = torch.einsum("bijh,h,bkh->bijk", (q + u) * k + (q + z) * r, self.core.mean(0), v)
        if causal:  # neither j nor k after i
            seen = ~later(x.shape[1])
            T = T * (seen[:, :, None] & seen[:, None, :])
        return self.o(T.flatten(2))


class TensorizedLayer(nn.Module):
    def __init__(self, d, R, ffn, window, cores, norm):
        super().__init__()
        self.attention = Multilinear(d, R, window, cores)
        self.linear1, self.linear2 = nn.Linear(d, ffn), nn.Linear(ffn, d)
        self.norm1, self.norm2 = norm(d), norm(d)


class Tensorized(Net):
    def __init__(self, vocabulary, d, R, ffn, layers, window, cores=1, norm=nn.LayerNorm, pre=False,
                 causal=True, cutoffs=()):
        super().__init__()
        self.size, self.layers = (d, R, ffn, window, cores, norm), layers
        self.vocabulary, self.pre, self.causal, self.cutoffs = vocabulary, pre, causal, cutoffs
        rate = 10000 ** (-2 * torch.arange(d // 2).double() / d)
        angle = torch.arange(window - 1, -1, -1).double()[:, None] * rate
        self.positions = torch.cat((angle.sin(), angle.cos()), -1)

    def build(self):
        d, R = self.size[:2]
        self.embedding = nn.Embedding(self.vocabulary, d)
        self.attention = nn.ParameterDict({"u": torch.zeros(R), "z": torch.zeros(R)})
        self.output = nn.ParameterDict({"bias": torch.zeros(self.vocabulary)})
        if self.cutoffs:
            self.cluster = nn.Linear(d, len(self.cutoffs))
        self.layer = nn.ModuleList(TensorizedLayer(*self.size) for _ in range(self.layers))

    def sublayer(self, norm, x, f):
        return x + f(norm(x)) if self.pre else norm(x + f(x))

    def adaptive(self, x, target):
        """log p = log p of the head's word or cluster, cluster m in column -m, + log p within the cluster."""
        E, bias, edges = self.embedding.weight, self.output["bias"], [*self.cutoffs, self.vocabulary]
        first = edges[0]
        head = torch.cat((F.linear(x, E[:first], bias[:first]), self.cluster(x)), -1).log_softmax(-1)
        total = head[target < first].gather(1, target[target < first, None]).sum()
        for m, (low, high) in enumerate(zip(edges, edges[1:]), 1):
            there = (target >= low) & (target < high)
            tail = F.linear(x[there], E[low:high], bias[low:high]).log_softmax(-1)
            total = total + head[there, -m].sum() + tail.gather(1, target[there, None] - low).sum()
        return -total

    def loss(self, b):
        token, target = (torch.tensor(b[k]).long() for k in ("target_in", "target_out"))
        x, u, z = math.sqrt(self.size[0]) * self.embedding(token), *self.attention.values()
        for l in self.layer:
            x = self.sublayer(l.norm1, x,
                              lambda h: l.attention(h, self.positions, u, z, self.causal))
            x = self.sublayer(l.norm2, x, lambda h: l.linear2(l.linear1(h).relu()))
        x, target = x.flatten(0, 1), target.flatten()
        if self.cutoffs:
            return self.adaptive(x, target)
        logits = F.linear(x, self.embedding.weight, self.output["bias"])
        return F.cross_entropy(logits, target, reduction="sum")
