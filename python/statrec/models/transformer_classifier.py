"""Classifier of sentences: a Transformer's encoder, pooling, linear (docs/models.md 6)."""

from typing import Dict, NamedTuple

from torch import Tensor, nn

from ._options import Options
from ._sites import Sites
from .text_layers import PAD, Embedding, EncoderLayer, Plan, Size, Stack, positions


class Preset(NamedTuple):
    """Layers, size, and the defaults of positions, pooling and linear-init."""

    layers: int
    size: Size
    positions: str
    pooling: str
    linear_init: str


_RT = Preset(4, Size(128, 512, 4, "pre", 0.2, 0, 0), "sinusoidal", "mean", "fan-in")
_IMDB = Preset(1, Size(32, 256, 4, "post", 0.1, 0.1, 0.1, key=16), "none", "cls", "xavier")
PRESETS: Dict[str, Preset] = {"rt": _RT, "sst5": _RT, "imdb": _IMDB, "imdb-mini": _IMDB}


class TransformerClassifier(nn.Module):
    """logits = model(words): ids [N, T], <pad> = 1 -> scores [N, classes].

    Pooling "mean" is over the words, "cls" takes the first row, <s>.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        preset = options.preset("transformer_classifier", PRESETS)
        size = preset.size.chosen(options)
        self.count_padding = options["count-padding"]
        self.positions = options.chosen("positions", preset.positions) == "sinusoidal"
        self.first = options.chosen("pooling", preset.pooling) == "cls"
        fan_in = options.chosen("linear-init", preset.linear_init) == "fan-in"
        self.embedding = Embedding(options, options["vocabulary"], size.embed)
        sites = Sites(options, channels_last=True, heads=size.heads)
        plan = Plan(sites, size, "encoder", options["norm"], options["qk-norm"], fan_in)
        self.encoder = Stack(plan, EncoderLayer, options.chosen("layers", preset.layers))
        self.classify = plan.linear(size.embed, options["classes"])
        sites.fill()

    def forward(self, words: Tensor) -> Tensor:
        valid = words != PAD
        x = self.embedding(words)
        if self.positions:
            x = x + positions(valid, self.embedding.embedding_dim, x)
        counted = None if self.count_padding else valid
        x = self.encoder(x, counted, valid[:, None, None, :])
        return self.classify(x[:, 0] if self.first else _mean(x, valid))


def _mean(x: Tensor, valid: Tensor) -> Tensor:
    weight = valid[..., None].to(x.dtype)
    return (x * weight).sum(1) / weight.sum(1)
