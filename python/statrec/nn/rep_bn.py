"""RepBN and its progressive form (SLAB: Guo et al., ICML 2024; docs/norms.md 22)."""

from typing import ClassVar, Dict, Mapping, Optional

import torch
from torch import Tensor, nn

from ._base import (
    Default,
    Moments,
    Rows,
    RunningNorm,
    SyncOptions,
    Texts,
    Unpack,
    row_centered,
)
from .batch_norm import BatchNorm


class RepBN(BatchNorm):
    """RepBN: batch normalization plus eta times its input; t0 > 0: PRepBN, from LN to it.

        RepBN(x) = BN(x) + eta x    y = lam LN(x) + (1 - lam) RepBN(x)
        lam = max(0, 1 - (c - 1)/t0)

    eta is one learned number, first eta0; c counts training calls from 1; LN has a separate gain
    and bias, ln_weight and ln_bias. Evaluation keeps the lam of the last training call (the release
    evaluates RepBN alone) and takes running values. Shapes and other options: as BatchNorm. Source:
    docs/norms.md 22.
    """

    method = "repbn"
    shown: ClassVar[Texts] = {**RunningNorm.shown, "t0": str}
    lam: Tensor
    eta: nn.Parameter
    ln_weight: Optional[nn.Parameter]
    ln_bias: Optional[nn.Parameter]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = Default(0.05),
        affine: bool = True,
        *,
        eta0: float = 1,
        t0: int = 0,
        **options: Unpack[SyncOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, True, unbiased=False, **options)
        self.t0 = self._number("t0", t0, 0)
        self._parameter("eta", self._number("eta0", eta0))
        self.ln_weight = self.ln_bias = None
        if t0:
            self._parameter("ln_weight", 1, num_features)
            self._parameter("ln_bias", 0, num_features)
        own = self._place["dtype"] or torch.get_default_dtype()
        lam_type = torch.promote_types(own, torch.float32)
        self._state("lam", 1.0 if t0 else 0.0, dtype=lam_type)

    def _mixed(self, bn: Tensor, x: Tensor, lam: Tensor, rows: Rows) -> Tensor:
        y = bn + self.eta.to(x.dtype) * x
        if self.ln_weight is None or self.ln_bias is None:
            return y
        apart = row_centered(x, rows.feature)
        one = apart * ((apart * apart).mean(rows.feature, keepdim=True) + self.eps).rsqrt()
        ln = rows.wide(self.ln_weight.to(x.dtype)) * one + rows.wide(self.ln_bias.to(x.dtype))
        return lam.to(x.dtype) * ln + (1 - lam.to(x.dtype)) * y

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        return self._mixed(super()._evaluated(x, rows), x, self.lam, rows)

    def _output(
        self, x: Tensor, batch: Moments, rows: Rows, before: Mapping[str, Tensor]
    ) -> Tensor:
        bn = super()._output(x, batch, rows, before)
        return self._mixed(bn, x, self._share(before), rows)

    def _share(self, before: Mapping[str, Tensor]) -> Tensor:
        """lam of this call."""
        if not self.t0:
            return before["lam"]
        return (1 - before["num_batches_tracked"].double() / self.t0).clamp(min=0)

    def _after(self, batch: Moments, rows: Rows, before: Mapping[str, Tensor]) -> Dict[str, Tensor]:
        return {**super()._after(batch, rows, before), "lam": self._share(before)}
