"""Layer normalization (Ba, Kiros and Hinton, 2016; docs/norms.md 3)."""

from ._base import Options, RowNorm, Unpack


class LayerNorm(RowNorm):
    """Layer normalization with a mask.

        y = weight (x - mean)/sqrt(v + eps) + bias    mean, v: of each row over its features

    unbiased=True: v over d - 1, as the LN of RBN's release (option layer_1). No state. Input [N,
    C], [N, C, ...], or [..., C] with channels_last=True. Source: docs/norms.md 3.
    """

    method = "ln"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        unbiased: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            num_features, eps, affine, unbiased=unbiased, placement="inside", **options
        )
