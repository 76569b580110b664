"""Language model: a Transformer of decoder layers without cross-attention (docs/models.md 3.4)."""

from typing import Dict, Tuple

import torch.nn.functional as F
from torch import Tensor, nn

from ._options import Options
from ._sites import Sites
from .text_layers import Embedding, EncoderLayer, Plan, Size, Stack, causal, positions

PRESETS: Dict[str, Tuple[int, Size]] = {
    "ptb": (3, Size(256, 2100, 4, "pre", 0.3, 0, 0)),
    "ptb-mini": (2, Size(128, 512, 4, "pre", 0.1, 0, 0)),
    "wikitext-2": (2, Size(128, 512, 4, "pre", 0.1, 0, 0)),
}


class TransformerLM(nn.Module):
    """logits = model(tokens): ids [N, T] -> scores [N, T, words] of the word after each.

    Windows are full: there is no padding. With lm-mask released every position sees its target, as
    in a release of another model.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        layers, size = options.preset("transformer_lm", PRESETS)
        size = size.chosen(options)
        self.causal = options["lm-mask"] == "causal"
        self.embedding = Embedding(options, options["vocabulary"], size.embed, pad=None)
        sites = Sites(options, channels_last=True, heads=size.heads)
        plan = Plan(sites, size, "layer", options["norm"], options["qk-norm"], False)
        self.layer = Stack(plan, EncoderLayer, options.chosen("layers", layers))
        sites.fill()

    def forward(self, tokens: Tensor) -> Tensor:
        valid = tokens >= 0
        x = self.embedding(tokens)
        x = x + positions(valid, self.embedding.embedding_dim, x, first=0)
        seen = causal(tokens.shape[1], tokens.device) if self.causal else None
        return F.linear(self.layer(x, None, seen), self.embedding.weight)
