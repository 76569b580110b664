"""DetachNorm (Xu et al., NeurIPS 2019; docs/norms.md 5)."""

from typing import ClassVar

from ._base import RowNorm, RowOptions, Texts, Unpack


class DetachNorm(RowNorm):
    """LayerNorm-simple whose backward pass treats statistics of the row as constants.

        detach="mean"   dx = (g - y mean[g y])/s
        detach="std"    dx = (g - mean[g])/s
        detach="both"   dx = g/s

    In the paper's tables detaching the standard deviation diverges on WMT En-De. Options, shapes:
    as LayerNormSimple. Source: docs/norms.md 5.
    """

    method = "detach"
    shown: ClassVar[Texts] = {**RowNorm.shown, "detach": repr}

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        *,
        detach: str = "both",
        **options: Unpack[RowOptions],
    ) -> None:
        super().__init__(num_features, eps, False, **options)
        self.detach = self._choice("detach", detach, "mean", "std", "both")
        self.detach_mean, self.detach_std = detach != "std", detach != "mean"
