"""DetachNorm (Xu et al., NeurIPS 2019; docs/norms.md 5)."""

from typing import Any, Dict

from .layer_norm import RowNorm


class DetachNorm(RowNorm):
    """LayerNorm-simple whose backward pass treats statistics of the row as constants.

        detach="mean"   dx = (g - y mean[g y])/s
        detach="std"    dx = (g - mean[g])/s
        detach="both"   dx = g/s

    In the paper's tables detaching the standard deviation diverges on WMT En-De. Options, shapes:
    as LayerNormSimple. Source: docs/norms.md 5.
    """

    method = "detach"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        *,
        detach: str = "both",
        unbiased: bool = False,
        placement: str = "inside",
        channels_last: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_features, eps, False, unbiased, placement, channels_last, device, dtype
        )
        if detach not in ("mean", "std", "both"):
            raise ValueError(
                f"{self._name()}: detach is 'mean', 'std' or 'both', got {detach!r:.80}"
            )
        self.detach = detach
        self.detach_mean = detach != "std"  # type: ignore[misc]
        self.detach_std = detach != "mean"  # type: ignore[misc]

    def _options(self) -> Dict[str, Any]:
        return {**super()._options(), "detach": repr(self.detach)}
