"""Regularized batch normalization (Wang, Wu and Huang, NeurIPS 2022; docs/norms.md 14)."""

from typing import Any, Dict, Mapping, Optional

import torch
from torch import Tensor

from ._norm import RunningNorm
from ._penalized import Penalized, root
from .batch_norm import BatchNorm
from ._rows import Rows


class RegularizedBatchNorm(Penalized, BatchNorm):
    """BatchNorm whose batch statistics are drawn to the running ones by a penalty.

        penalty = lambda_mean ||mu_B - mu||^2 + lambda_std ||sigma_B - sigma||^2

    with constant running values (sigma = sqrt(running_var), no eps), from after this call's update
    (running="after", as released) or from before it. The output is BatchNorm's. The penalty reaches
    a model through its loss:

        loss = criterion(model(x), target) + statrec.nn.penalty(model)

    scale="sum": weights for a loss that is summed over tokens, as in the release; "mean" is the
    same here, since the weights are those of the loss that you add the penalty to: divide them by
    the tokens of a batch for a mean loss. A second call with gradients before penalty(model) raises
    RuntimeError, since a penalty would be lost. Shapes and other options: BatchNorm. Source:
    docs/norms.md 14.
    """

    method = "rbn"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.05,
        affine: bool = True,
        *,
        lambda_mean: float = 0.1,
        lambda_std: float = 0.01,
        running: str = "after",
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
            alpha=alpha,
            layer_scale=layer_scale,
            sync=sync,
            process_group=process_group,
            channels_last=channels_last,
            check=check,
            device=device,
            dtype=dtype,
        )
        self._weights(lambda_mean, lambda_std)
        if running not in ("before", "after"):
            raise ValueError(f"{self._name()}: running is 'before' or 'after', got {running!r:.80}")
        self.running = running

    def _moved(
        self,
        mean: Tensor,
        variance: Tensor,
        values: Dict[str, Tensor],
        rows: Rows,
        before: Mapping[str, Tensor],
    ) -> None:
        if self._asks():
            state = before if self.running == "before" else values
            mu = state["running_mean"].detach().to(mean.dtype).clone()
            sigma = state["running_var"].detach().to(mean.dtype).sqrt()
            deviation = root(variance) - sigma
            self._add(
                self.lambda_mean * ((mean - mu) ** 2).sum()
                + self.lambda_std * (deviation * deviation).sum(),
                rows,
            )
        self._move(rows, before, **values)

    def _options(self) -> Dict[str, Any]:
        options = {
            **super()._options(),
            "lambda_mean": self.lambda_mean,
            "lambda_std": self.lambda_std,
            "running": self.running,
        }
        del options["track_running_stats"]
        return options
