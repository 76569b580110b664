"""RepBN and its progressive form (SLAB: Guo et al., ICML 2024; docs/norms.md 22)."""

from typing import Any, Dict, Mapping, Optional

import torch
from torch import Tensor, nn

from ._norm import centered
from ._rows import Rows
from .batch_norm import BatchNorm


class RepBN(BatchNorm):
    """RepBN: batch normalization plus eta times its input; t0 > 0: PRepBN, from LN to it.

        RepBN(x) = BN(x) + eta x    y = lam LN(x) + (1 - lam) RepBN(x)
        lam = max(0, 1 - (c - 1)/t0)

    eta is one learned number, first eta0; c counts training calls from 1; LN has a gain and bias of
    its own, ln_weight and ln_bias. Evaluation keeps the lam of the last training call (the release
    evaluates RepBN alone) and takes running values. Shapes and other options: as BatchNorm. Source:
    docs/norms.md 22.
    """

    method = "repbn"
    lam: Tensor
    ln_weight: Optional[nn.Parameter]
    ln_bias: Optional[nn.Parameter]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.05,
        affine: bool = True,
        *,
        alpha: Optional[float] = None,
        eta0: float = 1,
        t0: int = 0,
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
            alpha=alpha,
            layer_scale=layer_scale,
            sync=sync,
            process_group=process_group,
            channels_last=channels_last,
            check=check,
            device=device,
            dtype=dtype,
        )
        if t0 < 0:
            raise ValueError(f"{self._name()}: t0 is {t0}, not zero or positive")
        place = {"device": device, "dtype": dtype}
        self.t0 = t0
        self.eta = nn.Parameter(torch.full((), float(eta0), **place))
        self.ln_weight = nn.Parameter(torch.ones(num_features, **place)) if t0 else None
        self.ln_bias = nn.Parameter(torch.zeros(num_features, **place)) if t0 else None
        self.register_buffer("lam", torch.full((), 1.0 if t0 else 0.0, device=device))

    def _initial(self) -> Dict[str, float]:
        return {**super()._initial(), "lam": 1.0 if self.t0 else 0.0}

    def _mixed(self, bn: Tensor, x: Tensor, lam: Tensor, rows: Rows) -> Tensor:
        y = bn + self.eta.to(x.dtype) * x
        if self.ln_weight is None or self.ln_bias is None:
            return y
        apart = x - x.mean(rows.feature, keepdim=True)
        one = apart * ((apart * apart).mean(rows.feature, keepdim=True) + self.eps).rsqrt()
        ln = rows.wide(self.ln_weight.to(x.dtype)) * one + rows.wide(self.ln_bias.to(x.dtype))
        return lam.to(x.dtype) * ln + (1 - lam.to(x.dtype)) * y

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        return self._mixed(super()._evaluated(x, rows), x, self.lam, rows)

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        mean, apart, variance = centered(x, rows)
        bn = self._from_batch(x, apart, variance, rows, before)
        lam = before["lam"]
        if self.t0:
            lam = (1 - before["num_batches_tracked"].double() / self.t0).clamp(min=0)
        y = self._mixed(bn, x, lam, rows)
        self._move(
            rows,
            before,
            lam=lam,
            running_mean=self._averaged(before["running_mean"], mean),
            running_var=self._averaged(before["running_var"], variance),
        )
        return y

    def _options(self) -> Dict[str, Any]:
        options = {**super()._options(), "t0": self.t0}
        del options["track_running_stats"]
        return options
