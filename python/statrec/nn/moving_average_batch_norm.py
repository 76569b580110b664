"""Moving average batch normalization as released (Yan et al., ICLR 2020; docs/norms.md 16)."""

from typing import Any, Dict, Mapping, Optional

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils import parametrize

from ._quadratic import QuadraticNorm, keep, lambda_of
from ._rows import Rows


class MovingAverageBatchNorm(QuadraticNorm):
    """MABN: statistics of both passes averaged over the last `buffer` calls.

    c counts training calls from 1; "early" is c <= buffer or c < warmup:

        v = mean[x^2] if early, else the mean of the last `buffer` of them    z = x/sqrt(v + eps)
        r = sqrt((v + eps)/(running_psi2 + eps)), a constant: 1 while c <= max(clip_calls, warmup),
            within [1/5, 5] later
        y = weight r z + bias    running_psi2 <- alpha running_psi2 + (1 - alpha) v
        dx = (q - z gz)/sqrt(v + eps)    gz = mean[q z] if early, else the mean of the last `buffer`

    with q = weight r dL/dy. dx is no derivative once averages are used. The method removes the mean
    from the weights before it: statrec.nn.center_weights(conv). window_x2 and window_gz [buffer,
    features] are the last values, call c in slot c mod buffer. Shapes and other options: as
    BatchNorm. Source: docs/norms.md 16.
    """

    method = "mabn"
    synchronizes = False
    window_x2: Tensor
    window_gz: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.02,
        affine: bool = True,
        *,
        alpha: Optional[float] = None,
        buffer: int = 16,
        warmup: int = 100,
        clip_calls: int = 1000,
        layer_scale: int = 0,
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
            False,
            None,
            channels_last,
            check,
            device,
            dtype,
        )
        if buffer < 1:
            raise ValueError(f"{self._name()}: buffer is {buffer}, at least 1 is wanted")
        self.buffer, self.warmup, self.clip_calls = buffer, warmup, clip_calls
        self._start()
        self._running("window_x2", 0, buffer)
        self._running("window_gz", 0, buffer)

    def _initial(self) -> Dict[str, float]:
        return {**super()._initial(), "window_x2": 0, "window_gz": 0}

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        calls = before["num_batches_tracked"] + 1
        early = (calls <= self.buffer) | (calls < self.warmup)
        square = rows.mean(x.detach() ** 2)
        window = put(before["window_x2"], calls, square)
        average = torch.where(early, square, window.to(x.dtype).mean(0))
        inverse = self._inverse(average)
        z = _Average.apply(
            x, inverse, self.window_gz, calls, early, rows.dims, rows.view, rows.number, rows.some
        )
        running = before["running_psi2"].to(x.dtype)
        ratio = ((average + self.eps) / (running + self.eps)).sqrt()
        limit = torch.where(calls <= max(self.clip_calls, self.warmup), 1.0, 5.0).to(x.dtype)
        ratio = torch.minimum(torch.maximum(ratio, 1 / limit), limit)
        y = self._affine(rows.wide(ratio) * z, rows)
        self._move(rows, before, window_x2=window, running_psi2=self._averaged(running, average))
        return y

    def _options(self) -> Dict[str, Any]:
        return {
            **super()._options(),
            "buffer": self.buffer,
            "warmup": self.warmup,
            "clip_calls": self.clip_calls,
        }


def put(window: Tensor, calls: Tensor, value: Tensor) -> Tensor:
    """The window [slots, features] with the value in slot calls mod slots."""
    slots = window.shape[0]
    here = torch.arange(slots, device=window.device).unsqueeze(1) == calls % slots
    return torch.where(here, value.detach().to(window.dtype), window)


class _Average(torch.autograd.Function):
    """z = x/s; dx = (q - z gz)/s with the average of the last gz; moves their window."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        inverse: Tensor,
        window: Tensor,
        calls: Tensor,
        early: Tensor,
        dims: Any,
        view: Any,
        count: Any,
        some: Any,
    ) -> Tensor:
        z = x * inverse.view(view)
        ctx.save_for_backward(z, inverse, calls, early)
        ctx.window, ctx.dims, ctx.view, ctx.count, ctx.some = window, dims, view, count, some
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, q: Tensor) -> Any:
        z, inverse, calls, early = ctx.saved_tensors
        gz = lambda_of(q, z, ctx.dims, ctx.count, None)
        window = put(ctx.window, calls, gz)
        average = torch.where(early, gz, window.to(q.dtype).mean(0))
        keep(ctx.window, window, ctx.some)
        dx = (q - z * average.view(ctx.view)) * inverse.view(ctx.view)
        return dx, None, None, None, None, None, None, None, None


class _Centered(nn.Module):
    """A weight minus the mean of each output unit."""

    def forward(self, weight: Tensor) -> Tensor:
        """weight: outputs first."""
        return weight - weight.mean(tuple(range(1, weight.dim())), keepdim=True)


def center_weights(module: nn.Module) -> nn.Module:
    """Makes a convolution or linear layer use its weights minus the mean of each output unit, as
    MABN wants of the layer before it; the gradient passes through the subtraction. Returns the
    module."""
    if not isinstance(getattr(module, "weight", None), Tensor) or module.weight.dim() < 2:
        raise ValueError(
            f"center_weights: {type(module).__name__} has no weight [outputs, inputs, ...]"
        )
    parametrize.register_parametrization(module, "weight", _Centered())
    return module
