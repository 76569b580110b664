"""Embedding, attention, FFN and residual branch of the Transformers (docs/models.md 2)."""

import math
from typing import Callable, NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._options import Options
from ._sites import Sites

PAD = 1  # id of <pad>


class Size(NamedTuple):
    """Sizes of a layer; key, value: features of an attention head, 0: embed/heads."""

    embed: int
    ffn: int
    heads: int
    placement: str
    dropout: float
    attention_dropout: float
    relu_dropout: float
    key: int = 0
    value: int = 0

    def chosen(self, options: Options) -> "Size":
        """With the options in place of the preset's values."""
        size = Size(
            options.chosen("embed-dim", self.embed),
            options.chosen("ffn-dim", self.ffn),
            options.chosen("heads", self.heads),
            options.chosen("placement", self.placement),
            options.fraction("dropout", self.dropout),
            options.fraction("attention-dropout", self.attention_dropout),
            options.fraction("relu-dropout", self.relu_dropout),
            options.chosen("key-size", self.key),
            options.chosen("value-size", self.value),
        )
        if size.embed % size.heads and not (size.key and size.value):
            raise ValueError(f"embed-dim {size.embed} is not divisible by heads {size.heads}")
        each = size.embed // size.heads
        return size._replace(key=size.key or each, value=size.value or each)

    @property
    def post(self) -> bool:
        """Norms after the sum; a stack of other placements ends with a norm."""
        return self.placement == "post"


class Plan(NamedTuple):
    """Arguments for building the layers of a stack. side: "encoder", "decoder" or "layer"."""

    sites: Sites
    size: Size
    side: str
    norm: str
    qk_norm: str
    fan_in: bool

    def linear(self, inputs: int, outputs: int, gain: float = 1, bias: float = 0) -> nn.Linear:
        """Weights U(gain sqrt(6/(inputs + outputs))), with fan_in U(1/sqrt(inputs)); biases
        U(bias)."""
        layer = nn.Linear(inputs, outputs)
        bound = gain * math.sqrt(6 / (inputs + outputs))
        if self.fan_in:
            bound = 1 / math.sqrt(inputs)
        nn.init.uniform_(layer.weight, -bound, bound)
        nn.init.uniform_(layer.bias, -bias, bias)
        return layer

    def site(self, parent: nn.Module, attribute: str, name: str) -> None:
        """A site SIDE.NAME of the width of the model."""
        self.sites.add(parent, attribute, f"{self.side}.{name}", self.size.embed, self.norm)


class Embedding(nn.Embedding):
    """sqrt(d) E[token], E ~ N(std), 1/sqrt(d) by default, and 0 in the row of <pad>."""

    def __init__(self, options: Options, words: int, features: int, pad: Optional[int] = PAD):
        if words < 1:
            raise ValueError("vocabulary is 0; the number of words is wanted")
        super().__init__(words, features, pad)
        std = options.fraction("embed-std", 1 / math.sqrt(features))
        nn.init.normal_(self.weight, std=std)
        if pad is not None:
            nn.init.zeros_(self.weight[pad : pad + 1].detach())

    def forward(self, input: Tensor) -> Tensor:
        return math.sqrt(self.embedding_dim) * super().forward(input)


def positions(valid: Tensor, features: int, like: Tensor, first: int = PAD + 1) -> Tensor:
    """Sinusoids [sentences, words, features] of the words' numbers from `first`; 0 in padding."""
    half = features // 2
    rate = torch.arange(half, dtype=torch.float64, device=like.device)
    rate = torch.exp(rate * (-math.log(10000) / max(half - 1, 1)))
    number = torch.arange(first, first + valid.shape[1], device=like.device)
    angle = number[:, None] * rate
    table = F.pad(torch.cat((angle.sin(), angle.cos()), -1), (0, features - 2 * half))
    index = (valid.cumsum(1) - 1).clamp(min=0)
    return table.to(like.dtype)[index] * valid[..., None]


class Attention(nn.Module):
    """y = softmax(q k^T / sqrt(key)) v Wo^T + bo of every head, with norms of q and k by --qk-norm."""

    q_norm: nn.Module
    k_norm: nn.Module

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        size, d = plan.size, plan.size.embed
        self.heads, self.dropout = size.heads, size.attention_dropout
        gain, bias = math.sqrt(0.5), 1 / math.sqrt(d)
        self.q = plan.linear(d, size.heads * size.key, gain, bias)
        self.k = plan.linear(d, size.heads * size.key, gain, bias)
        self.v = plan.linear(d, size.heads * size.value, gain, bias)
        self.o = plan.linear(size.heads * size.value, d)
        self.normed = plan.qk_norm not in ("", "none")

    def add_sites(self, plan: Plan, name: str) -> None:
        """The sites NAME.q_norm and NAME.k_norm."""
        for which in ("q_norm", "k_norm") if self.normed else ():
            plan.sites.add(self, which, f"{name}.{which}", plan.size.key, plan.qk_norm)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        valid: Optional[Tensor],
        memory_valid: Optional[Tensor],
        seen: Optional[Tensor],
    ) -> Tensor:
        """valid, memory_valid: rows that norms count. seen: True where a query sees a key."""
        q = self.q(x).unflatten(-1, (self.heads, -1))
        k = self.k(memory).unflatten(-1, (self.heads, -1))
        v = self.v(memory).unflatten(-1, (self.heads, -1))
        if self.normed:
            q = self.q_norm(q, _of_heads(valid, q))
            k = self.k_norm(k, _of_heads(memory_valid, k))
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2),
            k.transpose(1, 2),
            v.transpose(1, 2),
            attn_mask=seen,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return self.o(y.transpose(1, 2).flatten(-2))


def _of_heads(valid: Optional[Tensor], x: Tensor) -> Optional[Tensor]:
    return None if valid is None else valid[..., None].expand(x.shape[:-1])


class FeedForward(nn.ModuleDict):
    """W2 drop(relu(W1 x + b1)) + b2"""

    def __init__(self, plan: Plan) -> None:
        d, inner = plan.size.embed, plan.size.ffn
        super().__init__({"in": plan.linear(d, inner), "out": plan.linear(inner, d)})
        self.dropout = plan.size.relu_dropout

    def forward(self, x: Tensor) -> Tensor:
        return self["out"](F.dropout(self["in"](x).relu(), self.dropout, self.training))


class Layer(nn.ModuleDict):
    """Sublayers f with their norms n:

        pre      x + drop(f(n(x)))              post    n(x + drop(f(x)))
        scaled   x + drop(f(n(x)/sqrt(l)))      peri    x + drop(n'(f(n(x))))

    with l the number of the layer from 1.
    """

    def __init__(self, plan: Plan, number: int) -> None:
        super().__init__()
        self.placement, self.dropout = plan.size.placement, plan.size.dropout
        self.number = number

    def add(self, plan: Plan, norm: str, name: str, sublayer: nn.Module) -> None:
        """Adds a sublayer, its norms and its heads' norms in the order of the forward pass."""
        if not plan.size.post:
            plan.site(self, norm, f"{self.number}.{norm}")
        self.add_module(name, sublayer)
        if isinstance(sublayer, Attention):
            sublayer.add_sites(plan, f"{plan.side}.{self.number}.{name}")
        if plan.size.post:
            plan.site(self, norm, f"{self.number}.{norm}")
        if self.placement == "peri":
            plan.site(self, f"{norm}_out", f"{self.number}.{norm}_out")

    def branch(
        self, norm: str, x: Tensor, valid: Optional[Tensor], f: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """The residual branch around f; valid: rows that norms count."""
        if self.placement == "post":
            return self[norm](x + F.dropout(f(x), self.dropout, self.training), valid)
        h = self[norm](x, valid)
        if self.placement == "scaled":
            h = h / math.sqrt(self.number + 1)
        y = f(h)
        if self.placement == "peri":
            y = self[f"{norm}_out"](y, valid)
        return x + F.dropout(y, self.dropout, self.training)


class EncoderLayer(Layer):
    """Self-attention, FFN."""

    def __init__(self, plan: Plan, number: int) -> None:
        super().__init__(plan, number)
        self.add(plan, "norm1", "attention", Attention(plan))
        self.add(plan, "norm2", "ffn_block", FeedForward(plan))

    def forward(self, x: Tensor, valid: Optional[Tensor], seen: Optional[Tensor]) -> Tensor:
        attend = self["attention"]
        x = self.branch("norm1", x, valid, lambda h: attend(h, h, valid, valid, seen))
        return self.branch("norm2", x, valid, self["ffn_block"])


class DecoderLayer(Layer):
    """Causal self-attention, attention to the encoder's result, FFN."""

    def __init__(self, plan: Plan, number: int) -> None:
        super().__init__(plan, number)
        self.add(plan, "self", "self_attention", Attention(plan))
        self.add(plan, "cross", "cross_attention", Attention(plan))
        self.add(plan, "ffn", "ffn_block", FeedForward(plan))

    def forward(
        self,
        x: Tensor,
        valid: Optional[Tensor],
        seen: Tensor,
        memory: Tensor,
        memory_valid: Optional[Tensor],
        memory_seen: Tensor,
    ) -> Tensor:
        attend, cross = self["self_attention"], self["cross_attention"]
        x = self.branch("self", x, valid, lambda h: attend(h, h, valid, valid, seen))
        x = self.branch(
            "cross", x, valid, lambda h: cross(h, memory, valid, memory_valid, memory_seen)
        )
        return self.branch("ffn", x, valid, self["ffn_block"])


class Stack(nn.ModuleDict):
    """Dropout of the embedding, layers "0", "1", ..., and the norms around them: "embedding" before
    the layers (peri), "final" after them (all placements but post)."""

    def __init__(self, plan: Plan, layer: Callable[[Plan, int], Layer], count: int) -> None:
        super().__init__()
        if not 1 <= count <= 64:
            raise ValueError(f"{count} layers; 1 to 64 are wanted")
        self.dropout = plan.size.dropout
        if plan.size.placement == "peri":
            plan.site(self, "embedding", "embedding")
        for i in range(count):
            self.add_module(str(i), layer(plan, i))
        if not plan.size.post:
            plan.site(self, "final", "final")
        self.layers = count

    def forward(self, x: Tensor, valid: Optional[Tensor], *others: Optional[Tensor]) -> Tensor:
        """x [sentences, words, features]; others: what the layers take after these."""
        if "embedding" in self:
            x = self["embedding"](x, valid)
        x = F.dropout(x, self.dropout, self.training)
        for i in range(self.layers):
            x = self[str(i)](x, valid, *others)
        return self["final"](x, valid) if "final" in self else x


def causal(length: int, device: torch.device) -> Tensor:
    """[length, length]: True where a query sees a key, itself and those before it."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
