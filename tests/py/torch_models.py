"""The models in PyTorch, from the weights of a dump, written from their papers' formulas for comparison with the C
program. Parameters and running values keep the dump's names and layouts."""
import math

import torch
import torch.nn.functional as F

PAD = 1


class Model:
    """Parameters and running values of updateU/ of a dump, in float64."""

    def __init__(self, arrays, alpha):
        tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in arrays.items()}
        # running values belong to a site that has both
        sites = {n[:-3] for n in tensors if n.endswith(".mu") and n[:-3] + ".sigma2" in tensors}
        self.running = {s: {k: tensors.pop(f"{s}.{k}") for k in ("mu", "sigma2")} for s in sites}
        self.weights = {n: t.requires_grad_() for n, t in tensors.items()}
        self.alpha = alpha

    def parameters(self):
        return self.weights.values()

    def state(self):
        """Everything, under the dump's names."""
        values = {n: t.detach().clone() for n, t in self.weights.items()}
        for site, running in self.running.items():
            values.update({f"{site}.{k}": t.clone() for k, t in running.items()})
        return values

    @torch.no_grad()
    def load(self, values):
        """The opposite of state(); an optimizer keeps its state for the weights."""
        for name, weight in self.weights.items():
            weight.copy_(values[name])
        for site, running in self.running.items():
            running.update({k: values[f"{site}.{k}"].clone() for k in running})

    def follow(self, site, mu, sigma2):
        """Running values: alpha weighs the old one, the variance is the biased one."""
        for key, batch in (("mu", mu), ("sigma2", sigma2)):
            old = self.running[site][key]
            self.running[site][key] = self.alpha * old + (1 - self.alpha) * batch.detach()

    def norm(self, site, x, mask):
        """x [B, T, d], mask [B, T]. BN over the rows that are no padding, or LN."""
        gamma, beta = self.weights[site + ".gamma"], self.weights[site + ".beta"]
        if site not in self.running:
            return F.layer_norm(x, x.shape[-1:], gamma, beta, 1e-5)
        rows = x[mask]
        mu, sigma2 = rows.mean(0), rows.var(0, unbiased=False)
        self.follow(site, mu, sigma2)
        return (gamma * (x - mu) / torch.sqrt(sigma2 + 1e-5) + beta) * mask[..., None]


class ResNet20(Model):
    def conv_norm(self, conv, norm, x, stride=1):
        w = self.weights[conv + ".weight"].permute(0, 3, 1, 2)  # [out, kh, kw, in]
        x = F.conv2d(x, w, stride=stride, padding=1)
        self.follow(norm, x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False))
        gamma, beta = self.weights[norm + ".gamma"], self.weights[norm + ".beta"]
        return F.batch_norm(x, None, None, gamma, beta, training=True, eps=1e-5)

    def block(self, name, x, stride):
        h = self.conv_norm(*(f"{name}.{part}1" for part in ("conv", "norm")), x, stride).relu()
        y = self.conv_norm(*(f"{name}.{part}2" for part in ("conv", "norm")), h)
        if stride == 2:  # option A, half of the new channels first and half last
            more = y.shape[1] - x.shape[1]
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, more // 2, more - more // 2))
        return (y + x).relu()

    def loss(self, b):
        x = torch.tensor(b["image"], dtype=torch.float64).permute(0, 3, 1, 2)
        x = self.conv_norm("stem", "stem", x).relu()
        for stage in (1, 2, 3):
            for i in range(3):
                x = self.block(f"stage{stage}.{i}", x, 2 if stage > 1 and i == 0 else 1)
        logits = F.linear(x.mean((2, 3)), self.weights["classify.weight"],
                          self.weights["classify.bias"])
        return F.cross_entropy(logits, torch.tensor(b["label"]).long(), reduction="sum")


class Transformer(Model):
    """fairseq's encoder-decoder without dropout, label smoothing 0.1."""

    def __init__(self, arrays, alpha, heads, layers, pre):
        super().__init__(arrays, alpha)
        self.heads, self.layers, self.pre = heads, layers, pre

    def linear(self, name, x):
        return F.linear(x, self.weights[name + ".weight"], self.weights[name + ".bias"])

    def embed(self, token):
        table = self.weights["embedding"]
        d, valid = table.shape[1], token != PAD
        rate = torch.exp(torch.arange(d // 2, dtype=torch.float64) * -math.log(10000) / (d // 2 - 1))
        place = (valid.cumsum(1) + PAD)[..., None] * rate
        place = torch.cat((place.sin(), place.cos()), -1) * valid[..., None]
        return math.sqrt(d) * F.embedding(token, table, padding_idx=PAD) + place

    def attention(self, name, x, memory, hidden):
        """hidden [.., queries, keys]: true for masked keys."""
        def heads(part, y):
            return self.linear(f"{name}.{part}", y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, k, v = heads("q", x), heads("k", memory), heads("v", memory)
        score = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
        return self.linear(name + ".o", (score.softmax(-1) @ v).transpose(1, 2).flatten(-2))

    def ffn(self, name, x):
        return self.linear(name + ".out", self.linear(name + ".in", x).relu())

    def sublayer(self, site, x, mask, f):
        if self.pre:
            return x + f(self.norm(site, x, mask))
        return self.norm(site, x + f(x), mask)

    def encode(self, token, mask):
        x, hidden = self.embed(token), ~mask[:, None, None, :]
        for i in range(self.layers):
            name = f"encoder.{i}"
            x = self.sublayer(name + ".norm1", x, mask,
                              lambda h: self.attention(name + ".attention", h, h, hidden))
            x = self.sublayer(name + ".norm2", x, mask, lambda h: self.ffn(name + ".ffn_block", h))
        return self.norm("encoder.final", x, mask) if self.pre else x

    def decode(self, token, mask, memory, memory_mask):
        x, length = self.embed(token), token.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        padding = ~memory_mask[:, None, None, :]
        for i in range(self.layers):
            name = f"decoder.{i}"
            x = self.sublayer(name + ".self", x, mask,
                              lambda h: self.attention(name + ".self_attention", h, h, later))
            x = self.sublayer(name + ".cross", x, mask,
                              lambda h: self.attention(name + ".cross_attention", h, memory, padding))
            x = self.sublayer(name + ".ffn", x, mask, lambda h: self.ffn(name + ".ffn_block", h))
        return self.norm("decoder.final", x, mask) if self.pre else x

    def loss(self, b):
        source, target_in, target_out = (
            torch.tensor(b[k]).long() for k in ("source", "target_in", "target_out"))
        source_mask, target_mask = source != PAD, target_out != PAD
        memory = self.encode(source, source_mask)
        logits = F.linear(self.decode(target_in, target_mask, memory, source_mask),
                          self.weights["embedding"])
        return F.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=PAD,
                               label_smoothing=0.1, reduction="sum")
