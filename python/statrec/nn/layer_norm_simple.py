"""LayerNorm-simple (Xu et al., NeurIPS 2019; docs/norms.md 4)."""

from ._base import RowNorm, RowOptions, Unpack


class LayerNormSimple(RowNorm):
    """Layer normalization without gain and bias: y = (x - mean)/s, s = sqrt(v + eps).

    The release: unbiased=True, placement="outside" (v over d - 1, s = sqrt(v) + eps). No
    parameters, no state. Shapes: as LayerNorm. Source: docs/norms.md 4.
    """

    method = "ln-simple"

    def __init__(self, num_features: int, eps: float = 1e-5, **options: Unpack[RowOptions]) -> None:
        super().__init__(num_features, eps, False, **options)
