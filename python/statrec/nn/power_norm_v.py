"""PN-V (Shen et al., ICML 2020, Definition 1; docs/norms.md 10)."""

from typing import Any, Mapping, Optional

from torch import Tensor

from ._quadratic import QuadraticNorm
from ._rows import Rows


class PowerNormV(QuadraticNorm):
    """PN-V: batch normalization that keeps the mean.

        y = weight x / sqrt(psi2_B + eps) + bias    psi2_B = mean[x^2]
        running_psi2 <- alpha running_psi2 + (1 - alpha) psi2_B

    Evaluation divides by sqrt(running_psi2 + eps), which the paper does not print. The PowerNorm
    release has no PN-V; in RBN's release "power" is PN-V with a clamped divisor. Shapes and
    options: as BatchNorm. Source: docs/norms.md 10.
    """

    method = "pnv"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.05,
        affine: bool = True,
        *,
        alpha: Optional[float] = None,
        layer_scale: int = 0,
        sync: bool = False,
        process_group: Any = None,
        channels_last: bool = False,
        check: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            alpha,
            layer_scale,
            sync,
            process_group,
            channels_last,
            check,
            device,
            dtype,
        )
        self._start()

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        square = rows.mean(x * x)
        y = self._affine(x * rows.wide(self._inverse(square)), rows)
        self._move(rows, before, running_psi2=self._averaged(before["running_psi2"], square))
        return y
