"""The base of all modules: options, input and output, gain and bias, representation."""

import inspect
from typing import Any, Callable, ClassVar, Dict, Optional

import torch
from torch import Tensor, nn

from ._checks import count, flag, float_type, number
from ._options import signature_of
from ._rows import Rows, rows_of

# Options that extra_repr leaves out at these values.
_LEFT_OUT: Dict[str, Any] = {
    "layer_scale": 0,
    "sync": False,
    "unbiased": False,
    "placement": "inside",
    "channels_last": False,
}

Texts = Dict[str, Callable[[Any], str]]


def is_called(module: nn.Module, inputs: Any) -> None:
    """A hook that does nothing. In evaluation torch.nn.TransformerEncoderLayer computes LayerNorm
    from weight, bias and eps of its norms, whatever they are, unless a module in it has a hook."""


class Norm(nn.Module):
    """A normalization of [N, C], [N, C, L], [N, C, H, W], or of [..., C] with channels_last=True.

    `mask` of forward: True in valid rows, of the input's shape without its features. Rows of
    padding enter no sum; they come out as 0 and get gradient 0. Statistics are computed in float32
    at least; the output has the type of the input. With channels_last=True the input may be a
    nested tensor: its rows are all valid.
    """

    __signature__: ClassVar[inspect.Signature]
    method: ClassVar[str] = ""
    padded: ClassVar[bool] = False  # a release that writes rows of padding too
    shown: ClassVar[Texts] = {"eps": str, "affine": str}  # options in extra_repr, in this order
    num_features: int
    weight: Optional[nn.Parameter]
    bias: Optional[nn.Parameter]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__signature__ = signature_of(cls)

    def __init__(
        self,
        num_features: int,
        eps: float,
        affine: bool,
        *,
        channels_last: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features = num_features = self._count("num_features", num_features, 1)
        self.eps = self._number("eps", eps, 0)
        self.channels_last = self._flag("channels_last", channels_last)
        self.affine = self._flag("affine", affine)
        self._place = {"device": device, "dtype": float_type(self._name(), dtype)}
        self._first_learned: Dict[str, float] = {}
        self.weight = self.bias = None
        if self.affine:
            self._parameter("weight", 1, num_features)
            self._parameter("bias", 0, num_features)
        self.register_forward_pre_hook(is_called)

    def _name(self) -> str:
        return type(self).__name__

    def _parameter(self, name: str, first: float, *shape: int) -> None:
        """Adds a learned number, or several, of the options' device and type."""
        self._first_learned[name] = float(first)
        setattr(self, name, nn.Parameter(torch.full(shape, float(first), **self._place)))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Parameters and running values as they were at construction."""
        for name, first in self._first_learned.items():
            if self._parameters.get(name) is not None:
                self._parameters[name].fill_(first)  # type: ignore[union-attr]

    def _number(self, option: str, value: Any, *limits: float) -> Any:
        return number(self._name(), option, value, *limits)

    def _count(self, option: str, value: Any, least: int) -> int:
        return count(self._name(), option, value, least)

    def _flag(self, option: str, value: Any) -> bool:
        return flag(self._name(), option, value)

    def _choice(self, option: str, value: str, *choices: str) -> str:
        """The value, if it is one of the choices."""
        if isinstance(value, str) and value in choices:
            return value
        words = [repr(choice) for choice in choices]
        raise ValueError(
            f"{self._name()}: {option} is {', '.join(words[:-1])} or {words[-1]}, "
            f"got {value!r:.80}"
        )

    def _group(self) -> Optional[object]:
        return None

    def forward(self, input: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        """The normalized input. mask: True in valid rows; None: all are valid."""
        if not isinstance(input, Tensor):
            raise TypeError(
                f"{self._name()}: the input is of type {type(input).__name__}, not a tensor"
            )
        if input.is_nested:
            return self._nested(input, mask)
        if input.dim() == 1 and self.channels_last:
            one = None if mask is None else mask.unsqueeze(0)
            return self.forward(input.unsqueeze(0), one).squeeze(0)
        rows = rows_of(
            input, mask, self.num_features, self.channels_last, self._group(), self._name()
        )
        x = input.to(torch.promote_types(input.dtype, torch.float32))
        if self.padded:
            return rows.any(self._normalized(rows.any(x), rows)).to(input.dtype)
        return rows.valid(self._normalized(rows.valid(x), rows)).to(input.dtype)

    def _nested(self, input: Any, mask: Optional[Tensor]) -> Tensor:
        """The rows of all parts of a nested tensor, which has no padding."""
        jagged = input.layout == torch.jagged
        if jagged and (input.lengths() is not None or input.size(-1) != self.num_features):
            raise ValueError(
                f"{self._name()}: the input is a nested tensor of shape {tuple(input.shape)}; "
                f"[N, *, {self.num_features}] without gaps is wanted"
            )
        if mask is not None or not self.channels_last:
            raise ValueError(
                f"{self._name()}: the input is a nested tensor; channels_last=True and no mask "
                "are wanted"
            )
        if jagged:  # the same offsets: only so can the result be added to the input
            y = self.forward(input.values())
            return torch.nested.nested_tensor_from_jagged(y, input.offsets())
        parts = input.unbind()
        rows = self.forward(torch.cat(parts)).split([part.shape[0] for part in parts])
        return torch.nested.as_nested_tensor(list(rows))

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        raise NotImplementedError

    def _affine(self, z: Tensor, rows: Rows) -> Tensor:
        """gamma z + beta; either may be missing."""
        if self.weight is not None:
            z = rows.wide(self.weight.to(z.dtype)) * z
        return z if self.bias is None else z + rows.wide(self.bias.to(z.dtype))

    def extra_repr(self) -> str:
        """The number of features and the options in `shown`."""
        values = [str(self.num_features)]
        texts: Texts = {**self.shown, "channels_last": str}
        for name, text in texts.items():
            value = getattr(self, name)
            if name not in _LEFT_OUT or value != _LEFT_OUT[name]:
                values.append(f"{name}={text(value)}")
        if self.affine and self.bias is None:
            values.append("bias=False")
        return ", ".join(values)
