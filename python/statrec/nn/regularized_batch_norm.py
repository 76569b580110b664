"""Regularized batch normalization (Wang, Wu and Huang, NeurIPS 2022; docs/norms.md 14)."""

from typing import ClassVar, Mapping

from torch import Tensor

from ._base import Default, Moments, Penalized, SyncOptions, Texts, Unpack, root
from .batch_norm import BatchNorm


class RegularizedBatchNorm(Penalized, BatchNorm):
    """BatchNorm whose batch statistics are drawn to the running ones by a penalty.

        penalty = lambda_mean ||mu_B - mu||^2 + lambda_std ||sigma_B - sigma||^2

    with constant running values (sigma = sqrt(running_var), no eps), from after this call's update
    (running="after", as released) or from before it. The output is BatchNorm's. The penalty reaches
    a model through its loss:

        loss = criterion(model(x), target) + statrec.nn.penalty(model)

    lambda_mean, lambda_std: weights for a loss that is summed over tokens, as in the release; divide
    them by the tokens of a batch for a mean loss. A second call with gradients before penalty(model) raises
    RuntimeError, since a penalty would be lost. Shapes and other options: BatchNorm. Source:
    docs/norms.md 14.
    """

    method = "rbn"
    shown: ClassVar[Texts] = {**Penalized.shown, "running": str}

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = Default(0.05),
        affine: bool = True,
        *,
        lambda_mean: float = 0.1,
        lambda_std: float = 0.01,
        running: str = "after",
        **options: Unpack[SyncOptions],
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, True, unbiased=False, **options)
        self._weights(lambda_mean, lambda_std)
        self.running = self._choice("running", running, "before", "after")

    def _penalty_of(
        self, batch: Moments, before: Mapping[str, Tensor], after: Mapping[str, Tensor]
    ) -> Tensor:
        state = before if self.running == "before" else after
        mu = state["running_mean"].detach().to(batch.mean.dtype).clone()
        sigma = state["running_var"].detach().to(batch.mean.dtype).sqrt()
        deviation = root(batch.variance) - sigma
        return (
            self.lambda_mean * ((batch.mean - mu) ** 2).sum()
            + self.lambda_std * (deviation * deviation).sum()
        )
