"""Encoder-decoder Transformer as in fairseq (Vaswani et al., NeurIPS 2017; docs/models.md 2)."""

from typing import Dict, NamedTuple, Optional

import torch.nn.functional as F
from torch import Tensor, nn

from ._options import Options
from ._sites import Sites
from .text_layers import (
    PAD,
    DecoderLayer,
    Embedding,
    EncoderLayer,
    Plan,
    Size,
    Stack,
    causal,
    positions,
)


class Preset(NamedTuple):
    """Layers of both stacks, and their size."""

    encoder: int
    decoder: int
    size: Size


PRESETS: Dict[str, Preset] = {
    "transformer": Preset(6, 6, Size(512, 2048, 8, "post", 0.1, 0, 0)),
    "mini": Preset(3, 3, Size(128, 256, 4, "pre", 0.1, 0, 0)),
    "transformer_iwslt_de_en": Preset(6, 6, Size(512, 1024, 4, "post", 0.3, 0.1, 0.1)),
    "transformer_big": Preset(6, 6, Size(1024, 4096, 16, "pre", 0.3, 0.1, 0.1)),
}


class Transformer(nn.Module):
    """logits[i, t] = scores of the word after target[i, :t+1], for source sentences.

        logits = model(source, target)               # ids [N, S], [N, T] -> [N, T, words]
        loss = F.cross_entropy(logits.transpose(1, 2), next_words, ignore_index=1)

    Ids: 0 <s>, 1 <pad>, 2 </s>, 3 <unk>, then words. A source ends with </s>, a target starts with
    it. One embedding serves source, target and output, or with target-vocabulary two serve. Norms
    get the mask of their side, and all rows with count-padding.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        preset = options.preset("transformer", PRESETS)
        size = preset.size.chosen(options)
        words, target_words = options["vocabulary"], options["target-vocabulary"]
        self.count_padding = options["count-padding"]
        if target_words:
            both = {
                "source": Embedding(options, words, size.embed),
                "target": Embedding(options, target_words, size.embed),
            }
            self.embedding: nn.Module = nn.ModuleDict(both)
        else:
            self.embedding = Embedding(options, words, size.embed)
        sites = Sites(options, channels_last=True, heads=size.heads)
        shared = options["qk-norm"], options["linear-init"] == "fan-in"
        encoder = Plan(sites, size, "encoder", options["norm"], *shared)
        decoder = Plan(sites, size, "decoder", options["decoder-norm"], *shared)
        self.encoder = Stack(
            encoder, EncoderLayer, options.chosen("encoder-layers", preset.encoder)
        )
        self.decoder = Stack(
            decoder, DecoderLayer, options.chosen("decoder-layers", preset.decoder)
        )
        sites.fill()

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        source_valid, target_valid = source != PAD, target != PAD
        memory = self.encode(source)
        x = _embedded(self._embedding("target"), target, target_valid)
        x = self.decoder(
            x,
            self._counted(target_valid),
            causal(target.shape[1], target.device),
            memory,
            self._counted(source_valid),
            source_valid[:, None, None, :],
        )
        return F.linear(x, self._embedding("target").weight)

    def encode(self, source: Tensor) -> Tensor:
        """[N, S, features], which the decoder attends to."""
        valid = source != PAD
        x = _embedded(self._embedding("source"), source, valid)
        return self.encoder(x, self._counted(valid), valid[:, None, None, :])

    def _counted(self, valid: Tensor) -> Optional[Tensor]:
        """Rows that norms count."""
        return None if self.count_padding else valid

    def _embedding(self, side: str) -> Embedding:
        both = self.embedding
        chosen = both[side] if isinstance(both, nn.ModuleDict) else both
        assert isinstance(chosen, Embedding)
        return chosen


def _embedded(embedding: Embedding, words: Tensor, valid: Tensor) -> Tensor:
    x: Tensor = embedding(words)
    return x + positions(valid, embedding.embedding_dim, x)
