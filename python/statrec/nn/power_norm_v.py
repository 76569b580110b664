"""PN-V (Shen et al., ICML 2020, Definition 1; docs/norms.md 10)."""

from typing import Mapping

from torch import Tensor

from ._base import Default, QuadraticNorm, Rows, SyncOptions, Unpack


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
        momentum: float = Default(0.05),
        affine: bool = True,
        **options: Unpack[SyncOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, **options)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        square = rows.mean(x * x)
        y = self._affine(x * rows.wide(self._inverse(square)), rows)
        self._move(rows, before, running_psi2=self._averaged(before["running_psi2"], square))
        return y
